"""`llm_events`: the suite's own hooks beside Locust's, for what happens inside a stream.

Listeners run in the user's greenlet, never in the hub. A listener that raises is logged and counted (Locust then ends
with its exit code 2, as for its own listeners); no number of the request changes. Locust's flow exceptions (StopUser,
StopTest, …) pass through: a listener may end its user.

    @llm_events.first_token.add_listener
    def seen(user, name, at_ns, **kwargs): ...
"""

from __future__ import annotations

import logging
from typing import Any

from locust import log
from locust.event import EventHook
from locust.exception import (
    InterruptTaskSet,
    RescheduleTask,
    RescheduleTaskImmediately,
    StopTest,
    StopUser,
)

logger = logging.getLogger(__name__)

FLOW_EXCEPTIONS = (StopUser, StopTest, RescheduleTask, RescheduleTaskImmediately, InterruptTaskSet)
"""What Locust itself lets through: exceptions by which a task or a listener ends its user, its test or its task set."""


class CountingHook(EventHook):
    """A Locust hook that counts the exceptions of its listeners in ``errors``."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Locust's is not annotated
        self.errors = 0

    def __bool__(self) -> bool:
        """Tell whether anybody listens."""
        return bool(self._handlers)

    def fire(self, *, reverse: bool = False, **kwargs: Any) -> None:
        """Call every listener; one that raises does not keep the others from being called."""
        for handler in self._handlers[::-1] if reverse else self._handlers.copy():
            try:
                handler(**kwargs)
            except FLOW_EXCEPTIONS:
                raise
            except Exception:
                self.errors += 1
                logger.exception("A listener of llm_events raised; the request's numbers are untouched")
                log.unhandled_greenlet_exception = True


class LLMEvents:
    """The three hooks. Instants are ns of the process's monotonic clock."""

    def __init__(self) -> None:
        self.first_token = CountingHook()
        """``(user, name, request_id, at_ns, choice, channels)``: the first token-bearing event of a request."""
        self.token = CountingHook()
        """The same arguments, for every token-bearing event; one greenlet switch per read while anybody listens."""
        self.response = CountingHook()
        """``(user, answer)``: the request is over and booked; ``answer.record`` has its numbers."""

    @property
    def listener_errors(self) -> int:
        """Exceptions of listeners since the process started."""
        return self.first_token.errors + self.token.errors + self.response.errors


llm_events = LLMEvents()
