"""Events that are read at once leave a reader as events that are read one by one do; or they are not read at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llm_locust.protocol import ANSWER, NOTHING, REASONING, Reader, get_dialect
from llm_locust.protocol.runs import MOST_FORMS
from llm_locust.protocol.sse import SSEDecoder
from llm_locust.protocol.types import SEPARATOR

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


def judge(dialect: str, *runs: list[bytes]) -> None:
    """Read runs at once, and one by one what was not read."""
    at_once, one_by_one = begun(dialect), begun(dialect)
    for payloads in runs:
        before = state(at_once)
        arrivals = at_once.run(SEPARATOR.join(payloads), len(payloads))
        told = [one_by_one.event(payload) for payload in payloads]
        if arrivals == NOTHING:
            assert state(at_once) == before
            assert [at_once.event(payload) for payload in payloads] == told
        else:
            assert told == [arrivals] * len(payloads)
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


FORMS = {
    "openai-chat": (
        b'{"id":"?","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}',
        b'{"id":"?","choices":[{"index":0,"delta":{"reasoning_content":"%s","reasoning":"?"}}]}',
        b'{"id":"?","choices":[{"index":0,"delta":{"content":"a","content":"%s"}}]}',
    ),
    "openai-completions": (
        b'{"id":"?","choices":[{"index":0,"text":"%s"}],"model":"?"}',
        b'{"choices": [{"text": "%s", "finish_reason": null}], "id": "?", "created": 1}',
    ),
}
RAW_TEXTS = [
    b"a", b"?", b",", b":", b"id", "é€".encode(), b" tok", b"\\n", b"\\u00e9", b"\\\\",
    b'\\"', b"\\/", b"\\ud83d\\ude00",
    b"\\ud83d", b"", b'"', b'","', b'a","b', b"\\", b'","content":"b', b'"},"finish_reason":"stop', b"\t",
    b"\xff", b"\x00", b'"}}]},{"id":"?","choices":[{"index":0,"delta":{"content":"b',
    b'"}}]} {"id":"?","choices":[{"index":0,"delta":{"content":"b',
]  # fmt: skip
"""Texts as they stand between the quotes of an event, some of which leave it no JSON or make it another event."""


@settings(max_examples=400, deadline=None)
@pytest.mark.parametrize("dialect", FORMS)
@given(data=st.data())
def test_runs_whose_texts_are_cut_out(dialect: str, data: st.DataObject) -> None:
    """Whatever stands where the text of an event of the same form would stand."""
    forms = data.draw(st.lists(st.sampled_from(FORMS[dialect]), min_size=1, max_size=2))
    plain = st.sampled_from(RAW_TEXTS[:10])
    text = st.one_of(plain, plain, plain, st.lists(st.sampled_from(RAW_TEXTS), max_size=3).map(b"".join))
    event = st.tuples(st.sampled_from(forms), text).map(lambda made: made[0].replace(b"%s", made[1]))
    runs = [data.draw(st.lists(st.just(forms[0].replace(b"%s", b"tok1")) | event, min_size=1, max_size=3))]
    runs += data.draw(st.lists(st.lists(event, min_size=1, max_size=4), min_size=1, max_size=4))
    judge(dialect, *runs)


@pytest.mark.parametrize("dialect", FORMS)
@pytest.mark.parametrize(
    "texts", [(b"a\\", b',"b'), (b"a\\", b'","b'), (b'a","b', b"\\"), (b"a\\\\", b"b"), (b"\\", b"\\")]
)
def test_quotes_and_backslashes_of_two_texts_do_not_make_up_for_each_other(dialect: str, texts: list[bytes]) -> None:
    form = FORMS[dialect][0]
    judge(dialect, [form.replace(b"%s", b"tok1")], [form.replace(b"%s", text) for text in texts])


@pytest.mark.parametrize("dialect", FORMS)
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("shape", [b"A\nB", b"A B", b"AB", b"A\n\nB"])
def test_two_objects_are_two_events_only_on_data_lines_of_their_own(dialect: str, shape: bytes, learned: bool) -> None:
    """With a blank line more, each of these has as many blank lines as objects."""
    event = FORMS[dialect][0].replace(b"%s", b"tok1")
    reader = begun(dialect)
    if learned:
        assert reader.run(event, 1) == ((0, ANSWER),)
    assert reader.run(shape.replace(b"A", event).replace(b"B", event), 2) == NOTHING


@pytest.mark.parametrize("dialect", FORMS)
def test_an_event_that_lines_cut_is_none(dialect: str) -> None:
    event = FORMS[dialect][0].replace(b"%s", b"tok1").replace(b":", b":\n", 1)
    assert begun(dialect).run(event, 1) == NOTHING


@pytest.mark.parametrize("dialect", FORMS)
def test_a_form_is_learned_from_a_text_in_ascii(dialect: str) -> None:
    """As servers write that are made with Python's own JSON; and a text in another spelling keeps the form."""
    reader = begun(dialect)
    for text in ("é€", "中文"):
        event = FORMS[dialect][0].replace(b"%s", json.dumps(text)[1:-1].encode())
        assert reader.run(event, 1) == ((0, ANSWER),)
        assert reader._runs._form is not None  # type: ignore[attr-defined]
    assert reader.text == "é€中文"


@pytest.mark.parametrize("dialect", FORMS)
def test_a_form_is_learned_and_used(dialect: str) -> None:
    """What comes after the first run of an answer is not decoded any more, until the form changes; not for ever."""
    reader, other = begun(dialect), begun(dialect)
    runs = reader._runs  # type: ignore[attr-defined]
    decoded: list[bytes] = []
    decode = runs._decode

    def watched(lines: bytes) -> tuple[int, list[str]]:
        decoded.append(lines)
        told: tuple[int, list[str]] = decode(lines)
        return told

    runs._decode = watched
    for number in range(2 * MOST_FORMS):
        form = FORMS[dialect][0].replace(b"?", b"id%d" % number)
        for text in (b"a, ", b'"'.join([b"b\\", b" c"]), b"\\u00e9"):
            assert reader.run(SEPARATOR.join([form.replace(b"%s", text)] * 3), 3) == ((0, ANSWER),)
            other.event(form.replace(b"%s", text))
            other.event(form.replace(b"%s", text))
            other.event(form.replace(b"%s", text))
    learned = 2 * MOST_FORMS  # one run decoded and one probe each
    assert len(decoded) == learned + 3 * MOST_FORMS
    assert state(reader) == state(other)


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
    events = decoder.joined(b"data: %s\n\n" % event * 3)
    assert events is not None
    assert (reader.run(events, 3), reader.whole_text) == (((0, channel),), text)


@pytest.mark.parametrize("dialect", ["sglang-generate", "anthropic-messages", "openai-responses"])
def test_other_dialects_read_events_one_by_one(dialect: str) -> None:
    assert begun(dialect).run(b'{"text": "a"}', 1) == NOTHING


def test_an_answer_of_several_choices_is_read_one_by_one() -> None:
    reader = get_dialect("openai-chat").reader(stream=True, n=2)
    reader.event(b'{"id": "1", "choices": []}')
    assert reader.run(b'{"choices": [{"index": 1, "delta": {"content": "a"}}]}', 1) == NOTHING
