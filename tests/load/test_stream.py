"""The sink: reads in, arrivals out, whatever the reads cut; other bodies are kept, bounded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_locust.load.stream import MAX_BODY_BYTES, StreamSink, TokenEvent
from llm_locust.measure.judge import AskFacts
from llm_locust.measure.timeline import Timeline
from llm_locust.protocol import ANSWER, Framing, get_dialect
from llm_locust.wire.types import USER_TIME, End, Exchange
from tests.cases.expected import EXPECTED
from tests.cases.streams import STREAMS

SSE = [(b"content-type", b"text/event-stream; charset=utf-8")]
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
STREAMED = sorted(
    name for name, case in EXPECTED.items() if "RAW" not in name and case.stream and not name.startswith("A37")
)


def make_sink(dialect: str = "openai-chat", *, stream: bool = True) -> StreamSink:
    """A sink before its response."""
    spoken = get_dialect(dialect)
    asked = AskFacts(stream=stream, framing=spoken.framing, finish_reason_expected=spoken.finish_reason_expected)
    return StreamSink(asked, spoken.reader(stream=stream), Timeline())


def opened(dialect: str = "openai-chat") -> StreamSink:
    """A sink whose stream has begun."""
    sink = make_sink(dialect)
    sink.on_head(200, [(b"content-type", sink._asked.framing.value.encode())], 0)
    return sink


@pytest.mark.parametrize("name", STREAMED)
@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(0, 2000), max_size=12))
def test_answer_is_the_same_however_the_reads_are_cut(name: str, cuts: list[int]) -> None:
    """Any split of the bytes gives the text, tokens and ends of the whole."""
    body = b"".join(piece for _, piece in STREAMS[name])
    ends = sorted({cut % len(body) for cut in cuts} | {len(body)})
    sink = opened(EXPECTED[name].dialect)
    for start, end in zip([0, *ends], ends, strict=False):
        if end > start:
            sink.on_read(body[start:end], end, 0)
    sink.finish(Exchange(end=End.COMPLETE, status=200, end_ns=len(body)))
    expected = EXPECTED[name]
    reader = sink.reader
    assert (reader.text, reader.reasoning_text, reader.tool_calls, reader.finish_reason) == (
        expected.text, expected.reasoning, expected.tool_calls, expected.finish_reason
    )  # fmt: skip
    assert len(sink.timeline) == expected.chunks
    assert sink.body == b""


def test_read_tells_the_token_events_that_it_completed() -> None:
    """The last one's instant feeds the wire's limits; each arrival has the read's instant."""
    sink = opened()
    told = []
    for data, at_ns in [(TOKEN[:30], 5), (TOKEN[30:] + TOKEN, 7), (b": ping\n\n", 9)]:
        sink.on_read(data, at_ns, 0)
        told.append((len(sink.timeline), sink.last_token_ns))
    assert told == [(0, 0), (2, 7), (2, 7)]
    assert list(sink.timeline.since(0)[0]) == [7, 7]


class Unseen:
    """A hub that looked so long ago."""

    def __init__(self, unseen_ns: int) -> None:
        self._unseen_ns = unseen_ns

    def unseen_ns(self) -> int:
        """Return what it was made with."""
        return self._unseen_ns


@pytest.mark.parametrize(
    ("lag_ns", "unseen_ns", "late", "bundled"),
    [
        (20_000, 300_000, 0, 2),
        (5_000_000, 5_000_000, 2, 0),
        (20_000, 19_000_000, 2, 0),
        (USER_TIME, 300_000, 0, 2),
        (USER_TIME, 19_000_000, 2, 0),
    ],
    ids=["sent together", "read late", "the first came unseen", "no stamp", "no stamp and unseen"],
)
def test_read_of_several_tokens_says_how_far_its_stamp_can_be_trusted(
    monkeypatch: pytest.MonkeyPatch, lag_ns: int, unseen_ns: int, late: int, bundled: int
) -> None:
    """A read of several events whose first may have come over 1 ms before it has upper bounds only."""
    monkeypatch.setattr("llm_locust.load.stream.looks", lambda: Unseen(unseen_ns))
    sink = opened()
    sink.on_read(TOKEN + TOKEN, 7, lag_ns)
    assert (sink.timeline.late_events, sink.timeline.bundled_events) == (late, bundled)


@pytest.mark.parametrize(
    ("status", "headers"),
    [(500, SSE), (200, [(b"content-type", b"text/html")]), (200, [(b"content-type", b"application/json")])],
    ids=["error", "page", "document"],
)
def test_body_is_kept_when_it_is_no_stream(status: int, headers: list[tuple[bytes, bytes]]) -> None:
    """Nothing of it becomes a token, and no more than a megabyte is kept."""
    sink = make_sink()
    sink.on_head(status, headers, 0)
    sink.on_read(TOKEN, 1, 0)
    sink.on_read(b"x" * 2 * MAX_BODY_BYTES, 2, 0)
    sink.finish(Exchange(end=End.COMPLETE, status=status, headers=headers, end_ns=3))
    assert (len(sink.body), len(sink.timeline), sink.reader.text) == (MAX_BODY_BYTES, 0, "")
    assert sink.body.startswith(TOKEN)


def test_stream_without_a_content_type_is_read_as_the_dialects() -> None:
    """Some servers name no type."""
    sink = make_sink("ollama-chat")
    sink.on_head(200, [], 0)
    sink.on_read(b'{"message":{"content":"a"},"done":false}\n', 1, 0)
    assert len(sink.timeline) == 1


def test_last_event_counts_when_the_body_ends_without_its_blank_line() -> None:
    """Its time is the body's end; after a cut nothing is concluded from it."""
    for end, chunks in ((End.COMPLETE, [9]), (End.CUT, [])):
        sink = opened()
        sink.on_read(TOKEN.rstrip(), 5, 0)
        sink.finish(Exchange(end=end, status=200, headers=SSE, end_ns=9))
        assert list(sink.timeline.since(0)[0]) == chunks


def test_document_is_read_at_the_end_when_none_was_to_be_streamed() -> None:
    """A whole answer has text and usage, and no arrival."""
    sink = make_sink(stream=False)
    headers = [(b"content-type", b"application/json")]
    sink.on_head(200, headers, 0)
    body = b'{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"usage":{"completion_tokens":2}}'
    sink.on_read(body[:20], 1, 0)
    sink.on_read(body[20:], 2, 0)
    sink.finish(Exchange(end=End.COMPLETE, status=200, headers=headers, end_ns=2))
    reader = sink.reader
    assert (reader.text, reader.finish_reason, reader.usage.output_tokens, len(sink.timeline)) == ("Hi", "stop", 2, 0)


def test_listener_hears_each_token_event() -> None:
    """Only while somebody listens."""
    heard: list[list[TokenEvent]] = []
    sink = opened()
    sink.on_read(TOKEN, 1, 0)
    sink.on_tokens = heard.append
    sink.on_read(TOKEN + TOKEN, 2, 0)
    sink.on_tokens = None
    sink.on_read(TOKEN, 3, 0)
    assert heard == [[(((0, ANSWER),), 2)], [(((0, ANSWER),), 2)]]
    assert Framing.SSE is sink._asked.framing
