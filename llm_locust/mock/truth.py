"""What was really sent, and when: the truth that a client's report is compared with.

Instants are CLOCK_MONOTONIC ns. ``token_send_ns`` has one value a token: the clock read right *before* the
system call that sent it (on loopback the receiver's kernel stamp lies inside that call, 5-20 us later).
"""

from __future__ import annotations

from collections import Counter, deque
from typing import IO, Any

import msgspec


class Told(msgspec.Struct, kw_only=True):
    """One request as the server knows it."""

    number: int
    request_id: str  # the client's X-Request-Id, "" without one
    path: str
    arrival_ns: int  # the request was read to its end
    fault: str | None = None
    outcome: str = "ok"  # what a truthful client books, unless it stopped first
    head_ns: int | None = None
    token_send_ns: list[int] = []
    segment_send_ns: list[int] = []  # of a played script
    end_ns: int | None = None
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    finish_reason: str | None = None
    sent_bytes: int = 0
    completed: bool = False  # sent to its intended end
    client_gone: bool = False  # the client closed first
    blocked: bool = False  # the client read too slowly: some instants are those of queueing, not of sending


class Truth:
    """Counts, and the file. Lines are written by ``write_pending``, outside the pacing of tokens."""

    def __init__(self, file: IO[bytes] | None) -> None:
        self._file = file
        self._pending: deque[Told] = deque()
        self._encoder = msgspec.json.Encoder()
        self.requests = 0
        self.completed = 0
        self.client_gone = 0
        self.tokens = 0
        self.sent_bytes = 0
        self.refused_connections = 0
        self.outcomes: Counter[str] = Counter()
        self.paths: Counter[str] = Counter()  # every request of any kind

    def begin(self, request_id: str, path: str, arrival_ns: int) -> Told:
        """Note a request that asks for generation (or plays a script)."""
        self.requests += 1
        return Told(number=self.requests, request_id=request_id, path=path, arrival_ns=arrival_ns)

    def end(self, told: Told, end_ns: int) -> None:
        """A request is over, one way or the other."""
        told.end_ns = end_ns
        self.completed += told.completed
        self.client_gone += told.client_gone
        self.sent_bytes += told.sent_bytes
        if told.completed:
            self.outcomes[told.outcome] += 1
        self._pending.append(told)

    def write_pending(self, at_most: int | None = None) -> list[Told]:
        """Write the lines of finished requests, oldest first; return those requests."""
        count = len(self._pending) if at_most is None else min(at_most, len(self._pending))
        finished = [self._pending.popleft() for _ in range(count)]
        if self._file is not None and finished:
            self._file.write(b"".join(self._encoder.encode(told) + b"\n" for told in finished))
            self._file.flush()
        return finished

    def summary(self) -> dict[str, Any]:
        """The counts of GET /truth."""
        return {
            "requests": self.requests,
            "completed": self.completed,
            "client_gone": self.client_gone,
            "in_flight": self.requests - self.completed - self.client_gone,
            "tokens_sent": self.tokens,
            "sent_bytes": self.sent_bytes,
            "refused_connections": self.refused_connections,
            "outcomes": dict(self.outcomes),
            "paths": dict(self.paths),
        }
