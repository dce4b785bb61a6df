"""One stage in one process: its phase, its rows, what it has issued and what waits.

The gate that owns it brings users, instants and greenlets. Knows no clock and no Locust.
"""

from __future__ import annotations

from collections.abc import Collection
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from llm_locust.load.arrivals import trace_instants_ns
from llm_locust.load.gate_types import Ticket
from llm_locust.load.line import Grant, Line, make_line
from llm_locust.load.row import Row
from llm_locust.load.stage import DRAIN, STEADY, WARMUP, StageOrder, Tally
from llm_locust.measure.record import Outcome
from llm_locust.prompts.source import StagePrompts


class Serving:
    """Issues a stage's requests under its schedule and quota, and counts by row."""

    def __init__(self, order: StageOrder, prompts: StagePrompts | None, now_ns: int) -> None:
        """Begin closed; a trace's instants come from its prompts."""
        self.order = order
        self.phase = DRAIN
        self.label = order.label
        self.rows: dict[str, Row] = {}
        self._prompts = prompts
        self._line: Line | None = None
        self._due = 0
        self._started = 0
        self._steady_issued = 0
        self._began: WeakSet[object] = WeakSet()
        self._returned: list[Grant] = []
        self._flying: set[int] = set()
        self._first_wave: set[int] | None = None  # in flight when the stage's first request ended
        self._accounted_ns = now_ns
        self._dropping_until_ns: int | None = None
        self._begin_row(order.label)

    @property
    def _follows_trace(self) -> bool:
        """Tell whether the schedule is a trace's: its first prompt belongs to its first instant."""
        return self.order.arrivals is not None and self.order.arrivals.law == "trace"

    # ---- changes ----

    def open(self, at_ns: int, phase: str) -> None:
        """Begin to issue; the schedule counts from this instant. A second opening changes nothing."""
        if self._line is None:
            self._line = make_line(self.order, at_ns, trace_instants_ns(self._prompts and self._prompts.named))
            self._accounted_ns = at_ns
            self.phase = phase

    def amend(self, order: StageOrder) -> None:
        """Go on under new shares, rates and quota."""
        self.order = order
        if self._line is not None:
            self._line.amend(order)

    def enter(self, phase: str, at_ns: int, label: str | None) -> None:
        """Begin a phase, and another row where the label changes."""
        self._note_due()
        if phase == DRAIN and self.phase != DRAIN:
            self._dropping_until_ns = at_ns
        self.phase = phase
        if label is not None and label != self.label:
            self._begin_row(label)
        if phase == STEADY:
            self.rows[self.label].steady_backlog_before = self.backlog

    def _begin_row(self, label: str) -> None:
        self.label = label
        backlog = self.backlog
        self.rows[label] = Row(Tally(number=self.order.number, label=label, backlog=backlog), backlog, backlog)

    # ---- time ----

    def account(self, until_ns: int, *, users: int, free: int) -> None:
        """Book the time since the last call to the present phase, and count what fell due in it.

        An instant of the past (a window that ended with its last request) takes back the time booked beyond it.
        """
        if self._line is None or self.phase == DRAIN:
            return
        elapsed_ns = until_ns - self._accounted_ns
        self._accounted_ns = until_ns
        tally = self.rows[self.label].tally
        if self.phase == STEADY:
            tally.window_ns = max(tally.window_ns + elapsed_ns, 0)
            if self.order.arrivals is not None and users and not free:
                tally.cap_reached_ns = max(tally.cap_reached_ns + elapsed_ns, 0)
        self._due += self._line.pass_due(until_ns)
        if not free:
            self.note_backlog()

    def note_backlog(self) -> None:
        """Follow the backlog, where no user is free to shorten it."""
        self._note_due()
        tally = self.rows[self.label].tally
        tally.backlog_max = max(tally.backlog_max, tally.backlog)

    def _note_due(self) -> None:
        if self.order.arrivals is not None and self.phase != DRAIN:
            self.rows[self.label].backlog_is(self.backlog, steady=self.phase == STEADY)

    @property
    def backlog(self) -> int:
        """Arrivals that are due, not started, and within the quota."""
        backlog = max(self._due - self._started, 0)
        return backlog if self._left is None else min(backlog, self._left)

    @property
    def _left(self) -> int | None:
        """What the quota still lets through in the present phase, None: no limit."""
        if self.order.quota is None or self.phase != STEADY:
            return None
        return max(self.order.quota - self._steady_issued, 0)

    def next_ns(self) -> int | None:
        """Tell when a waiting user should look again."""
        if self._line is None or self.phase == DRAIN or self._left == 0:
            return None
        return self._line.next_ns()

    # ---- requests ----

    def take(self, user: object, now_ns: int, *, busy_since_ns: int | None) -> Ticket | None:
        """Let this user's next request through if it may start now.

        ``busy_since_ns``: since when no user has been free, None: one has been free all the time that an arrival
        waited. The part of its delay before that instant was ours, the part after it was spent waiting for a user.
        """
        if self._line is None or self.phase == DRAIN or self._left == 0 or self._held(user):
            return None
        grant = self._returned.pop() if self._returned else self._line.take(now_ns, began=user in self._began)
        if grant is None:
            return None
        user_wait_ns = None
        if grant.scheduled_ns is not None:
            waited_from_ns = now_ns if busy_since_ns is None else max(grant.scheduled_ns, busy_since_ns)
            user_wait_ns = max(now_ns - waited_from_ns, 0)
        self._began.add(user)
        self._flying.add(grant.index)
        self._count(grant, 1)
        row = self.rows[self.label]
        row.issued(self.phase, grant.index)
        return Ticket(
            index=self.order.first_index + grant.index,
            place=grant.index + (0 if self._follows_trace else self.order.first_prompt),
            stage=self.label,
            phase=self.phase,
            scheduled_ns=grant.scheduled_ns,
            user_wait_ns=user_wait_ns,
            prompts=self._prompts,
        )

    def _held(self, user: object) -> bool:
        """Tell whether the user waits for the common release: it is warm, and the window has not begun."""
        if not self.order.release_together or self.phase != WARMUP:
            return False
        begun = self.rows[self.label].finished_by.get(user, 0)
        return begun >= self.order.warmup_requests_per_user

    def _count(self, grant: Grant, by: int) -> None:
        self._started += by
        self._steady_issued += by if self.phase == STEADY else 0

    def take_back(self, ticket: Ticket) -> None:
        """Undo a ticket whose user was killed before it began: the next user gets it."""
        grant = Grant(ticket.index - self.order.first_index, ticket.scheduled_ns)
        self._flying.discard(grant.index)
        self._returned.append(grant)
        self._started -= 1
        self._steady_issued -= ticket.phase == STEADY
        self.rows[ticket.stage].taken_back(ticket.phase)

    def ended(self, user: object, ticket: Ticket, outcome: Outcome, at_ns: int) -> None:
        """Book the end of a request."""
        self._flying.discard(ticket.index - self.order.first_index)
        self.rows[ticket.stage].ended(user, ticket.phase, outcome, at_ns)
        if self._first_wave is None and outcome is not Outcome.UNFINISHED:
            self._first_wave = set(self._flying)

    @property
    def in_flight(self) -> int:
        """Requests of this stage that were let through and have not ended."""
        return len(self._flying)

    # ---- arrivals that are given up ----

    @property
    def dropping(self) -> bool:
        """Tell whether arrivals are still to be given up."""
        return self._dropping_until_ns is not None

    def drop_block(self) -> NDArray[np.int64]:
        """Give up one block of the backlog; return the waits in ns."""
        until_ns = self._dropping_until_ns
        left = self.order.quota - self._steady_issued if self.order.quota is not None else None
        if until_ns is None or self._line is None or left == 0:
            self._dropping_until_ns = None
            return np.empty(0, dtype=np.int64)
        scheduled_ns = np.array([grant.scheduled_ns for grant in self._returned if grant.scheduled_ns], dtype=np.int64)
        self._returned.clear()
        if not scheduled_ns.size:
            scheduled_ns = self._line.drop(until_ns)
        if not scheduled_ns.size:
            self._dropping_until_ns = None
            return scheduled_ns
        self._started += len(scheduled_ns)
        waits_ns = np.asarray(until_ns - scheduled_ns[:left], dtype=np.int64)
        if left is not None and len(scheduled_ns) >= left:
            self._dropping_until_ns = None
        row = self.rows[self.label]
        row.dropped(waits_ns)
        row.tally.backlog = self.backlog
        return waits_ns

    # ---- what is reported ----

    def tallies(self, users: Collection[object], gone: int) -> list[Tally]:
        """Give the counters of every row; the running one also says what depends on the users: here, and gone."""
        copies = [row.copy() for row in self.rows.values()]
        running, row = next(tally for tally in copies if tally.label == self.label), self.rows[self.label]
        running.phase = self.phase
        running.users = len(users)
        running.users_short = row.users_short(users, self.order.min_requests_per_user)
        running.warm = self._warm(users, gone, row)
        running.drained = self.phase == DRAIN and not self.dropping and not self.in_flight
        ended = self._line is not None and self._line.exhausted
        running.exhausted = ended or (self.order.quota is not None and self._steady_issued >= self.order.quota)
        return copies

    def _warm(self, users: Collection[object], gone: int, row: Row) -> bool:
        """Tell whether every user has finished its warm-up requests; one that is gone is not waited for.

        Open loop: most of the cap's users may never be needed, so: what was in flight here when the stage's first
        request ended has ended. A worker that had nothing to issue so far is not waited for.
        """
        if self.order.arrivals is not None:
            return not self._started or (self._first_wave is not None and not self._first_wave & self._flying)
        everyone = len(users) + gone >= self.order.own_users
        return everyone and row.users_with(users, self.order.warmup_requests_per_user) == len(users)
