"""Every outcome, and which one applies first."""

from __future__ import annotations

from typing import Any

import pytest

from llm_locust.measure.judge import Answer, AskFacts, judge
from llm_locust.measure.record import Outcome
from llm_locust.protocol.types import Framing, Usage
from llm_locust.wire.types import End
from tests.measure.given import StatedReader, exchange_of, timeline_of

HTML = [(b"content-type", b"text/html")]
JSON = [(b"content-type", b"application/json")]


def judged(
    *,
    events: int = 2,
    asked: AskFacts = AskFacts(),  # noqa: B008 (frozen)
    body: bytes = b"",
    exchange: dict[str, Any] | None = None,
    **reader: Any,
) -> tuple[str, str]:
    """Judge an answer that is ok but for what is given."""
    timeline = timeline_of([10 * (i + 1) for i in range(events)])
    outcome, error = judge(Answer(exchange_of(**(exchange or {})), StatedReader(**reader), timeline, body), asked)
    return outcome.value, error


def test_ok_when_finish_reason_and_end_came() -> None:
    """The plain case."""
    assert judged() == ("ok", "")


@pytest.mark.parametrize(
    ("given", "outcome", "error"),
    [
        pytest.param({"asked": AskFacts(client_error="KeyError: x")}, "client_error", "KeyError: x", id="our own bug"),
        pytest.param({"exchange": {"end": End.SINK_ERROR, "error": "boom"}}, "client_error", "boom", id="the sink's"),
        *(
            pytest.param({"exchange": {"end": End(name), "error": "e", "status": None}}, name, "e", id=name)
            for name in ("connect_error", "timeout_connect", "timeout_first_token", "timeout_stall", "timeout_total")
        ),
        pytest.param(
            {"exchange": {"status": 429}, "body": b'{"error":{"message":"slow","code":"rate_l"}} '},
            "rejected", "slow", id="A40 V1 429",
        ),
        pytest.param(
            {"exchange": {"status": 503, "headers": HTML}, "body": b"<html><h1>503</h1></html>\n"},
            "rejected", "503", id="A40 V2 503",
        ),
        pytest.param({"exchange": {"status": 503}}, "rejected", "HTTP 503", id="503 without a body"),
        pytest.param(
            {"exchange": {"headers": HTML}, "body": b"<html>Sign in</html>", "events": 0},
            "http_error", "unexpected content type text/html: Sign in", id="A40 V3 login page",
        ),
        pytest.param(
            {"exchange": {"status": 401}, "body": b'{"detail":"Unauthorized"}'}, "http_error", "Unauthorized", id="401"
        ),
        pytest.param(
            {"exchange": {"status": 302}, "body": b"secret"},
            "http_error", "HTTP 302: redirects are not followed", id="redirect",
        ),
        pytest.param(
            {"exchange": {"status": None, "end": End.PROTOCOL_ERROR, "error": "bad version"}},
            "http_error", "bad version", id="not HTTP",
        ),
        pytest.param(
            {"exchange": {"headers": JSON}, "events": 0}, "not_streamed", "a body of application/json came",
            id="JSON where a stream was asked for",
        ),
        pytest.param({"error": "engine died", "events": 0}, "server_error", "engine died", id="A26 V1 error event"),
        pytest.param(
            {"error": "upstream gone", "aborted": True, "finish_reason": "error"},
            "server_error", "upstream gone", id="A26 V3 error beside a finish reason",
        ),
        pytest.param({"aborted": True, "finish_reason": "abort"}, "aborted", "finish reason abort", id="A28 V1 abort"),
        pytest.param({"malformed_events": 1}, "malformed", "1 event could not be decoded", id="one bad event"),
        pytest.param(
            {"malformed_events": 2, "exchange": {"end": End.CUT}}, "malformed", "2 events could not be decoded",
            id="bad events, then cut",
        ),
        pytest.param(
            {"exchange": {"end": End.CUT, "error": "reset"}, "terminal": False, "finish_reason": None},
            "cut", "reset", id="A12 cut",
        ),
        pytest.param(
            {"exchange": {"end": End.CUT, "status": None, "error": "closed"}, "terminal": False, "events": 0},
            "cut", "closed", id="cut before the headers",
        ),
        pytest.param({"exchange": {"end": End.CUT}}, "ok", "", id="closed after the dialect's own end"),
        pytest.param({"events": 0, "finish_reason": None}, "empty", "no token came", id="A02 V1 [DONE] only"),
        pytest.param({"events": 0, "terminal": False}, "empty", "no token came", id="A02 V2 finish reason only"),
        pytest.param({"events": 0, "usage": Usage(output_tokens=1)}, "ok", "", id="A02 V3 one token by usage"),
        pytest.param(
            {"events": 0, "terminal": False, "finish_reason": None, "exchange": {"received_bytes": 0}},
            "truncated", "no data came", id="an empty body",
        ),
        pytest.param(
            {"terminal": False, "finish_reason": None}, "truncated", "no finish reason", id="A11 clean end, no reason"
        ),
        pytest.param({"finish_reason": None}, "truncated", "no finish reason", id="[DONE] alone is not enough"),
        pytest.param({"terminal": False}, "ok", "", id="A10 a finish reason alone is enough"),
        pytest.param(
            {"finish_reason": None, "asked": AskFacts(finish_reason_expected=False)}, "ok", "",
            id="a dialect without finish reasons",
        ),
        pytest.param(
            {"finish_reason": None, "terminal": False, "asked": AskFacts(finish_reason_expected=False)},
            "truncated", "no end signal", id="nor its end signal",
        ),
        pytest.param(
            {"usage": Usage(output_tokens=9), "asked": AskFacts(output_tokens_demanded=10)},
            "truncated", "9 of 10 tokens", id="fewer tokens than demanded",
        ),
        pytest.param(
            {"usage": Usage(output_tokens=19), "asked": AskFacts(output_tokens_demanded=10, n=2)},
            "truncated", "19 of 20 tokens", id="fewer than demanded of two choices",
        ),
        pytest.param({"asked": AskFacts(output_tokens_demanded=10)}, "ok", "", id="judged on usage only"),
        pytest.param({"usage": Usage(output_tokens=9), "asked": AskFacts(output_tokens=10)}, "ok", "", id="short"),
        *(
            pytest.param({"finish_reason": reason}, "ok", "", id=f"A28 {reason}")
            for reason in ("content_filter", "length", "tool_calls", "eos_token_x")
        ),
        pytest.param({"exchange": {"end": End.STOPPED}, "terminal": False}, "unfinished", "", id="stopped"),
        pytest.param({"exchange": {"end": None}, "terminal": False}, "unfinished", "", id="never ended"),
        pytest.param(
            {"exchange": {"end": End.STOPPED}, "terminal": False, "error": "died"}, "server_error", "died",
            id="failed, then stopped",
        ),
    ],
)  # fmt: skip
def test_outcome_when(given: dict[str, Any], outcome: str, error: str) -> None:
    """The first outcome of the table that applies."""
    assert judged(**given) == (outcome, error)


