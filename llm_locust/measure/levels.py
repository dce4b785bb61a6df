"""Highest values of what goes up and down: requests in flight, arrivals that wait.

Knows no I/O and no clock. Per second and window the highest value goes into the aggregate, in steps:
what was told of a second before is not told again, so a report may be taken at any time.
"""

from __future__ import annotations

from bisect import bisect_right, insort

from llm_locust.measure.aggregate import STAGE_WIDE, Aggregate, GaugeKey

SECOND_NS = 1_000_000_000

LevelKey = tuple[str, str]
"""(name, gauge)."""


class Levels:
    """The levels of one process. Steps may come a little out of order; those too late count from now on."""

    def __init__(self, book: Aggregate, epoch_offset_ns: int) -> None:
        self._book = book
        self._offset_ns = epoch_offset_ns
        self._steps: list[tuple[int, int, LevelKey]] = []
        self._levels: dict[LevelKey, int] = {}
        self._backlog = 0
        self._settled_ns: int | None = None
        self._epoch_s = 0
        self._told: dict[GaugeKey, int] = {}
        self._told_second = 0

    def step(self, at_ns: int, name: str, by: int) -> None:
        """One request more or less in flight."""
        insort(self._steps, (at_ns, by, (name, "in_flight")))
        insort(self._steps, (at_ns, by, (STAGE_WIDE, "in_flight")))

    def set_backlog(self, at_ns: int, waiting: int) -> None:
        """From now on so many arrivals wait."""
        if waiting != self._backlog:
            insort(self._steps, (at_ns, waiting - self._backlog, (STAGE_WIDE, "backlog")))
            self._backlog = waiting

    def restart(self) -> None:
        """Tell the highest values of the running second anew."""
        self._told.clear()
        self._told_second = 0

    def settle(self, until_ns: int, mark_at: list[int], mark_of: list[tuple[str, str]]) -> None:
        """Tell the highest values up to `until_ns`, by second and by the phase that the marks tell."""
        if self._settled_ns is None:
            if not self._steps or self._steps[0][0] > until_ns:
                return
            self._settled_ns = self._steps[0][0]
        used = 0
        while self._settled_ns < until_ns:
            from_ns = self._settled_ns
            epoch_s = (from_ns + self._offset_ns) // SECOND_NS
            mark = bisect_right(mark_at, from_ns)
            to_ns = min(until_ns, (epoch_s + 1) * SECOND_NS - self._offset_ns, *mark_at[mark : mark + 1])
            highest = dict(self._levels)
            while used < len(self._steps) and self._steps[used][0] < to_ns:
                _, by, key = self._steps[used]
                self._levels[key] = self._levels.get(key, 0) + by
                highest[key] = max(highest.get(key, 0), self._levels[key])
                used += 1
            self._tell(epoch_s, mark_of[mark - 1], highest)
            self._settled_ns = to_ns
        del self._steps[:used]

    def _tell(self, epoch_s: int, phase_of: tuple[str, str], highest: dict[LevelKey, int]) -> None:
        if epoch_s != self._epoch_s:
            self._epoch_s = epoch_s
            self._told.clear()
            self._told_second = 0
        stage, phase = phase_of
        for (name, gauge), value in highest.items():
            key = (stage, name, phase, gauge)
            told = self._told.get(key, 0)
            if value > told:
                self._book.raise_gauge(key, epoch_s, value - told)
                self._told[key] = value
        in_flight = highest.get((STAGE_WIDE, "in_flight"), 0)
        if in_flight > self._told_second:
            self._book.second(epoch_s).counts["in_flight_peak"] += in_flight - self._told_second
            self._told_second = in_flight
