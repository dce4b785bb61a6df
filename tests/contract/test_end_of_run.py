"""However a run ends, nothing that was received is lost, and what was not finished says so.

The host's behaviour that makes this necessary (Locust 2.47): on `--run-time`, Ctrl-C and SIGTERM a master waits half a
second for its workers; streams that drain later, and the last reports, are lost with exit code 0.
"""

from __future__ import annotations

import re
import signal
import socket
import time
from pathlib import Path

import pytest

from benchmarks.rig.locusts import LLM_FILE, SPAWNED, Lab, children_of, lives, until
from benchmarks.rig.ports import free_port

from .lab import STREAMING, locusts_requests

BOTH_MODES = pytest.mark.parametrize("mode", [pytest.param("local", marks=pytest.mark.slow), "two workers"])
"""A local runner is the smaller case of the same code: tried by `make test-slow`."""


def assert_whole(lab: Lab, output: str, state: str) -> None:
    """Rows, totals and Locust's own numbers agree, and the accounts of workers and master too."""
    summary = lab.summary()
    assert summary["state"] == state, output
    outcomes = lab.outcomes()
    assert outcomes.get("unfinished", 0) + locusts_requests(output) == sum(outcomes.values())
    assert summary["verdict"]["finished"] is True
    assert not [reason for reason in summary["verdict"]["reasons"] if "differ" in reason or "lost" in reason]


@BOTH_MODES
def test_streams_longer_than_a_report_are_all_counted_at_run_time(lab: Lab, mode: str) -> None:
    """Streams of 3.5 s under -t 4, four at a time: those that end after the stop count, too (not with Locust alone).

    The page that Locust's own `--html` writes leads to the run's report.
    """
    args = ("-u", "4", "-r", "4", "-t", "4", "--llm-warmup", "0", "--only-summary", "--html", "locust.html")
    env = {"FAKE_STREAM_S": "3.5"}
    run = lab.local(*args, env=env) if mode == "local" else lab.forked(*args, env=env)
    assert run.wait() == 0, run.output
    assert set(lab.outcomes()) == {"ok"}
    assert lab.outcomes()["ok"] == run.output.count(STREAMING)
    assert_whole(lab, run.output, "finished")
    link = re.search(r'href="(reports/[^"]+/report\.html)"', (lab.folder / "locust.html").read_text())
    assert link
    assert (lab.folder / link[1]).exists()


@BOTH_MODES
def test_streams_cut_by_the_end_are_unfinished(lab: Lab, mode: str) -> None:
    """3 streams of 30 s, no drain: 0 successes, 0 failures, 3 unfinished with their partial tokens; exit code not 0."""
    args = ("-u", "3", "-r", "3", "-t", "3", "--llm-drain", "0", "--llm-warmup", "0")
    env = {"FAKE_STREAM_S": "10"}
    run = lab.local(*args, env=env) if mode == "local" else lab.forked(*args, env=env)
    assert run.wait() == 1, run.output
    assert lab.outcomes() == {"unfinished": 3}
    assert all(1 <= int(row["output_tokens"]) <= 4 for row in lab.rows())
    assert_whole(lab, run.output, "finished")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
@BOTH_MODES
def test_signal_drains_and_writes_once(lab: Lab, mode: str, number: signal.Signals) -> None:
    """Ctrl-C and SIGTERM let open streams end; all files are final."""
    args = ("-u", "2", "-r", "2", "--llm-warmup", "0")
    env = {"FAKE_STREAM_S": "1"}
    run = lab.local(*args, env=env) if mode == "local" else lab.forked(*args, env=env)
    until(lambda: run.output.count(STREAMING) > 2, 60, lambda: run.output)
    run.interrupt() if number is signal.SIGINT else run.signal(number)
    assert run.wait() == 0, run.output
    assert set(lab.outcomes()) == {"ok"}
    assert "streams are still open" in run.output
    assert run.output.count("Files\n") == 1
    assert_whole(lab, run.output, "stopped")


