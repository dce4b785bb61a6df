"""A night in short: memory that does not grow, and files that survive the death of any process.

The embedded server runs at time scale 60: ten minutes are ten hours of the model's time.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from benchmarks.rig.stand import Stand, stand
from benchmarks.soak import MOST_GROWTH_MB, Soaked, soak
from llm_locust.outputs.readers import read_requests

REPORT_S = 3.0
FLUSH_S = 2.0
SLACK_S = 1.5
"""For a machine that is busy: reports and flushes come late by as much."""
LOAD = ("--llm-rate", "8", "-u", "64", "--llm-input-tokens", "128", "--llm-output-tokens", "256")


def assert_flat(found: Soaked, settled_s: float) -> None:
    """Master and workers gain less than the limit once they have settled, and every row ended by its hold."""
    growth_mb = found.growth_mb(settled_s)
    figures = f"{found.requests:,} requests; grown by {growth_mb} MB at most (master, workers) from {settled_s} s on"
    print(figures)
    assert max(growth_mb) < MOST_GROWTH_MB, figures
    assert set(found.ended_by) == {"hold"}


@pytest.mark.timeout(180)
def test_soak_of_a_minute_does_not_grow(tmp_path: Path) -> None:
    """60 s, settled after half of it."""
    assert_flat(soak(tmp_path, seconds=60, every_s=5.0, load=LOAD), 30.0)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_soak_of_ten_minutes_does_not_grow(tmp_path: Path) -> None:
    """Ten minutes, settled after the first."""
    assert_flat(soak(tmp_path, seconds=600, every_s=5.0, load=LOAD), 60.0)


def start_soak(run: Stand) -> None:
    """Start a master and two workers on their own, under steady load."""
    where = ("--master", "--expect-workers", "2", *run.binding[:4])
    run.locust("--headless", "--host", run.mock.url, *where, "--llm-shape", "soak", "--run-time", "25", *LOAD)
    for _ in range(2):
        run.worker()
    run.started[0].wait_for("All users spawned", 40)
    time.sleep(12)


def ended_before(run: Stand, epoch_s: float) -> set[str]:
    """Requests of the run that the server completed before an instant, by their ids."""
    behind_s = time.time() - time.monotonic()
    done = (line for line in run.generations() if line["completed"])
    return {line["request_id"] for line in done if line["end_ns"] / 1e9 + behind_s < epoch_s}


@pytest.mark.timeout(120)
def test_requests_csv_is_complete_up_to_the_last_report_when_a_worker_is_killed(tmp_path: Path) -> None:
    """What had ended a report's interval before the kill is in the file; nothing is there twice."""
    with stand(tmp_path, "--time-scale", "60") as run:
        start_soak(run)
        killed_s = time.time()
        os.kill(run.started[1].process.pid, signal.SIGKILL)
        run.started[0].wait(90)
        ids = [row["client_request_id"] for row in run.rows()]
        assert len(set(ids)) == len(ids)
        before = ended_before(run, killed_s - REPORT_S - SLACK_S)
        print(
            f"{len(before)} ended a report before the kill, {len(before - set(ids))} of them missing, {len(ids)} rows"
        )
        assert before
        assert not before - set(ids)


@pytest.mark.timeout(120)
def test_requests_csv_is_complete_up_to_the_last_flush_when_the_master_is_killed(tmp_path: Path) -> None:
    """What had ended a report and a flush before the kill is in the file, which our reader reads; it says `running`."""
    with stand(tmp_path, "--time-scale", "60") as run:
        start_soak(run)
        killed_s = time.time()
        os.kill(run.started[0].process.pid, signal.SIGKILL)
        run.started[0].process.wait()
        rows = read_requests(run.runs[-1])
        ids = set(rows["client_request_id"])
        assert len(ids) == len(rows)
        before = ended_before(run, killed_s - REPORT_S - FLUSH_S - SLACK_S)
        print(f"{len(before)} ended a report and a flush before the kill, {len(before - ids)} missing, {len(ids)} rows")
        assert before
        assert not before - ids
        assert run.state() == "running"
