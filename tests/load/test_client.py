"""The client: one record, one booking and one Locust event per request, whatever happens to it."""

from __future__ import annotations

import gc
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import gevent
import pytest
from gevent import GreenletExit
from locust.exception import StopTest, StopUser

from benchmarks.rig.mock_process import MockProcess, start_mock
from llm_locust.load.events import CountingHook, llm_events
from llm_locust.load.options import AskOptions
from llm_locust.measure.record import Outcome
from llm_locust.protocol import ANSWER, BodyOptions, Message, PromptRequest
from llm_locust.wire.clock import get_clock
from llm_locust.wire.types import Limits
from tests.load.around import OpenGate, Seen, client_for

MODEL = BodyOptions(model="m", ignore_eos=True)
TTFT_MS, ITL_MS = 20, 5


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockProcess]:
    """A server with fixed times, and an endless script."""
    path = Path(tmp_path_factory.mktemp("scripts"), "scripts.json")
    token = 'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
    path.write_text(json.dumps({"endless": [[10, token], [20, token], [30_000, token]]}))
    options = ("--profile", "fast", "--ttft-ms", str(TTFT_MS), "--itl-ms", str(ITL_MS), "--script", str(path))
    with start_mock(*options) as process:
        yield process


def options_for(mock: MockProcess, **changes: Any) -> AskOptions:
    """A run's usual options."""
    return replace(AskOptions(host=mock.url, body=MODEL), **changes)


def scripted(mock: MockProcess, script: str, **changes: Any) -> AskOptions:
    """Options by which the server plays a script."""
    return options_for(mock, headers=(("X-Mock-Script", script),), **changes)


@contextmanager
def listening(hook: CountingHook, listener: Any) -> Iterator[None]:
    """Listen for a while."""
    hook.add_listener(listener)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        hook.remove_listener(listener)  # type: ignore[no-untyped-call]


def close(seen: Seen) -> None:
    """Give the connection back."""
    seen.client.close()


def test_record_and_event_of_a_request_that_succeeds(mock: MockProcess) -> None:
    """One record, booked once; one event with E2E in ms, bytes, and the record as its context."""
    seen = client_for(options_for(mock))
    seen.user.context = lambda: {"tenant": "a"}
    answer = seen.client.chat("Hi", output_tokens=8)
    close(seen)
    record = seen.record
    assert answer.record is record
    assert answer.ok
    assert (record.outcome, record.output_tokens, record.output_tokens_source) == (Outcome.OK, 8, "usage")
    assert (record.run_id, record.worker, record.request_id) == ("run", "w1", 0)
    assert (record.stage, record.phase, record.user_class) == ("load", "steady", "SimpleNamespace")
    assert (record.name, record.dialect) == ("/v1/chat/completions", "openai-chat")
    assert record.endpoint == mock.url + "/v1/chat/completions"
    assert record.output_tokens_requested == 8
    assert seen.around.gate.ended == [(0, Outcome.OK)]
    (event,) = seen.events
    assert record.e2e_ns is not None
    assert event["response_time"] == record.e2e_ns / 1e6
    sent = mock.lines()[-1]
    took_ms = (sent["token_send_ns"][-1] - sent["arrival_ns"]) / 1e6
    assert TTFT_MS + 7 * ITL_MS - 1 < took_ms < event["response_time"] < took_ms + 500
    assert (event["request_type"], event["name"], event["exception"]) == ("SSE", "/v1/chat/completions", None)
    assert event["context"] == {"llm": record, "tenant": "a"}
    assert event["response_length"] > 8 * 50
    assert event["start_time"] == record.start_epoch_ns / 1e9


def test_request_id_reaches_the_server(mock: MockProcess) -> None:
    """X-Request-Id is in the record and in the server's log."""
    seen = client_for(options_for(mock))
    for _ in range(2):
        seen.client.chat("Hi", output_tokens=2)
    close(seen)
    sent = [record.client_request_id for record in seen.around.collector.records]
    assert len(set(sent)) == 2
    assert {line["request_id"] for line in mock.lines()} >= set(sent)


def test_connection_is_kept_between_the_requests_of_a_user(mock: MockProcess) -> None:
    """The second request needs none of its own."""
    seen = client_for(options_for(mock))
    for _ in range(2):
        seen.client.chat("Hi", output_tokens=2)
    close(seen)
    first, second = seen.around.collector.records
    assert first.connect_ns is not None
    assert second.connect_ns is None


