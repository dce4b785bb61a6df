"""Every outcome through the real product: reached, and booked once in each account of the run.

The embedded server deals faults and notes which request got which; the record of that request must have the outcome
that the fault means, whatever happens around it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from benchmarks.rig.locusts import Lab
from benchmarks.rig.mock_process import start_mock
from llm_locust.measure.record import FAILURES, Outcome
from llm_locust.mock.faults import FAULTS

from .real_run import RealRun, assert_booked_once, run

FAST = ("--profile", "fast", "--ttft-ms", "10", "--itl-ms", "2", "--retry-after-s", "0.05")
LIMITS = ("--llm-stall-timeout", "0.4", "--llm-first-token-timeout", "0.6")
BY_LIMIT = {"stall": "timeout_stall", "slow_first": "timeout_first_token"}
"""Faults that a limit turns into a failure: the server waits 3 s."""
DEALT = [name for name in FAULTS if name != "connect_error"]


def wanted_of(fault: str | None) -> str:
    """The outcome that a fault means under LIMITS."""
    return "ok" if fault is None else BY_LIMIT.get(fault, FAULTS[fault].outcome)


def test_faults_and_limits_cover_every_outcome() -> None:
    """No outcome is left out below."""
    dealt = {wanted_of(fault) for fault in FAULTS}
    apart = {"timeout_connect", "timeout_total", "client_error", "unfinished"}
    assert dealt | apart == {outcome.value for outcome in Outcome}


@pytest.mark.parametrize("forked", [False, True], ids=["local", "two workers"])
def test_each_request_has_the_outcome_of_its_fault(lab: Lab, forked: bool) -> None:
    """All faults at once, some requests sound: line by line what the server did, each booked once; exit code 1."""
    shares = ",".join(f"{name}={0.9 / len(DEALT):.4f}" for name in DEALT)
    with start_mock(*FAST, "--fault", shares) as mock:
        args = ("-u", "8", "-r", "8", "--llm-requests", "150", "--llm-warmup", "0", *LIMITS)
        ended = run(lab, mock.url, *args, forked=forked)
        told = {line["request_id"]: line for line in mock.lines()}
    dealt = [told[row["client_request_id"]] for row in ended.rows]
    assert {line["fault"] for line in dealt} == {*DEALT, None}
    # By the server's own account: an early end is `truncated` where no pre-flight saw that ignore_eos is not honoured.
    wanted = [BY_LIMIT.get(line["fault"], line["outcome"]) for line in dealt]
    pairs = zip(ended.rows, wanted, strict=True)
    assert [(row["outcome"], outcome, row["error"]) for row, outcome in pairs if row["outcome"] != outcome] == []
    for row in (row for row in ended.stages if int(row["outcome_ok"])):  # failures are in no latency of successes
        assert {row["e2e_ms_count"], row["ttft_ms_count"], row["headers_ms_count"]} == {row["outcome_ok"]}
        assert int(row["failed_ms_count"]) == int(row["requests_failed"])
        assert float(row["e2e_ms_max"]) < 400
    assert_booked_once(ended)
    assert ended.code == 1, ended.output


@contextmanager
def deaf_url() -> Iterator[str]:
    """An address whose queue of connections is full: connecting takes for ever."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        fillers = [socket.socket() for _ in range(4)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(server.getsockname())
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        for filler in fillers:
            filler.close()


@contextmanager
def faulty_url(*options: str) -> Iterator[str]:
    """A server all of whose answers are wrong in one way."""
    with start_mock(*FAST, *options) as mock:
        yield mock.url


def nobody_url() -> AbstractContextManager[str]:
    """An address where nobody listens."""
    return nullcontext("http://127.0.0.1:9")


def always(fault: str) -> object:
    """That fault for each request; half of them are enough for every day."""
    marks = () if fault in ("cut", "empty", "rejected", "stall") else (pytest.mark.slow,)
    return pytest.param(lambda: faulty_url("--fault", fault), wanted_of(fault), LIMITS, id=fault, marks=marks)


FAILING = [
    *(always(name) for name in DEALT if wanted_of(name) != "ok"),
    pytest.param(nobody_url, "connect_error", (), id="nobody listens"),
    pytest.param(deaf_url, "timeout_connect", ("--llm-connect-timeout", "0.2"), id="connect limit"),
    pytest.param(
        lambda: faulty_url("--fault", "stall"), "timeout_total", ("--llm-total-timeout", "0.2"), id="total limit"
    ),
]


def assert_no_success(ended: RealRun, outcome: str) -> None:
    """Only that outcome, in every account; exit code 1; no latency of successes anywhere."""
    assert set(ended.outcomes) == {outcome}, ended.output
    assert_booked_once(ended)
    assert ended.code == 1, ended.output
    for row in ended.stages:
        assert {row[f"{name}_count"] for name in ("ttft_ms", "tpot_ms", "e2e_ms", "icl_ms", "itl_ms")} == {"0"}
        assert {row["ttft_ms_p50"], row["tpot_ms_mean"], row["e2e_ms_p99"]} == {""}


@pytest.mark.parametrize(("server", "outcome", "args"), FAILING)
def test_run_without_a_success_never_ends_with_0(
    lab: Lab, server: Callable[[], AbstractContextManager[str]], outcome: str, args: tuple[str, ...]
) -> None:
    """One way of failing, all of the time: the run's exit code is 1."""
    with server() as url:
        ended = run(lab, url, "-u", "2", "-r", "2", "--llm-requests", "4", "--llm-warmup", "0", *args)
    assert Outcome(outcome) in FAILURES
    assert_no_success(ended, outcome)


def test_bug_of_the_locustfile_is_a_loud_client_error(lab: Lab) -> None:
    """A prompt that the dialect cannot carry: counted as a failure of ours, and said."""
    args = ("-u", "1", "--llm-requests", "3", "--llm-warmup", "0")
    ended = run(lab, "http://127.0.0.1:9", *args, file=Path(__file__).with_name("impossible_prompt.py"))
    assert_no_success(ended, "client_error")
    assert "client_error in /v1/chat/completions" in ended.output


@pytest.mark.parametrize("forked", [False, True], ids=["local", "two workers"])
def test_streams_that_the_stop_ended_are_neither_success_nor_failure(lab: Lab, forked: bool) -> None:
    """Answers of minutes, no drain: `unfinished` with their tokens, nothing in Locust's own numbers; exit code 1."""
    with start_mock("--profile", "fast", "--ttft-ms", "50", "--itl-ms", "50") as mock:
        args = ("-u", "2", "-r", "2", "-t", "5", "--llm-output-tokens", "4000", "--llm-drain", "0", "--llm-warmup", "0")
        ended = run(lab, mock.url, *args, forked=forked)
        left = mock.truth()
    assert ended.outcomes == {"unfinished": 2}
    assert_booked_once(ended)
    assert ended.locust.requests == 0
    assert all(int(row["output_tokens"]) >= 5 for row in ended.rows)
    assert ended.code == 1, ended.output
    assert (left["in_flight"], left["client_gone"]) == (0, 2)
