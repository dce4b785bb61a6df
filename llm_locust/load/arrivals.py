"""When requests are due: one seeded sequence of absolute times, the same on every worker.

Arrival i of a stage falls due at the same offset from the stage's opening wherever it is computed, and belongs to
exactly one worker: the one that a weighted round robin over the users' shares gives it. So the merged load follows
the law for any number of workers (independent streams do not: gamma with CV 0.25 over three workers merges to 0.71).

A law is a sequence of gaps with mean 1; a rate profile maps that unit time to seconds. Ramps, spikes and a rate that is
edited while the stage runs are one schedule with several rates. Memory is bounded: one block of arrivals is held.

Knows no clock, no I/O and no Locust.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.random import PCG64, Generator  # numpy itself imports them at the first use: 7 ms before the first request
from numpy.typing import NDArray

BLOCK = 4096
"""Arrivals computed at once; a block costs about 0.1 ms, far below the hub's 5 ms."""

Profile = tuple[tuple[float, float], ...]
"""((from second, rate per second), …): the first from 0, ascending; the last rate holds for ever."""

Weights = tuple[tuple[str, int], ...]
"""((worker, users there), …) in the master's order."""

Shares = tuple[tuple[int, Weights], ...]
"""((from index, weights), …), ascending: who owns which arrivals, from an announced index on."""


class ArrivalSpec(msgspec.Struct, frozen=True):
    """A law of arrivals: its name, the gaps' coefficient of variation (gamma), the speed factor (trace)."""

    law: str = "poisson"
    cv: float = 1.0
    speed: float = 1.0

    def __str__(self) -> str:
        """Spell the law as the option does."""
        if self.law == "gamma":
            return f"gamma:{self.cv:g}"
        if self.law == "trace" and self.speed != 1.0:
            return f"trace:{self.speed:g}"
        return self.law


def pattern(weights: Weights) -> NDArray[np.int64]:
    """Give the owner (position in ``weights``) of each index of one period, each worker's spread evenly.

    The period is the sum of the weights; turn k of a worker with weight w stands at (k + 1/2) / w of the period, ties
    go to the worker named first: a smooth weighted round robin, the same on every machine.
    """
    places = [(np.arange(weight) + 0.5) / weight for _, weight in weights if weight > 0]
    owners = [np.full(weight, rank) for rank, (_, weight) in enumerate(weights) if weight > 0]
    if not places:
        return np.empty(0, dtype=np.int64)
    order = np.argsort(np.concatenate(places), kind="stable")
    return np.concatenate(owners)[order].astype(np.int64)