@BOTH_MODES
def test_second_ctrl_c_ends_the_drain_at_once(lab: Lab, mode: str) -> None:
    """Streams of 60 s: the first Ctrl-C waits for them, the second makes them unfinished; files are written."""
    args = ("-u", "2", "-r", "2")
    env = {"FAKE_STREAM_S": "60"}
    run = lab.local(*args, env=env) if mode == "local" else lab.forked(*args, env=env)
    until(lambda: run.output.count(STREAMING) == 2, 60, lambda: run.output)
    run.interrupt()
    run.wait_for("Ctrl-C again ends them at once")
    began = time.monotonic()
    run.interrupt()
    assert run.wait() == 1, run.output
    assert time.monotonic() - began < 6
    assert lab.outcomes() == {"unfinished": 2}
    assert_whole(lab, run.output, "stopped")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_signal_in_the_preflight_ends_all_processes_in_words(lab: Lab, number: signal.Signals) -> None:
    """A server that takes the connection and says nothing: no traceback, no run, no forked worker left behind."""
    with socket.create_server(("127.0.0.1", free_port())) as silent:
        host = f"http://127.0.0.1:{silent.getsockname()[1]}"
        args = ("--headless", "--processes", "2", *lab.binding, "--host", host, "--llm-model", "m")
        run = lab.locust(*args, file=LLM_FILE)
        run.wait_for("2 workers connected")
        with silent.accept()[0]:  # the short request is on its way
            forked = list(children_of(run))
            run.interrupt() if number is signal.SIGINT else run.signal(number)
            assert run.wait() == 1, run.output
    assert "interrupted before any load was sent" in run.output
    assert "Traceback" not in run.output
    until(lambda: not any(lives(pid) for pid in forked), 10, lambda: run.output)
    assert len(forked) == 2


def test_forked_workers_end_with_their_master(lab: Lab) -> None:
    """kill -9 of the master: no load goes on that nobody counts; what was written stays readable."""
    run = lab.forked("-u", "2", "-r", "2", env={"FAKE_STREAM_S": "0.2"})
    until(lambda: lab.state() == "running" and bool(lab.rows()), 60, lambda: run.output)
    forked = list(children_of(run))
    run.signal(signal.SIGKILL)
    until(lambda: not any(lives(pid) for pid in forked), 20, lambda: run.output)
    assert len(forked) == 2
    assert lab.state() == "running"
    assert set(lab.outcomes()) == {"ok"}


def test_number_of_requests_is_exact_over_two_workers(lab: Lab) -> None:
    """--llm-requests 21 with 4 users on 2 workers: 21 measured requests, then the run ends by itself.

    A Ctrl-C that comes when the files are there leaves no traceback.
    """
    run = lab.forked("-u", "4", "-r", "4", "--llm-requests", "21", env={"FAKE_STREAM_S": "0.2"})
    run.wait_for("Next: repeat this run")
    run.interrupt()
    assert run.wait() == 0, run.output
    assert "Traceback" not in run.output
    assert sum(row["phase"] == "steady" for row in lab.rows()) == 21
    assert len({row["request_id"] for row in lab.rows()}) == len(lab.rows())
    assert_whole(lab, run.output, "finished")


@BOTH_MODES
def test_shape_ends_after_its_last_stage_has_drained(lab: Lab, mode: str) -> None:
    """Two levels, drained in between: every request belongs to the level that issued it, none is lost."""
    args = (
        "--llm-shape",
        "concurrency-steps",
        "--llm-levels",
        "2,4",
        "--llm-requests",
        "6,8",
        "--llm-start",
        "together",
    )
    env = {"FAKE_STREAM_S": "0.3"}
    run = lab.local(*args, env=env) if mode == "local" else lab.forked(*args, env=env)
    assert run.wait() == 0, run.output
    steady = [row["stage"] for row in lab.rows() if row["phase"] == "steady"]
    assert {stage: steady.count(stage) for stage in steady} == {"users-2": 6, "users-4": 8}
    assert_whole(lab, run.output, "finished")


@BOTH_MODES
def test_warm_up_ends_beside_users_that_ask_nothing_and_users_that_die(lab: Lab, mode: str) -> None:
    """Of six users two ask no model and two die in their first request: two are warm, and then it is measured."""
    args = ("-u", "6", "-r", "6", "-t", "6")
    env = {"FAKE_STREAM_S": "0.2"}
    start = lab.local if mode == "local" else lab.forked
    run = start(*args, env=env, file=Path(__file__).parent / "mixed_users.py")
    run.wait()
    steady = [row for row in lab.rows() if row["phase"] == "steady"]
    assert steady, run.output
    assert_whole(lab, run.output, "finished")


def test_failures_alone_end_the_run(lab: Lab) -> None:
    """Nothing but failures for the time given: the run ends by itself, exit code 1, and says why."""
    run = lab.local("-u", "5", "-r", "5", "--llm-stop-on-failures", "2", env={"FAKE_STREAM_S": "0.2", "FAKE_FAIL": "1"})
    assert run.wait() == 1, run.output
    assert "failures, no success and no token" in run.output
    assert lab.summary()["state"] == "aborted"
    assert set(lab.outcomes()) == {"http_error"}


def test_ctrl_c_under_load_loses_no_record(lab: Lab) -> None:
    """200 users that book all the time: the interrupt must not hit one in the middle of its booking."""
    run = lab.local("-u", "200", "-r", "200", "--llm-warmup", "0", env={"FAKE_STREAM_S": "0.05"})
    run.wait_for(SPAWNED)
    time.sleep(2)
    run.interrupt()
    assert run.wait() == 0, run.output
    assert set(lab.outcomes()) == {"ok"}
    assert_whole(lab, run.output, "stopped")
