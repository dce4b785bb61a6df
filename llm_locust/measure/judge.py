"""The one outcome of a request: the rules of docs/metrics.md section 3, in their order.

Knows no I/O, no clock and no Locust. HTTP 200 alone is never success.
"""

from __future__ import annotations

from dataclasses import dataclass

from llm_locust.measure.errortext import body_message, one_line
from llm_locust.measure.record import Outcome
from llm_locust.measure.timeline import Timeline
from llm_locust.protocol.types import Framing, Reader
from llm_locust.wire.types import End, Exchange

Verdict = tuple[Outcome, str]
"""The outcome, and what the report says about it (empty for ok and unfinished)."""

_STREAM_TYPES = {
    Framing.SSE: frozenset({"text/event-stream"}),
    Framing.NDJSON: frozenset(
        {"application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines"}
    ),
}

_TRANSPORT_ENDS = {
    End.CONNECT_ERROR: Outcome.CONNECT_ERROR,
    End.TIMEOUT_CONNECT: Outcome.TIMEOUT_CONNECT,
    End.TIMEOUT_FIRST_TOKEN: Outcome.TIMEOUT_FIRST_TOKEN,
    End.TIMEOUT_STALL: Outcome.TIMEOUT_STALL,
    End.TIMEOUT_TOTAL: Outcome.TIMEOUT_TOTAL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AskFacts:
    """What was asked for. `output_tokens_demanded` is per choice, and None unless the demand
    (`ignore_eos`, `min_tokens`) was sent and the server honours it. `client_error` is our own bug's text.
    """

    stream: bool = True
    framing: Framing = Framing.SSE
    finish_reason_expected: bool = True
    n: int = 1
    input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_demanded: int | None = None
    prompt_repeated: bool = False
    client_error: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """All that one request brought back. `body` is the beginning of a body that is not a stream of events
    (an error's, a page's); `counted_tokens` what a tokenizer counted in the whole text, where one did.
    """

    exchange: Exchange
    reader: Reader
    timeline: Timeline
    body: bytes = b""
    counted_tokens: int | None = None


def judge(answer: Answer, asked: AskFacts) -> Verdict:
    """Return the first outcome that applies."""
    exchange = answer.exchange
    if asked.client_error or exchange.end is End.SINK_ERROR:
        return Outcome.CLIENT_ERROR, one_line(asked.client_error or exchange.error)
    if exchange.end in _TRANSPORT_ENDS:
        return _TRANSPORT_ENDS[exchange.end], one_line(exchange.error)
    return _judge_head(answer, asked) or _judge_events(answer.reader) or _judge_end(answer, asked)


def media_type(headers: list[tuple[bytes, bytes]]) -> str:
    """Return the content type without its parameters, in lower case; empty where there is none."""
    for name, value in headers:
        if name == b"content-type":
            return value.split(b";")[0].strip().lower().decode("latin-1")
    return ""


def is_expected_type(content_type: str, asked: AskFacts) -> bool:
    """Say whether a body of this type can be what was asked for; a missing type can."""
    if not content_type:
        return True
    if asked.stream:
        return content_type in _STREAM_TYPES[asked.framing]
    return _is_json(content_type)


def _judge_head(answer: Answer, asked: AskFacts) -> Verdict | None:
    """Judge by status and content type."""
    exchange = answer.exchange
    status = exchange.status
    if status in (429, 503):
        return Outcome.REJECTED, body_message(answer.body) or f"HTTP {status}"
    if status is not None and not 200 <= status < 300:
        if 300 <= status < 400:
            return Outcome.HTTP_ERROR, f"HTTP {status}: redirects are not followed"
        return Outcome.HTTP_ERROR, body_message(answer.body) or f"HTTP {status}"
    if exchange.end is End.PROTOCOL_ERROR:
        return Outcome.HTTP_ERROR, one_line(exchange.error or "not HTTP")
    content_type = media_type(exchange.headers)
    if status is None or is_expected_type(content_type, asked):
        return None
    if asked.stream and _is_json(content_type):
        return Outcome.NOT_STREAMED, body_message(answer.body) or f"a body of {content_type} came"
    message = body_message(answer.body)
    return Outcome.HTTP_ERROR, one_line(f"unexpected content type {content_type}" + (f": {message}" if message else ""))


def _judge_events(reader: Reader) -> Verdict | None:
    """Judge by what the events themselves said."""
    if reader.error is not None:
        return Outcome.SERVER_ERROR, one_line(reader.error)
    if reader.aborted:
        return Outcome.ABORTED, one_line(f"finish reason {reader.finish_reason}")
    if reader.malformed_events:
        events = "1 event" if reader.malformed_events == 1 else f"{reader.malformed_events} events"
        return Outcome.MALFORMED, f"{events} could not be decoded"
    return None


def _judge_end(answer: Answer, asked: AskFacts) -> Verdict:
    """Judge by how the answer ended, and by what was in it."""
    exchange, reader = answer.exchange, answer.reader
    if exchange.end is not End.COMPLETE and not reader.terminal:
        # A stop, or a connection that ended before the dialect's own end came.
        if exchange.end is End.CUT:
            return Outcome.CUT, one_line(exchange.error)
        return Outcome.UNFINISHED, ""
    usage_tokens = reader.usage.output_tokens
    any_token = len(answer.timeline) > 0 or bool(usage_tokens) or (not asked.stream and bool(reader.whole_text))
    if not any_token and (reader.terminal or reader.finish_reason is not None):
        return Outcome.EMPTY, "no token came"
    if not exchange.received_bytes and not any_token:
        return Outcome.TRUNCATED, "no data came"
    if reader.finish_reason is None and not _ended_without_reason(reader, asked):
        return Outcome.TRUNCATED, "no finish reason" if asked.finish_reason_expected else "no end signal"
    wanted = asked.output_tokens_demanded
    if wanted is not None and usage_tokens is not None and usage_tokens < wanted * asked.n:
        return Outcome.TRUNCATED, f"{usage_tokens} of {wanted * asked.n} tokens"
    if not any_token:
        return Outcome.EMPTY, "no token came"
    return Outcome.OK, ""


def _ended_without_reason(reader: Reader, asked: AskFacts) -> bool:
    """Say whether the end signal alone is a proper end: a dialect without finish reasons, or a whole document."""
    return reader.terminal and not (asked.stream and asked.finish_reason_expected)


def _is_json(content_type: str) -> bool:
    return content_type == "application/json" or content_type.endswith("+json")
