"""Workers that come late, go early, or cannot take part: each is named, and nothing is counted twice.

Locust (2.47) knows of a worker killed with -9 after 4.8 s, and replaces its users only where rebalancing is on.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.rig.locusts import SPAWNED, Lab, children_of, lives, until

from .lab import locusts_requests, most_at_once

FINDING = "lost: last report at"


def test_worker_killed_in_mid_run_is_named_and_its_users_are_replaced(lab: Lab) -> None:
    """Of two workers with 2 users each one is killed: 4 users again, totals without a hole or a double."""
    env = {"FAKE_STREAM_S": "0.4"}
    master = lab.master("-u", "4", "-r", "4", "-t", "13", env=env)
    workers = [lab.worker(env=env), lab.worker(env=env)]
    master.wait_for(SPAWNED)
    time.sleep(3.5)
    os.kill(workers[0].process.pid, signal.SIGKILL)
    assert master.wait() == 0, master.output
    summary = lab.summary()
    assert sorted(worker["lost"] for worker in summary["workers"]) == [False, True]
    assert any(FINDING in finding for finding in summary["verdict"]["findings"])
    assert any("streams not accounted for" in finding for finding in summary["verdict"]["findings"])
    assert not [reason for reason in summary["verdict"]["reasons"] if "differ" in reason]
    left = next(worker["worker"] for worker in summary["workers"] if not worker["lost"])
    assert most_at_once([row for row in lab.rows() if row["worker"] == left]) == 4  # in the worker that is left
    assert len({row["request_id"] for row in lab.rows()}) == len(lab.rows())


def test_worker_killed_in_the_drain_makes_the_run_invalid(lab: Lab) -> None:
    """Its streams are nowhere: the run says so, exit code 4, and does not wait for it to the limit."""
    env = {"FAKE_STREAM_S": "6"}
    master = lab.master("-u", "2", "-r", "2", "-t", "2", env=env)
    workers = [lab.worker(env=env), lab.worker(env=env)]
    master.wait_for("--run-time limit reached")
    os.kill(workers[0].process.pid, signal.SIGKILL)
    assert master.wait() == 4, master.output
    summary = lab.summary()
    assert summary["verdict"]["validity"] == "INVALID"
    assert any("lost without its users replaced" in reason for reason in summary["verdict"]["reasons"])
    assert lab.outcomes() == {"ok": 1}


def test_run_ends_when_its_last_worker_is_killed(lab: Lab) -> None:
    """Locust stops the test and waits for ever: the run ends by itself, with what came in and exit code 4."""
    env = {"FAKE_STREAM_S": "0.2"}
    master = lab.master("-u", "2", "-r", "2", workers=1, env=env)
    worker = lab.worker(env=env)
    master.wait_for(SPAWNED)
    until(lambda: bool(lab.rows()), 20, lambda: master.output)
    os.kill(worker.process.pid, signal.SIGKILL)
    assert master.wait() == 4, master.output
    summary = lab.summary()
    assert (summary["state"], summary["verdict"]["validity"]) == ("aborted", "INVALID")
    assert "no worker is left" in master.output


@pytest.mark.slow
def test_worker_without_the_suite_is_sent_away_and_not_waited_for(lab: Lab) -> None:
    """Locust gives it users like any other: after 10 s without a hello they run elsewhere, and the run names it."""
    env = {"FAKE_STREAM_S": "0.2"}
    master = lab.master("-u", "4", "-r", "4", "-t", "22", workers=1, env=env)
    lab.worker(env=env)
    master.wait_for(SPAWNED)
    where = ("--worker", "--master-host", "127.0.0.1", "--master-port", str(lab.port))
    stranger = subprocess.Popen(
        [sys.executable, "-m", "locust", "-f", str(Path(__file__).parent / "stranger.py"), *where],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        master.wait_for("sent away: it never said that it runs llm-locust")
        stranger.wait(30)
        assert master.wait() == 0, master.output
    finally:
        if stranger.poll() is None:
            stranger.kill()
        stranger.wait()
    assert any("sent away" in finding for finding in lab.summary()["verdict"]["findings"])
    assert "waiting for" not in master.output
    assert most_at_once(lab.rows()) == 4


def test_worker_that_joins_late_takes_part_and_resets_nothing(lab: Lab) -> None:
    """A second worker in mid-run gets run, stage and share before it issues; the first one's numbers stay."""
    env = {"FAKE_STREAM_S": "0.3"}
    master = lab.master("-u", "4", "-r", "4", "-t", "10", "--reset-stats", workers=1, env=env)
    lab.worker("--reset-stats", env=env)
    master.wait_for(SPAWNED)
    time.sleep(2)
    lab.worker("--reset-stats", env=env)
    assert master.wait() == 0, master.output
    summary = lab.summary()
    by_worker = {worker["worker"]: 0 for worker in summary["workers"]}
    assert len(by_worker) == 2
    for row in lab.rows():
        assert row["stage"] == "run"
        by_worker[row["worker"]] += 1
    assert min(by_worker.values()) >= 10
    assert not [reason for reason in summary["verdict"]["reasons"] if "differ" in reason]
    assert len({row["request_id"] for row in lab.rows()}) == len(lab.rows())


