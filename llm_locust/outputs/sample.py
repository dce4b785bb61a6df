"""A bounded sample of single requests, for distributions that percentiles hide.

Knows no I/O, no clock and no Locust. Which requests are kept depends on their numbers alone (the least hashes), so a
sample is even over the stage, the same whatever the order of reports, and needs no generator.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from zlib import crc32

from llm_locust.measure.record import Outcome, RequestRecord

PER_STAGE = 400
MOST = 4000
"""Requests told altogether; with many stages each has an equal share of them."""

Told = tuple[float, float | None, float | None, int | None, int | None]
"""E2E ms, TTFT ms, TPOT ms, input tokens, output tokens of one ok request; from the schedule where there is one."""


@dataclass(slots=True)
class _Kept:
    """The requests of one stage with the least hashes, as a heap with the greatest hash first."""

    seen: int = 0
    heap: list[tuple[int, int, Told]] = field(default_factory=list)


class Sample:
    """Ok requests that started in a measured window, by stage."""

    def __init__(self) -> None:
        self._stages: dict[str, _Kept] = {}

    def add(self, records: Iterable[RequestRecord]) -> None:
        """Take requests that ended; costs about a µs each once the stage's share is full."""
        for record in records:
            if record.outcome is not Outcome.OK or record.phase != "steady" or record.e2e_ns is None:
                continue
            kept = self._stages.setdefault(record.stage, _Kept())
            kept.seen += 1
            entry = (-crc32(f"{record.worker}:{record.request_id}".encode()), kept.seen, _told(record))
            if len(kept.heap) < PER_STAGE:
                heapq.heappush(kept.heap, entry)
            elif entry > kept.heap[0]:
                heapq.heapreplace(kept.heap, entry)

    def told(self) -> list[dict[str, object]]:
        """Return each stage's name, how many requests it had, and those that were kept."""
        share = min(PER_STAGE, MOST // max(len(self._stages), 1))
        return [
            {"stage": stage, "seen": kept.seen, "requests": [told for *_, told in heapq.nlargest(share, kept.heap)]}
            for stage, kept in self._stages.items()
        ]


def _told(record: RequestRecord) -> Told:
    scheduled = record.scheduled_epoch_ns is not None
    e2e_ns = record.e2e_scheduled_ns if scheduled else record.e2e_ns
    ttft_ns = record.ttft_scheduled_ns if scheduled else record.ttft_ns
    assert record.e2e_ns is not None
    return (
        _ms(record.e2e_ns if e2e_ns is None else e2e_ns) or 0.0,
        _ms(ttft_ns),
        _ms(record.tpot_ns),
        record.input_tokens,
        record.output_tokens,
    )


def _ms(duration_ns: float | None) -> float | None:
    return None if duration_ns is None else round(duration_ns / 1e6, 3)
