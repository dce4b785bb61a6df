"""Cut a Server-Sent Events body into events, as its bytes arrive.

Bytes in, bytes out: text is never decoded here (a read may end inside a character), and nothing
is known of JSON, sockets or clocks. Rules: WHATWG HTML, "Server-sent events", 9.2.6, with two
decisions of our own: an event that the end of the body left without its blank line is an event
(`finish`), because servers do leave that line out; and an event is never larger than
``MAX_EVENT_BYTES`` in memory.
"""

from __future__ import annotations

from typing import Protocol

Event = tuple[bytes, bytes]
"""(event type, data); the type is empty where the stream names none."""

MAX_EVENT_BYTES = 64 * 1024 * 1024

OVERSIZED = b"!an event beyond the size limit was dropped"
"""Stands in for the data of an event beyond the limit: no JSON, so every dialect counts it as malformed."""

_BOM = b"\xef\xbb\xbf"


class EventDecoder(Protocol):
    """Cuts a body into events; one per response."""

    comments: int
    """Comment lines so far (keep-alives); they are never events."""

    def feed(self, data: bytes) -> list[Event]:
        """Take the bytes of one read; return the events that it completed."""
        ...

    def finish(self) -> list[Event]:
        """Take a clean end of the body; return what it completed. Not to be called after a cut."""
        ...


class SSEDecoder:
    """Incremental decoder of ``text/event-stream``: CR, LF, CRLF, however the reads cut them."""

    __slots__ = (
        "_at_boundary",
        "_data",
        "_first_line",
        "_limit_bytes",
        "_line",
        "_oversized",
        "_size_bytes",
        "_skip_lf",
        "_type",
        "comments",
    )

    def __init__(self, limit_bytes: int = MAX_EVENT_BYTES) -> None:
        self.comments = 0
        self._limit_bytes = limit_bytes
        self._at_boundary = False  # nothing of an event is pending, and it is not the first line
        self._first_line = True  # a byte order mark may stand before it
        self._skip_lf = False  # the last read ended with a CR: an LF that follows belongs to it
        self._line = bytearray()  # the line that has no end yet
        self._type = b""
        self._data: list[bytes] = []
        self._size_bytes = 0  # of the complete data lines of this event
        self._oversized = False

    def feed(self, data: bytes) -> list[Event]:
        """Take the bytes of one read; return the events that it completed.

        The usual read, one or several whole ``data: ...`` events ended by LF, costs one search and
        one slice an event; everything else goes through the exact line by line path.
        """
        if self._at_boundary and b"\r" not in data:
            end = data.find(b"\n")  # one byte: twice as fast as a search for the blank line
            if end == len(data) - 2 and data.endswith(b"\n\n") and data.startswith(b"data: "):
                return [(b"", data[6:end])]
            if end >= 0:
                return self._blocks(data)
        return self._lines(data)

    def finish(self) -> list[Event]:
        """Take a clean end of the body as the end of the line and of the event that are pending."""
        return self._lines(b"\n\n")

    def joined(self, data: bytes) -> bytes | None:
        """Return the data of events of one ``data: `` line each, joined by SEPARATOR; None where they are not so.

        Whether there are no other lines among them, who decodes each event's data will see.
        """
        usual = self._at_boundary and data.startswith(b"data: ") and data.endswith(b"\n\n") and b"\r" not in data
        return data[6:-2] if usual else None

    def blocks(self, data: bytes) -> list[Event | None]:
        """Take the bytes of one or several reads; return the event of each blank line, None where it ended none.

        There may be more or fewer than blank lines in ``data`` where one ends a line that was left open, or where other
        line ends than LF are mixed in.
        """
        *blocks, rest = data.split(b"\n\n")
        plain = b"\r" not in data
        events: list[Event | None] = []
        for block in blocks:
            if plain and self._at_boundary and block.startswith(b"data: ") and b"\n" not in block:
                events.append((b"", block[6:]))
            else:
                events += self._lines(block + b"\n\n") or [None]
        return events + self._lines(rest)

    def _blocks(self, data: bytes) -> list[Event]:
        """Read the whole events of LF-only bytes that begin at a boundary, then the rest."""
        *blocks, rest = data.split(b"\n\n")
        events: list[Event] = []
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                events.append((b"", block[6:]))
            else:
                events += self._lines(block + b"\n\n")
        if rest:
            events += self._lines(rest)
        return events

    def _lines(self, data: bytes) -> list[Event]:
        """Read bytes line by line, keeping what has no end yet."""
        if not data:
            return []
        if self._skip_lf and data[0] == 0x0A:
            data = data[1:]
        if b"\r" in data:
            self._skip_lf = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        elif data:
            self._skip_lf = False
        else:  # the LF of a CRLF that two reads share
            self._skip_lf = False
            return []
        *lines, rest = data.split(b"\n")
        events: list[Event] = []
        for piece in lines:
            line = self._whole_line(piece)
            if line:
                self._field(line)
            else:
                self._dispatch(events)
        self._line += rest
        if len(self._line) + self._size_bytes > self._limit_bytes:
            self._drop()
        self._at_boundary = not (self._line or self._data or self._type or self._first_line or self._oversized)
        return events

    def _whole_line(self, piece: bytes) -> bytes:
        """Join a line's last piece to what came of it before; drop the byte order mark of the first line."""
        if self._line:
            piece = bytes(self._line + piece)
            self._line.clear()
        if self._first_line:
            piece = piece.removeprefix(_BOM)
            self._first_line = False
        return piece

    def _field(self, line: bytes) -> None:
        """Take one complete line that is not blank."""
        name, _, value = line.partition(b":")
        if not name:
            self.comments += 1
            return
        value = value.removeprefix(b" ")
        if name == b"data":
            self._size_bytes += len(value)
            if self._oversized or self._size_bytes > self._limit_bytes:
                self._drop()
            else:
                self._data.append(value)
        elif name == b"event":
            self._type = value
        # id and retry concern reconnecting, which a measurement never does; other names mean nothing.

    def _dispatch(self, events: list[Event]) -> None:
        """End the pending event at a blank line; without a data line there is none."""
        if self._oversized:
            events.append((self._type, OVERSIZED))
        elif self._data:
            events.append((self._type, b"\n".join(self._data)))
        self._type = b""
        self._data.clear()
        self._size_bytes = 0
        self._oversized = False

    def _drop(self) -> None:
        """Forget the bytes of an event that is too large, and remember that it was."""
        self._oversized = True
        del self._line[1:]  # one byte stays: the line has begun, so its end is no blank line
        self._data.clear()
        self._size_bytes = 0
