"""Where users wait for a run: Locust may start them before this process has been told which run it is.

Stands before the gates of all runs; a ticket goes back to the gate that gave it. Implements `load.gate_types.Gate`.
"""

from __future__ import annotations

from gevent.event import Event

from llm_locust.load.gate import Gate
from llm_locust.load.gate_types import Ticket
from llm_locust.measure.record import Outcome


class Doorway:
    """Lets users through to the gate of the run that is on; without one they wait here."""

    def __init__(self) -> None:
        self._gate: Gate | None = None
        self._opened = Event()
        self._given: dict[int, Gate] = {}

    def lead_to(self, gate: Gate | None) -> None:
        """Lead to the gate of a new run; None: to nowhere."""
        self._gate = gate
        if gate is None:
            self._opened.clear()
        else:
            self._opened.set()

    def admit(self, user: object) -> Ticket:
        """Block until this user may send; raises locust's StopUser as the gate does."""
        while True:
            self._opened.wait()
            gate = self._gate
            if gate is not None:
                ticket = gate.admit(user)
                self._given[id(ticket)] = gate
                return ticket

    def finished(self, user: object, ticket: Ticket, outcome: Outcome) -> None:
        """The ticket's request ended; told to the gate that gave it."""
        self._given.pop(id(ticket)).finished(user, ticket, outcome)

    def leave(self, user: object) -> None:
        """Give this user no more requests."""
        if self._gate is not None:
            self._gate.leave(user)