class Ownership:
    """Which indices belong to one worker under changing shares."""

    def __init__(self, shares: Shares, worker: str) -> None:
        """Take the whole history of shares; the part below the first announced index belongs to nobody."""
        self.worker = worker
        self._spans: list[tuple[int, NDArray[np.bool_]]] = []
        for from_index, weights in shares:
            rank = next((rank for rank, (name, _) in enumerate(weights) if name == worker), -1)
            self._spans.append((from_index, pattern(weights) == rank))

    def mine(self, first: int, count: int) -> NDArray[np.int64]:
        """Give the positions within [first, first + count) that this worker owns."""
        index = np.arange(first, first + count)
        owned = np.zeros(count, dtype=np.bool_)
        for place, (from_index, turns) in enumerate(self._spans):
            until = self._spans[place + 1][0] if place + 1 < len(self._spans) else first + count
            inside = slice(max(from_index - first, 0), max(min(until, first + count) - first, 0))
            if turns.size:
                owned[inside] = turns[(index[inside] - from_index) % turns.size]
            else:
                owned[inside] = False
        return np.flatnonzero(owned)

    def none_from(self, index: int) -> bool:
        """Tell whether nothing from this index on can be this worker's."""
        return not self._spans or (index >= self._spans[-1][0] and not bool(self._spans[-1][1].any()))

    def nth_of_last(self, turn: int) -> int | None:
        """Give the worker's turn-th index under the newest shares; None when it has none."""
        if not self._spans:
            return None
        from_index, turns = self._spans[-1]
        places = np.flatnonzero(turns)
        if not places.size:
            return None
        return from_index + (turn // places.size) * turns.size + int(places[turn % places.size])


class Schedule:
    """The due times of a stage: blocks of offsets in ns from its opening; only a trace ends."""

    def __init__(
        self, spec: ArrivalSpec, profile: Profile, seed: Sequence[int], trace_ns: NDArray[np.int64] | None = None
    ) -> None:
        """Seed the one sequence with (run seed, stage number); ``trace_ns``: the offsets of a trace, ascending."""
        if spec.law == "trace" and trace_ns is None:
            raise ValueError("the arrival law 'trace' needs a dataset with timestamps")
        self.spec = spec
        self._trace_ns = trace_ns
        self._random = Generator(PCG64(list(seed)))
        self._unit_end = 0.0
        self.first = 0  # index of the block's first arrival
        self._unit: NDArray[np.float64] = np.empty(0)
        self.set_profile(profile)

    def set_profile(self, profile: Profile) -> None:
        """Change the rates; arrivals due before the first difference keep their times."""
        points = profile or ((0.0, 1.0),)
        self._from_s = np.array([point[0] for point in points])
        self._rate = np.array([point[1] for point in points])
        self._units_at = np.concatenate(([0.0], np.cumsum(np.diff(self._from_s) * self._rate[:-1])))
        self.block_ns = self._to_ns(self._unit)

    def advance(self) -> bool:
        """Compute the next block; False when the sequence is at its end (a trace)."""
        self.first += len(self._unit)
        self._unit = self._next_units()
        self.block_ns = self._to_ns(self._unit)
        return len(self._unit) > 0

    def _next_units(self) -> NDArray[np.float64]:
        """Continue the sequence in unit time (a trace: in seconds)."""
        law = self.spec.law
        if law == "trace":
            assert self._trace_ns is not None
            return np.asarray(self._trace_ns[self.first : self.first + BLOCK] / 1e9 / self.spec.speed)
        if law == "constant":  # from the index itself: rounding never adds up
            return np.arange(self.first, self.first + BLOCK, dtype=np.float64)
        if law == "poisson":
            gaps = self._random.standard_exponential(BLOCK)
        else:
            shape = 1.0 / self.spec.cv**2
            gaps = self._random.standard_gamma(shape, BLOCK) / shape
        units = self._unit_end + np.cumsum(gaps)
        self._unit_end = float(units[-1])
        return units

    def _to_ns(self, units: NDArray[np.float64]) -> NDArray[np.int64]:
        """Map unit time to ns through the rate profile."""
        if self.spec.law == "trace":
            return np.rint(units * 1e9).astype(np.int64)
        span = np.searchsorted(self._units_at, units, side="right") - 1
        seconds = self._from_s[span] + (units - self._units_at[span]) / self._rate[span]
        return np.asarray(np.rint(seconds * 1e9), dtype=np.int64)


class Cursor:
    """Walks one worker's arrivals in order; holds one block."""

    def __init__(self, schedule: Schedule, ownership: Ownership) -> None:
        """Stand before the worker's first arrival."""
        self._schedule = schedule
        self._ownership = ownership
        self._mine: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._place = 0
        self._ended = False
        self._passed = -1  # the last index taken

    def head(self) -> tuple[int, int] | None:
        """Give (index, offset in ns) of the next arrival, None when no more will come under the present shares."""
        while self._place >= len(self._mine):
            if self._ended or self._ownership.none_from(self._schedule.first + len(self._schedule.block_ns)):
                return None
            if not self._schedule.advance():
                self._ended = True
                return None
            self._own_block()
        position = int(self._mine[self._place])
        return self._schedule.first + position, int(self._schedule.block_ns[position])

    def pop(self) -> None:
        """Go on to the arrival after the head."""
        self._passed = self._schedule.first + int(self._mine[self._place])
        self._place += 1

    def pass_until(self, offset_ns: int) -> NDArray[np.int64]:
        """Pass the arrivals due up to the offset, one block at most; give their offsets (empty: no more are due)."""
        head = self.head()
        if head is None or head[1] > offset_ns:
            return np.empty(0, dtype=np.int64)
        due = self._schedule.block_ns[self._mine[self._place :]]
        count = int(np.searchsorted(due, offset_ns, side="right"))
        self._place += count
        self._passed = self._schedule.first + int(self._mine[self._place - 1])
        return due[:count]

    def amend(self, profile: Profile, ownership: Ownership) -> None:
        """Go on under new rates and shares; what was passed stays passed."""
        self._schedule.set_profile(profile)
        self._ownership = ownership
        if len(self._schedule.block_ns):
            self._own_block()

    def _own_block(self) -> None:
        """Find this worker's arrivals in the block, from the first that was not passed."""
        self._mine = self._ownership.mine(self._schedule.first, len(self._schedule.block_ns))
        self._place = int(np.searchsorted(self._mine, self._passed - self._schedule.first, side="right"))


def trace_instants_ns(prompts: object | None) -> NDArray[np.int64] | None:
    """Give the offsets of a source of prompts that has instants of its own; None for any other."""
    arrivals_s = getattr(prompts, "arrivals_s", None)
    return None if arrivals_s is None else np.rint(arrivals_s * 1e9).astype(np.int64)


def first_index_from(schedule: Schedule, offset_ns: int) -> int:
    """Give the first index due at or after the offset: where new shares may begin. Moves the schedule on."""
    while not len(schedule.block_ns) or schedule.block_ns[-1] < offset_ns:
        if not schedule.advance():
            return schedule.first
    return schedule.first + int(np.searchsorted(schedule.block_ns, offset_ns, side="left"))
