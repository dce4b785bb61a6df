"""Every fault on the wire, and what the product's own readers make of it in every dialect."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from benchmarks.rig.mock_process import MockProcess, start_mock
from llm_locust.mock.faults import FAULTS
from llm_locust.protocol.registry import get_dialect, make_decoder
from llm_locust.protocol.types import BodyOptions, Message, PromptRequest
from tests.mock.client import Answer, Client, ask, chat

FAST = ("--profile", "fast", "--ttft-ms", "4", "--itl-ms", "1", "--output-tokens", "8", "--stall-ms", "120",
        "--slow-first-ms", "100", "--fault-after", "3", "--bundle", "4")  # fmt: skip
MS = 1_000_000


class Mocks:
    """One server a fault, started when first asked for."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._started: dict[str, MockProcess] = {}

    def __getitem__(self, fault: str) -> MockProcess:
        if fault not in self._started:
            self._started[fault] = self._stack.enter_context(start_mock(*FAST, "--fault", fault))
        return self._started[fault]


@pytest.fixture(scope="module")
def mocks() -> Iterator[Mocks]:
    with ExitStack() as stack:
        yield Mocks(stack)


def ask_chat(mock: MockProcess, **fields: Any) -> tuple[Answer, dict[str, Any]]:
    """One streamed chat request of 8 tokens; the answer and what the server tells of it."""
    answer = ask(mock.port, "/v1/chat/completions", chat(max_tokens=8, ignore_eos=True, **fields))
    return answer, mock.lines()[-1]


def tokens_of(answer: Answer) -> int:
    """Token-bearing events."""
    events = [json.loads(event) for event in answer.events if event.startswith("{") and event.endswith("}")]
    return sum(bool(e.get("choices") and e["choices"][0]["delta"].get("content")) for e in events)


def finish_of(answer: Answer) -> str | None:
    finishes = [o["choices"][0]["finish_reason"] for o in answer.objects if o.get("choices")]
    return next((finish for finish in finishes if finish), None)


def test_connection_is_reset_before_a_request_is_read(mocks: Mocks) -> None:
    mock = mocks["connect_error=0.5"]
    ended = []
    for _ in range(20):
        try:
            with Client(mock.port) as client:
                ended.append(client.ask("/health").ended)
        except (ConnectionResetError, BrokenPipeError):
            ended.append("reset")
    assert {"reset", "content-length"} <= set(ended)


@pytest.mark.parametrize(
    ("fault", "status", "content_type"),
    [
        ("http_error", 500, "application/json"),
        ("rejected", 429, "application/json"),
        ("unavailable", 503, "application/json"),
        ("html", 200, "text/html"),
        ("not_streamed", 200, "application/json"),
    ],
)
def test_no_stream_comes(mocks: Mocks, fault: str, status: int, content_type: str) -> None:
    answer, told = ask_chat(mocks[fault])
    assert (answer.status, answer.headers["content-type"], answer.ended) == (status, content_type, "content-length")
    assert (told["outcome"], told["fault"], told["completed"]) == (FAULTS[fault].outcome, fault, True)
    assert answer.headers.get("retry-after") == ("1" if fault == "rejected" else None)
    assert told["token_send_ns"] == []


@pytest.mark.parametrize(
    ("fault", "ended", "tokens", "finish"),
    [
        ("cut", "eof", 3, None),
        ("reset", "reset", 3, None),
        ("server_error", "last-chunk", 3, None),
        ("truncated", "last-chunk", 3, None),
        ("aborted", "last-chunk", 3, "abort"),
        ("short", "last-chunk", 3, "length"),
        ("eos", "last-chunk", 3, "stop"),
        ("overrun", "last-chunk", 16, "length"),
        ("empty", "last-chunk", 0, "length"),
        ("no_usage", "last-chunk", 8, "length"),
        ("stall", "last-chunk", 8, "length"),
        ("slow_first", "last-chunk", 8, "length"),
        ("bundle_tokens", "last-chunk", 2, "length"),
        ("bundle_events", "last-chunk", 8, "length"),
    ],
)
def test_stream_goes_wrong_as_said(mocks: Mocks, fault: str, ended: str, tokens: int, finish: str | None) -> None:
    """How it ends, how many token events came, which finish reason; the truth knows the same tokens."""
    answer, told = ask_chat(mocks[fault])
    assert (answer.ended, tokens_of(answer), finish_of(answer)) == (ended, tokens, finish)
    assert len(told["token_send_ns"]) == (8 if fault.startswith("bundle") else tokens)
    assert (told["fault"], told["completed"]) == (fault, True)
    assert told["outcome"] == ("ok" if fault == "eos" else FAULTS[fault].outcome)


def test_malformed_event_is_between_whole_ones(mocks: Mocks) -> None:
    answer, told = ask_chat(mocks["malformed"])
    broken = [event for event in answer.events if event != "[DONE]" and not event.endswith("}")]
    assert len(broken) == 1
    with pytest.raises(json.JSONDecodeError):
        json.loads(broken[0])
    assert tokens_of(answer) == 8
    assert (told["outcome"], answer.events[-1]) == ("malformed", "[DONE]")


def test_server_error_is_an_event_with_done_after_it(mocks: Mocks) -> None:
    answer, _ = ask_chat(mocks["server_error"])
    assert answer.objects[-1] == {"error": {"message": "engine died", "code": 500}}
    assert answer.events[-1] == "[DONE]"


