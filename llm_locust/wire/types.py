"""What one exchange over a socket is: its instants, its end, and the sink that sees its bytes.

Knows nothing of tokens or Locust. All instants are integer nanoseconds of the process's
monotonic clock.
"""

from __future__ import annotations

import enum
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

USER_TIME = -1
"""``lag_ns`` of a read that carries no kernel stamp."""

Bundle = tuple[int, int, int]
"""(index of the first, number of events, ns) of a held read that ends several events: its first byte may have come so
long before it was taken.
"""


class End(enum.Enum):
    """How an exchange ended, as far as the transport can tell."""

    COMPLETE = "complete"
    CONNECT_ERROR = "connect_error"
    TIMEOUT_CONNECT = "timeout_connect"
    TIMEOUT_FIRST_TOKEN = "timeout_first_token"
    TIMEOUT_STALL = "timeout_stall"
    TIMEOUT_TOTAL = "timeout_total"
    CUT = "cut"  # closed, reset or short body after the request was sent; `error` tells which
    PROTOCOL_ERROR = "protocol_error"  # not HTTP, or a content encoding that cannot be read
    SINK_ERROR = "sink_error"  # our own bug: the sink raised
    STOPPED = "stopped"  # the user's greenlet was killed


class Sink(Protocol):
    """Sees a response as it arrives; the methods run in the hub's callback and never block."""

    @property
    def last_token_ns(self) -> int:
        """The instant of the last token, 0 before the first: what the first-token and stall limits look at."""
        ...

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]], at_ns: int) -> None:
        """Status line and headers are complete. Header names are lower case."""
        ...

    def on_read(self, data: bytes, at_ns: int, lag_ns: int) -> None:
        """Take the body bytes of one read.

        ``at_ns`` is the kernel's stamp of the read's last segment, ``lag_ns`` how much later the
        read returned; USER_TIME says that ``at_ns`` is the return of the read itself.
        """
        ...

    def may_hold(self, catch_up: Callable[[int | None], object]) -> bool:
        """Say, once, after the head, whether reads that end with the blank line of an event may be held for a while.

        ``catch_up`` hands over what was held up to an instant, or all; the sink calls it when somebody must know.
        """
        ...

    def on_held(self, body: bytes, at_ns: array[int], bundles: Sequence[Bundle], until_ns: int) -> None:
        """Take the body bytes of the reads that were held, with one instant for each blank line that they ended.

        Where the body does not end as many events (line ends of several kinds), all that is known is that everything
        had come by ``until_ns``.
        """
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """The four time limits in seconds; 0 is none."""

    connect_s: float = 10.0
    first_token_s: float = 3600.0
    stall_s: float = 300.0
    total_s: float = 21600.0


@dataclass(slots=True)
class Exchange:
    """One request's fate on the wire; filled while it runs, complete when `end` is set."""

    start_ns: int = 0
    connect_ns: int | None = None  # duration; None on a reused connection
    sent_ns: int | None = None
    headers_ns: int | None = None
    end_ns: int | None = None
    status: int | None = None
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    end: End | None = None
    error: str = ""
    reads: int = 0  # reads that held body bytes
    stamped_reads: int = 0
    received_bytes: int = 0
    peer: str = ""  # "address:port" that answered
    clock_step: bool = False  # the wall clock stepped while this exchange was under way
    resent: bool = False  # the server had just closed the kept connection: sent again on a new one, start_ns kept
