"""Streams that real servers, proxies and mocks sent: decoded to what each server meant.

``tests/captures/expected.json`` was worked out apart from this package (see ``derive.py`` there). Here
stands the reader's part; the outcome belongs to whoever judges a whole exchange.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from llm_locust.protocol import get_dialect, server_message
from tests.protocol.playing import Played, by_byte, play

HERE = Path(__file__).parent.parent / "captures"
EXPECTED: dict[str, dict[str, Any]] = json.loads((HERE / "expected.json").read_text())
ENDS: dict[str, dict[str, Any]] = json.loads((HERE / "ends.json").read_text())
STREAMS = [name for name, case in EXPECTED.items() if ENDS[name]["status"] == 200 and case["stream"]]
DOCUMENTS = [name for name, case in EXPECTED.items() if ENDS[name]["status"] == 200 and not case["stream"]]
REFUSALS = [name for name in EXPECTED if ENDS[name]["status"] != 200]


def body_of(name: str) -> bytes:
    """Return a reply's body."""
    return (HERE / f"{name}.sse").read_bytes()


def check_text(text: str, case: dict[str, Any]) -> None:
    """Compare a text by its start, its length and its hash."""
    assert (text[:24], len(text)) == (case["text_start"], case["text_length"])
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == case["text_sha256"]


@pytest.mark.parametrize("name", STREAMS)
def test_a_captured_stream_is_read_as_its_server_meant_it(name: str) -> None:
    """Text, arrivals, counts, finish reason and error, by HTTP chunk, byte by byte and in one piece."""
    case, body = EXPECTED[name], body_of(name)
    clean = ENDS[name]["end"] in ("last-chunk", "content-length")
    chunks = [(int(at_ms), body[start : start + length]) for at_ms, start, length in ENDS[name]["segments"]]
    assert b"".join(part for _, part in chunks) == body
    played = play(case["dialect"], chunks, n=case["n"], clean_end=clean)
    reader = played.reader
    check_text(reader.text, case)
    assert len(played.arrivals) == case["arrivals"]
    assert (reader.usage.output_tokens, reader.usage.input_tokens) == (case["output_tokens"], case["input_tokens"])
    assert reader.finish_reason == case["finish_reason"]
    assert reader.malformed_events == 0
    assert (reader.error is None) == (case["error"] is None)
    assert " ".join((case["error"] or "").split()).startswith(reader.error or "")
    assert reader.aborted is (case["outcome"] == "aborted")
    for again in (by_byte(body), [(0, body)]):
        assert play(case["dialect"], again, n=case["n"], clean_end=clean).state() == played.state()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_captured_document_is_read_as_its_server_meant_it(name: str) -> None:
    """A non-streamed answer has the same text, counts and finish reason as a stream would."""
    case = EXPECTED[name]
    reader = get_dialect(case["dialect"]).reader(stream=False, n=case["n"])
    reader.document(body_of(name))
    check_text(reader.text, case)
    assert (reader.usage.output_tokens, reader.usage.input_tokens) == (case["output_tokens"], case["input_tokens"])
    assert (reader.finish_reason, reader.malformed_events, reader.error) == (case["finish_reason"], 0, None)


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_keeps_the_servers_message_and_no_echo_of_the_request(name: str) -> None:
    """At most 200 characters of the message, the same words in the same order, and no input."""
    message, whole = server_message(body_of(name)), " ".join((EXPECTED[name]["http_message"] or "").split())
    assert len(message) <= 200
    assert whole.startswith(message)
    assert (message == "") == (whole == "")
    assert "'input'" not in message
    assert "input_value" not in message


@pytest.mark.parametrize(
    ("name", "running"),
    [
        ("dynamo_chat_contusage", [*range(1, 25)]),
        ("sglang_chat_contusage", [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 23, 24]),
        ("sglang_native_generate", [*range(1, 17)]),
        ("vllm_chat_usage", [None] * 23),
    ],
)
def test_a_running_count_is_read_beside_each_token(name: str, running: list[int | None]) -> None:
    """Where the server counts as it goes, each arrival has its count; where it does not, none."""
    case = EXPECTED[name]
    played: Played = play(case["dialect"], [(0, body_of(name))])
    assert played.running == running


def test_each_choice_of_two_is_kept_apart() -> None:
    """vLLM, n = 2: the arrivals of both, the text of the first, one usage for both."""
    played = play("openai-completions", [(0, body_of("vllm_compl_n2"))], n=2)
    places = [place for _, (place, _) in played.arrivals]
    assert (places.count(0), places.count(1)) == (23, 20)
    assert played.reader.whole_text.startswith(played.reader.text)
    assert len(played.reader.whole_text) > len(played.reader.text)


def test_the_set_holds_every_kind_of_end() -> None:
    """The captures are worth what they cover."""
    outcomes = {case["outcome"] for case in EXPECTED.values()}
    assert outcomes == {
        "ok", "http_error", "rejected", "server_error", "aborted", "cut", "empty", "truncated", "unfinished"
    }  # fmt: skip
    assert (len(STREAMS), len(DOCUMENTS), len(REFUSALS)) == (188, 16, 65)
