"""A worker killed in mid-stage: the rate is back within ten seconds, and what fell due meanwhile is counted."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from benchmarks.rig.stand import Stand, stand

RATE_PER_S = 30.0
BACK_WITHIN_S = 10.0
HOLD_S = 40.0


def start(run: Stand, law: str, *args: str) -> list[int]:
    """Start a stage of constant rate over three workers; return the workers' ids when it has run for six seconds."""
    own = ("--llm-rate", str(RATE_PER_S), "--llm-arrivals", law, "-u", "48", "--llm-warmup", "0")
    lengths = ("--llm-input-tokens", "16", "--llm-output-tokens", "4")
    master = run.locust(
        *("--headless", "--host", run.mock.url, "--master", "--expect-workers", "3", *run.binding[:4], *own, *lengths),
        *("--llm-shape", "mixed-load", "--llm-hold", str(HOLD_S), *args),
    )
    workers = [run.worker() for _ in range(3)]
    master.wait_for("All users spawned", 40)
    time.sleep(6)
    return [worker.process.pid for worker in workers]


@pytest.mark.timeout(180)
def test_rate_is_back_within_ten_seconds_when_a_worker_is_killed(tmp_path: Path) -> None:
    """Constant 30/s over three workers, one killed with -9: 30/s again, 10/s lost in between and counted."""
    with stand(tmp_path, "--profile", "fast", "--ttft-ms", "20", "--itl-ms", "2") as run:
        pids = start(run, "constant")
        killed_epoch_s = time.time()
        os.kill(pids[0], signal.SIGKILL)
        master = run.started[0]
        master.wait(HOLD_S + 60)
        summary = run.summary()
        lost = [worker for worker in summary["workers"] if worker["lost"]]
        assert [worker["pid"] for worker in lost] == [pids[0]], master.output
        sentences = [*summary["verdict"]["findings"], *summary["verdict"]["reasons"]]
        assert any(f"worker {lost[0]['worker']} lost: last report at" in sentence for sentence in sentences)
        assert summary["verdict"]["validity"] != "INVALID", summary["verdict"]

        rows = run.steady("mixed")
        assert len({row["request_id"] for row in rows}) == len(rows)
        due = sorted(float(row["scheduled_epoch_s"]) for row in rows)
        back_s = killed_epoch_s + BACK_WITHIN_S
        after = [at for at in due if back_s <= at < back_s + 15]
        assert len(after) / 15 == pytest.approx(RATE_PER_S, rel=0.05)

        metrics = run.metrics("mixed")
        assert metrics["arrivals_started"] >= len(rows)
        missing, unaccounted = _missing(due), _unaccounted(sentences)
        print(
            f"killed: {missing} instants without a row: {metrics['unissued']} unissued, {unaccounted} not accounted "
            f"for; {len(after) / 15:.2f}/s from 10 s after the kill on"
        )
        # Every instant has a row, or died with the worker, or was never issued.
        assert missing == pytest.approx(metrics["unissued"] + unaccounted, abs=2)


def _unaccounted(sentences: list[str]) -> int:
    """What the run says of the lost worker's streams."""
    found = re.search(r"lost: last report at [\d.]+ s, at least (\d+) streams not accounted for", "\n".join(sentences))
    assert found, sentences
    return int(found[1])


def _missing(due: list[float]) -> int:
    """Instants of the constant schedule, from the first to the last, that no row has."""
    whole = round((due[-1] - due[0]) * RATE_PER_S) + 1
    return whole - len(due)
