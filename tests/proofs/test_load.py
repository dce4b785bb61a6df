"""What else the load promises, seen on the whole product: batches, saturation, skipped levels, edits, traces, plans."""

from __future__ import annotations

import json
import os
import signal
import time
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

from benchmarks.rig.locusts import Lab, Locust, until
from benchmarks.rig.ports import free_port
from benchmarks.rig.stand import stand
from tests.contract.test_web import Page

HERE = Path(__file__).parent
SHORT = ("--llm-input-tokens", "16", "--llm-output-tokens", "4")


@pytest.mark.parametrize("workers", [1, 2])
def test_batch_has_the_servers_latency_and_throughput(tmp_path: Path, workers: int) -> None:
    """Ten requests at one instant, on one worker and on two: latency, output and total throughput as the server saw."""
    with stand(tmp_path, "--profile", "fast", "--ttft-ms", "200", "--itl-ms", "20") as run:
        lengths = ("--llm-input-tokens", "64", "--llm-output-tokens", "51")
        process = run.run("--llm-shape", "fixed-batch", "--llm-levels", "10", *lengths, workers=workers)
        assert process.wait(60) == 0, process.output
        run.assert_nothing_lost()
        rows = run.steady("batch-10")
        assert len(rows) == 10
        starts = [float(row["start_epoch_s"]) for row in rows]
        told = {line["request_id"]: line for line in run.mock.lines()}
        lines = [told[row["client_request_id"]] for row in rows]
        latency_s = (max(line["token_send_ns"][-1] for line in lines) - min(line["arrival_ns"] for line in lines)) / 1e9
        metrics = run.metrics("batch-10")
        print(f"{workers} workers: released within {max(starts) - min(starts):.3f} s; {metrics['span_s']:.3f} s, "
              f"server {latency_s:.3f} s; {metrics['completed_output_tok_per_s']:.1f} tok/s")  # fmt: skip
        assert max(starts) - min(starts) < 0.1
        assert metrics["span_s"] == pytest.approx(latency_s, rel=0.05)
        output, given = sum(line["output_tokens"] for line in lines), sum(line["prompt_tokens"] for line in lines)
        assert output == 510
        assert metrics["completed_output_tok_per_s"] == pytest.approx(output / latency_s, rel=0.05)
        assert metrics["completed_total_tok_per_s"] == pytest.approx((output + given) / latency_s, rel=0.05)


def test_saturated_stage_is_a_finding_and_its_unstarted_arrivals_miss_the_objective(tmp_path: Path) -> None:
    """20/s on four users of 1 s: SATURATED, most arrivals unstarted; those over 2 s are judged, as missed: exit 3."""
    with stand(tmp_path, "--profile", "fast", "--ttft-ms", "500", "--itl-ms", "100") as run:
        process = run.run(
            *("--llm-shape", "mixed-load", "--llm-rate", "20", "--llm-arrivals", "constant", "-u", "4"),
            *("--llm-hold", "8", "--llm-warmup", "0", "--llm-input-tokens", "16", "--llm-output-tokens", "6"),
            *("--llm-slo", "goodput(ttft < 2s) > 95%; error_rate < 1%"),
            workers=2,
        )
        assert process.wait(60) == 3, process.output
        metrics, summary = run.metrics("mixed"), run.summary()
        unstarted = metrics["arrivals_unstarted"]
        assert metrics["arrivals_due"] == metrics["arrivals_started"] + unstarted
        assert metrics["arrivals_due"] == pytest.approx(160, abs=2)
        assert metrics["saturated"] == 1
        assert metrics["scheduled_lower_bounds"] == 1
        rows = run.steady("mixed")
        closed_s = max(float(row["scheduled_epoch_s"]) for row in rows)
        # The arrivals after the last one that started waited from their instant to the stage's end, 8 s.
        first_s = min(float(row["scheduled_epoch_s"]) for row in rows)
        waited_long = sum(closed_s < first_s + n / 20 < first_s + 6 for n in range(160))
        missed = metrics["slo_judged"] - sum(row["slo_good"] != "" for row in rows)
        print(f"{len(rows)} started, {unstarted} not, {missed} of them judged as missed (by arithmetic {waited_long})")
        assert missed == pytest.approx(waited_long, abs=3)
        by_clause = {clause["clause"]: clause["passed"] for clause in summary["slo"]}
        assert by_clause == {"goodput(ttft < 2s) > 95%": False, "error_rate < 1%": True}
        assert any("SATURATED" in finding for finding in summary["verdict"]["findings"])
        assert not [reason for reason in summary["verdict"]["reasons"] if "arrivals started that fell due" in reason]
        assert "missed" in process.output.lower()


def test_sweep_stops_after_a_level_that_failed(tmp_path: Path) -> None:
    """Most requests of the first level fail: the levels above it are listed as skipped, with the reason."""
    with stand(tmp_path, "--profile", "fast", "--ttft-ms", "20", "--itl-ms", "5", "--fault", "http_error=0.8") as run:
        levels = ("--llm-shape", "concurrency-steps", "--llm-levels", "2,4,8", "--llm-hold", "4")
        process = run.run(*levels, *SHORT, "--llm-no-preflight", "--llm-stop-on-failures", "0")
        assert process.wait(60) == 1, process.output
        summary = run.summary()
        assert {stage["stage"] for stage in summary["stages"]} == {"users-2"}
        assert list(summary["skipped"]) == ["users-4", "users-8"]
        assert all("of the requests of users-2 failed" in reason for reason in summary["skipped"].values())
        applied = {stage["stage"]: stage for stage in summary["applied"]}
        assert applied["users-4"]["opened"] is None
        assert applied["users-2"]["ended_by"] == "hold"


