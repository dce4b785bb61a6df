"""The counters of one row of the stage table in one process: a stage, or one label of a stage that runs through.

Knows no clock and no greenlets; the gate that owns it says what happened.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from llm_locust.load.stage import STEADY, Tally
from llm_locust.measure.record import FAILURES, Outcome


@dataclass(slots=True)
class Row:
    """Counts requests, arrivals and what each user finished. ``backlog_before``: what the row before left waiting."""

    tally: Tally
    backlog_before: int = 0
    steady_backlog_before: int = 0
    finished_by: dict[object, int] = field(default_factory=dict)
    steady_by: dict[object, int] = field(default_factory=dict)

    def issued(self, phase: str, index: int) -> None:
        """A request was let through."""
        tally = self.tally
        tally.issued += 1
        tally.in_flight += 1
        tally.index_end = max(tally.index_end, index + 1)
        tally.steady_issued += phase == STEADY

    def taken_back(self, phase: str) -> None:
        """A request that was let through never began: its user was killed while it woke."""
        self.tally.issued -= 1
        self.tally.in_flight -= 1
        self.tally.steady_issued -= phase == STEADY

    def ended(self, user: object, phase: str, outcome: Outcome, at_ns: int) -> None:
        """A request ended; `unfinished` (the stop ended it) is no finish."""
        tally = self.tally
        tally.in_flight -= 1
        steady = phase == STEADY
        if steady:
            tally.last_steady_end_ns = at_ns
        if outcome is Outcome.UNFINISHED:
            return
        tally.finished += 1
        self.finished_by[user] = self.finished_by.get(user, 0) + 1
        if steady:
            tally.steady_finished += 1
            tally.steady_ok += outcome is Outcome.OK
            tally.steady_failed += outcome in FAILURES
            self.steady_by[user] = self.steady_by.get(user, 0) + 1

    def dropped(self, waits_ns: NDArray[np.int64]) -> None:
        """Arrivals were given up after these waits."""
        self.tally.arrivals_unstarted += len(waits_ns)
        self.tally.unstarted_wait_ns += int(waits_ns.sum())
        self.tally.unstarted_wait_max_ns = max(self.tally.unstarted_wait_max_ns, int(waits_ns.max()))

    def backlog_is(self, backlog: int, *, steady: bool) -> None:
        """Follow the backlog: what fell due is what was started and what waits."""
        tally = self.tally
        tally.backlog = backlog
        tally.arrivals_due = tally.issued + backlog - self.backlog_before
        if steady:
            tally.steady_due = tally.steady_issued + backlog - self.steady_backlog_before

    def forget(self, user: object) -> None:
        """A user left: it is not waited for any more."""
        self.finished_by.pop(user, None)
        self.steady_by.pop(user, None)

    def users_with(self, users: Collection[object], finished: int) -> int:
        """Count users that finished at least so many requests of this row."""
        return sum(self.finished_by.get(user, 0) >= finished for user in users)

    def users_short(self, users: Collection[object], minimum: int) -> int:
        """Count users with fewer finished steady requests than the minimum."""
        return sum(self.steady_by.get(user, 0) < minimum for user in users) if minimum else 0

    def copy(self) -> Tally:
        """Give the counters as they are now."""
        return msgspec.structs.replace(self.tally)
