"""What events mean beyond the usual: odd but legal JSON, counts of several choices, errors, tool calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_locust.protocol import ANSWER, REASONING, REFUSAL, UNSEEN, Usage, dialect_names, get_dialect, server_message
from tests.protocol.playing import chat, delta, play, used


@pytest.mark.parametrize(
    ("fields", "text", "reasoning", "mask"),
    [
        pytest.param({"content": [{"type": "text", "text": "a"}]}, "a", "", ANSWER, id="content as parts"),
        pytest.param(
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}]},
            "", "t", REASONING, id="thinking as a part",
        ),
        pytest.param({"content": 5}, "", "", 0, id="content as a number"),
        pytest.param({"content": "a", "refusal": None, "tool_calls": []}, "a", "", ANSWER, id="empty tool calls"),
        pytest.param({"reasoning": "t", "reasoning_content": "t"}, "", "t", REASONING, id="both spellings"),
        pytest.param(
            {"reasoning": "t", "reasoning_details": [{"type": "reasoning.text", "text": "t"}]},
            "", "t", REASONING, id="details repeat the text",
        ),
        pytest.param(
            {"reasoning_details": [{"type": "reasoning.summary", "summary": "s"}]}, "", "s", REASONING, id="summary"
        ),
        pytest.param(
            {"reasoning_details": [{"type": "reasoning.encrypted", "data": "eA=="}]}, "", "", 0, id="encrypted"
        ),
        pytest.param({"content": "a", "refusal": "No"}, "a", "", ANSWER | REFUSAL, id="answer and refusal"),
        pytest.param({"content": "a", "role": 1, "x": {"y": [1]}}, "a", "", ANSWER, id="unknown fields"),
    ],
)  # fmt: skip
def test_an_odd_delta_is_read_as_it_was_meant(fields: dict[str, Any], text: str, reasoning: str, mask: int) -> None:
    """Odd but legal JSON falls to the untyped path and is no malformed event."""
    played = chat(delta(content="-"), delta(**fields))
    assert (played.reader.text, played.reader.reasoning_text) == ("-" + text, reasoning)
    assert [arrival for _, arrival in played.arrivals[1:]] == ([(0, mask)] if mask else [])
    assert played.reader.malformed_events == 0


@pytest.mark.parametrize(
    ("tokens", "count"),
    [("12", 12), (12.0, 12), (0, None), (-3, None), (None, None), ("many", None), (True, None), (1e300, None)],
)
def test_a_count_of_an_odd_type_is_a_count_or_absent(tokens: object, count: int | None) -> None:
    """Digits and whole floats are counts; anything else is no count, never an error."""
    played = chat(delta(content="a", usage=used(tokens)), delta(content="b", usage=used(tokens)), delta(finish="stop"))
    assert played.reader.usage == Usage(input_tokens=7, output_tokens=count)
    assert (played.reader.text, played.reader.malformed_events) == ("ab", 0)


@pytest.mark.parametrize(
    ("events", "n", "usage"),
    [
        pytest.param([used(5), None, used(0, 0)], 1, Usage(input_tokens=7, output_tokens=5), id="zero and null last"),
        pytest.param([used(9), used(5)], 1, Usage(input_tokens=7, output_tokens=5), id="the last counts, not the most"),
        pytest.param(
            [used(5, completion_tokens_details={"reasoning_tokens": 3}, prompt_tokens_details={"cached_tokens": 0})],
            1, Usage(input_tokens=7, output_tokens=5, reasoning_tokens=3, cached_tokens=0), id="details",
        ),
        pytest.param(
            [used(5, reasoning_tokens=2)], 1, Usage(input_tokens=7, output_tokens=5, reasoning_tokens=2), id="SGLang"
        ),
        pytest.param([used(48)], 2, Usage(input_tokens=7, output_tokens=48), id="one sum for two choices"),
        pytest.param([used(48), None, used(0)], 2, Usage(input_tokens=7, output_tokens=48), id="zero after the sum"),
        pytest.param([used(48), used(48)], 2, Usage(input_tokens=7, output_tokens=48), id="the sum said twice"),
    ],
)  # fmt: skip
def test_a_usage_of_its_own_event_is_the_last_that_is_neither_null_nor_zero(
    events: list[object], n: int, usage: Usage
) -> None:
    """Cumulative figures replace each other; reasoning tokens are inside completion tokens."""
    ends = [delta(index, finish="stop") for index in range(n)]
    trailing = [{"id": "r1", "choices": [], "usage": event} for event in events]
    played = chat(delta(content="a"), *ends, *trailing, "[DONE]", n=n)
    assert played.reader.usage == usage
    assert len(played.arrivals) == 1


def test_two_usages_after_two_ends_are_of_two_choices() -> None:
    """llama-server, n = 2: each choice's end is followed by that choice's usage: they add."""
    only = [{"id": "r1", "choices": [], "usage": used(24)}]
    played = chat(
        delta(0, content="a"), delta(1, content="b"), delta(0, finish="length"), *only,
        delta(1, finish="length"), *only, "[DONE]", n=2,
    )  # fmt: skip
    assert played.reader.usage == Usage(input_tokens=7, output_tokens=48)


def test_running_counts_of_two_choices_add_and_the_final_sum_replaces_them() -> None:
    """vLLM, n = 2, continuous usage: each event counts its own choice, the last one both."""
    played = chat(
        delta(0, content="a", usage=used(1)), delta(1, content="b", usage=used(1)),
        delta(0, content="c", usage=used(3)), delta(0, finish="stop", usage=used(3)),
        delta(1, finish="stop", usage=used(1)),
        {"id": "r1", "choices": [], "usage": used(4)}, "[DONE]", n=2,
    )  # fmt: skip
    assert played.running == [1, 2, 4]
    assert played.reader.usage.output_tokens == 4


def test_a_sum_so_far_is_replaced_by_the_sum_at_the_end() -> None:
    """n = 2: a figure of no one choice, said before any choice ended, is no choice's own."""
    early, late = ({"id": "r1", "choices": [], "usage": used(tokens)} for tokens in (3, 8))
    played = chat(
        delta(0, content="a"), early, delta(1, content="b"), delta(0, finish="stop"), delta(1, finish="stop"), late, n=2
    )
    assert played.reader.usage.output_tokens == 8


