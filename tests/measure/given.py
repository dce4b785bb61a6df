"""Values that the tests of measure start from: an answer as it came, a record as it was booked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from llm_locust.measure.finish import Identity, Samples, finish_record
from llm_locust.measure.judge import Answer, AskFacts
from llm_locust.measure.record import Outcome, RequestRecord
from llm_locust.measure.timeline import Timeline
from llm_locust.protocol.types import ANSWER, NOTHING, Arrival, Usage
from llm_locust.wire.types import End, Exchange

MS = 1_000_000
S = 1_000_000_000
START_NS = 5 * S
EPOCH_OFFSET_NS = 1_700_000_000 * S
TEXT: tuple[Arrival, ...] = ((0, ANSWER),)
WHICH: dict[str, Any] = {
    "run_id": "run",
    "worker": "w1",
    "request_id": 1,
    "user_class": "Chat",
    "name": "chat",
    "dialect": "openai-chat",
    "stage": "8 users",
    "phase": "steady",
}
"""Which request it was, as its identity and its record say alike."""
IDENTITY = Identity(**WHICH, epoch_offset_ns=EPOCH_OFFSET_NS)


@dataclass
class StatedReader:
    """A reader that has read its answer already."""

    usage: Usage = field(default_factory=Usage)
    cumulative_tokens: int | None = None
    finish_reason: str | None = "stop"
    terminal: bool = True
    error: str | None = None
    aborted: bool = False
    malformed_events: int = 0
    server_request_id: str | None = None
    text: str = ""
    reasoning_text: str = ""
    whole_text: str = ""
    tool_calls: tuple[tuple[str, str], ...] = ()

    def event(self, payload: bytes, event_type: bytes = b"") -> tuple[Arrival, ...]:
        """Nothing is left to read."""
        return NOTHING

    def run(self, payloads: bytes, count: int) -> tuple[Arrival, ...]:
        """Nothing is left to read."""
        return NOTHING

    def document(self, body: bytes) -> None:
        """Nothing is left to read."""


def exchange_of(end_ms: float = 1000, headers_ms: float = 1, **fields: Any) -> Exchange:
    """An exchange that went well; times in ms after its start."""
    values: dict[str, Any] = {
        "start_ns": START_NS,
        "sent_ns": START_NS + MS // 10,
        "headers_ns": START_NS + round(headers_ms * MS),
        "end_ns": START_NS + round(end_ms * MS),
        "status": 200,
        "headers": [(b"content-type", b"text/event-stream; charset=utf-8")],
        "end": End.COMPLETE,
        "reads": 3,
        "stamped_reads": 3,
        "received_bytes": 100,
    }
    return Exchange(**(values | fields))


Event = float | tuple[float, int] | tuple[float, int | None, tuple[Arrival, ...]]
"""An event's time in ms; with its running count; with its arrivals."""


def timeline_of(events: Iterable[Event]) -> Timeline:
    """A timeline of events, each in a read of its own."""
    timeline = Timeline()
    for event in events:
        at_ms, cumulative, arrivals = (*event, None, TEXT)[:3] if isinstance(event, tuple) else (event, None, TEXT)
        if isinstance(event, tuple) and len(event) == 2:
            arrivals = TEXT
        timeline.add(arrivals, START_NS + round(at_ms * MS), cumulative)
    return timeline


def finished(
    events: Iterable[Event] | Timeline,
    usage: Usage | None = None,
    *,
    exchange: Exchange | None = None,
    asked: AskFacts = AskFacts(),  # noqa: B008 (frozen)
    identity: Identity = IDENTITY,
    counted_tokens: int | None = None,
    **reader: Any,
) -> tuple[RequestRecord, Samples]:
    """The record of an answer with these events."""
    timeline = events if isinstance(events, Timeline) else timeline_of(events)
    stated = StatedReader(usage=usage or Usage(), **reader)
    answer = Answer(exchange or exchange_of(end_ms=100_000), stated, timeline, counted_tokens=counted_tokens)
    return finish_record(answer, asked, identity)


def ms(values_ns: Any) -> list[float]:
    """Convert durations to ms."""
    return [float(value) / MS for value in values_ns]


NO_GAPS = np.empty(0, np.int64)


def samples_of(
    icl_ms: Iterable[float] = (), itl_ms: Iterable[float] = (), streamed_tokens: int | None = None
) -> Samples:
    """Samples beside a record."""
    gaps = [np.array([round(gap * MS) for gap in part], np.int64) for part in (icl_ms, itl_ms)]
    return Samples(gaps[0], gaps[1], streamed_tokens)


def record_of(start_ms: float = 0, outcome: Outcome = Outcome.OK, **fields: Any) -> RequestRecord:
    """A record that started so many ms after the run; fields ending in `_ms` are converted."""
    values = WHICH | {"start_epoch_ns": EPOCH_OFFSET_NS + START_NS + round(start_ms * MS), "outcome": outcome}
    for key, value in fields.items():
        if key.endswith("_ms"):
            values[key.removesuffix("_ms") + "_ns"] = None if value is None else round(value * MS)
        else:
            values[key] = value
    return RequestRecord(**values)