@pytest.mark.parametrize(
    ("content_type", "asked", "outcome"),
    [
        pytest.param(b"text/event-stream;charset=UTF-8", AskFacts(), "ok", id="parameters"),
        pytest.param(b"Text/Event-Stream", AskFacts(), "ok", id="case"),
        pytest.param(b"application/x-ndjson", AskFacts(framing=Framing.NDJSON), "ok", id="NDJSON"),
        pytest.param(b"application/json", AskFacts(framing=Framing.NDJSON), "not_streamed", id="JSON for NDJSON"),
        pytest.param(b"application/problem+json", AskFacts(), "not_streamed", id="problem"),
        pytest.param(b"text/plain", AskFacts(), "http_error", id="plain text"),
        pytest.param(b"application/json", AskFacts(stream=False), "ok", id="a document"),
        pytest.param(b"text/event-stream", AskFacts(stream=False), "http_error", id="a stream for a document"),
    ],
)
def test_outcome_by_content_type(content_type: bytes, asked: AskFacts, outcome: str) -> None:
    """Another kind of body is no success, whatever is in it."""
    assert judged(asked=asked, exchange={"headers": [(b"content-type", content_type)]})[0] == outcome


def test_ok_when_no_content_type_was_told() -> None:
    """A missing type proves nothing."""
    assert judged(exchange={"headers": []}) == ("ok", "")


@pytest.mark.parametrize(
    ("reader", "outcome"),
    [
        pytest.param({"finish_reason": "stop", "whole_text": "Hi"}, "ok", id="text without usage"),
        pytest.param({"finish_reason": None, "whole_text": "Hi"}, "ok", id="A34 V2 no finish reason in the document"),
        pytest.param({"finish_reason": "stop"}, "empty", id="no text"),
        pytest.param({"malformed_events": 1, "finish_reason": None, "terminal": False}, "malformed", id="not JSON"),
    ],
)
def test_outcome_of_a_whole_document(reader: dict[str, Any], outcome: str) -> None:
    """Asked for without a stream, a document is its own end."""
    assert judged(asked=AskFacts(stream=False), exchange={"headers": JSON}, events=0, **reader)[0] == outcome


def test_error_text_is_one_short_line() -> None:
    """At most 200 characters, whatever the server writes."""
    _, error = judged(error="a\n b" * 100)
    assert len(error) == 200
    assert "\n" not in error


def test_every_outcome_is_reached_above() -> None:
    """A new outcome needs its row."""
    rows = next(mark for mark in test_outcome_when.pytestmark if mark.name == "parametrize").args[1]
    assert {row.values[1] for row in rows} == {outcome.value for outcome in Outcome}
