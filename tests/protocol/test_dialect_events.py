"""What the events and documents of each dialect mean: tool calls, thinking, pieces, ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_locust.protocol import ANSWER, REASONING, TOOL, Usage, get_dialect
from llm_locust.protocol.answer import AnswerReader
from tests.protocol.playing import chat, delta, used


def test_tool_calls_are_put_together_by_their_index() -> None:
    """Fragments are one call; a repeated name is not doubled; calls without an index are apart."""

    def call(**fields: object) -> dict[str, Any]:
        return delta(tool_calls=[fields])

    played = chat(
        call(index=0, function={"name": "a", "arguments": ""}), call(index=0, function={"name": "a", "arguments": "{"}),
        call(index=1, function={"name": "b", "arguments": {"x": 1}}), call(index=0, function={"arguments": "}"}),
        delta(finish="tool_calls"),
    )  # fmt: skip
    assert played.reader.tool_calls == (("a", "{}"), ("b", '{"x":1}'))
    assert [arrival for _, arrival in played.arrivals] == [(0, TOOL)] * 4
    unnumbered = chat(call(function={"name": "a", "arguments": "1"}), call(function={"name": "b", "arguments": "2"}))
    assert unnumbered.reader.tool_calls == (("a", "1"), ("b", "2"))


def test_generate_text_may_shrink_at_its_end_and_may_come_in_pieces() -> None:
    """A stop string is cut off at the finish; a server with incremental streaming is known by its second text."""

    def event(text: str, tokens: int, finish: object = None) -> dict[str, Any]:
        return {"text": text, "meta_info": {"id": "r1", "completion_tokens": tokens, "prompt_tokens": 4,
                                            "finish_reason": finish}}  # fmt: skip

    stop = {"type": "stop", "matched": "END"}
    whole = chat(event("a", 1), event("a EN", 2), event("a ", 3, stop), dialect="sglang-generate")
    assert (whole.reader.text, whole.running) == ("a ", [1, 2, 3])
    pieces = chat(event("ab", 1), event("c", 2), event("cd", 3), event("e", 4, stop), dialect="sglang-generate")
    assert (pieces.reader.text, pieces.reader.finish_reason) == ("abccde", "stop")
    assert [mask for _, (_, mask) in pieces.arrivals] == [ANSWER] * 4


def test_tgi_whole_text_stands_where_a_backend_forgets_that_a_token_is_special() -> None:
    """``generated_text`` is without special tokens."""
    played = chat(
        {"index": 1, "token": {"id": 1, "text": "Hi", "special": False}},
        {"index": 2, "token": {"id": 2, "text": "</s>"}, "generated_text": "Hi",
         "details": {"finish_reason": "eos_token", "generated_tokens": 2, "input_length": 9}},
        dialect="tgi-generate",
    )  # fmt: skip
    assert (played.reader.text, played.reader.terminal) == ("Hi", True)
    assert played.reader.usage == Usage(input_tokens=9, output_tokens=2)


def test_anthropic_thinking_tools_and_cache_are_read() -> None:
    """Thinking is reasoning, a tool's name is its first token, the prompt is the sum of its three parts."""
    played = chat(
        {"type": "message_start", "message": {"id": "m1", "usage": {
            "input_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 2, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "eA=="}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "redacted_thinking", "data": "eA=="}},
        {"type": "content_block_start", "index": 2,
         "content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"}, dialect="anthropic-messages",
    )  # fmt: skip
    assert [mask for _, (_, mask) in played.arrivals] == [REASONING, TOOL, TOOL]
    assert (played.reader.reasoning_text, played.reader.tool_calls) == ("Hm", (("f", "{}"),))
    assert played.reader.usage == Usage(input_tokens=15, output_tokens=9, cached_tokens=10)
    assert (played.reader.server_request_id, played.reader.finish_reason) == ("m1", "tool_use")


def test_responses_reasoning_refusal_and_calls_are_read() -> None:
    """Each delta is of its channel; done events repeat; a cancelled response was aborted."""
    played = chat(
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.reasoning_summary_text.delta", "delta": "Hm", "output_index": 0},
        {"type": "response.output_item.added", "output_index": 1, "item": {"type": "function_call", "name": "f"}},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{}"},
        {"type": "response.function_call_arguments.done", "output_index": 1, "arguments": "{}"},
        {"type": "response.refusal.delta", "delta": "No", "output_index": 2},
        {"type": "response.audio.delta", "delta": "eA=="},
        {"type": "response.cancelled", "response": {"id": "resp_1", "status": "cancelled"}},
        dialect="openai-responses",
    )
    assert [mask for _, (_, mask) in played.arrivals] == [2, 8, 8, 4]
    assert (played.reader.tool_calls, played.reader.whole_text) == ((("f", "{}"),), "HmNof{}")
    assert (played.reader.aborted, played.reader.finish_reason, played.reader.terminal) == (True, "cancelled", True)


@pytest.mark.parametrize(
    ("dialect", "document", "text", "reasoning", "usage", "finish"),
    [
        pytest.param(
            "openai-chat",
            {"id": "r", "choices": [{"index": 0, "message": {"content": "a", "reasoning_content": "t"},
                                     "finish_reason": "stop"}], "usage": used(5)},
            "a", "t", Usage(input_tokens=7, output_tokens=5), "stop", id="chat",
        ),
        pytest.param(
            "openai-responses",
            {"id": "r", "status": "completed", "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}]},
                {"type": "message", "content": [{"type": "output_text", "text": "a"}]}],
             "usage": {"input_tokens": 7, "output_tokens": 5}},
            "a", "t", Usage(input_tokens=7, output_tokens=5), "completed", id="responses",
        ),
        pytest.param(
            "anthropic-messages",
            {"id": "m", "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}],
             "stop_reason": "end_turn", "usage": {"input_tokens": 7, "output_tokens": 5}},
            "a", "t", Usage(input_tokens=7, output_tokens=5), "end_turn", id="messages",
        ),
        pytest.param(
            "ollama-chat",
            {"message": {"content": "a", "thinking": "t"}, "done": True, "done_reason": "stop",
             "prompt_eval_count": 7, "eval_count": 5},
            "a", "t", Usage(input_tokens=7, output_tokens=5), "stop", id="Ollama",
        ),
        pytest.param(
            "sglang-generate",
            [{"text": "a", "meta_info": {"id": "r", "prompt_tokens": 7, "completion_tokens": 2,
                                         "finish_reason": {"type": "stop"}}},
             {"text": "b", "meta_info": {"id": "r", "prompt_tokens": 7, "completion_tokens": 3,
                                         "finish_reason": {"type": "length"}}}],
            "a", "", Usage(input_tokens=7, output_tokens=5), "stop", id="generate, two choices",
        ),
        pytest.param(
            "tgi-generate",
            [{"generated_text": "a", "details": {"finish_reason": "length", "generated_tokens": 5}}],
            "a", "", Usage(output_tokens=5), "length", id="TGI, in a list",
        ),
    ],
)  # fmt: skip
def test_a_document_is_read_like_a_stream(
    dialect: str, document: object, text: str, reasoning: str, usage: Usage, finish: str
) -> None:
    """Text, counts and finish of a non-streamed answer; it is an end by itself."""
    reader = get_dialect(dialect).reader(stream=False, n=2 if isinstance(document, list) else 1)
    reader.document(json.dumps(document).encode())
    assert (reader.text, reader.reasoning_text, reader.usage, reader.finish_reason) == (text, reasoning, usage, finish)
    assert (reader.terminal, reader.error, reader.malformed_events) == (True, None, 0)


def test_a_document_that_is_an_error_has_no_end() -> None:
    """An error with status 200 is an error."""
    reader = get_dialect("openai-chat").reader(stream=False)
    reader.document(b'{"error":{"message":"m"}}')
    assert (reader.error, reader.terminal) == ("m", False)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"5", b"null"])