def test_an_event_without_a_count_has_no_running_count() -> None:
    """The count of an earlier event says nothing about this one, on either path."""
    played = chat(
        delta(content="a", usage=used(1)), delta(content="b", usage=used(2)), delta(content="c"),
        delta(content="d", usage=used(4)), delta(content="e", finish="stop"),
    )  # fmt: skip
    assert played.running == [1, 2, None, 4, None]


def test_an_error_beside_text_is_an_error_and_a_token() -> None:
    """Text came, and the server failed: both are kept."""
    played = chat(delta(content="a"), {**delta(content="b"), "error": {"message": "gone"}})
    assert (played.reader.text, len(played.arrivals), played.reader.error) == ("ab", 2, "gone")


def test_a_growing_count_under_an_empty_delta_is_a_token_without_text() -> None:
    """Half a character, or the end-of-text token: the count tells; a repeated one does not."""
    played = chat(
        delta(role="assistant", content="", usage=used(0)),
        delta(content="", usage=used(1)),
        delta(content="a", usage=used(2)),
        delta(content="", usage=used(2)),
        delta(finish="stop", usage=used(3)),
        {"id": "r1", "choices": [], "usage": used(3)},
    )
    assert played.arrivals == [(1, (0, UNSEEN)), (2, (0, ANSWER)), (4, (0, UNSEEN))]
    assert played.running == [1, 2, 3]


def test_a_first_count_of_one_under_an_empty_delta_is_the_first_token() -> None:
    """Half a character comes first: what the user waited for is there, though no text is (Dynamo)."""
    played = chat(
        delta(role="assistant", usage=used(1)), delta(content="a", usage=used(2)), delta(finish="length", usage=used(2))
    )
    assert played.arrivals == [(0, (0, UNSEEN)), (1, (0, ANSWER))]
    assert played.running == [1, 2]


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(delta(role="assistant", usage=used(28)), id="a gateway repeats the sum on every event"),
        pytest.param(delta(role="assistant", finish="stop", usage=used(1)), id="the sum of an answer that has ended"),
    ],
)
def test_a_first_count_that_may_be_the_sum_is_no_token(first: Any) -> None:
    """It tells nothing of when a token came."""
    played = chat(first, {"id": "r1", "choices": [], "usage": first["usage"]})
    assert played.arrivals == []


