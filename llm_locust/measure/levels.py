"""The highest number of requests in flight, by second and window.

Knows no I/O and no clock. Per second and window the highest value goes into the aggregate, in steps:
what was told of a second before is not told again, so a report may be taken at any time.
"""

from __future__ import annotations

from bisect import bisect_right, insort

from llm_locust.measure.aggregate import STAGE_WIDE, Aggregate, Key

SECOND_NS = 1_000_000_000


class Levels:
    """The levels of one process. Steps may come a little out of order; those too late count from now on."""

    def __init__(self, book: Aggregate, epoch_offset_ns: int) -> None:
        self._book = book
        self._offset_ns = epoch_offset_ns
        self._steps: list[tuple[int, int, str]] = []
        self._levels: dict[str, int] = {}
        self._settled_ns: int | None = None
        self._epoch_s = 0
        self._told: dict[Key, int] = {}
        self._told_second = 0

    def step(self, at_ns: int, name: str, by: int) -> None:
        """One request more or less in flight."""
        insort(self._steps, (at_ns, by, name))
        insort(self._steps, (at_ns, by, STAGE_WIDE))

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
                _, by, name = self._steps[used]
                self._levels[name] = self._levels.get(name, 0) + by
                highest[name] = max(highest.get(name, 0), self._levels[name])
                used += 1
            self._tell(epoch_s, mark_of[mark - 1], highest)
            self._settled_ns = to_ns
        del self._steps[:used]

    def _tell(self, epoch_s: int, phase_of: tuple[str, str], highest: dict[str, int]) -> None:
        if epoch_s != self._epoch_s:
            self._epoch_s = epoch_s
            self._told.clear()
            self._told_second = 0
        stage, phase = phase_of
        for name, value in highest.items():
            key = (stage, name, phase)
            told = self._told.get(key, 0)
            if value > told:
                self._book.raise_in_flight(key, epoch_s, value - told)
                self._told[key] = value
        in_flight = highest.get(STAGE_WIDE, 0)
        if in_flight > self._told_second:
            self._book.second(epoch_s).counts["in_flight_peak"] += in_flight - self._told_second
            self._told_second = in_flight