def test_stall_is_a_gap_with_comments(mocks: Mocks) -> None:
    """After 3 tokens nothing but comments for 120 ms, then the usual gap, no burst."""
    answer, told = ask_chat(mocks["stall"])
    sent = told["token_send_ns"]
    gaps_ms = [(b - a) / MS for a, b in itertools.pairwise(sent)]
    assert answer.body.count(b": keep-alive\n\n") == 6
    assert max(gaps_ms) == gaps_ms[2] == pytest.approx(120, abs=20)
    assert sum(gaps_ms[3:]) >= 3


def test_slow_first_token_shifts_the_stream(mocks: Mocks) -> None:
    _, told = ask_chat(mocks["slow_first"])
    assert (told["token_send_ns"][0] - told["arrival_ns"]) / MS == pytest.approx(100, abs=20)


def test_bundled_events_share_a_send(mocks: Mocks) -> None:
    for fault in ("bundle_tokens", "bundle_events"):
        _, told = ask_chat(mocks[fault])
        assert [told["token_send_ns"].count(at) for at in sorted(set(told["token_send_ns"]))] == [4, 4]


def test_no_usage_and_empty_usage(mocks: Mocks) -> None:
    assert not any("usage" in event for event in ask_chat(mocks["no_usage"])[0].objects)
    assert ask_chat(mocks["empty"])[0].objects[-1]["usage"]["completion_tokens"] == 0


@pytest.mark.parametrize("fault", ["cut", "stall", "server_error"])
def test_single_token_has_no_middle(mocks: Mocks, fault: str) -> None:
    answer = ask(mocks[fault].port, "/v1/chat/completions", chat(max_tokens=1))
    told = mocks[fault].lines()[-1]
    assert (answer.ended, told["outcome"], told["fault"]) == ("last-chunk", "ok", None)


def test_faults_are_dealt_by_their_shares_and_seed() -> None:
    """The same seed gives the same requests the same faults, in another process too."""
    dealt = []
    for _ in range(2):
        with start_mock(*FAST, "--fault", "http_error=0.3,rejected=0.2", "--seed", "7") as mock:
            statuses = [ask(mock.port, "/v1/completions", {"prompt": "a", "max_tokens": 1}).status for _ in range(30)]
            dealt.append(statuses)
            assert mock.truth()["outcomes"].get("rejected", 0) == statuses.count(429)
    assert dealt[0] == dealt[1]
    assert set(dealt[0]) == {200, 429, 500}


DIALECTS = ("openai-chat", "openai-completions", "openai-responses", "sglang-generate", "anthropic-messages",
            "tgi-generate", "ollama-chat")  # fmt: skip


def read(mock: MockProcess, name: str, stream: bool = True) -> tuple[Any, int, Answer]:
    """Ask with a dialect of ours, read with its reader: (reader, arrivals, answer)."""
    dialect = get_dialect(name)
    messages = (Message(role="user", content="one two three"),)
    chatty = name in ("openai-chat", "anthropic-messages", "ollama-chat")
    prompt = PromptRequest(messages=messages if chatty else None, text=None if chatty else "one two three",
                           output_tokens=8)  # fmt: skip
    body = dialect.body(prompt, BodyOptions(model="mock", stream=stream))
    path = dialect.path if stream else getattr(dialect, "document_path", dialect.path)
    answer = ask(mock.port, path, body)
    reader, arrivals = dialect.reader(stream=stream), 0
    if not stream:
        reader.document(answer.body)
        return reader, 0, answer
    decoder = make_decoder(dialect.framing)
    for kind, payload in (*decoder.feed(answer.body), *decoder.finish()):
        arrivals += len(reader.event(payload, kind))
    return reader, arrivals, answer


@pytest.mark.parametrize("name", DIALECTS)
def test_reader_understands_a_good_answer(mocks: Mocks, name: str) -> None:
    """8 tokens, 3 words in (and 4 for a chat's template), a finish, the dialect's own end; streamed and not."""
    chatty = name in ("openai-chat", "anthropic-messages", "ollama-chat")
    for stream in (True, False):
        reader, arrivals, answer = read(mocks["cut=0"], name, stream)
        assert (answer.status, reader.error, reader.aborted, reader.malformed_events) == (200, None, False, 0)
        assert arrivals == (8 if stream else 0)
        assert (reader.usage.output_tokens, reader.usage.input_tokens) == (8, 7 if chatty else 3)
        assert len(reader.text.split()) == 8
        assert reader.finish_reason is not None
        assert reader.terminal or not stream


@pytest.mark.parametrize("name", DIALECTS)
def test_reader_sees_each_fault(mocks: Mocks, name: str) -> None:
    """An error, an abort, a broken event, no token, no finish: in every dialect's own way."""
    error = read(mocks["server_error"], name)[0]
    aborted = read(mocks["aborted"], name)[0]
    malformed = read(mocks["malformed"], name)[0]
    empty, arrivals, _ = read(mocks["empty"], name)
    truncated = read(mocks["truncated"], name)[0]
    assert error.error
    assert "engine died" in error.error
    assert aborted.aborted
    assert malformed.malformed_events == 1
    assert malformed.usage.output_tokens == 8
    assert (arrivals, empty.error) == (0, None)
    assert truncated.finish_reason is None
    assert truncated.error is None
