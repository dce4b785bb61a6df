"""The client: one record, one booking and one Locust event a request; what is asked, what is heard, what is counted."""

from __future__ import annotations

import gc
from typing import Any

import gevent
import pytest
from locust.exception import StopTest

from benchmarks.rig.mock_process import MockProcess, start_mock
from llm_locust.load.events import llm_events
from llm_locust.load.options import AskOptions
from llm_locust.measure.record import Outcome
from llm_locust.protocol import ANSWER, BodyOptions, Message, PromptRequest
from llm_locust.wire.clock import get_clock
from llm_locust.wire.types import Limits

from .around import ITL_MS, MODEL, TTFT_MS, OpenGate, client_for, close, listening, options_for, scripted


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
