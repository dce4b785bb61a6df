"""Events that are read at once leave a reader as events that are read one by one do; or they are not read at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llm_locust.protocol import ANSWER, NOTHING, REASONING, Reader, get_dialect
from llm_locust.protocol.sse import SSEDecoder

CHAT: list[dict[str, Any]] = [
    {"delta": {"content": "a"}},
    {"delta": {"content": "b", "reasoning_content": None, "tool_calls": None, "refusal": None}},
    {"delta": {"content": "é\n\n "}, "logprobs": None, "finish_reason": None, "index": 3},
    {"delta": {"reasoning_content": "r"}},
    {"delta": {"reasoning": "s", "content": None}},
    {"delta": {"reasoning": "s", "reasoning_content": "s"}},
    {"delta": {"content": "c", "reasoning": "t"}},
    {"delta": {"content": ""}},
    {"delta": {"role": "assistant"}},
    {"delta": {"content": "d"}, "finish_reason": "stop"},
    {"delta": {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{}"}}]}},
    {"delta": {"content": 5}},
    {"delta": None},
]
TEXT: list[dict[str, Any]] = [
    {"text": "a"},
    {"text": "é\n\n ", "finish_reason": None, "logprobs": None, "index": 0},
    {"text": ""},
    {"text": "b", "finish_reason": "length"},
    {"text": None},
]
OTHER: list[Any] = [
    {"choices": []},
    {"choices": [CHAT[0], CHAT[1]]},
    {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}},
    {"choices": [{**CHAT[0], **TEXT[0]}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}},
    {"choices": [{**CHAT[0], **TEXT[0]}], "usage": None, "error": None},
    {"error": {"message": "out of memory"}},
    [],
    None,
    7,
]


def events_of(choices: list[dict[str, Any]]) -> st.SearchStrategy[list[bytes]]:
    """Data of events, mostly plain ones."""
    usual = st.sampled_from([{"id": "x", "choices": [choice]} for choice in choices])
    plain = st.just({"id": "x", "choices": [choices[0]]})
    event = st.one_of(plain, plain, plain, usual, st.sampled_from(OTHER)).map(json.dumps).map(str.encode)
    return st.lists(st.one_of(event, event, event, st.sampled_from([b"[DONE]", b"{", b""])), min_size=1, max_size=6)


def begun(dialect: str) -> Reader:
    """A reader that has seen its first event."""
    reader = get_dialect(dialect).reader(stream=True)
    reader.event(b'{"id": "1", "choices": [{"index": 0, "delta": {"content": ""}, "text": ""}]}')
    return reader


def state(reader: Reader) -> tuple[Any, ...]:
    """All that a reader tells."""
    return (
        reader.text, reader.reasoning_text, reader.whole_text, reader.tool_calls, reader.usage,
        reader.cumulative_tokens, reader.finish_reason, reader.terminal, reader.error, reader.aborted,
        reader.malformed_events, reader.server_request_id,
    )  # fmt: skip


def judge(dialect: str, payloads: list[bytes]) -> None:
    """Read once at once, once one by one."""
    at_once, untouched, one_by_one = begun(dialect), begun(dialect), begun(dialect)
    arrivals = at_once.run(b"[%s]" % b",".join(payloads), len(payloads))
    if arrivals == NOTHING:
        assert state(at_once) == state(untouched)
    else:
        assert [one_by_one.event(payload) for payload in payloads] == [arrivals] * len(payloads)
        assert state(at_once) == state(one_by_one)


@settings(max_examples=150, deadline=None)
@given(payloads=events_of(CHAT))
@example(payloads=[json.dumps({"choices": [choice]}).encode() for choice in CHAT[:3]])
def test_a_run_of_chat_events(payloads: list[bytes]) -> None:
    judge("openai-chat", payloads)


@settings(max_examples=150, deadline=None)
@given(payloads=events_of(TEXT))
def test_a_run_of_completion_events(payloads: list[bytes]) -> None:
    judge("openai-completions", payloads)


@pytest.mark.parametrize(
    ("dialect", "choice", "channel", "text"),
    [
        ("openai-chat", CHAT[1], ANSWER, "bbb"),
        ("openai-chat", CHAT[4], REASONING, "sss"),
        ("openai-completions", TEXT[1], ANSWER, "é\n\n " * 3),
    ],
)
def test_plain_tokens_are_read_at_once(dialect: str, choice: dict[str, Any], channel: int, text: str) -> None:
    """What the tests above let pass as "not read" would be slow."""
    reader = begun(dialect)
    event = json.dumps({"id": "x", "object": "chunk", "usage": None, "choices": [choice]}).encode()
    decoder = SSEDecoder()
    decoder.feed(b"data: 0\n\n")
    payloads = decoder.array(b"data: %s\n\n" % event * 3)
    assert payloads is not None
    assert (reader.run(payloads, 3), reader.whole_text) == (((0, channel),), text)


@pytest.mark.parametrize("dialect", ["sglang-generate", "anthropic-messages", "openai-responses"])
def test_other_dialects_read_events_one_by_one(dialect: str) -> None:
    assert begun(dialect).run(b'[{"text": "a"}]', 1) == NOTHING


def test_an_answer_of_several_choices_is_read_one_by_one() -> None:
    reader = get_dialect("openai-chat").reader(stream=True, n=2)
    reader.event(b'{"id": "1", "choices": []}')
    assert reader.run(b'[{"choices": [{"index": 1, "delta": {"content": "a"}}]}]', 1) == NOTHING
