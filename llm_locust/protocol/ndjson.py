"""Cut a body of one JSON object a line into events, as its bytes arrive.

Bytes in, bytes out, like `sse`: nothing is decoded here. Lines end at LF (a CR before it belongs
to the line end), blank lines are nothing, and the last line needs no LF.
"""

from __future__ import annotations

from llm_locust.protocol.sse import MAX_EVENT_BYTES, OVERSIZED, Event


class NDJSONDecoder:
    """Incremental decoder of ``application/x-ndjson``."""

    __slots__ = ("_limit_bytes", "_line", "_oversized", "comments")

    def __init__(self, limit_bytes: int = MAX_EVENT_BYTES) -> None:
        self.comments = 0  # the format has none
        self._limit_bytes = limit_bytes
        self._line = bytearray()
        self._oversized = False

    def feed(self, data: bytes) -> list[Event]:
        """Take the bytes of one read; return the lines that it completed, with an empty type."""
        if not self._line and not self._oversized and data.find(b"\n") == len(data) - 1 and len(data) > 1:
            line = data[:-1].rstrip(b"\r")
            return [(b"", line)] if line else []
        *pieces, rest = data.split(b"\n")
        events: list[Event] = []
        for piece in pieces:
            line = OVERSIZED if self._oversized else bytes(self._line + piece).rstrip(b"\r")
            self._line.clear()
            self._oversized = False
            if line:
                events.append((b"", line))
        self._line += rest
        if len(self._line) > self._limit_bytes:
            self._line.clear()
            self._oversized = True
        return events

    def finish(self) -> list[Event]:
        """Take a clean end of the body as the end of the last line."""
        return self.feed(b"\n") if self._line or self._oversized else []
