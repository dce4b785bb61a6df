"""Ctrl-C at a clean place: it is raised in the main greenlet while that waits, never in the middle of a booking.

Python raises KeyboardInterrupt in whatever runs at that moment. Under load that may be a user who books a request: its
record would be lost, and the run INVALID. gevent's own watcher is served by the loop instead, between two callbacks.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gevent


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM be taken as Ctrl-C is: before Locust has its own handler it would leave forked workers behind."""
    watcher = gevent.signal_handler(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        watcher.cancel()


def install(wanted: Callable[[], bool] = lambda: True) -> Any:
    """Take over SIGINT in this process, until the watcher that this gives is cancelled; ignored while not `wanted`."""

    def interrupt() -> None:
        if wanted():
            _interrupt()

    return gevent.signal_handler(signal.SIGINT, interrupt)


def _interrupt() -> None:
    gevent.get_hub().handle_system_error(KeyboardInterrupt, KeyboardInterrupt())
