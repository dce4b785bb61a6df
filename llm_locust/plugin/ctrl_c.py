"""Ctrl-C at a clean place: it is raised in the main greenlet while that waits, never in the middle of a booking.

Python raises KeyboardInterrupt in whatever runs at that moment. Under load that may be a user who books a request: its
record would be lost, and the run INVALID. gevent's own watcher is served by the loop instead, between two callbacks.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

import gevent


def install(wanted: Callable[[], bool] = lambda: True) -> None:
    """Take over SIGINT in this process; it is ignored while it is not `wanted`."""

    def interrupt() -> None:
        if wanted():
            gevent.get_hub().handle_system_error(KeyboardInterrupt, KeyboardInterrupt())

    gevent.signal_handler(signal.SIGINT, interrupt)
