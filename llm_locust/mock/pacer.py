"""The one loop that paces all streams: sleep until the next token is due, send all that are due."""

from __future__ import annotations

from time import monotonic_ns

import gevent
from gevent.event import Event

from llm_locust.mock.pace import Pace


class Pacer:
    """Drives a pace by the clock."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._new = Event()
        self.generated_tokens = 0

    def wake(self) -> None:
        """A sequence was submitted: what is due next may have changed."""
        self._new.set()

    def run(self) -> None:
        """Pace until killed."""
        pace, new = self._pace, self._new
        while True:
            next_ns = pace.next_ns()
            wait_s = None if next_ns is None else (next_ns - monotonic_ns()) / 1e9
            if wait_s is None or wait_s > 0:
                new.wait(wait_s)
            else:
                gevent.sleep(0)  # behind schedule: requests are read all the same
            new.clear()
            due = pace.advance(monotonic_ns())
            self.generated_tokens += len(due)
            for sequence in due:
                sequence.owner.token(sequence)
