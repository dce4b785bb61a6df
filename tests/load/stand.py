"""A gate on a fake clock: real greenlets, no real time; the test says how long a request takes."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field

import gevent
import numpy as np
from gevent.event import Event
from locust.exception import StopUser
from numpy.typing import NDArray

from llm_locust.load.gate import Gate, Ticket
from llm_locust.load.stage import StageOrder, Tally
from llm_locust.measure.record import Outcome
from llm_locust.wire.turn import turnstile

MS = 1_000_000
S = 1_000_000_000


class FakeUser:
    """Stands for a Locust user; the gate knows it by identity only."""


@dataclass
class Started:
    """One request that the gate let through; instants in ns of the fake clock."""

    user: FakeUser
    ticket: Ticket
    start_ns: int
    end_ns: int | None = None


class FakeAlarm:
    """Notes the instant; the stand rings it."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self.ring = ring
        self.at_ns: int | None = None

    def ring_at(self, at_ns: int | None) -> None:
        self.at_ns = at_ns

    def close(self) -> None:
        self.at_ns = None


@dataclass
class Stand:
    """Runs a gate and its users; `late_ns` is by how much every alarm rings late."""

    service_ns: Callable[[Started], int] = lambda _: 200 * MS
    outcome: Callable[[Started], Outcome] = lambda _: Outcome.OK
    late_ns: int = 0
    now_ns: int = 0
    started: list[Started] = field(default_factory=list)
    unstarted: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._events: list[tuple[int, int, Event]] = []
        self._order = 0
        self.greenlets: dict[FakeUser, gevent.Greenlet[..., None]] = {}
        self.gate = Gate(lambda: self.now_ns, on_unstarted=self._unstarted, make_alarm=self._make_alarm)

    def _make_alarm(self, ring: Callable[[], None]) -> FakeAlarm:
        self.alarm = FakeAlarm(ring)
        return self.alarm

    def _unstarted(self, label: str, waits_ns: NDArray[np.int64]) -> None:
        self.unstarted += [(label, int(wait)) for wait in waits_ns]

    def add_users(self, count: int) -> list[FakeUser]:
        """Spawn users; each comes to the gate at once."""
        users = [FakeUser() for _ in range(count)]
        for user in users:
            self.greenlets[user] = gevent.spawn(self._live, user)
        self.settle()
        return users

    def _live(self, user: FakeUser) -> None:
        while True:
            try:
                ticket = self.gate.admit(user)
            except StopUser:
                return
            request = Started(user, ticket, self.now_ns)
            self.started.append(request)
            outcome = Outcome.UNFINISHED
            try:
                self._sleep(self.service_ns(request))
                outcome = self.outcome(request)
            finally:
                request.end_ns = self.now_ns
                self.gate.finished(user, ticket, outcome)

    def _sleep(self, duration_ns: int) -> None:
        wake = Event()
        self._order += 1
        heapq.heappush(self._events, (self.now_ns + duration_ns, self._order, wake))
        wake.wait()

    def settle(self) -> None:
        """Let every greenlet run until it waits."""
        for _ in range(4):
            gevent.sleep(0)
            while turnstile().waiting:
                gevent.sleep(1e-6)

    def run_until(self, until_ns: int) -> None:
        """Let the fake time pass; what falls due at one instant happens in the order in which it was asked for."""
        self.settle()
        while True:
            alarm_ns = None if self.alarm.at_ns is None else max(self.alarm.at_ns + self.late_ns, self.now_ns)
            event_ns = self._events[0][0] if self._events else None
            due_ns = min((at for at in (alarm_ns, event_ns) if at is not None), default=None)
            if due_ns is None or due_ns > until_ns:
                break
            self.now_ns = max(due_ns, self.now_ns)
            if event_ns == due_ns:
                heapq.heappop(self._events)[2].set()
            else:
                self.alarm.at_ns = None
                self.alarm.ring()
            self.settle()
        self.now_ns = max(until_ns, self.now_ns)

    def tally(self, label: str) -> Tally:
        """The counters of one row."""
        return next(tally for tally in self.gate.tallies() if tally.label == label)

    def close(self) -> None:
        """End every user."""
        gevent.killall(list(self.greenlets.values()))


def order(number: int = 0, label: str = "stage", users: int = 1, **fields: object) -> StageOrder:
    """Make an order for the one worker `w` that has all the users, unless the fields say otherwise."""
    known: dict[str, object] = {"worker": "w", "shares": ((0, (("w", users),)),), "seed": 7} | fields
    return StageOrder(number=number, label=label, users=users, **known)  # type: ignore[arg-type]  # fields of the Struct
