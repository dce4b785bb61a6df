"""A ledger under a test's own clock."""

from __future__ import annotations

from typing import Any

from llm_locust.measure.aggregate import Aggregate
from llm_locust.measure.ledger import Ledger, Stream
from llm_locust.measure.record import Outcome
from llm_locust.measure.timeline import Timeline
from tests.measure.given import EPOCH_OFFSET_NS, MS, START_NS, TEXT, S, record_of, samples_of

EPOCH_S = (EPOCH_OFFSET_NS + START_NS) // S


class Run:
    """A ledger with streams whose events come when the test says so; times in ms after START."""

    def __init__(self) -> None:
        self.book = Aggregate()
        self.ledger = Ledger(self.book, EPOCH_OFFSET_NS)
        self.streams: dict[str, tuple[Stream, Timeline]] = {}

    def mark(self, at_ms: float, phase: str, stage: str = "s") -> None:
        self.ledger.mark(START_NS + round(at_ms * MS), stage, phase)

    def open(self, key: str, at_ms: float, name: str = "chat") -> None:
        timeline = Timeline()
        stream = self.ledger.open(name, START_NS + round(at_ms * MS), timeline)
        self.streams[key] = (stream, timeline)

    def token(self, key: str, at_ms: float, cumulative: int | None = None) -> None:
        self.streams[key][1].add(TEXT, START_NS + round(at_ms * MS), cumulative)

    def close(self, key: str, at_ms: float, tokens: int | None, outcome: Outcome = Outcome.OK, **fields: Any) -> None:
        stream, _ = self.streams.pop(key)
        start_ms = (stream.start_ns - START_NS) / MS
        record = record_of(start_ms, outcome, stream_end_ms=at_ms - start_ms, output_tokens=tokens, **fields)
        self.ledger.close(stream, record, samples_of(streamed_tokens=tokens))

    def harvest(self, until_ms: float) -> None:
        for _ in self.ledger.harvest(START_NS + round(until_ms * MS)):
            pass

    def window(self, phase: str, name: str = "chat", stage: str = "s") -> dict[str, int]:
        window = self.book.windows.get((stage, name, phase))
        return {} if window is None else {key: n for key, n in window.counts.items() if n}

    def per_second(self, key: str) -> dict[int, int]:
        return {epoch_s - EPOCH_S: second.counts[key] for epoch_s, second in sorted(self.book.seconds.items())}
