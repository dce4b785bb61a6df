"""The published plan against the embedded server: a row a stage, each number as the server itself saw it.

The server plays a DeepSeek-R1 cluster at time scale 20, with shortened holds and answers. Of each stage
TTFT, TPOT and E2E are compared with the server's own account of the same requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median
from typing import Any

import pytest

from benchmarks.rig.stand import Stand, stand

PLAN = ("--llm-shape", "full-plan", "--llm-levels", "4,16", "--llm-rates", "5,20", "--llm-hold", "3")
LONG_PLAN = ("--llm-shape", "full-plan", "--llm-hold", "15")
WITHIN = 0.05


def labels(levels: tuple[int, ...] = (4, 16), rates: tuple[int, ...] = (5, 20)) -> list[str]:
    """The stages of the plan in their order."""
    return ["baseline", *(f"users-{n}" for n in levels), *(f"rate-{n}" for n in rates), "mixed"]


def as_the_server_saw(line: dict[str, Any]) -> dict[str, float]:
    """TTFT, TPOT and E2E of a request, in ms, from the server's instants."""
    sent = line["token_send_ns"]
    return {
        "ttft_ms": (sent[0] - line["arrival_ns"]) / 1e6,
        "tpot_ms": (sent[-1] - sent[0]) / 1e6 / (len(sent) - 1),
        "e2e_ms": (sent[-1] - line["arrival_ns"]) / 1e6,
    }


def assert_as_the_server_saw(run: Stand, stages: list[str]) -> None:
    """In each stage the median request is within 5 % of what the server says of it."""
    told = {line["request_id"]: line for line in run.mock.lines()}
    beyond = []
    for stage in stages:
        rows = [row for row in run.steady(stage) if row["outcome"] == "ok"]
        assert rows, stage
        truth = [as_the_server_saw(told[row["client_request_id"]]) for row in rows]
        metrics = run.metrics(stage)
        figures = {}
        for name in ("ttft_ms", "tpot_ms", "e2e_ms"):
            # A request whose tokens all came in one read (we stood still) has no TPOT.
            both = [(float(row[name]), one[name]) for row, one in zip(rows, truth, strict=True) if row[name]]
            ours, servers = zip(*both, strict=True)
            assert metrics[f"{name}_mean"] == pytest.approx(fmean(ours), rel=1e-6)
            assert metrics[f"{name}_count"] == len(both)
            off = (
                fmean(ours) / fmean(servers) - 1,
                median(our / their for our, their in both) - 1,
            )
            figures[name] = f"{fmean(ours):.1f} ({off[0]:+.1%}, median {off[1]:+.1%})"
            # The mean takes in every moment in which a busy machine let one of both stand still; the median of what
            # the two say of one request does not.
            if abs(off[1]) > WITHIN:
                beyond.append((stage, name, figures[name]))
        print(f"{stage}: {len(rows)} requests, ours (against the server's): {figures}")
    assert not beyond


def run_plan(folder: Path, workers: int, plan: tuple[str, ...], *args: str) -> Iterator[Stand]:
    """Run a plan to its end."""
    with stand(folder, "--time-scale", "20") as made:
        process = made.run(*plan, *args, workers=workers)
        code = process.wait(900)
        print(process.output[-6000:])
        assert code == 0, process.output[-3000:]
        yield made


@pytest.fixture(scope="module")
def distributed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """The short plan over two workers."""
    lengths = ("--llm-input-tokens", "4096", "--llm-output-tokens", "24")
    yield from run_plan(tmp_path_factory.mktemp("distributed"), 2, PLAN, *lengths)


@pytest.mark.timeout(180)
def test_plan_is_one_table_and_nothing_is_counted_twice_or_lost(distributed: Stand) -> None:
    """A row a stage in the plan's order; every request that the server saw is in exactly one stage."""
    measured = [row["stage"] for row in distributed.summary()["stages"] if row["name"] == "all"]
    assert measured == labels()
    distributed.assert_nothing_lost()
    for stage in measured:
        rows = distributed.steady(stage)
        metrics = distributed.metrics(stage)
        assert metrics["requests_ok"] + metrics["requests_failed"] == len(rows)
        # A request belongs to the phase in which it was let through; its first system call may come after a mark.
        assert metrics["requests_started"] == pytest.approx(len(rows), abs=2)
    assert len(distributed.steady("baseline")) == 10
    assert (
        sum(distributed.metrics(stage)["requests_started"] for stage in measured)
        == distributed.summary()["totals"]["requests_started"]
    )


@pytest.mark.timeout(180)
def test_stages_are_as_the_server_saw_them(distributed: Stand) -> None:
    """TTFT, TPOT and E2E of each level within 5 % of the server's own account."""
    assert_as_the_server_saw(distributed, labels())


@pytest.mark.timeout(180)
def test_stages_do_not_overlap(distributed: Stand) -> None:
    """Each level stands alone: the last stream of one has ended before the first request of the next starts."""
    rows = distributed.rows()
    spans = []
    for stage in labels():
        of_stage = [row for row in rows if row["stage"] == stage]
        starts = [float(row["start_epoch_s"]) for row in of_stage]
        ends = [float(row["start_epoch_s"]) + float(row["stream_end_ms"]) / 1000 for row in of_stage]
        spans.append((min(starts), max(ends)))
    assert all(before[1] < after[0] for before, after in pairwise(spans))


@pytest.mark.timeout(180)
def test_plan_is_the_same_in_one_process(distributed: Stand, tmp_path: Path) -> None:
    """The stages that were applied, their users, rates and reasons to end, are those of the distributed run."""
    lengths = ("--llm-input-tokens", "4096", "--llm-output-tokens", "24")
    for local in run_plan(tmp_path, 0, PLAN, *lengths):
        assert applied(local) == applied(distributed)
        local.assert_nothing_lost()


def applied(run: Stand) -> list[tuple[Any, ...]]:
    """The stages as they were carried out; every instant is there and in order."""
    stages = run.summary()["applied"]
    for stage in stages:
        assert stage["opened"] <= stage["steady"] <= stage["closed"] <= stage["drained"], stage
    return [(s["stage"], s["users"], s["rate_per_s"], s["ended_by"], s["skipped"]) for s in stages]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_published_plan_is_as_the_server_saw_it(tmp_path: Path) -> None:
    """All ten stages with prompts of 1,024 tokens and answers of 128, 15 s each."""
    lengths = ("--llm-input-tokens", "1024", "--llm-output-tokens", "128")
    for run in run_plan(tmp_path, 2, LONG_PLAN, *lengths):
        run.assert_nothing_lost()
        assert_as_the_server_saw(run, labels((8, 16, 32, 64), (2, 5, 10, 20)))
