"""Every stream case whose point is decoding, at the level of decoder and reader.

The right answers are those of `tests.cases.expected`; timing and outcome are judged elsewhere, so
here stand text, arrivals, counts, ends and errors. Each stream is played at its own segments, one
byte a segment, and all in one, and once more with an id in each event, which is what puts a reader
on its typed path.
"""

from __future__ import annotations

import zlib
from itertools import pairwise

import pytest

from llm_locust.protocol import REASONING, get_dialect
from tests.cases.expected import EXPECTED, Expected
from tests.cases.streams import STREAMS
from tests.protocol.playing import Played, by_byte, play

Segments = list[tuple[int, bytes]]
CASES = [name for name, case in EXPECTED.items() if "RAW" not in name and case.stream]


def segments_of(name: str) -> Segments:
    """Return a case's segments, inflated as the wire inflates them."""
    if "gzip" not in name:
        return STREAMS[name]
    inflate = zlib.decompressobj(wbits=31)
    return [(at_ms, inflate.decompress(data)) for at_ms, data in STREAMS[name]]


def with_ids(segments: Segments) -> Segments:
    """Put an id into each event."""
    return [(at_ms, data.replace(b'{"choices"', b'{"id":"r1","choices"')) for at_ms, data in segments]


def check(played: Played, case: Expected) -> None:
    """Compare what was read to the case's answer."""
    reader = played.reader
    assert (reader.text, reader.reasoning_text, reader.tool_calls) == (case.text, case.reasoning, case.tool_calls)
    assert (reader.finish_reason, reader.malformed_events) == (case.finish_reason, case.malformed_events)
    assert (reader.error or "") == (case.error if case.outcome == "server_error" else "")
    assert reader.aborted is (case.outcome == "aborted" or case.finish_reason == "error")
    assert reader.usage.output_tokens == (case.output_tokens if case.source == "usage" else None)
    assert (reader.usage.input_tokens, reader.usage.reasoning_tokens) == (case.input_tokens, case.reasoning_tokens)
    assert len(played.arrivals) == case.chunks


@pytest.mark.parametrize("name", CASES)
def test_a_case_has_its_right_answer_however_its_bytes_are_cut(name: str) -> None:
    """Text, counts and ends do not depend on how the bytes were cut; times are those of the completing read."""
    case = EXPECTED[name]
    segments = segments_of(name)
    data = b"".join(part for _, part in segments)
    played = play(case.dialect, segments)
    check(played, case)
    times = [at_ms for at_ms, _ in played.arrivals]
    if times:
        assert (times[0], times[-1]) == (case.ttft_ms, case.e2e_ms)
        assert tuple(later - sooner for sooner, later in pairwise(times)) == case.icl_ms
    for again in (by_byte(data), [(0, data)]):
        assert play(case.dialect, again).state() == played.state()


@pytest.mark.parametrize("name", CASES)
def test_a_case_has_its_right_answer_on_the_typed_path(name: str) -> None:
    """An id in each event changes nothing but the server's request id."""
    case = EXPECTED[name]
    segments = with_ids(segments_of(name))
    played = play(case.dialect, segments)
    check(played, case)
    data = b"".join(part for _, part in segments)
    for again in (by_byte(data), [(0, data)]):
        assert play(case.dialect, again).state() == played.state()


def test_a_stalled_stream_counts_its_keep_alives_as_no_tokens() -> None:
    """A39: comments are counted and are never arrivals; nothing ended."""
    (name,) = (name for name in STREAMS if name.startswith("A39"))
    played = play("openai-chat", STREAMS[name], clean_end=False)
    assert played.arrivals == [(100, (0, REASONING))]
    assert (played.comments, played.reader.finish_reason, played.reader.terminal) == (2, None, False)


def test_a_document_of_tgi_without_details_has_its_text() -> None:
    """A34 V2: no choices, no details, and still an answer with an end."""
    ((_, body),) = STREAMS["A34/V2 non-stream body from the same server"]
    reader = get_dialect("tgi-generate").reader(stream=False)
    reader.document(body)
    assert (reader.text, reader.terminal, reader.finish_reason, reader.malformed_events) == ("Hi", True, None, 0)


@pytest.mark.parametrize(
    ("name", "running"),
    [
        ("A06/V1 cumulative 1,4,5", [1, 4, 5]),
        ("A06/V2 constant 5 everywhere", [5, 5, 5]),
        ("A06/V3 usage:null until the end", [None, None]),
        ("A31/V1 with continuous usage", [8, 12, 16]),
        ("A31/V2 same times, only final usage", [None, None, None]),
        ("A33/V1", [1, 2, 3, 5]),
        ("A34/V1", [1, 2]),
    ],
)
def test_the_running_count_is_what_the_server_said_beside_each_token(name: str, running: list[int | None]) -> None:
    """A count that does not grow is passed on as it is, so that whoever measures sees that it does not."""
    case = EXPECTED[name]
    assert play(case.dialect, segments_of(name)).running == running
    assert play(case.dialect, with_ids(segments_of(name))).running == running
