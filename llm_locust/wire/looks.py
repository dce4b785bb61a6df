"""When the hub looked at its sockets: how long a read may have waited unseen, and a pause where looks come too often.

A read carries one stamp, that of its last segment. Whether the events before it came with it or long before is known
only from when this process last looked, and nothing was there. Held up for 20 ms, by its own work or by others that
had its core, it takes two tokens of a stream in one read, the second of them a moment old.

With 400 streams at 20 ms a token comes every 50 µs, and waking up for each costs a third of all that the bare
receiving costs. Where the kernel stamps arrivals, nothing is lost by letting a few streams' reads come together: at
20,000 tokens/s a callback that parses nothing took 11.6 µs a token, with at least 0.2 ms between two looks 8.4 µs; the
whole product takes a tenth less with 0.4 ms than with 0.2 (median of three rounds).
"""

from __future__ import annotations

import os
from time import monotonic_ns, thread_time_ns
from typing import Any

from gevent import get_hub, monkey

from llm_locust.wire.clock import get_clock

INTERVAL_NS = 400_000
FROM_STREAMS = 50
"""Below, a token a look is what comes anyway, and a second sleep would only cost."""
SLEPT_NS = 50_000
"""A look that slept for longer slept until something came: nothing was there when it began."""
FEW_EVENTS = 60
"""A look that found more may have left some: libev asks epoll for 64 at first, for more once they were not enough."""
SAMPLE_S = 0.02
_SCHEDSTAT = "/proc/thread-self/schedstat"
_HIGHEST, _LOWEST = 2, -2

_sleep = monkey.get_original("time", "sleep")


class Looks:
    """The hub's looks while exchanges run. One per hub; all in the hub's own thread."""

    __slots__ = ("_after_look", "_before_look", "_began_cpu_ns", "_began_ns", "_core", "_cut_short", "_ended_ns",
                 "_last_ended_ns", "_loop", "_pausing", "_running", "_sample", "_slept_ns", "_until_ns", "_waited_ns",
                 "_worked_ns")  # fmt: skip

    def __init__(self, loop: Any, *, pausing: bool) -> None:
        """``pausing``: the kernel stamps what comes, so looks may be kept apart."""
        self._loop = loop
        self._pausing = pausing
        self._running = 0
        self._cut_short = False
        self._slept_ns = self._worked_ns = self._began_cpu_ns = 0
        self._until_ns = 0
        self._began_ns = self._ended_ns = self._last_ended_ns = 0
        self._waited_ns = 0  # for the core: what was counted since the last look
        self._core = CoreWait()
        self._before_look: Any = loop.prepare(priority=_LOWEST)
        self._after_look: Any = loop.check(priority=_HIGHEST)
        self._sample: Any = loop.timer(SAMPLE_S, SAMPLE_S)

    def enter(self) -> None:
        """An exchange begins to wait for reads."""
        self._running += 1
        if self._running == 1:
            self._began_ns = self._ended_ns = self._last_ended_ns = monotonic_ns()
            self._began_cpu_ns = thread_time_ns()
            self._waited_ns = self._slept_ns = 0
            self._cut_short = False
            self._core.open()
            self._before_look.start(self._begin)
            self._after_look.start(self._end)
            self._sample.start(self._count_wait)

    def leave(self) -> None:
        """An exchange is over."""
        self._running -= 1
        if not self._running:
            self._before_look.stop()
            self._after_look.stop()
            self._sample.stop()
            self._core.close()

    def unseen_ns(self) -> int:
        """How long ago the oldest byte of a read that has just been taken may have come; 0 while nothing is watched.

        A look that slept had found nothing; then only what others had of the core since counts. One that was busy, or
        stood still no longer than others had the core, may have found what came at any time since the look before.
        """
        if not self._running:
            return 0
        self._count_wait()
        now_ns = monotonic_ns()
        if self._slept_ns - self._waited_ns > SLEPT_NS:
            return now_ns - self._ended_ns + self._waited_ns + self._worked_ns
        return now_ns - self._last_ended_ns

    def busy_ns(self) -> int:
        """How long what the last look found has kept the hub so far; 0 while nothing is watched."""
        return monotonic_ns() - self._ended_ns if self._running else 0

    def _count_wait(self) -> None:
        """Add what others had of the core: each read of a look is told the same, whether the sample came before it."""
        self._waited_ns += self._core.take()

    def _begin(self) -> None:
        """Sleep what is left of the interval; nothing where the work took longer."""
        now_ns = monotonic_ns()
        if self._running >= FROM_STREAMS and self._pausing:
            left_ns = self._until_ns - now_ns
            if left_ns > 0:
                _sleep(left_ns / 1e9)
                now_ns = monotonic_ns()
            self._until_ns = now_ns + INTERVAL_NS
        self._began_ns = now_ns
        self._began_cpu_ns = thread_time_ns()

    def _end(self) -> None:
        """Note how long the look slept: thousands of sockets take it long, too, while it works.

        One that found many may have left some for the next, which then finds what came before.
        """
        if not self._cut_short:
            self._last_ended_ns = self._ended_ns
        self._ended_ns = now_ns = monotonic_ns()
        self._waited_ns = 0
        took_ns = now_ns - self._began_ns
        self._worked_ns = thread_time_ns() - self._began_cpu_ns if took_ns > SLEPT_NS else took_ns
        self._slept_ns = took_ns - self._worked_ns
        self._cut_short = self._loop.pendingcnt > FEW_EVENTS


class CoreWait:
    """How long this thread could have run but others had its core, as Linux counts it; elsewhere 0."""

    __slots__ = ("_file", "_taken_ns")

    def __init__(self) -> None:
        self._file = -1
        self._taken_ns = 0

    def open(self) -> None:
        """Begin to count, in this thread."""
        try:
            self._file = os.open(_SCHEDSTAT, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        self._taken_ns = self._read()

    def close(self) -> None:
        """Count no more."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def take(self) -> int:
        """Return the ns since the last call (3 µs)."""
        before_ns, self._taken_ns = self._taken_ns, self._read()
        return self._taken_ns - before_ns

    def _read(self) -> int:
        if self._file < 0:
            return 0
        return int(os.pread(self._file, 64, 0).split()[1])


def looks() -> Looks:
    """Return the looks of this process's hub, made at the first call."""
    hub = get_hub()
    made: Looks | None = getattr(hub, "llm_locust_looks", None)
    if made is None:
        made = hub.llm_locust_looks = Looks(hub.loop, pausing=get_clock().source == "kernel")
    return made