@pytest.mark.parametrize("n", [1, 2])
def test_a_count_that_stays_zero_under_text_is_no_running_count(n: int) -> None:
    """A proxy sends zeros beside text and the sum at the end: the end is no token."""
    played = chat(
        delta(content="a", usage=used(0)), delta(content="b", usage=used(0)), delta(finish="stop", usage=used(28)), n=n
    )
    assert [at for at, _ in played.arrivals] == [0, 1]
    assert played.reader.usage.output_tokens == 28


def test_a_usage_first_seen_in_the_finish_event_is_no_token() -> None:
    """llama-server and transformers serve state the sum in the finish event."""
    played = chat(delta(content="a"), delta(finish="length", usage=used(24)))
    assert (len(played.arrivals), played.reader.usage.output_tokens) == (1, 24)


@pytest.mark.parametrize(
    ("events", "n", "reason"),
    [
        pytest.param([delta(finish="stop"), delta(finish="length")], 1, "stop", id="the first stands"),
        pytest.param([delta(finish="stop"), delta(finish=None)], 1, "stop", id="null erases nothing"),
        pytest.param([delta(finish="")], 1, None, id="empty is none"),
        pytest.param([delta(0, finish="stop"), delta(1, content="b")], 2, None, id="one of two choices is open"),
        pytest.param([delta(0, finish="stop"), delta(1, finish="length")], 2, "stop", id="that of the first choice"),
        pytest.param([delta(0, finish="stop")], 2, "stop", id="a server that ignores n"),
        pytest.param([delta(0, content="a"), delta(1, finish="stop"), "[DONE]"], 2, "stop", id="[DONE] ends the rest"),
        pytest.param([delta(content="a"), "[DONE]"], 1, None, id="[DONE] alone is no reason"),
        pytest.param([delta(5, content="a"), delta(9, finish="stop")], 1, "stop", id="indexes beyond n are one choice"),
    ],
)
def test_a_finish_reason_is_that_of_every_choice_that_spoke(events: list[Any], n: int, reason: str | None) -> None:
    """Raw, the first that is not null; missing while a choice is open."""
    assert chat(*events, n=n).reader.finish_reason == reason


@pytest.mark.parametrize(
    ("event", "message"),
    [
        pytest.param({"error": {"message": "m", "code": 1}}, "m", id="object"),
        pytest.param({"error": "m"}, "m", id="string"),
        pytest.param({"object": "error", "message": "m"}, "m", id="flat"),
        pytest.param({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, "m", id="Anthropic"),
        pytest.param({"type": "error", "code": "x", "message": "m"}, "m", id="Responses"),
        pytest.param({"error": {"code": 5}}, "the server named no reason", id="without a message"),
        pytest.param({"error": True}, "the server named no reason", id="true"),
        pytest.param({"error": {"message": "m\n\n " + "x" * 300}}, "m " + "x" * 198, id="one line of 200 characters"),
        pytest.param({"error": {"message": "bad 'input': {'messages': 'secret'}"}}, "bad", id="no echoed input"),
        pytest.param({"error": {"message": "\ud800x"}}, "\ufffdx", id="lone surrogate"),
        pytest.param({"error": None}, None, id="null"),
        pytest.param({"error": False}, None, id="false"),
        pytest.param({"error": {}}, None, id="empty object"),
    ],
)
@pytest.mark.parametrize("dialect", dialect_names())
def test_an_error_event_is_an_error_in_every_dialect(dialect: str, event: dict[str, Any], message: str | None) -> None:
    """Only its message is kept; the first error stands; a null is none."""
    reader = get_dialect(dialect).reader(stream=True)
    reader.event(json.dumps(event).encode())
    assert reader.error == message
    reader.event(b'{"error":{"message":"second"}}')
    assert reader.error == (message or "second")


def test_an_error_event_type_makes_any_object_an_error() -> None:
    """``event: error`` with a flat object, as a front end sends it."""
    played = play("openai-chat", [(0, b'event: error\ndata: {"message":"no worker","code":503}\n\n')])
    assert played.reader.error == "no worker"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"detail":[{"loc":["body"],"msg":"Field required","input":{"key":"secret"}}]}', "Field required"),
        (b'{"detail":"Not Found"}', "Not Found"),
        (b'{"message":"Model not found","code":404}', "Model not found"),
        (b'{"error":{"message":"x [type=missing, input_value={\'k\': 1}, input_type=dict]"}}', "x [type=missing"),
        (b"<html>secret</html>", ""),
        (b"Internal Server Error", ""),
        (b'["x"]', ""),
        (b"", ""),
        (b'{"error":{"message":5},"detail":7}', ""),
    ],
)
def test_a_refusal_keeps_only_its_message(body: bytes, message: str) -> None:
    """Never an echoed input, never a page."""
    assert server_message(body) == message


