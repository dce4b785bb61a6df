"""The timeline: one row per second, handed out once and in order.

Knows no I/O and no clock. Percentiles are those of requests that ended ok in the last 10 s.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from llm_locust.measure.histogram import Histogram
from llm_locust.measure.tally import Tally

SLIDING_S = 10
"""Percentiles of a row look back over this many seconds."""

_DISTRIBUTIONS = ("ttft_ms", "itl_ms", "tpot_ms", "user_wait_ms", "dispatch_lag_ms")

SECOND_COLUMNS: tuple[str, ...] = (
    "in_flight",
    "in_flight_peak",
    "requests_started",
    "requests_ok",
    "requests_failed",
    "requests_unfinished",
    "output_tokens",
    "input_tokens",
    *(f"{name}_{statistic}" for name in _DISTRIBUTIONS for statistic in ("p50", "p99")),
    "late_requests",
    "late_output_tokens",
    "late_input_tokens",
)
"""The keys of `SecondRow.values`. The late ones are what was added to earlier rows after they were handed
out: requests that started or ended there, and tokens, less those taken back when a count became known."""


@dataclass(frozen=True, slots=True)
class SecondRow:
    """One line of timeline.csv: the second from `epoch_s` on; None is absent.

    `distributions` are the samples of this second alone, for what draws them over a longer time.
    """

    epoch_s: int
    values: Mapping[str, float | int | None]
    distributions: Mapping[str, Histogram] = field(default_factory=dict, compare=False)


class SecondRows:
    """Hands out seconds in order, and counts what came too late for its row."""

    __slots__ = ("_next_s", "_recent")

    def __init__(self) -> None:
        self._next_s: int | None = None
        self._recent: deque[Tally] = deque(maxlen=SLIDING_S)

    def pop(self, seconds: dict[int, Tally], before_epoch_s: int) -> list[SecondRow]:
        """Take the seconds before this one out of `seconds`; return their rows, those of empty seconds too."""
        due = sorted(epoch_s for epoch_s in seconds if epoch_s < before_epoch_s)
        if self._next_s is None:
            if not due:
                return []
            self._next_s = due[0]
        late = Tally()
        for epoch_s in due:
            if epoch_s < self._next_s:
                late.merge(seconds.pop(epoch_s))
        rows = []
        for epoch_s in range(self._next_s, before_epoch_s):
            second = seconds.pop(epoch_s, None) or Tally()
            self._recent.append(second)
            rows.append(SecondRow(epoch_s, self._values(second, late), second.histograms))
            late = Tally()
        if not rows and (late.counts or late.histograms):
            # No row to tell it in yet: keep it for the next one.
            seconds.setdefault(self._next_s - 1, Tally()).merge(late)
        self._next_s = max(self._next_s, before_epoch_s)
        return rows

    def _values(self, second: Tally, late: Tally) -> dict[str, float | int | None]:
        counts = second.counts
        values: dict[str, float | int | None] = {
            "in_flight": counts["in_flight_ns"] / 1e9,
            "in_flight_peak": counts["in_flight_peak"],
            "requests_started": counts["started"],
            "requests_ok": counts["ok"],
            "requests_failed": counts["failed"],
            "requests_unfinished": counts["unfinished"],
            "output_tokens": counts["output_tokens"],
            "input_tokens": counts["input_tokens"],
        }
        for name in _DISTRIBUTIONS:
            recent = Histogram()
            for tally in self._recent:
                if name in tally.histograms:
                    recent.merge(tally.histograms[name])
            for statistic, value in zip(("p50", "p99"), recent.quantiles((0.5, 0.99)), strict=True):
                values[f"{name}_{statistic}"] = None if value is None else value / 1e6
        values["late_requests"] = sum(late.counts[key] for key in ("started", "ok", "failed", "unfinished"))
        values["late_output_tokens"] = late.counts["output_tokens"]
        values["late_input_tokens"] = late.counts["input_tokens"]
        return values
