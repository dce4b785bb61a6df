"""The one loop that paces all streams: sleep until the next token is due, send all that are due."""

from __future__ import annotations

from time import monotonic_ns

import gevent
from gevent.event import Event

from llm_locust.alarm import Alarm, make_alarm
from llm_locust.mock.pace import Pace

# Tokens due within this time are sent in one wake-up: at 400 streams that saves half of the CPU.
SLACK_NS = 200_000


class Pacer:
    """Drives a pace by the clock."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._rung = Event()
        self.generated_tokens = 0

    def wake(self) -> None:
        """A sequence was submitted: what is due next may have changed."""
        self._rung.set()

    def run(self) -> None:
        """Pace until killed."""
        alarm = make_alarm(self._rung.set)
        try:
            while True:
                self._wait(alarm)
                due = self._pace.advance(monotonic_ns())
                self.generated_tokens += len(due)
                for sequence in due:
                    sequence.owner.token(sequence)
        finally:
            alarm.close()

    def _wait(self, alarm: Alarm) -> None:
        """Sleep until the next token is due, or a new sequence comes."""
        next_ns = self._pace.next_ns()
        if next_ns is not None and next_ns <= monotonic_ns():
            gevent.sleep(0)  # behind schedule: requests are read all the same
        else:
            if next_ns is not None:
                alarm.ring_at(next_ns + SLACK_NS)
            self._rung.wait()
        self._rung.clear()
