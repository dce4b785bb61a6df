"""Give way to the reads: work that can wait takes its turn between two looks at the sockets.

gevent runs up to 50 callbacks before it looks at the clock, and ``gevent.sleep(0)`` is such a callback: 400 streams
that end together held the hub for 100 ms, and the reads that waited were stamped late. A turn is a timer of low
priority: libev polls the sockets, serves every read that waits, and then lets one greenlet go on. Where the reads
themselves take long, several: a worker with more streams than it carries would else spend all its time on reads,
and hold a fraction of the requests in flight that it was asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from gevent import get_hub
from gevent.hub import Hub, Waiter

from llm_locust.wire.looks import looks

EACH_NS = 2_000_000
"""One goes on for each 2 ms of reads, and one in any case. It takes some 0.5 ms: in overload, starts keep a fifth of a
worker, which 1600 streams of 200 tokens need. With more, or sooner, tokens were late where a worker is nearly full.
"""
MOST_TURNS = 16
"""At one time: what kept the hub may have been a pause of the whole process."""
_LOW = -2


class Turnstile:
    """Lets those who wait in it through, one per look at the sockets, more where its reads take long. One per hub."""

    __slots__ = ("_timer", "_waiting")

    def __init__(self, hub: Hub) -> None:
        self._waiting: deque[Callable[[], object]] = deque()
        self._timer: Any = hub.loop.timer(0.0, priority=_LOW)

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._waiting)

    def call(self, wake: Callable[[], object]) -> None:
        """Call `wake` in the hub when it is its turn; it does not raise."""
        self._waiting.append(wake)
        if len(self._waiting) == 1:
            self._timer.start(self._next)

    def _next(self) -> None:
        waiting = self._waiting
        turns = max(1, min(looks().busy_ns() // EACH_NS, MOST_TURNS))
        try:
            for _ in range(min(turns, len(waiting))):
                waiting.popleft()()
        finally:  # Ctrl-C may come between two of them
            self._timer.stop()  # who asked for a turn meanwhile has started it
            if waiting:
                self._timer.start(self._next)


def turnstile() -> Turnstile:
    """Return the turnstile of this process's hub, made at the first call."""
    hub = get_hub()
    stile: Turnstile | None = getattr(hub, "llm_locust_turnstile", None)
    if stile is None:
        stile = hub.llm_locust_turnstile = Turnstile(hub)
    return stile


def give_way() -> None:
    """Block this greenlet until the reads that wait are served and its turn has come (10 µs when nothing waits)."""
    waiter: Waiter[None] = Waiter()
    turnstile().call(lambda: waiter.switch(None))  # gevent's compiled one demands a value
    waiter.get()
