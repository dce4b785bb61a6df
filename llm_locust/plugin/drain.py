"""The drain gate: between the order to stop and Locust's own stop, open streams end and every report comes in.

Registered in `test_stopping` of master and local runner. Locust (2.47) fires that event again for a second stop, and
from other greenlets: the first caller drains, a later one ends the drain at once and waits for it. A Ctrl-C inside the
gate does the same; left alone it would end the process without a file. Never `--stop-timeout`: after a web stop the
workers were gone for that long.
"""

from __future__ import annotations

import enum
import logging
import sys
from collections.abc import Callable
from typing import Any, Protocol

import gevent
from gevent.event import Event

logger = logging.getLogger(__name__)

PLANNED_S = 1800.0
CTRL_C_S = 30.0
SIGTERM_S = 20.0
AFTER_CUT_S = 10.0
"""What the workers may take to hand in after the drain was cut."""
LOOK_EVERY_S = 0.05
SAY_EVERY_S = 5.0


class Cause(enum.Enum):
    """Why the load ends."""

    PLANNED = "planned"
    CTRL_C = "Ctrl-C"
    SIGTERM = "SIGTERM"


class Drainable(Protocol):
    """Who is drained: the processes that send requests."""

    def close(self, limit_s: float) -> None:
        """Issue nothing more; hand in when all streams have ended, at the latest after the limit. Never blocks."""
        ...

    def cut(self) -> None:
        """End what is in flight at once. Never blocks."""
        ...

    def handed_in(self) -> bool:
        """Whether every process that lives has handed in everything."""
        ...

    def owing(self) -> tuple[str, ...]:
        """The processes that are waited for, by name."""
        ...

    def in_flight(self) -> int:
        """Streams that are open, as far as is known."""
        ...


def limit_of(cause: Cause, drain_s: float | None) -> float:
    """The longest wait for this cause; `--llm-drain` makes it shorter, or a planned one longer."""
    own_s = {Cause.PLANNED: PLANNED_S, Cause.CTRL_C: CTRL_C_S, Cause.SIGTERM: SIGTERM_S}[cause]
    if drain_s is None:
        return own_s
    return drain_s if cause is Cause.PLANNED else min(own_s, drain_s)


def cause_of_stop(terminating: bool) -> Cause:
    """Tell why the present greenlet stops the test; `terminating`: Locust is shutting down.

    Locust handles SIGTERM in a greenlet of its own, and Ctrl-C in the main one (or in whichever the interrupt
    was raised, with the exception at hand). Run time, shapes and the web page stop from greenlets, too.
    """
    if sys.exc_info()[0] is KeyboardInterrupt or in_main_greenlet():
        return Cause.CTRL_C
    return Cause.SIGTERM if terminating else Cause.PLANNED


def in_main_greenlet() -> bool:
    """Whether this is the greenlet in which the process began."""
    current: Any = gevent.getcurrent()
    return bool(current.parent is None)


class DrainGate:
    """One drain per run; safe to enter again, from other greenlets and by Ctrl-C."""

    def __init__(
        self,
        crowd: Drainable,
        now_s: Callable[[], float],
        say: Callable[[str], None],
        sleep: Callable[[float], object] = gevent.sleep,
    ) -> None:
        self._crowd = crowd
        self._now_s = now_s
        self._say = say
        self._sleep = sleep
        self.begun = False
        self._passed = False
        self._done = Event()
        self._cut_at_s: float | None = None
        self.was_cut = False

    @property
    def passed(self) -> bool:
        """Whether the drain is over."""
        return self._passed

    def cut(self) -> None:
        """End the drain at once: what is in flight becomes `unfinished`."""
        if self._cut_at_s is None and not self.passed:
            self.was_cut = self._crowd.in_flight() > 0
            self._cut_at_s = self._now_s()
            self._crowd.cut()

    def drain(self, cause: Cause, limit_s: float) -> None:
        """Close the gates and block until all is handed in, the limit has passed, or somebody stops again."""
        if self.begun:
            self.cut()
            self._wait_for_first()
            return
        self.begun = True
        self._crowd.close(limit_s)
        try:
            self._watch(cause, limit_s)
        finally:
            self._passed = True
            self._done.set()

    def _wait_for_first(self) -> None:
        try:
            self._done.wait(AFTER_CUT_S)
        except KeyboardInterrupt:
            logger.warning("llm-locust: stopped again; not waiting for the workers any longer")

    def _watch(self, cause: Cause, limit_s: float) -> None:
        started_s = said_s = self._now_s()
        if self._crowd.in_flight() and cause is not Cause.PLANNED:
            self._tell(cause, limit_s)
        while not self._crowd.handed_in():
            try:
                self._sleep(LOOK_EVERY_S)
            except KeyboardInterrupt:
                if self._cut_at_s is not None:
                    return
                self.cut()
            now_s = self._now_s()
            if self._cut_at_s is None and now_s - started_s >= limit_s:
                self.cut()
            elif self._cut_at_s is not None and now_s - self._cut_at_s >= AFTER_CUT_S:
                logger.error("llm-locust: not every worker handed in within %.0f s after the end", AFTER_CUT_S)
                return
            elif self._cut_at_s is None and now_s - said_s >= SAY_EVERY_S:
                said_s = now_s
                self._tell(cause, limit_s - (now_s - started_s))

    def _tell(self, cause: Cause, left_s: float) -> None:
        if not self._crowd.in_flight():
            self._say(f"waiting for the last report of {', '.join(self._crowd.owing())}")
        elif cause is Cause.PLANNED:
            self._say(f"waiting for {self._crowd.in_flight()} streams to end, at most {left_s:.0f} s")
        else:
            again = "; Ctrl-C again ends them at once" if cause is Cause.CTRL_C else ""
            self._say(
                f"{cause.value}: {self._crowd.in_flight()} streams are still open and have {left_s:.0f} s to end{again}"
            )