def test_edit_in_the_page_splits_the_stage(tmp_path: Path) -> None:
    """The rate is raised from 10 to 20 in mid-stage: `mixed` ends by the edit, `mixed-2` goes on to the same end."""
    lab = Lab(tmp_path)
    lab.port = free_port()
    try:
        page = Page(lab, forked=True, env={"FAKE_STREAM_S": "0.05"})
        form = {"llm_shape": "mixed-load", "llm_arrivals": "constant", "llm_hold": "16", "llm_warmup": "0"}
        assert page.swarm(**form, llm_rate="10", user_count="20")["success"]
        until(lambda: lab.state() == "running", 20, lambda: page.locust.output)
        time.sleep(7)
        assert page.swarm(**form, llm_rate="20", user_count="20")["success"]
        until(lambda: lab.state() == "finished", 60, lambda: page.locust.output)
        applied = lab.summary()["applied"]
        assert [(s["stage"], s["rate_per_s"], s["ended_by"]) for s in applied] == [
            ("mixed", 10, "edit"),
            ("mixed-2", 20, "hold"),
        ]
        rows = lab.rows()
        assert len({row["request_id"] for row in rows}) == len(rows)
        for stage, rate in (("mixed", 10), ("mixed-2", 20)):
            starts = sorted(float(row["start_epoch_s"]) for row in rows if row["stage"] == stage)
            gaps = [after - before for before, after in pairwise(starts)]
            # Starts that a busy machine delays come in a bunch, and their gaps are no longer those of the schedule.
            print(f"{stage}: {len(starts)} requests, median gap {median(gaps) * 1000:.2f} ms")
            assert median(gaps) == pytest.approx(1 / rate, rel=0.05)
    finally:
        lab.end()


def test_trace_goes_on_when_a_worker_is_lost(tmp_path: Path) -> None:
    """A trace of 30 s at 10/s on two workers, one killed: the other plays what is left, each instant at most once."""
    trace = tmp_path / "mooncake.jsonl"
    lines = [{"timestamp": n * 100, "input_length": 16, "output_length": 4, "hash_ids": [n]} for n in range(300)]
    trace.write_text("\n".join(json.dumps(line) for line in lines))
    with stand(tmp_path, "--profile", "fast", "--ttft-ms", "20", "--itl-ms", "2") as run:
        master = run.locust(
            *("--headless", "--host", run.mock.url, "--master", "--expect-workers", "2", *run.binding[:4]),
            *("--llm-shape", "trace-replay", "--llm-prompts", f"mooncake:{trace}", "-u", "16"),
        )
        workers = [run.worker() for _ in range(2)]
        master.wait_for("All users spawned", 40)
        time.sleep(6)
        os.kill(workers[0].process.pid, signal.SIGKILL)
        master.wait(90)
        rows, metrics = run.steady("trace"), run.metrics("trace")
        assert len({row["request_id"] for row in rows}) == len(rows)
        due = sorted(float(row["scheduled_epoch_s"]) for row in rows)
        late = [at for at in due if at > due[0] + 20]
        print(f"{len(rows)} of 300 played, {metrics['unissued']} unissued; {len(late)} in the last 10 s")
        assert len(late) == pytest.approx(100, abs=2)
        assert len(rows) + metrics["unissued"] == pytest.approx(300, abs=3)
        assert run.summary()["applied"][0]["ended_by"] == "trace"


@pytest.mark.parametrize(
    ("shape", "args", "into", "out", "said"),
    [
        ("baseline", ("--llm-output-tokens", "7"), "300-400", "7", False),
        ("long-context", (), "6144", "2048", True),
        ("OwnSteps", (), "77", "30", True),
    ],
)
def test_dry_run_prints_the_lengths_that_are_sent(
    tmp_path: Path, shape: str, args: tuple[str, ...], into: str, out: str, said: bool
) -> None:
    """Option > own shape > user class > the suite's shape; what takes the place of a class's lengths is said."""
    where = ("--headless", "--host", "http://127.0.0.1:9", "--llm-dry-run")
    process = Locust(tmp_path, *where, "--llm-shape", shape, *args, file=HERE / "lengths_locustfile.py")
    try:
        assert process.wait(30) == 0, process.output
    finally:
        process.end()
    rows = [line.split() for line in process.output.splitlines()]
    assert [into, out] in [row[-2:] for row in rows], process.output
    assert ("the shape's own lengths take the place of those of Own" in process.output) is said


def test_dry_run_prints_the_plan_and_sends_nothing(tmp_path: Path) -> None:
    """Each stage with its users, rate and end, the least duration; exit 0, no request, no folder."""
    with stand(tmp_path, "--profile", "fast") as run:
        process = run.run("--llm-shape", "full-plan", "--llm-dry-run", workers=2)
        assert process.wait(30) == 0, process.output
        for text in ("baseline", "users-64", "rate-20", "mixed", "20 poisson", "10 requests", "least duration: "):
            assert text in process.output
        assert "Unknown message" not in process.output
        assert run.mock.truth()["requests"] == 0
        assert not (tmp_path / "reports").exists()
