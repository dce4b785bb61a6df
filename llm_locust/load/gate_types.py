"""What the client asks of its surroundings: leave to send, and a place for the record.

The `Gate` says when a request may start and which one it is; the client knows nothing of stages, arrival laws or
quotas. Knows no sockets and no outputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from llm_locust.measure.record import Outcome
from llm_locust.prompts.source import StagePrompts


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """Leave to send one request. Instants and durations are ns of the process's monotonic clock.

    ``index`` is the request's number in the whole run (over all workers) and becomes the record's ``request_id``.
    ``place`` says which prompt of its source it gets: unique over the run too, and without the gaps that ``index``
    has between stages; None: the index. ``scheduled_ns`` is None in a closed loop. ``user_wait_ns`` is the part of the
    delay in which every user was busy; what remains between schedule and start is ours (dispatch lag).
    ``prompts`` are the stage's, None where it says nothing of them.
    """

    index: int
    place: int | None = None
    stage: str
    phase: str
    scheduled_ns: int | None = None
    user_wait_ns: int | None = None
    prompts: StagePrompts | None = None


class Gate(Protocol):
    """Lets requests through. One per process; shared by all users."""

    def admit(self, user: object) -> Ticket:
        """Block until this user may send. Raises locust's StopUser when there is nothing more to issue.

        A greenlet that is killed while it waits here has taken no ticket.
        """
        ...

    def finished(self, user: object, ticket: Ticket, outcome: Outcome) -> None:
        """The ticket's request ended; called exactly once per ticket, also for a killed user. Never blocks."""
        ...

    def leave(self, user: object) -> None:
        """Give this user no more requests; one that waits in `admit` gets StopUser. Never blocks."""
        ...
