"""The four time limits of an exchange, kept by one timer that is set a handful of times.

A read costs no timer call: it stores the instant of the last token, and a timer that comes due looks whether
that instant has moved its deadline. Knows no sockets and no HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from gevent import get_hub

from llm_locust.wire.types import End, Exchange, Limits

_NS = 1_000_000_000


class LimitTimer:
    """Watches first-token, stall and total limit of one exchange; calls ``on_limit`` in the hub.

    ``last_token_ns`` is written by the reader of the exchange; 0 means no token yet. ``on_due`` runs before a
    limit is judged, so that bytes which already wait in the socket still count.
    """

    __slots__ = ("_exchange", "_limits", "_on_due", "_on_limit", "_timer", "last_token_ns")

    def __init__(
        self, limits: Limits, exchange: Exchange, on_due: Callable[[], object], on_limit: Callable[[End], None]
    ):
        self.last_token_ns = 0
        self._limits = limits
        self._exchange = exchange
        self._on_due = on_due
        self._on_limit = on_limit
        self._timer: Any = None

    def arm(self) -> None:
        """Set the timer to the next deadline; called at the start and at the first token."""
        deadline = self._deadline()
        if self._timer is not None:
            self._timer.close()
            self._timer = None
        if deadline is not None:
            after_s = max(deadline[0] - monotonic_ns(), 0) / _NS
            self._timer = get_hub().loop.timer(after_s)
            self._timer.start(self._due, update=True)

    def first_token(self, at_ns: int) -> None:
        """Go over from the first-token limit to the stall limit."""
        self.last_token_ns = at_ns
        self.arm()

    def close(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.close()
            self._timer = None

    def _deadline(self) -> tuple[int, End] | None:
        limits = self._limits
        due: list[tuple[int, End]] = []
        if limits.total_s:
            due.append((self._exchange.start_ns + int(limits.total_s * _NS), End.TIMEOUT_TOTAL))
        if not self.last_token_ns:
            if limits.first_token_s:
                due.append((self._exchange.start_ns + int(limits.first_token_s * _NS), End.TIMEOUT_FIRST_TOKEN))
        elif limits.stall_s:
            due.append((self.last_token_ns + int(limits.stall_s * _NS), End.TIMEOUT_STALL))
        return min(due, key=lambda item: item[0]) if due else None

    def _due(self) -> None:
        self._on_due()
        if self._timer is None:  # what was read has ended the exchange
            return
        deadline = self._deadline()
        if deadline is not None and deadline[0] <= monotonic_ns():
            self.close()
            self._on_limit(deadline[1])
        else:
            self.arm()


def connect_limit(limits: Limits, elapsed_s: float) -> tuple[float, End] | None:
    """Return the limit that ends a connect phase first, in seconds from now; None is none."""
    due = [(limits.connect_s, End.TIMEOUT_CONNECT)] if limits.connect_s else []
    if limits.first_token_s:
        due.append((max(limits.first_token_s - elapsed_s, 0.001), End.TIMEOUT_FIRST_TOKEN))
    if limits.total_s:
        due.append((max(limits.total_s - elapsed_s, 0.001), End.TIMEOUT_TOTAL))
    return min(due, key=lambda limit: limit[0], default=None)
