"""How a request of the client ends otherwise than well: failures, kills, limits, leaving; booked once all the same."""

from __future__ import annotations

import logging
from typing import Any

import gevent
import pytest
from gevent import GreenletExit
from locust.exception import StopUser

from benchmarks.rig.mock_process import MockProcess, start_mock
from llm_locust.load.events import llm_events
from llm_locust.load.options import AskOptions
from llm_locust.measure.record import Outcome
from llm_locust.wire.clock import get_clock

from .around import MODEL, client_for, close, listening, options_for, scripted


def test_failure_has_its_time_and_the_name_of_its_outcome() -> None:
    """Locust keeps one row per text, so the text is the outcome's name only."""
    with start_mock("--profile", "fast", "--ttft-ms", "5", "--itl-ms", "1", "--fault", "server_error") as mock:
        seen = client_for(options_for(mock))
        answer = seen.client.chat("Hi", output_tokens=8)
        close(seen)
    (event,) = seen.events
    assert not answer.ok
    assert (str(event["exception"]), repr(event["exception"])) == ("server_error", "server_error")
    assert seen.record.stream_end_ns is not None
    assert event["response_time"] == seen.record.stream_end_ns / 1e6
    assert seen.record.chunks == 3


def test_rejection_pauses_the_user_outside_all_latencies() -> None:
    """Retry-After is kept; the pause is booked apart."""
    with start_mock("--profile", "fast", "--fault", "rejected", "--retry-after-s", "0.3") as mock:
        seen = client_for(options_for(mock))
        begun_ns = get_clock().now_ns()
        seen.client.chat("Hi", output_tokens=8)
        paused_ns = get_clock().now_ns() - begun_ns
        close(seen)
    (pause_ns,) = seen.around.collector.pauses_ns
    assert seen.record.outcome is Outcome.REJECTED
    assert 290e6 < pause_ns < paused_ns
    assert seen.events[0]["response_time"] < 200
    assert not seen.client.waiting


def test_user_waits_half_a_second_when_nobody_listens() -> None:
    """A failed connection must not become a busy loop; it is no rejection's pause."""
    seen = client_for(AskOptions(host="http://127.0.0.1:9", body=MODEL))
    begun_ns = get_clock().now_ns()
    seen.client.chat("Hi", output_tokens=8)
    assert get_clock().now_ns() - begun_ns >= 500e6
    assert (seen.record.outcome, seen.around.collector.pauses_ns) == (Outcome.CONNECT_ERROR, [])
    assert repr(seen.events[0]["exception"]) == "connect_error"


def test_fault_of_ours_is_a_loud_client_error(mock: MockProcess, caplog: pytest.LogCaptureFixture) -> None:
    """A prompt that the dialect cannot carry: booked once, told once, and the gate knows."""
    seen = client_for(options_for(mock))
    seen.client._pause = lambda record, exchange: None  # type: ignore[method-assign]
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            seen.client.complete([1, 2, 3], output_tokens=2)
    records = seen.around.collector.records
    assert [record.outcome for record in records] == [Outcome.CLIENT_ERROR] * 3
    assert "takes text or messages, not token ids" in records[0].error
    assert [outcome for _, outcome in seen.around.gate.ended] == [Outcome.CLIENT_ERROR] * 3
    assert len(seen.events) == len(seen.around.collector.open) == 3
    assert len(caplog.records) == 1


def test_key_is_taken_out_of_an_error_that_echoes_it() -> None:
    """Servers do repeat the key that they refuse."""
    with start_mock("--profile", "fast", "--api-key", "sk-right") as mock:
        key = "invalid API key"  # what this server says: stands for an echoed key
        seen = client_for(options_for(mock, api_key=key))
        seen.client.chat("Hi", output_tokens=2)
        close(seen)
    assert (seen.record.outcome, seen.record.error) == (Outcome.HTTP_ERROR, "***")


def test_killed_request_is_unfinished_with_its_tokens(mock: MockProcess) -> None:
    """Neither success nor failure: no event; the record is booked, the connection closed, the kill goes on."""
    seen = client_for(scripted(mock, "endless"))
    greenlet = gevent.spawn(seen.client.chat, "Hi", output_tokens=8)
    gevent.sleep(0.15)
    assert seen.client.in_flight
    greenlet.kill()
    assert isinstance(greenlet.value, GreenletExit)
    assert (seen.record.outcome, seen.record.chunks, seen.events) == (Outcome.UNFINISHED, 2, [])
    assert seen.around.gate.ended == [(0, Outcome.UNFINISHED)]
    assert not seen.client.in_flight
    gevent.sleep(0.05)
    (line,) = [line for line in mock.lines() if line["request_id"] == seen.record.client_request_id]
    assert line["client_gone"]


def test_limit_of_the_task_itself_is_a_timeout(mock: MockProcess) -> None:
    """`with gevent.Timeout(…)` around the call: the limit is raised, and the request failed by it."""
    seen = client_for(scripted(mock, "endless"))
    with pytest.raises(gevent.Timeout), gevent.Timeout(0.15):
        seen.client.chat("Hi", output_tokens=8)
    assert (seen.record.outcome, seen.record.error) == (Outcome.TIMEOUT_TOTAL, "the task's own limit")
    assert not seen.client.in_flight


def test_leave_waits_for_the_request_in_flight(mock: MockProcess) -> None:
    """Bounded by the drain limit; the gate is told first."""
    seen = client_for(options_for(mock))
    greenlet = gevent.spawn(seen.client.chat, "Hi", output_tokens=20)
    gevent.sleep(0.03)
    seen.client.leave()
    assert seen.around.gate.left == [seen.user]
    assert seen.record.outcome is Outcome.OK
    greenlet.join()
    close(seen)


def test_leave_gives_up_at_the_drain_limit(mock: MockProcess) -> None:
    """A stream that does not end is not waited for for ever."""
    seen = client_for(scripted(mock, "endless", drain_s=0.1))
    greenlet = gevent.spawn(seen.client.chat, "Hi", output_tokens=8)
    gevent.sleep(0.03)
    begun_ns = get_clock().now_ns()
    seen.client.leave()
    assert 90e6 < get_clock().now_ns() - begun_ns < 500e6
    greenlet.kill()


def test_listener_may_end_its_user_in_mid_stream(mock: MockProcess) -> None:
    """StopUser passes; the request is unfinished, and nothing goes on behind it."""

    def enough(**_: Any) -> None:
        raise StopUser

    seen = client_for(scripted(mock, "endless"))
    with listening(llm_events.first_token, enough), pytest.raises(StopUser):
        seen.client.chat("Hi", output_tokens=8)
    assert (seen.record.outcome, seen.record.chunks, seen.events) == (Outcome.UNFINISHED, 1, [])


def test_kill_reaches_the_stream_when_somebody_listens(mock: MockProcess) -> None:
    """The exchange runs in a greenlet of its own then; it ends with its user."""
    seen = client_for(scripted(mock, "endless"))
    with listening(llm_events.token, lambda **_: None):
        greenlet = gevent.spawn(seen.client.chat, "Hi", output_tokens=8)
        gevent.sleep(0.15)
        greenlet.kill()
    assert (seen.record.outcome, seen.record.chunks) == (Outcome.UNFINISHED, 2)
