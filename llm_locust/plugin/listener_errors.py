"""Counts exceptions that Locust swallows: those of event listeners, which it only logs (2.47).

A run in which a listener failed must not end with exit code 0 in silence.
"""

from __future__ import annotations

import logging

from llm_locust.load.events import llm_events

_LOCUSTS_WORDS = "Uncaught exception in event handler"


class ListenerErrors(logging.Handler):
    """A handler of the root logger that counts Locust's line about a failed listener."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._of_locust = 0
        self._before = llm_events.listener_errors

    @property
    def count(self) -> int:
        """Exceptions of listeners, Locust's events and ours, since the last reset."""
        return self._of_locust + llm_events.listener_errors - self._before

    def reset(self) -> None:
        """Begin to count for another run."""
        self._of_locust = 0
        self._before = llm_events.listener_errors

    def emit(self, record: logging.LogRecord) -> None:
        """Look at one log record."""
        if isinstance(record.msg, str) and record.msg.startswith(_LOCUSTS_WORDS):
            self._of_locust += 1
