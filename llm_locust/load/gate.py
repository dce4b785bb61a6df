"""The gate: when a request may start, and which one it is. One per process, shared by its users.

The client asks `admit` before and tells `finished` after each request; the plugin drives it from the master's messages:

    begin_stage(order)          the gate is closed, the counters of the new stage are at 0
    open(at_ns, phase)          issue from that instant on (ramp, warmup or steady)
    mark(phase, at_ns, label)   the phase changes then; another label begins a new row of a stage that runs through
    begin_stage(order)          with the number of the running stage: new shares, rates or quota
    close(at_ns)                = mark("drain"): issue nothing more; arrivals not started are dropped and counted
    leave(user)                 this user gets no more requests; one that waits here gets StopUser

Users wait here between stages, and when the quota is used up. All instants are ns of this process's monotonic clock;
one given in the past holds from then on. Knows no sockets, no messages and no outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakSet

import numpy as np
from gevent.event import AsyncResult, Event
from locust.exception import StopUser
from numpy.typing import NDArray

from llm_locust.alarm import Alarm, make_alarm
from llm_locust.load.gate_types import Ticket
from llm_locust.load.serving import Serving
from llm_locust.load.stage import DRAIN, StageOrder, Tally
from llm_locust.measure.record import Outcome
from llm_locust.prompts.source import StagePrompts
from llm_locust.wire.turn import give_way

__all__ = ["Gate", "Ticket", "Unstarted"]

Unstarted = Callable[[str, NDArray[np.int64]], None]
"""Told the label of a row and the waits in ns of arrivals that it dropped, a block of 4096 at most at a time."""


class Gate:
    """Lets requests through, by stage, phase, schedule and quota."""

    def __init__(
        self,
        now_ns: Callable[[], int],
        *,
        on_unstarted: Unstarted | None = None,
        make_alarm: Callable[[Callable[[], None]], Alarm] = make_alarm,
    ) -> None:
        """Begin closed, without a stage. ``now_ns`` is the process's monotonic clock."""
        self._now_ns = now_ns
        self._on_unstarted = on_unstarted
        self._alarm = make_alarm(self._ring)
        self._serving: Serving | None = None
        self._past: list[Serving] = []
        self._agenda: list[tuple[int, Callable[[int], None]]] = []
        self._free: dict[object, AsyncResult[Ticket]] = {}
        self._users: set[object] = set()
        self._left: WeakSet[object] = WeakSet()
        self._gone = 0
        self._let_in = 0
        self._busy_since_ns = 0
        self._in_flight = 0
        self._idle = Event()
        self._idle.set()

    # ---- what the client calls ----

    def admit(self, user: object) -> Ticket:
        """Block until this user may send; StopUser when it has left. A greenlet killed here has taken no ticket."""
        if user in self._left:
            raise StopUser
        self._turn()
        self._users.add(user)
        taken = self._take(user, self._now_ns(), waited=bool(self._free))
        if taken is not None:
            return taken
        waiting: AsyncResult[Ticket] = AsyncResult()
        self._free[user] = waiting
        self._set_alarm()
        try:
            ticket: Ticket | None = waiting.get()
            if self._let_in > 1:
                give_way()  # what arrives is read between the starts of hundreds that are let in together
        except BaseException:
            self._withdraw(user, waiting)
            raise
        assert ticket is not None
        return ticket

    def finished(self, user: object, ticket: Ticket, outcome: Outcome) -> None:
        """The ticket's request ended; called exactly once per ticket. Never blocks."""
        self._turn()
        self._land()
        for serving in self._stages():
            if ticket.stage in serving.rows:
                serving.ended(user, ticket, outcome, self._now_ns())
                break
        self._past = [serving for serving in self._past if serving.in_flight]

    def leave(self, user: object) -> None:
        """Give this user no more requests; wake it with StopUser where it waits."""
        self._turn()
        self._gone += user not in self._left
        self._left.add(user)
        self._users.discard(user)
        for serving in self._stages():
            for row in serving.rows.values():
                row.forget(user)
        waiting = self._free.get(user)
        if waiting is not None:
            self._unfree(user)
            waiting.set_exception(StopUser())

    # ---- what the plugin calls ----

    def begin_stage(self, order: StageOrder, prompts: StagePrompts | None = None) -> None:
        """Take a stage, its gate closed; with the running stage's number: amend its shares, rates and quota.

        ``prompts`` are the stage's (None: it says nothing of them); a trace's bring its instants along.
        """
        self._turn()
        if self._serving is not None and self._serving.order.number == order.number:
            self._serving.amend(order)
        else:
            self.close()
            while self._drop_block():
                pass
            self._agenda.clear()
            self._past = [serving for serving in self._stages() if serving.in_flight]
            self._serving = Serving(order, prompts, self._now_ns())
        self._turn()
        self._set_alarm()

    def open(self, at_ns: int, phase: str) -> None:
        """Issue from that instant on, in the phase with which the stage begins."""
        self._at(at_ns, lambda at: self._open(at, phase))

    def mark(self, phase: str, at_ns: int, label: str | None = None) -> None:
        """Begin a phase at that instant, and a new row where the label is another; `drain` closes the gate."""
        self._at(at_ns, lambda at: self._serving.enter(phase, at, label) if self._serving else None)

    def close(self, at_ns: int | None = None) -> None:
        """Issue nothing more from that instant on (None: now); what was announced for later does not come."""
        until_ns = self._now_ns() if at_ns is None else at_ns
        self._agenda = [item for item in self._agenda if item[0] <= until_ns]
        self.mark(DRAIN, until_ns)

    def retire(self) -> None:
        """Another gate takes over: wake up no more, give the alarm back. Requests in flight may still end here."""
        self._alarm.close()

    @property
    def in_flight(self) -> int:
        """Requests let through and not finished, of whatever stage."""
        return self._in_flight

    @property
    def drained(self) -> bool:
        """Tell whether the gate is closed, nothing is in flight and the backlog is given up."""
        self._turn()
        closed = self._serving is None or (self._serving.phase == DRAIN and not self._serving.dropping)
        return closed and not self._in_flight and not self._agenda

    def wait_idle(self, timeout_s: float | None) -> bool:
        """Block until nothing is in flight; False when the time is over first."""
        return bool(self._idle.wait(timeout_s))

    def tallies(self) -> list[Tally]:
        """Give the counters of the running stage's rows, and of older stages with requests in flight."""
        self._turn()
        return [tally for serving in self._stages() for tally in serving.tallies(self._users, self._gone)]

    # ---- inside ----

    def _stages(self) -> list[Serving]:
        return [*self._past, *([] if self._serving is None else [self._serving])]

    def _at(self, at_ns: int, change: Callable[[int], None]) -> None:
        """Note a change for its instant."""
        self._agenda.append((at_ns, change))
        self._agenda.sort(key=lambda item: item[0])
        self._turn()
        self._set_alarm()

    def _open(self, at_ns: int, phase: str) -> None:
        if self._serving is not None:
            self._serving.open(at_ns, phase)
            self._busy_since_ns = at_ns

    def _ring(self) -> None:
        """The alarm rings, in the hub; it is set again whatever happens, or every user would wait for ever."""
        try:
            self._turn()
            self._drop_block()
        finally:
            self._set_alarm()

    def _turn(self) -> None:
        """Make the changes whose instant has come, then hand out what is due."""
        now_ns = self._now_ns()
        while self._agenda and self._agenda[0][0] <= now_ns:
            at_ns, change = self._agenda.pop(0)
            self._account(at_ns)
            change(at_ns)
        self._account(now_ns)
        self._hand_out(now_ns)

    def _account(self, until_ns: int) -> None:
        if self._serving is not None:
            self._serving.account(until_ns, users=len(self._users), free=len(self._free))

    def _hand_out(self, now_ns: int) -> None:
        """Give what is due to users that wait.

        The open loop takes the user that waits least: connections stay warm, and only as many are opened as the load
        needs. The closed loop's users start in the order in which they came.
        """
        serving = self._serving
        if serving is None or not self._free:
            return
        last_first = serving.order.arrivals is not None
        self._let_in = 0
        for user in reversed(list(self._free)) if last_first else list(self._free):
            ticket = self._take(user, now_ns, waited=True)
            if ticket is not None:
                self._unfree(user).set(ticket)
                self._let_in += 1
            elif not serving.order.release_together:
                break
        serving.note_backlog()

    def _take(self, user: object, now_ns: int, *, waited: bool) -> Ticket | None:
        """Let a request through if one may start. ``waited``: a user was free all the time."""
        if self._serving is None:
            return None
        ticket = self._serving.take(user, now_ns, busy_since_ns=None if waited else self._busy_since_ns)
        if ticket is not None:
            self._in_flight += 1
            self._idle.clear()
        return ticket

    def _land(self) -> None:
        self._in_flight -= 1
        if not self._in_flight:
            self._idle.set()

    def _unfree(self, user: object) -> AsyncResult[Ticket]:
        waiting = self._free.pop(user)
        if not self._free:
            self._busy_since_ns = self._now_ns()
        return waiting

    def _withdraw(self, user: object, waiting: AsyncResult[Ticket]) -> None:
        """A greenlet that waited was killed: it takes no ticket with it."""
        self._users.discard(user)
        if self._free.get(user) is waiting:
            self._unfree(user)
        elif waiting.successful() and self._serving is not None:
            ticket = waiting.value
            assert ticket is not None
            self._land()
            self._serving.take_back(ticket)
            self._turn()

    def _drop_block(self) -> bool:
        """Give up a block of arrivals that were not started; tell whether more are left."""
        serving = self._serving
        if serving is None or not serving.dropping:
            return False
        waits_ns = serving.drop_block()
        if waits_ns.size and self._on_unstarted is not None:
            self._on_unstarted(serving.label, waits_ns)
        return serving.dropping

    def _set_alarm(self) -> None:
        """Ring at the next instant at which something is to be done without a user's call."""
        instants = [self._agenda[0][0]] if self._agenda else []
        if self._serving is not None:
            if self._serving.dropping:
                instants.append(self._now_ns())
            due_ns = self._serving.next_ns() if self._free else None
            if due_ns is not None:
                instants.append(due_ns)
        self._alarm.ring_at(min(instants, default=None))
