"""The run over time for the page: bounded however long the run is, and never averaging a percentile.

Knows no I/O, no clock and no Locust. A point keeps the samples of its seconds, so that its percentiles stay those of
all of them when points are joined; rates become means over the longer time with the least and the greatest second
beside them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from llm_locust.measure.histogram import Histogram
from llm_locust.measure.seconds import SLIDING_S
from llm_locust.outputs.heat import heat_of
from llm_locust.outputs.timeline_csv import TimelineRow

MOST_POINTS = 400
"""Points kept; a night of 12 h then has one about every two minutes, ten minutes are kept to the second."""

RATES = {
    "started_per_s": ("requests_started",),
    "ok_per_s": ("requests_ok",),
    "failed_per_s": ("requests_failed",),
    "unfinished_per_s": ("requests_unfinished",),
    "output_tok_per_s": ("output_tokens",),
    "input_tok_per_s": ("input_tokens", "late_input_tokens"),
    "in_flight": ("in_flight",),
}
"""Columns of a point that are means over its seconds, and the columns of timeline.csv whose sum they come from: prompts
whose length became known late are told when it did."""

_QUANTILES: dict[str, tuple[float, ...]] = {
    "ttft_ms": (0.5, 0.9, 0.99),
    "ttft_scheduled_ms": (0.5, 0.9, 0.99),
    "itl_ms": (0.5, 0.99),
    "tpot_ms": (0.5, 0.99),
    "user_wait_ms": (0.5, 0.99),
    "dispatch_lag_ms": (0.5, 0.99),
}
_HEAT = ("ttft_ms", "itl_ms")

POINT_COLUMNS: tuple[str, ...] = (
    "from_s",
    "until_s",
    "users",
    "in_flight_peak",
    "loop_lag_ms_max",
    "output_tok_per_s_min",
    "output_tok_per_s_max",
    *RATES,
    *(f"{name}_p{round(q * 100)}" for name, quantiles in _QUANTILES.items() for q in quantiles),
    *(f"{name}_heat" for name in _HEAT),
)
"""What a point is told as. `_heat` is [first bin, count, count, …], None without a sample; None is absent elsewhere."""

N = TypeVar("N", int, float)
Cell = float | int | list[int] | None


@dataclass(slots=True)
class Point:
    """The seconds from `from_s` to before `until_s`. `changed` is the number of the change that made it."""

    from_s: int
    until_s: int
    place: tuple[str | None, str | None]  # stage, phase
    sums: dict[str, float]
    tokens_min: float
    tokens_max: float
    users: int | None
    in_flight_peak: int
    loop_lag_ms_max: float | None
    distributions: Mapping[str, Histogram]
    changed: int = 0
    cells: list[Cell] = field(default_factory=list)

    @property
    def length_s(self) -> int:
        """Seconds in it."""
        return self.until_s - self.from_s

    def joined(self, later: Point) -> Point:
        """Return the point that has the seconds of both."""
        return Point(
            self.from_s,
            later.until_s,
            later.place,
            {name: self.sums[name] + later.sums[name] for name in self.sums},
            min(self.tokens_min, later.tokens_min),
            max(self.tokens_max, later.tokens_max),
            _greater(self.users, later.users),
            max(self.in_flight_peak, later.in_flight_peak),
            _greater(self.loop_lag_ms_max, later.loop_lag_ms_max),
            _merged([self.distributions, later.distributions]),
        )


@dataclass(frozen=True, slots=True)
class Band:
    """A time in which stage and phase stayed the same."""

    stage: str | None
    phase: str | None
    from_s: int
    until_s: int


class History:
    """Takes seconds in order, gives points: all of them, or those that changed since a number the reader has."""

    def __init__(self, most_points: int = MOST_POINTS) -> None:
        self._most = most_points
        self._points: list[Point] = []
        self._bands: list[Band] = []
        self.changes = 0

    def add(self, row: TimelineRow) -> None:
        """Take one second; joins two neighbours where there are too many points. Costs under 1 ms."""
        point = _point(row)
        self._points.append(point)
        self._note_band(point)
        self._finish(len(self._points) - 1)
        while len(self._points) > self._most:
            place = self._shortest_pair()
            self._points[place : place + 2] = [self._points[place].joined(self._points[place + 1])]
            self._finish(place)

    def since(self, change: int) -> Iterator[list[Cell]]:
        """Give the points changed after that number: a reader drops those of its own that lie within one."""
        return (point.cells for point in self._points if point.changed > change)

    @property
    def bands(self) -> list[Band]:
        """The stages and phases in their order."""
        return self._bands

    @property
    def until_s(self) -> int | None:
        """The end of the last point."""
        return self._points[-1].until_s if self._points else None

    def recent(self, seconds: int = SLIDING_S) -> dict[str, float | None]:
        """Return rates and percentiles of the last seconds; empty before the first one."""
        if not self._points:
            return {}
        latest = self._reaching_back(len(self._points) - 1, seconds)
        length_s = sum(point.length_s for point in latest)
        rates = {name: sum(point.sums[name] for point in latest) / length_s for name in RATES}
        return rates | dict(_quantiles(_merged([point.distributions for point in latest])))

    def _shortest_pair(self) -> int:
        """The first pair of neighbours with the least length together; those of one stage and phase come first."""

        def cost(place: int) -> tuple[bool, int]:
            first, second = self._points[place], self._points[place + 1]
            return first.place != second.place, first.length_s + second.length_s

        return min(range(len(self._points) - 1), key=cost)

    def _finish(self, place: int) -> None:
        """Compute what the point is told as; a short one's percentiles look back over 10 s, as timeline.csv's do."""
        self.changes += 1
        point = self._points[place]
        point.changed = self.changes
        latest = self._reaching_back(place, SLIDING_S)
        point.cells = _cells(point, _merged([part.distributions for part in latest]))

    def _reaching_back(self, place: int, seconds: int) -> list[Point]:
        """The points up to this one that reach back at least so far, those of the beginning less."""
        from_s = self._points[place].until_s - seconds
        first = place
        while first > 0 and self._points[first].from_s > from_s:
            first -= 1
        return self._points[first : place + 1]

    def _note_band(self, point: Point) -> None:
        last = self._bands[-1] if self._bands else None
        if last is not None and (last.stage, last.phase) == point.place:
            self._bands[-1] = Band(*point.place, last.from_s, point.until_s)
        else:
            self._bands.append(Band(*point.place, point.from_s, point.until_s))


def _point(row: TimelineRow) -> Point:
    second = row.second
    sums = {name: float(sum(second.values[column] or 0 for column in columns)) for name, columns in RATES.items()}
    tokens = sums["output_tok_per_s"]
    return Point(
        second.epoch_s,
        second.epoch_s + 1,
        (row.stage, row.phase),
        sums,
        tokens,
        tokens,
        row.users,
        int(second.values["in_flight_peak"] or 0),
        row.loop_lag_ms_max,
        {name: second.distributions[name] for name in _QUANTILES if name in second.distributions},
    )


def _merged(parts: list[Mapping[str, Histogram]]) -> Mapping[str, Histogram]:
    if len(parts) == 1:
        return parts[0]
    merged: dict[str, Histogram] = {}
    for part in parts:
        for name, histogram in part.items():
            merged.setdefault(name, Histogram()).merge(histogram)
    return merged


def _cells(point: Point, latest: Mapping[str, Histogram]) -> list[Cell]:
    rates = [sum_ / point.length_s for sum_ in point.sums.values()]
    numbers = [point.loop_lag_ms_max, point.tokens_min, point.tokens_max, *rates, *dict(_quantiles(latest)).values()]
    return [
        point.from_s,
        point.until_s,
        point.users,
        point.in_flight_peak,
        *(None if number is None else four_digits(number) for number in numbers),
        *(heat_of(point.distributions.get(name)) for name in _HEAT),
    ]


def _quantiles(distributions: Mapping[str, Histogram]) -> Iterator[tuple[str, float | None]]:
    none = Histogram()
    for name, quantiles in _QUANTILES.items():
        found = distributions.get(name, none).quantiles(quantiles)
        for q, value in zip(quantiles, found, strict=True):
            yield f"{name}_p{round(q * 100)}", None if value is None else value / 1e6


def four_digits(number: float) -> float | int:
    """Four digits are enough to draw a point, and half as long as all of them."""
    if number == 0 or not math.isfinite(number):
        return 0
    rounded = round(number, 3 - math.floor(math.log10(abs(number))))
    return int(rounded) if rounded == int(rounded) else rounded


def _greater(one: N | None, other: N | None) -> N | None:
    return other if one is None else one if other is None else max(one, other)
