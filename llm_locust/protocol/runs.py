"""Runs of events that say nothing but text, read at once.

The plain events of one answer mostly differ in their text alone. So the form of one of them is kept, and the texts of
the events that follow are cut out between what stays the same: a slice an event and one list of strings in place of
a structure an event. Where anything differs, the events are decoded; where they say more than text, they are not read.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from llm_locust.protocol.types import SEPARATOR

MOST_FORMS = 4
"""How many forms of one answer are learned: some servers change more than the text from event to event."""

Decode = Callable[[bytes], tuple[int, list[str]]]
"""Decodes events with a line end between them: their one channel and the text of each; channel 0 where they say
anything else. Raises ValueError or RecursionError where they are no such events. To msgspec a line end is a blank.
"""

_BETWEEN_OBJECTS = b"}" + SEPARATOR + b"{"
"""Only here a separator becomes a line's end; anywhere else it makes what is decoded no JSON."""

_encode = msgspec.json.Encoder().encode
_decode_texts = msgspec.json.Decoder(list[str]).decode


class _Form(NamedTuple):
    """What stands around the text of an event, both quotes included."""

    channel: int
    before: bytes
    after: bytes
    between: bytes
    """From the text of one event to that of the next."""


class RunReader:
    """Reads the runs of one answer."""

    __slots__ = ("_decode", "_form", "_forms_left")

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._form: _Form | None = None
        self._forms_left = MOST_FORMS

    def read(self, events: bytes, count: int) -> tuple[int, str]:
        """Return the channel and the joined text of ``count`` events; (0, "") where they are not all plain."""
        if events.count(SEPARATOR) != count - 1 or events.count(b"\n") != 2 * (count - 1):
            return 0, ""  # other lines, or line ends within events
        form = self._form
        if form is not None:
            texts = _cut_out(form, events)
            if len(texts) == count and all(texts):
                return form.channel, "".join(texts)
        try:
            channel, texts = self._decode(events.replace(_BETWEEN_OBJECTS, b"}\n{"))
        except (ValueError, RecursionError):
            return 0, ""
        if not channel or len(texts) != count:
            return 0, ""
        if self._forms_left:
            self._forms_left -= 1
            longest = max(range(count), key=lambda place: len(texts[place]))  # found in its event most surely
            self._form = self._learn(events.split(SEPARATOR)[longest], channel, texts[longest]) or form
        return channel, "".join(texts)

    def _learn(self, event: bytes, channel: int, text: str) -> _Form | None:
        """Find the text in its event; None where another text in that place would not be the event's."""
        written = _encode(text)
        if written not in event:
            written = json.dumps(text).encode()  # ASCII alone
        before, found, after = event.partition(written)
        if not found:
            return None
        other = text + "?"
        try:
            if self._decode(before + _encode(other) + after) != (channel, [other]):
                return None
        except (ValueError, RecursionError):
            return None
        before, after = before + b'"', b'"' + after
        return _Form(channel, before, after, after + SEPARATOR + before)


def _cut_out(form: _Form, events: bytes) -> list[str]:
    """Return the texts of events of that form; another number of texts than events, or none, where one has another.

    What is cut out is a text only where it is one JSON string. A quote within makes the list longer, or no JSON, unless
    a backslash at the end of another text takes its own quote away: with such a text, nothing is cut out.
    """
    if not events.startswith(form.before) or not events.endswith(form.after):
        return []
    begin, end = len(form.before), -len(form.after)
    texts = [event[begin:end] for event in events.split(SEPARATOR)]
    if form.between.join(texts) != events[begin:end]:
        return []
    listed = b'["%s"]' % b'","'.join(texts)
    try:
        return [] if b'\\","' in listed else _decode_texts(listed)
    except ValueError:
        return []