def test_a_document_that_is_none_is_malformed(body: bytes) -> None:
    """Nothing to read is not an empty success."""
    reader = get_dialect("openai-chat").reader(stream=False)
    reader.document(body)
    assert (reader.malformed_events, reader.terminal) == (1, False)


OBJECT = st.fixed_dictionaries
COUNT = st.sampled_from([0, 1, 2, 5, None, "3"])
USAGE = OBJECT({}, optional={"prompt_tokens": COUNT, "completion_tokens": COUNT, "reasoning_tokens": COUNT})
PART = st.sampled_from(["a", "", "\u00e5", None, 5])
DELTA = OBJECT({}, optional={"content": PART, "reasoning_content": PART, "reasoning": PART, "refusal": PART})
CHOICE = OBJECT(
    {},
    optional={
        "index": st.integers(0, 1), "delta": DELTA | st.none(), "text": PART,
        "finish_reason": st.sampled_from([None, "stop", 1]),
    },
)  # fmt: skip
META = OBJECT(
    {"completion_tokens": COUNT, "prompt_tokens": COUNT},
    optional={"finish_reason": st.sampled_from([None, "stop", {"type": "abort"}]), "cached_tokens": COUNT},
)
EVENT = OBJECT(
    {"id": st.just("r1")},
    optional={
        "choices": st.lists(CHOICE, max_size=2), "usage": USAGE | st.none(), "text": PART, "meta_info": META,
        "error": st.sampled_from([None, {}, {"message": "m"}]),
    },
)  # fmt: skip


@given(
    name=st.sampled_from(["openai-chat", "openai-completions", "sglang-generate"]),
    events=st.lists(EVENT, min_size=1, max_size=6),
)
def test_the_typed_path_says_what_the_untyped_path_says(name: str, events: list[dict[str, Any]]) -> None:
    """The fast path is only faster: every arrival, count and text is the same."""
    typed, untyped = get_dialect(name).reader(stream=True), get_dialect(name).reader(stream=True)
    assert isinstance(untyped, AnswerReader)
    typed.server_request_id = untyped.server_request_id = "r1"
    for event in events:
        payload = json.dumps(event).encode()
        assert typed.event(payload) == AnswerReader.event(untyped, payload)
        assert typed.cumulative_tokens == untyped.cumulative_tokens
    for field in ("usage", "finish_reason", "error", "aborted", "text", "reasoning_text", "whole_text"):
        assert getattr(typed, field) == getattr(untyped, field)