def test_name_of_the_row_over_all_names_is_no_request_s(mock: MockProcess) -> None:
    """Requests named so have a row of their own, the same in records and in Locust's numbers."""
    seen = client_for(options_for(mock))
    for name in ("all", "All"):
        seen.client.chat("Hi", output_tokens=2, name=name)
    close(seen)
    assert [record.name for record in seen.around.collector.records] == ["all (name)", "All"]
    assert [event["name"] for event in seen.events] == ["all (name)", "All"]


def test_request_leaves_nothing_for_the_collector(mock: MockProcess) -> None:
    """Old objects are not looked through while a run is on: a night of requests must not need it."""
    seen = client_for(options_for(mock))
    for _ in range(3):  # what is made once
        seen.client.chat("Hi", output_tokens=2)
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            seen.client.chat("Hi", output_tokens=2)
        unreachable = gc.collect()
    finally:
        gc.enable()
    close(seen)
    assert unreachable == 0


def test_conversation_text_and_token_ids_can_be_asked(mock: MockProcess) -> None:
    """What `chat` and `complete` take."""
    seen = client_for(options_for(mock), dialect="openai-completions")
    seen.client.complete("Once upon", output_tokens=2)
    seen.client.complete([1, 2, 3], output_tokens=2, name="ids")
    close(seen)
    chat = client_for(options_for(mock))
    chat.client.chat([{"role": "user", "content": "Hi"}, Message("assistant", "Ho")], output_tokens=2)
    chat.client.chat(PromptRequest(text="Hi", output_tokens=3))
    close(chat)
    records = [*seen.around.collector.records, *chat.around.collector.records]
    assert [(record.outcome, record.output_tokens) for record in records] == [(Outcome.OK, n) for n in (2, 2, 2, 3)]
    assert [(record.name, record.input_tokens_requested) for record in records[:2]] == [
        ("/v1/completions", None), ("ids", 3)
    ]  # fmt: skip


def test_prompts_come_from_the_desk_when_none_is_given(mock: MockProcess) -> None:
    """`ask` takes the ticket's prompt from the user's source."""

    class Source:
        def prompt(self, index: int) -> PromptRequest:
            return PromptRequest(text=f"number {index}", output_tokens=2 + index)

    seen = client_for(options_for(mock))
    seen.user.prompts = Source()
    for _ in range(3):
        seen.client.ask()
    close(seen)
    assert [record.output_tokens for record in seen.around.collector.records] == [2, 3, 4]


def test_prompt_without_a_limit_does_not_ask_to_ignore_the_end(mock: MockProcess) -> None:
    """It would generate to the end of the context."""
    seen = client_for(scripted(mock, "endless", limits=Limits(total_s=0.1)))
    seen.client.chat("Hi")
    close(seen)
    assert seen.record.outcome is Outcome.TIMEOUT_TOTAL
    assert seen.record.output_tokens_requested is None


def test_whole_answer_is_a_post_without_ttft(mock: MockProcess) -> None:
    """No stream asked for: E2E and tokens, no arrival."""
    seen = client_for(options_for(mock, body=BodyOptions(model="m", ignore_eos=True, stream=False)))
    answer = seen.client.chat("Hi", output_tokens=4)
    close(seen)
    record = seen.record
    assert (record.outcome, record.output_tokens, record.ttft_ns, record.chunks) == (Outcome.OK, 4, None, 0)
    assert record.e2e_ns == record.stream_end_ns
    assert answer.text
    assert seen.events[0]["request_type"] == "POST"


def test_task_may_ask_for_several_choices(mock: MockProcess) -> None:
    """By its own extra body: the reader keeps them apart, the length asked for is that of both."""
    seen = client_for(options_for(mock))
    answer = seen.client.chat("Hi", output_tokens=4, extra={"n": 2})
    close(seen)
    record = seen.record
    assert (record.outcome, record.output_tokens, record.output_tokens_requested) == (Outcome.OK, 8, 8)
    assert 0 < len(answer.text) < 8 * 20


