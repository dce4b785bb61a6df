"""What one worker carries: one level judged, the levels joined, workers for a wanted load. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from llm_locust.plugin.validity import CPU_MOST_PERCENT, LATE_TOKENS_MOST

ERROR_MOST_MS = 1.0
BUSY_CPU_RATIO = 0.80
"""A core that is so busy over a level has had moments without any rest: ends and starts come together."""
FULL_CPU_RATIO = CPU_MOST_PERCENT / 100
"""Beyond, a run would be SUSPECT, and a level that is not carried needs no other explanation."""
STOLEN_MOST_RATIO = 0.10
PRECISION = 1.15
"""The level above that is not carried lies at most so far beyond the one that is."""
LEAST_STEP, MOST_STEP = 1.25, 4.0
HEADROOM = 0.80
"""A worker is planned at this share of what it carried: prompts, TLS and rows of a real run cost, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What came of one number of streams."""

    streams: int
    tokens_per_s: float
    error_p50_ms: float
    error_p99_ms: float
    late_tokens_ratio: float
    cpu_ratio: float  # of one core
    stolen_ratio: float  # of the time, in which others had the worker's core
    server_late_p99_ms: float
    failed_requests: int
    source: str

    @property
    def faults(self) -> tuple[str, ...]:
        """Why the level is not carried; empty when it is."""
        found = []
        if self.failed_requests:
            found.append(f"{self.failed_requests} requests failed")
        if self.error_p99_ms >= ERROR_MOST_MS:
            found.append(f"error p99 {self.error_p99_ms:.2f} ms")
        if self.late_tokens_ratio > LATE_TOKENS_MOST:
            found.append(f"{self.late_tokens_ratio:.1%} of the tokens in late reads")
        if self.cpu_ratio > FULL_CPU_RATIO:
            found.append(f"a core busy to more than {FULL_CPU_RATIO:.0%}")
        return tuple(found)

    @property
    def carried(self) -> bool:
        """Whether the worker timed this level rightly, and had rest."""
        return not self.faults

    @property
    def doubtful(self) -> bool:
        """Whether it was not, though the worker's core had rest: something else came between, perhaps only once."""
        return not self.carried and self.cpu_ratio < FULL_CPU_RATIO


def limit_of(levels: Sequence[Level]) -> str:
    """Say what keeps the worker from more, by the lowest level that was not carried."""
    failed = [level for level in levels if not level.carried]
    if not failed:
        return "nothing up to the highest level that was tried: this is a lower bound"
    first = min(failed, key=lambda level: level.streams)
    if first.source != "kernel":
        return "the receive times: this platform has none from the kernel, so every wait of the process is an error"
    if first.stolen_ratio > STOLEN_MOST_RATIO:
        return f"other processes, which had the worker's core for {first.stolen_ratio:.0%} of the time"
    if first.cpu_ratio >= BUSY_CPU_RATIO:
        return f"the CPU: {first.cpu_ratio:.0%} of one core at {first.streams} streams"
    if first.server_late_p99_ms > ERROR_MOST_MS:
        return f"the calibration's own server, {first.server_late_p99_ms:.1f} ms late at p99: this is a lower bound"
    return "; ".join(first.faults)


def best_of(levels: Sequence[Level]) -> Level | None:
    """Return the highest level below the first that was not carried; None where not even the lowest was."""
    best = None
    for level in sorted(levels, key=lambda one: one.streams):
        if not level.carried:
            break
        best = level
    return best


def next_streams(levels: Sequence[Level], first: int, most: int) -> int | None:
    """Return the level to try next; None: the answer is known to within PRECISION, or nothing lies beyond `most`.

    Below the first level that is not carried the CPU says how far the next step may go; then the gap is halved.
    """
    if not levels:
        return first
    best = best_of(levels)
    failed = [level.streams for level in levels if not level.carried]
    if not failed:
        top = max(levels, key=lambda level: level.streams)
        step = min(max(BUSY_CPU_RATIO / max(top.cpu_ratio, 0.01), LEAST_STEP), MOST_STEP)
        return None if top.streams >= most else min(_rounded(top.streams * step), most)
    high = min(failed)
    if best is None:
        return _rounded(high / 2) if high > first / MOST_STEP else None
    return None if high <= best.streams * PRECISION else _rounded(math.sqrt(best.streams * high))


def _rounded(streams: float) -> int:
    """Round to tens, small numbers to whole ones."""
    return round(streams / 10) * 10 if streams >= 100 else max(round(streams), 1)


def workers_for(best: Level, want_tokens_per_s: float | None, want_streams: float | None) -> int:
    """Return how many workers a load needs, each at HEADROOM of what one carried."""
    shares = [1.0]
    if want_tokens_per_s is not None:
        shares.append(want_tokens_per_s / (HEADROOM * best.tokens_per_s))
    if want_streams is not None:
        shares.append(want_streams / (HEADROOM * best.streams))
    return math.ceil(max(shares))
