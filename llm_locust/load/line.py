"""What a stage has to issue in one process, and when: the closed loop's users or the open loop's arrivals.

A line answers "may one more start now, and which index is it?". Knows no greenlets, no clock, no phases and no quotas:
the gate asks it with the time in hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from llm_locust.load.arrivals import Cursor, Ownership, Schedule
from llm_locust.load.stage import StageOrder


@dataclass(frozen=True, slots=True)
class Grant:
    """One request that may start: its index in the stage, and when it was due (None: closed loop)."""

    index: int
    scheduled_ns: int | None


class Line(Protocol):
    """The requests of one stage in one process."""

    def take(self, now_ns: int, *, began: bool) -> Grant | None:
        """Take the next request if it may start now. ``began``: the user has already had one in this stage."""
        ...

    def next_ns(self) -> int | None:
        """Tell when a user that waits should look again, None: time alone brings nothing."""
        ...

    def pass_due(self, now_ns: int) -> int:
        """Count the arrivals that fell due before now and were not counted yet (closed loop: 0)."""
        ...

    def drop(self, until_ns: int) -> NDArray[np.int64]:
        """Take arrivals due before then, one block at most, without starting them; give their scheduled instants."""
        ...

    def amend(self, order: StageOrder) -> None:
        """Go on under new shares and rates."""
        ...

    @property
    def exhausted(self) -> bool:
        """Tell whether nothing will ever come again (the end of a trace)."""
        ...


class ClosedLine:
    """A request is due whenever a user is free; the users' first ones are spread evenly over a time."""

    exhausted = False

    def __init__(self, order: StageOrder, open_ns: int) -> None:
        """Begin at the instant at which the gate opens."""
        self._order = order
        self._open_ns = open_ns
        self._ownership = Ownership(order.shares, order.worker)
        self._turn = 0
        self._slot = 0
        self._slots_ns = self._spread()

    def _spread(self) -> NDArray[np.int64]:
        """Give the start of each user here; the workers' users interleave."""
        count = self._order.own_users
        names = [worker for worker, _ in self._order.weights]
        offset = names.index(self._order.worker) / len(names) if self._order.worker in names else 0.0
        places = (np.arange(count) + offset) / max(count, 1)
        return self._open_ns + np.rint(places * self._order.spread_s * 1e9).astype(np.int64)

    def take(self, now_ns: int, *, began: bool) -> Grant | None:
        """Give the next index; a user's first one waits for its place in the spread."""
        if not began and self._slot < len(self._slots_ns) and now_ns < self._slots_ns[self._slot]:
            return None
        index = self._ownership.nth_of_last(self._turn)
        if index is None:
            return None
        self._turn += 1
        self._slot += not began
        return Grant(index, None)

    def next_ns(self) -> int | None:
        """Give the next start of the spread."""
        return int(self._slots_ns[self._slot]) if self._slot < len(self._slots_ns) else None

    def pass_due(self, now_ns: int) -> int:
        """Nothing falls due by time."""
        return 0

    def drop(self, until_ns: int) -> NDArray[np.int64]:
        """Nothing was due."""
        return np.empty(0, dtype=np.int64)

    def amend(self, order: StageOrder) -> None:
        """Take new shares at once: their indices lie beyond every one in use."""
        if order.shares != self._order.shares:
            self._ownership = Ownership(order.shares, order.worker)
            self._turn = 0
        self._order = order


class OpenLine:
    """Requests are due by a schedule. Two cursors walk it, what fell due and what was started; no backlog is held."""

    def __init__(self, order: StageOrder, open_ns: int, trace_ns: NDArray[np.int64] | None) -> None:
        """Begin at the instant from which the schedule counts."""
        assert order.arrivals is not None
        self._open_ns = open_ns
        ownership = Ownership(order.shares, order.worker)
        seed = (order.seed, order.number)
        self._due, self._start = (
            Cursor(Schedule(order.arrivals, order.profile, seed, trace_ns), ownership) for _ in range(2)
        )

    def take(self, now_ns: int, *, began: bool) -> Grant | None:
        """Start the oldest arrival that is due."""
        head = self._start.head()
        if head is None or self._open_ns + head[1] > now_ns:
            return None
        self._start.pop()
        return Grant(head[0], self._open_ns + head[1])

    def next_ns(self) -> int | None:
        """Give the instant of the next arrival not started."""
        head = self._start.head()
        return None if head is None else self._open_ns + head[1]

    def pass_due(self, now_ns: int) -> int:
        """Count what fell due."""
        count = 0
        while passed := len(self._due.pass_until(now_ns - self._open_ns - 1)):
            count += passed
        return count

    def drop(self, until_ns: int) -> NDArray[np.int64]:
        """Pass over arrivals that were due and not started."""
        return self._start.pass_until(until_ns - self._open_ns - 1) + self._open_ns

    def amend(self, order: StageOrder) -> None:
        """Go on under new shares and rates; what was due or started stays so."""
        ownership = Ownership(order.shares, order.worker)
        self._due.amend(order.profile, ownership)
        self._start.amend(order.profile, ownership)

    @property
    def exhausted(self) -> bool:
        """Tell whether the trace is at its end."""
        return self._start.head() is None


def make_line(order: StageOrder, open_ns: int, trace_ns: NDArray[np.int64] | None = None) -> Line:
    """Make the line that the order asks for."""
    return ClosedLine(order, open_ns) if order.arrivals is None else OpenLine(order, open_ns, trace_ns)