def test_worker_ended_by_ctrl_c_hands_in_before_it_goes(lab: Lab) -> None:
    """A worker that a person ends lets its streams end; nobody is lost."""
    env = {"FAKE_STREAM_S": "1"}
    master = lab.master("-u", "2", "-r", "2", "-t", "6", env=env)
    workers = [lab.worker(env=env), lab.worker(env=env)]
    master.wait_for(SPAWNED)
    time.sleep(2)
    workers[0].signal(signal.SIGINT)
    assert workers[0].wait() in (0, 1)
    assert master.wait() == 0, master.output
    assert set(lab.outcomes()) == {"ok"}
    summary = lab.summary()
    assert not any(worker["lost"] for worker in summary["workers"])
    assert any("and handed in; others took over" in finding for finding in summary["verdict"]["findings"])
    assert locusts_requests(master.output) == len(lab.rows())


def test_worker_of_another_version_is_refused_by_name(lab: Lab) -> None:
    """It is told and ends with exit code 1; the master says which worker, and which version."""
    master = lab.master("-u", "1", "-t", "2", workers=1)
    other = lab.worker(env={"PYTHONPATH": f"{lab.folder}:{os.getcwd()}"}, file=_with_version(lab, "0.0.1"))
    refused = master.wait_for("worker .* refused: .*")
    assert "it runs llm-locust 0.0.1" in refused
    assert other.wait() == 1
    assert "the master refuses this worker" in other.output


def test_worker_without_the_key_is_refused_with_that_sentence(lab: Lab) -> None:
    """Keys are not sent: a worker needs its own, and is told so before any load."""
    key = "sk-canary-7f3a"
    master = lab.master("-u", "1", "--llm-requests", "2", workers=1, env={"LOCUST_LLM_API_KEY": key})
    worker = lab.worker()
    assert worker.wait() == 1
    assert "it has no API key, the master has one" in worker.output
    with_key = lab.worker(env={"OPENAI_API_KEY": key})
    assert master.wait() == 0, master.output
    assert with_key.wait() == 0
    assert not any(key in process.output for process in lab.started)
    assert not any(key.encode() in path.read_bytes() for path in lab.runs[-1].glob("*"))


def test_worker_that_may_open_too_few_files_keeps_the_run_from_starting(lab: Lab) -> None:
    """Each worker looks at its own limit for its own share of the users: 60 of 120 need 160, it has 150."""
    master = lab.master("-u", "120", "-r", "120", "-t", "2")
    lab.worker()
    short = lab.worker(env={"FAKE_OPEN_FILES": "150"})
    assert master.wait() == 1, master.output
    name = f"{socket.gethostname()}-{short.process.pid}"
    assert f"{name}: --users: 60 users need 160 open files, `ulimit -n` allows 150" in master.output
    assert lab.summary()["state"] == "aborted"
    assert lab.rows() == []


def test_forked_workers_end_when_the_options_are_wrong(lab: Lab) -> None:
    """The master refuses to start; its forked workers must not look for it for minutes."""
    run = lab.forked("--llm-rate", "fast", "--llm-levels", "x")
    forked: set[int] = set()
    while run.process.poll() is None:
        forked.update(children_of(run))
        time.sleep(0.02)
    assert run.wait() == 1
    assert run.output.count("--llm-rate: 'fast' is not a rate") == 1
    assert run.output.count("--llm-levels: 'x' is not a user count") == 1
    time.sleep(1)
    assert not [pid for pid in forked if lives(pid)]


def _with_version(lab: Lab, version: str) -> Path:
    """A locustfile that pretends another version of the suite."""
    path = lab.folder / "other_version.py"
    path.write_text(
        "from llm_locust.plugin import messages\n"
        f"messages.suite_version = lambda: {version!r}\n"
        "import llm_locust.plugin.state as state\n"
        "state.suite_version = messages.suite_version\n"
        "from tests.contract.fake_llm import FakeUser\n"
    )
    return path
