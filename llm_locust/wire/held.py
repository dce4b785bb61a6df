"""Reads of an event stream that wait to be parsed together, with the instant of each event.

Of 400 streams that take turns nothing stays in a core's caches: parsed one by one, a token costs four times what it
costs after another one of its stream. What a read says of times does not wait: it is noted as the read is taken.
"""

from __future__ import annotations

from array import array
from itertools import cycle
from typing import NamedTuple

from llm_locust.wire.clock import STEP_NS
from llm_locust.wire.looks import looks
from llm_locust.wire.types import Bundle

MOST_EVENTS = 32
"""How many events are parsed together: some 0.1 ms of work."""
LONG_BYTES = 2048
"""A read beyond ends the holding: it is work enough for one time."""
EVENT_END = b"\n\n"
_CHUNK_END = b"\n\n\r\n"
"""The end of a chunk that ends an event. The last chunk of a body is none: it ends with two CRLF."""
_BLANK_CHUNK = b"\r\n\n"
"""How a chunk begins whose first byte is LF."""
_LF, _CR = 0x0A, 0x0D
_LINES = 4
"""Line feeds of a chunk that is one event of one line: after its head, two at the event's end, one after it."""
_first_turns = cycle(range(1, MOST_EVENTS + 1))
"""How many events a response holds at first: streams that began together are not all parsed together."""


class Taken(NamedTuple):
    """What was held: the bytes as they came (chunks of HTTP), an instant for each event, reads of several events."""

    raw: bytes
    at_ns: array[int]
    bundles: list[Bundle]


class HeldReads:
    """The held reads of one response. ``full``: they should be taken now."""

    __slots__ = ("_bundles", "_most", "_reads", "at_ns", "full")

    def __init__(self) -> None:
        self._most = next(_first_turns)
        self._reads: list[bytes | bytearray] = []
        self.at_ns = array("q")
        self._bundles: list[Bundle] = []
        self.full = False

    def add(self, data: bytes | bytearray, at_ns: int, lag_ns: int) -> bool:
        """Hold the read if it ends an event, and say so. The hot path."""
        if not data.endswith(_CHUNK_END):
            return False
        stamps = self.at_ns
        if data.count(b"\n") == _LINES and data[0] > _CR:
            stamps.append(at_ns)
        elif not self._add_lines(data, at_ns, lag_ns):
            return False
        self._reads.append(data)
        if len(stamps) >= self._most or len(data) > LONG_BYTES:
            self.full = True
        return True

    def take(self) -> Taken:
        """Return what is held; from here on nothing is."""
        taken = Taken(b"".join(self._reads), self.at_ns, self._bundles)
        self._reads, self.at_ns, self._bundles = [], array("q"), []
        self._most = MOST_EVENTS
        self.full = False
        return taken

    def _add_lines(self, data: bytes | bytearray, at_ns: int, lag_ns: int) -> bool:
        """Note the events of a read of several lines; say whether it may be held.

        Not where the read or a chunk begins with LF: whether that ends a line or an event depends on what came before.
        Of a read that ends several events it is known only now how long its first byte may have waited; one that is
        late itself needs no other reason.
        """
        if data[0] == _LF or data.find(_BLANK_CHUNK) >= 0:
            return False
        events = data.count(EVENT_END)
        if events > 1:
            waited_ns = lag_ns if lag_ns > STEP_NS else max(lag_ns, looks().unseen_ns())
            self._bundles.append((len(self.at_ns), events, waited_ns))
        self.at_ns.extend([at_ns] * events)
        return True


def before_fault(taken: Taken, events: int) -> Taken:
    """Return what was held up to so many events: after them the bytes are no HTTP."""
    bundles = [(first, min(count, events - first), waited_ns) for first, count, waited_ns in taken.bundles]
    return Taken(taken.raw, taken.at_ns[:events], [bundle for bundle in bundles if bundle[1] > 0])
