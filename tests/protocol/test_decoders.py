"""The decoders against the rules of WHATWG, read once over the whole body by a plain second reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_locust.protocol import Event, EventDecoder, NDJSONDecoder, SSEDecoder
from llm_locust.protocol.sse import OVERSIZED
from tests.cases.streams import STREAMS

PIECES = st.sampled_from(
    [b"data", b"data: ", b"data:", b"event: e", b"id: 1", b":", b": c", b" ", b"x", b"\n", b"\r", b"\r\n", b"\n\n",
     b"data: {}\n\n", b"\xef\xbb\xbf", b"\xc3\x85", b"\xe2\x80\xa8", b"\x85", b"\x0b", b"\x0c", b"\x1c"]
)  # fmt: skip
BODIES = st.lists(PIECES, max_size=25).map(b"".join)


def reference(body: bytes) -> tuple[list[Event], int]:
    """Read a whole body by the letter of the standard, its end taken as a line's and an event's end."""
    lines = (body.removeprefix(b"\xef\xbb\xbf") + b"\n\n").replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    events: list[Event] = []
    comments, kind, data = 0, b"", b""
    for line in lines[:-1]:
        if not line:
            if data:
                events.append((kind, data[:-1]))
            kind, data = b"", b""
            continue
        name, colon, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if colon and not name:
            comments += 1
        elif name == b"data":
            data += value + b"\n"
        elif name == b"event":
            kind = value
    return events, comments


def decode(decoder: EventDecoder, segments: list[bytes]) -> list[Event]:
    """Feed segments and the end."""
    events = [event for segment in segments for event in decoder.feed(segment)]
    return events + decoder.finish()


def cut(body: bytes, places: list[int]) -> list[bytes]:
    """Cut a body at places (any numbers)."""
    at = sorted({place % (len(body) + 1) for place in places})
    return [body[start:end] for start, end in zip([0, *at], [*at, len(body)], strict=True)]


@given(body=BODIES, places=st.lists(st.integers(0, 10_000), max_size=12))
def test_any_body_cut_anywhere_gives_the_events_of_the_standard(body: bytes, places: list[int]) -> None:
    """Any split of the bytes gives the same events: those of the letter of the standard."""
    expected = reference(body)
    for segments in (cut(body, places), [body], [body[i : i + 1] for i in range(len(body))]):
        decoder = SSEDecoder()
        assert (decode(decoder, segments), decoder.comments) == expected


@given(name=st.sampled_from(sorted(STREAMS)), places=st.lists(st.integers(0, 10_000), max_size=12))
def test_any_split_of_a_known_stream_gives_the_same_events(name: str, places: list[int]) -> None:
    """Any split of the bytes gives the same events."""
    body = b"".join(data for _, data in STREAMS[name])
    make = NDJSONDecoder if name.startswith("A35") else SSEDecoder
    assert decode(make(), cut(body, places)) == decode(make(), [body])


@pytest.mark.parametrize(
    ("body", "events"),
    [
        pytest.param(b"data: a\n\n", [(b"", b"a")], id="one"),
        pytest.param(b"data:  a\n\n", [(b"", b" a")], id="only one space goes"),
        pytest.param(b"data\n\n", [(b"", b"")], id="a field without a colon"),
        pytest.param(b"data: a\ndata: b\n\n", [(b"", b"a\nb")], id="lines join by LF"),
        pytest.param(b"event: x\ndata: a\nevent: y\n\ndata: b\n\n", [(b"y", b"a"), (b"", b"b")], id="last type"),
        pytest.param(b"event: x\n\ndata: a\n\n", [(b"", b"a")], id="a type alone is forgotten"),
        pytest.param(b"\xef\xbb\xbfdata: a\n\n", [(b"", b"a")], id="byte order mark"),
        pytest.param(b"data: a\n\n\xef\xbb\xbfdata: b\n\n", [(b"", b"a")], id="no mark in the middle"),
        pytest.param(b"id: 1\nretry: 5\nfoo: x\ndata: a\n\n", [(b"", b"a")], id="other fields"),
        pytest.param(b"data: a\xc2\x85b\xe2\x80\xa8\n\n", [(b"", b"a\xc2\x85b\xe2\x80\xa8")], id="no line ends"),
        pytest.param(b"data: a", [(b"", b"a")], id="the end ends the line"),
        pytest.param(b"data: a\n", [(b"", b"a")], id="the end ends the event"),
        pytest.param(b"data: a\r", [(b"", b"a")], id="the end after a CR"),
        pytest.param(b"", [], id="nothing"),
    ],
)
def test_a_body_gives_its_events(body: bytes, events: list[Event]) -> None:
    """Known answers, and again as the second body of a decoder at a boundary (its fast path)."""
    assert decode(SSEDecoder(), [body]) == events
    warm = SSEDecoder()
    warm.feed(b"data: warm\n\n")
    if not body.startswith(b"\xef"):
        assert decode(warm, [body]) == events


@pytest.mark.parametrize(
    ("segments", "events"),
    [
        pytest.param([b"event: x\n", b"data: a\n\n"], [(b"x", b"a")], id="type before"),
        pytest.param([b"data: a\nd", b"ata: b\n\n"], [(b"", b"a\nb")], id="one byte of the next line"),
        pytest.param([b"data: a\n", b"data: b\n\n"], [(b"", b"a\nb")], id="line by line"),
        pytest.param([b": c", b"omment\ndata: a\n\n"], [(b"", b"a")], id="inside a comment"),
        pytest.param(
            [b"data: a\n", b"\ndata: b\n\nda", b"ta: c\n\n"], [(b"", b"a"), (b"", b"b"), (b"", b"c")], id="over"
        ),
    ],
)
def test_a_read_that_ends_inside_an_event_leaves_the_fast_path(segments: list[bytes], events: list[Event]) -> None:
    """What is pending decides, not only what a read looks like."""
    decoder = SSEDecoder()
    decoder.feed(b"data: warm\n\n")
    assert [event for segment in segments for event in decoder.feed(segment)] == events


def test_the_cr_of_a_blank_line_ends_the_event_at_once() -> None:
    """An arrival is not held back until the LF that may follow a CR."""
    decoder = SSEDecoder()
    assert decoder.feed(b"data: a\r\n\r") == [(b"", b"a")]
    assert decoder.feed(b"\ndata: b\r\n\r\n") == [(b"", b"b")]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_event_beyond_the_limit_is_replaced_and_the_stream_goes_on(size: int) -> None:
    """The memory of one event is bounded; what was dropped is an event that no dialect can decode."""
    body = b"data: a\n\n" + b"data: " + b"x" * 500 + b"\n\n" + b"data: " + b"y\ndata: " * 40 + b"\n\ndata: b\n\n"
    decoder = SSEDecoder(limit_bytes=30)
    events = [event for i in range(0, len(body), size) for event in decoder.feed(body[i : i + size])]
    if size == 1:
        assert events == [(b"", b"a"), (b"", OVERSIZED), (b"", OVERSIZED), (b"", b"b")]
        assert len(decoder._line) + sum(map(len, decoder._data)) <= 31
    assert events[0] == (b"", b"a")
    assert events[-1] == (b"", b"b")
    assert len(events) == 4


@given(
    body=st.lists(st.sampled_from([b"{}", b"\n", b"\r\n", b"x", b"\xc3\x85"]), max_size=20).map(b"".join),
    places=st.lists(st.integers(0, 1000), max_size=8),
)
def test_lines_cut_anywhere_are_the_same_lines(body: bytes, places: list[int]) -> None:
    """NDJSON: a line ends at LF or at the end; blank lines are nothing."""
    expected = [(b"", line.rstrip(b"\r")) for line in body.split(b"\n") if line.rstrip(b"\r")]
    for segments in (cut(body, places), [body], [body[i : i + 1] for i in range(len(body))]):
        assert decode(NDJSONDecoder(), segments) == expected


def test_a_line_beyond_the_limit_is_replaced_and_the_stream_goes_on() -> None:
    """The memory of one line is bounded."""
    body = b"a\n" + b"x" * 100 + b"\nb\n"
    assert decode(NDJSONDecoder(limit_bytes=20), [body[i : i + 1] for i in range(len(body))]) == [
        (b"", b"a"),
        (b"", OVERSIZED),
        (b"", b"b"),
    ]