def test_schedule_becomes_wait_and_lag(mock: MockProcess) -> None:
    """What was not the users' being busy is ours."""
    now_ns = get_clock().now_ns()
    gate = OpenGate(scheduled_ns=now_ns - 50_000_000, user_wait_ns=40_000_000)
    seen = client_for(options_for(mock), gate=gate)
    seen.client.chat("Hi", output_tokens=2)
    close(seen)
    record = seen.record
    assert record.user_wait_ns == 40_000_000
    assert record.dispatch_lag_ns is not None
    assert 10_000_000 <= record.dispatch_lag_ns < 60_000_000
    assert record.ttft_ns is not None
    assert record.ttft_scheduled_ns == record.ttft_ns + record.dispatch_lag_ns + 40_000_000


# ---- failures ----


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


@pytest.mark.parametrize(("host", "told"), [(None, "no host: give --host"), ("s:30000", "is not an address")])
def test_client_needs_a_host(host: str | None, told: str) -> None:
    """Said as Locust says it, before anything is sent."""
    with pytest.raises(StopTest, match=told):
        client_for(AskOptions(host=host, body=MODEL))


def test_hosts_take_turns(mock: MockProcess) -> None:
    """Several by comma: round robin per request."""
    with start_mock("--profile", "fast") as other:
        seen = client_for(options_for(mock, host=f"{mock.url},{other.url}/v1"))
        for _ in range(4):
            seen.client.chat("Hi", output_tokens=2)
        close(seen)
        assert other.truth()["completed"] == 2
    ports = [record.endpoint for record in seen.around.collector.records]
    assert ports == [f"{url}/v1/chat/completions" for url in (mock.url, other.url) * 2]


# ---- ends that come from outside ----


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


# ---- listeners ----


def test_listeners_hear_first_token_tokens_and_response(mock: MockProcess) -> None:
    """In the user's greenlet, with the instants of the arrivals; the numbers are those of a request without them."""
    heard: list[tuple[str, Any]] = []
    me = gevent.getcurrent()

    def first(at_ns: int, **_: Any) -> None:
        heard.append(("first", at_ns))
        assert gevent.getcurrent() is me

    def token(at_ns: int, channels: int, **_: Any) -> None:
        heard.append(("token", at_ns))
        assert channels == ANSWER

    seen = client_for(options_for(mock))
    with (
        listening(llm_events.first_token, first),
        listening(llm_events.token, token),
        listening(llm_events.response, lambda answer, **_: heard.append(("response", answer))),
    ):
        answer = seen.client.chat("Hi", output_tokens=5)
    close(seen)
    assert llm_events.listener_errors == 0
    assert [what for what, _ in heard] == ["first", *["token"] * 5, "response"]
    assert heard[0][1] == heard[1][1]
    assert heard[-1][1] is answer
    record = seen.record
    assert (heard[1][1] - heard[5][1]) == -(record.e2e_ns - record.ttft_ns)  # type: ignore[operator]
    assert (record.outcome, record.chunks) == (Outcome.OK, 5)


def test_listener_that_raises_is_counted_and_changes_no_number(
    mock: MockProcess, caplog: pytest.LogCaptureFixture
) -> None:
    """Logged, counted, and Locust ends with its own exit code for it."""
    from locust import log

    def raising(**_: Any) -> None:
        raise RuntimeError("mine")

    before = log.unhandled_greenlet_exception
    seen = client_for(options_for(mock))
    with listening(llm_events.token, raising), listening(llm_events.response, raising):
        answer = seen.client.chat("Hi", output_tokens=3)
    close(seen)
    assert (answer.ok, seen.record.chunks, llm_events.token.errors, llm_events.response.errors) == (True, 3, 3, 1)
    assert log.unhandled_greenlet_exception
    assert "mine" in caplog.text
    log.unhandled_greenlet_exception = before
    llm_events.token.errors = llm_events.response.errors = 0


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


# ---- counting ----


def test_tokenizer_counts_where_no_usage_came(mock: MockProcess) -> None:
    """The whole text, once; usage wins where it came."""

    class Words:
        name = "words"

        def count(self, text: str) -> int:
            return 100 + len(text.split())

    with start_mock("--profile", "fast", "--ttft-ms", "2", "--itl-ms", "1", "--fault", "no_usage") as silent:
        without = client_for(options_for(silent, tokenizer=Words()))
        without.client.chat("Hi", output_tokens=3)
        close(without)
    stated = client_for(options_for(mock, tokenizer=Words()))
    stated.client.chat("Hi", output_tokens=3)
    close(stated)
    assert (without.record.output_tokens, without.record.output_tokens_source) == (103, "tokenizer")
    assert (stated.record.output_tokens, stated.record.output_tokens_source) == (3, "usage")