@pytest.mark.parametrize(
    ("payload", "malformed"),
    [(b"{", 1), (b"nonsense", 1), (b"[1]", 1), (b"5", 1), (b'"x"', 1), (b"null", 0), (b"", 0), (b" \t", 0),
     (b"[" * 100_000, 1), (b'{"a":' * 100_000, 1), (b"[DONE]", 0), (b" [DONE] ", 0), (b'{"choices":7}', 0)],
)  # fmt: skip
@pytest.mark.parametrize("dialect", dialect_names())
def test_an_event_that_cannot_be_decoded_is_counted_and_no_token(dialect: str, payload: bytes, malformed: int) -> None:
    """The stream goes on; JSON that is no object is as bad, but for null; empty data is nothing."""
    reader = get_dialect(dialect).reader(stream=True)
    reader.server_request_id = "r1"  # so that the typed path is tried as well
    assert reader.event(payload) == ()
    assert (reader.malformed_events, reader.error) == (malformed, None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "delta", "message", "content", "text", "index", "usage", "completion_tokens", "error",
                 "finish_reason", "tool_calls", "function", "arguments", "name", "meta_info", "type", "response",
                 "token", "details", "generated_text", "done", "reasoning_details", "id", "output", "detail", "input"]
            ),
            inner, max_size=4,
        )
    ),
    max_leaves=12,
)  # fmt: skip


@given(dialect=st.sampled_from(dialect_names()), events=st.lists(JSON, max_size=3), n=st.integers(1, 3))
def test_no_json_makes_a_reader_raise_or_hold_text_that_cannot_be_written(
    dialect: str, events: list[object], n: int
) -> None:
    """Any value of any type at any known name: nothing raises, and all text can be encoded."""
    stream, document = get_dialect(dialect).reader(stream=True, n=n), get_dialect(dialect).reader(stream=False, n=n)
    for event in events:
        payload = json.dumps(event).encode()
        for place, mask in stream.event(payload):
            assert 0 <= place < n
            assert 0 < mask < 32
        document.document(payload)
        server_message(payload)
    for reader in (stream, document):
        written = (reader.text, reader.reasoning_text, reader.whole_text, reader.tool_calls, reader.error)
        assert repr((written, reader.finish_reason, reader.server_request_id)).encode()
        "".join([reader.text, reader.whole_text, reader.error or "", reader.finish_reason or ""]).encode()


@pytest.mark.parametrize(
    ("parts", "text"),
    [(["\\ud83d", "\\ude42"], "🙂"), (["a\\ud83d", "b"], "a\ufffdb"), (["\\ude42"], "\ufffd")],
)
def test_surrogates_that_events_share_are_joined_and_lone_ones_replaced(parts: list[str], text: str) -> None:
    """A server that cuts UTF-16 in two breaks nothing."""
    events = [f'{{"id":"r1","choices":[{{"index":0,"delta":{{"content":"{part}"}}}}]}}' for part in parts]
    played = chat(*events)
    assert (played.reader.text, played.reader.whole_text, played.reader.malformed_events) == (text, text, 0)
    assert len(played.arrivals) == len(parts)


def test_bytes_that_are_no_utf8_become_replacement_characters() -> None:
    """SSE is decoded as UTF-8 with replacement: the event is an event."""
    played = play("openai-chat", [(0, b'data: {"id":"r","choices":[{"delta":{"content":"a\xffb"}}]}\n\n')])
    assert (played.reader.text, played.reader.malformed_events) == ("a\ufffdb", 0)
