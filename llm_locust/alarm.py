"""A one-shot alarm at an instant of CLOCK_MONOTONIC, as exact as the platform has it; below all rooms.

The event loop's own timers are rounded up to whole milliseconds (libev 4.33: 0.7 ms late at p50). Linux's timerfd is
not; Python has it from 3.13, so it is called through ctypes. Elsewhere the loop's timer serves.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable
from typing import Any, Protocol

from gevent import get_hub

_READ = 1
_ABSOLUTE = 1
_NS_PER_S = 1_000_000_000


class Alarm(Protocol):
    """Calls back in the hub once, at the instant last set."""

    def ring_at(self, at_ns: int | None) -> None:
        """Ring at this instant, at once if it is past, or not at all (None); replaces the instant set before."""
        ...

    def close(self) -> None:
        """Ring no more, whatever is set from here on."""
        ...


def make_alarm(ring: Callable[[], None]) -> Alarm:
    """The best alarm of this platform, in the hub of this process (so: made after a fork)."""
    if sys.platform == "linux":
        try:
            return TimerFdAlarm(ring)
        except OSError:  # a sandbox without timerfd
            pass
    return LoopAlarm(ring)


class _Spec(ctypes.Structure):
    """struct itimerspec."""

    _fields_ = (
        ("interval_s", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("value_s", ctypes.c_long),
        ("value_ns", ctypes.c_long),
    )


class TimerFdAlarm:
    """timerfd_create(2), watched by the event loop."""

    def __init__(self, ring: Callable[[], None]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._settime = libc.timerfd_settime
        self._fd = libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._ring = ring
        self._spec = _Spec()
        self._watcher: Any = get_hub().loop.io(self._fd, _READ)
        self._watcher.start(self._expired)

    def ring_at(self, at_ns: int | None) -> None:
        if self._fd < 0:
            return
        # An instant of 0 disarms the timer.
        self._spec.value_s, self._spec.value_ns = (0, 0) if at_ns is None else divmod(max(at_ns, 1), _NS_PER_S)
        if self._settime(self._fd, _ABSOLUTE, ctypes.byref(self._spec), None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def close(self) -> None:
        if self._fd < 0:
            return
        self._watcher.stop()
        self._watcher.close()
        os.close(self._fd)
        self._fd = -1

    def _expired(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return
        self._ring()


class LoopAlarm:
    """The event loop's timer."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._timer: Any = None
        self._closed = False

    def ring_at(self, at_ns: int | None) -> None:
        self._stop()
        if at_ns is not None and not self._closed:
            self._timer = get_hub().loop.timer(max(0.0, (at_ns - time.monotonic_ns()) / _NS_PER_S))
            self._timer.start(self._ring, update=True)

    def close(self) -> None:
        self._closed = True
        self._stop()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.stop()
            self._timer.close()
            self._timer = None
