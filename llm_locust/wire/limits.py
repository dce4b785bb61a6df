"""The four time limits of an exchange, kept by one timer that is set a handful of times.

A read costs nothing here: a timer that comes due asks the sink when the last token came, and whether that has moved
its deadline. Knows no sockets and no HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from gevent import get_hub

from llm_locust.wire.types import End, Exchange, Limits, Sink

_NS = 1_000_000_000


class LimitTimer:
    """Watches first-token, stall and total limit of one exchange; calls ``on_limit`` in the hub.

    ``on_due`` runs before a limit is judged, so that bytes which already wait in the socket still count.
    """

    __slots__ = ("_exchange", "_limits", "_on_due", "_on_limit", "_sink", "_timer")

    def __init__(
        self,
        limits: Limits,
        exchange: Exchange,
        sink: Sink,
        on_due: Callable[[], object],
        on_limit: Callable[[End], None],
    ):
        self._limits = limits
        self._exchange = exchange
        self._sink = sink
        self._on_due = on_due
        self._on_limit = on_limit
        self._timer: Any = None

    def arm(self) -> None:
        """Set the timer to when a limit may be reached next."""
        self.close()
        deadlines = [deadline_ns for deadline_ns, _ in self._deadlines()]
        now_ns = monotonic_ns()
        if self._limits.stall_s and not self._sink.last_token_ns:
            deadlines.append(now_ns + int(self._limits.stall_s * _NS))  # nobody tells that a first token has come
        if deadlines:
            self._timer = get_hub().loop.timer(max(min(deadlines) - now_ns, 0) / _NS)
            self._timer.start(self._due, update=True)

    def close(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.close()
            self._timer = None

    def _deadlines(self) -> list[tuple[int, End]]:
        """The limits that are known to come, unless tokens move them."""
        limits, start_ns, last_token_ns = self._limits, self._exchange.start_ns, self._sink.last_token_ns
        due: list[tuple[int, End]] = []
        if limits.total_s:
            due.append((start_ns + int(limits.total_s * _NS), End.TIMEOUT_TOTAL))
        if last_token_ns and limits.stall_s:
            due.append((last_token_ns + int(limits.stall_s * _NS), End.TIMEOUT_STALL))
        elif limits.first_token_s and not last_token_ns:
            due.append((start_ns + int(limits.first_token_s * _NS), End.TIMEOUT_FIRST_TOKEN))
        return due

    def _due(self) -> None:
        self._on_due()
        if self._timer is None:  # what was read has ended the exchange
            return
        deadline = min(self._deadlines(), key=lambda item: item[0], default=None)
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
