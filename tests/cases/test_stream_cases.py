"""Every stream that breaks load-testing tools, played over a real socket at its times, becomes its right record.

Played as it is, one byte per segment, and all in one segment: text, tokens and outcome never change, only times.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from benchmarks.rig.mock_process import MockProcess, start_mock
from llm_locust.load.answer import Answer
from llm_locust.load.options import AskOptions
from llm_locust.measure.record import RequestRecord
from llm_locust.protocol import BodyOptions
from llm_locust.wire.clock import get_clock
from llm_locust.wire.types import Limits
from tests.cases.expected import EXPECTED, Expected
from tests.cases.streams import STREAMS
from tests.load.around import Seen, client_for

PLAYED = sorted(EXPECTED)
STALLED = "A39/then `: keep-alive` every 10 s for ever"
"""Its keep-alives would take minutes: played faster below."""


def tolerance_ms(wanted_ms: float) -> float:
    """5 ms or 5 %, whichever is larger."""
    return max(5.0, 0.05 * wanted_ms)


def script_of(name: str) -> dict[str, object]:
    """Write a case as a script of the embedded server."""
    expected = EXPECTED[name]
    segments: list[list[object]] = [
        [at_ms, "<FIN>" if piece == b"<FIN>" else base64.b64encode(piece).decode()] for at_ms, piece in STREAMS[name]
    ]
    headers = {"Content-Type": "text/event-stream"}
    if expected.dialect == "ollama-chat":
        headers["Content-Type"] = "application/x-ndjson"
    if not expected.stream:
        headers["Content-Type"] = "application/json"
    if name.startswith("A37"):
        headers["Content-Encoding"] = "gzip"
    return {"segments": segments, "encoding": "base64", "raw": "RAW" in name, "headers": headers}


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockProcess]:
    """The embedded server, with every case as a script."""
    scripts = {name: script_of(name) for name in PLAYED}
    segments, end = scripts["A12/V1 RAW no zero chunk, FIN"]["segments"][:-1], [200, "<RST>"]  # type: ignore[index]
    scripts["A12/V4 RAW reset"] = {**scripts["A12/V1 RAW no zero chunk, FIN"], "segments": [*segments, end]}
    silent = [[ms, base64.b64encode(b": keep-alive\n\n").decode()] for ms in range(150, 3000, 50)]
    scripts[STALLED] = {
        "segments": [[100, base64.b64encode(STREAMS[STALLED][0][1]).decode()], *silent],
        "encoding": "base64",
        "headers": {"Content-Type": "text/event-stream"},
    }
    path = Path(tmp_path_factory.mktemp("scripts"), "cases.json")
    path.write_text(json.dumps(scripts))
    with start_mock("--profile", "fast", "--script", str(path)) as process:
        yield process


def play(mock: MockProcess, name: str, mode: str, *, limits: Limits = Limits()) -> tuple[Seen, Answer]:  # noqa: B008
    """Ask once, on a fresh connection; return what was booked."""
    expected = EXPECTED.get(name, Expected())
    options = AskOptions(
        host=mock.url,
        body=BodyOptions(model="m", stream=expected.stream),
        limits=limits,
        headers=(("X-Mock-Script", name), ("X-Mock-Mode", mode)),
    )
    seen = client_for(options, dialect=expected.dialect)
    seen.client._pause = lambda record, exchange: None  # type: ignore[method-assign]  # it lies outside all latencies
    answer = seen.client.chat("Hi", output_tokens=64)
    seen.client.close()
    return seen, answer


def facts(record: RequestRecord, answer: Answer) -> Expected:
    """Return what does not depend on how the bytes were cut into segments."""
    return Expected(
        outcome=record.outcome.value,
        dialect=record.dialect,
        chunks=record.chunks,
        output_tokens=record.output_tokens,
        source=record.output_tokens_source,
        input_tokens=record.input_tokens,
        reasoning_tokens=record.reasoning_tokens,
        text=answer.text,
        reasoning=answer.reasoning,
        tool_calls=answer.tool_calls,
        finish_reason=record.finish_reason,
        status=record.http_status,
        malformed_events=record.malformed_events,
    )


def timeless(expected: Expected) -> Expected:
    """Take the times and the error text out of an expectation."""
    return Expected(
        **{
            name: getattr(expected, name)
            for name in ("outcome", "dialect", "chunks", "output_tokens", "source", "input_tokens", "reasoning_tokens",
                         "text", "reasoning", "tool_calls", "finish_reason", "status", "malformed_events")
        }
    )  # fmt: skip


def test_every_case_has_its_expectation() -> None:
    """No stream is left out."""
    assert set(EXPECTED) | {STALLED} == set(STREAMS)


def server_late_ms(mock: MockProcess, record: RequestRecord, name: str) -> float:
    """Tell how late the server itself read the request and sent its segments, by its own account.

    A busy machine is no fault of ours; both processes read the same monotonic clock.
    """
    (told,) = [line for line in mock.lines() if line["request_id"] == record.client_request_id]
    start_ns = record.start_epoch_ns - get_clock().offset_ns
    wanted_ms = [float(at_ms) for at_ms, _ in STREAMS[name]]
    sent_ns = told["segment_send_ns"][0 if "RAW" in name else 1 :]  # without the head
    late_ms = [(at_ns - start_ns) / 1e6 - at_ms for at_ns, at_ms in zip(sent_ns, wanted_ms, strict=False)]
    return float(max(0.0, (told["end_ns"] - start_ns) / 1e6 - wanted_ms[-1], *late_ms))


@pytest.mark.parametrize("name", PLAYED)
def test_record_of_a_case_when_played_at_its_times(mock: MockProcess, name: str) -> None:
    """Outcome, tokens, text, every time and every gap are those that the stream means.

    Gaps per token are claimed only where the tokens of each chunk are known.
    """
    seen, answer = play(mock, name, "whole")
    expected, record, samples = EXPECTED[name], seen.record, seen.samples
    assert facts(record, answer) == timeless(expected)
    assert expected.error in record.error
    assert bool(record.error) == (expected.outcome != "ok")
    assert len(seen.events) == 1
    late_ms = server_late_ms(mock, record, name)
    for field in ("ttft_ms", "ttfa_ms", "e2e_ms", "stream_end_ms", "tpot_ms"):
        wanted_ms, got_ns = getattr(expected, field), getattr(record, field.replace("_ms", "_ns"))
        if wanted_ms is None:
            assert got_ns is None, field
        else:
            assert got_ns / 1e6 == pytest.approx(wanted_ms, abs=tolerance_ms(wanted_ms) + late_ms), field
    assert [ns / 1e6 for ns in samples.icl_ns] == pytest.approx(list(expected.icl_ms), abs=5 + late_ms, rel=0.05)
    assert [ns / 1e6 for ns in samples.itl_ns] == pytest.approx(list(expected.itl_ms or ()), abs=5 + late_ms, rel=0.05)


@pytest.mark.parametrize("mode", ["bytes", "joined"])
@pytest.mark.parametrize("name", PLAYED)
def test_facts_of_a_case_when_its_bytes_are_cut_otherwise(mock: MockProcess, name: str, mode: str) -> None:
    """One byte per segment, or all in one: the same text, tokens and outcome."""
    seen, answer = play(mock, name, mode)
    assert facts(seen.record, answer) == timeless(EXPECTED[name])
    assert EXPECTED[name].error in seen.record.error


def test_outcome_is_cut_when_the_connection_is_reset(mock: MockProcess) -> None:
    """A reset in mid-stream keeps the token that came, and says what happened."""
    seen, answer = play(mock, "A12/V4 RAW reset", "whole")
    record = seen.record
    assert (record.outcome.value, record.chunks, answer.text) == ("cut", 1, "a")
    assert "reset" in record.error
    assert [event["exception"].args for event in seen.events] == [("cut",)]


def test_outcome_is_stall_when_only_keep_alives_come(mock: MockProcess) -> None:
    """The stall limit runs from the last token; comments do not feed it."""
    seen, _ = play(mock, STALLED, "whole", limits=Limits(stall_s=0.25))
    record = seen.record
    assert (record.outcome.value, record.chunks) == ("timeout_stall", 1)
    assert record.ttft_ns is not None
    assert record.stream_end_ns is not None
    assert record.stream_end_ns / 1e6 == pytest.approx(350, abs=20)


def test_outcome_is_first_token_limit_when_only_keep_alives_come_before_it(mock: MockProcess) -> None:
    """Before the first token its own limit holds, and comments do not feed it either."""
    seen, _ = play(mock, "A14/V1 before the first token", "whole", limits=Limits(first_token_s=0.3))
    assert seen.record.outcome.value == "timeout_first_token"
    assert msgspec.structs.asdict(seen.record)["ttft_ns"] is None
