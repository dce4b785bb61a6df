"""Play bytes into a decoder and a reader, as a sink does; tests share it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from llm_locust.protocol import Arrival, Event, Reader, get_dialect, make_decoder


@dataclass(slots=True)
class Played:
    """What one stream gave: the reader after its end, its arrivals with the times they came at."""

    reader: Reader
    comments: int
    arrivals: list[tuple[int, Arrival]] = field(default_factory=list)
    running: list[int | None] = field(default_factory=list)  # the running count beside each arrival

    def state(self) -> tuple[object, ...]:
        """Return all but the times, to compare."""
        reader = self.reader
        return (
            [arrival for _, arrival in self.arrivals],
            self.running,
            (reader.text, reader.reasoning_text, reader.whole_text, reader.tool_calls),
            (reader.usage, reader.finish_reason, reader.terminal, reader.error, reader.aborted),
            (reader.malformed_events, reader.server_request_id, self.comments),
        )


def play(dialect_name: str, segments: Iterable[tuple[int, bytes]], *, n: int = 1, clean_end: bool = True) -> Played:
    """Feed (ms, bytes) segments to a dialect; ``clean_end`` is false where the body was cut."""
    dialect = get_dialect(dialect_name)
    decoder = make_decoder(dialect.framing)
    played = Played(dialect.reader(stream=True, n=n), 0)
    last_ms = 0
    for at_ms, data in segments:
        last_ms = at_ms
        _read(played, at_ms, decoder.feed(data))
    if clean_end:
        _read(played, last_ms, decoder.finish())
    played.comments = decoder.comments
    return played


def _read(played: Played, at_ms: int, events: list[Event]) -> None:
    for event_type, payload in events:
        for arrival in played.reader.event(payload, event_type):
            played.arrivals.append((at_ms, arrival))
            played.running.append(played.reader.cumulative_tokens)


def by_byte(data: bytes) -> list[tuple[int, bytes]]:
    """Cut bytes into segments of one byte."""
    return [(0, data[i : i + 1]) for i in range(len(data))]


def chunk(body: str) -> bytes:
    """Frame one JSON text as an SSE event."""
    return b"data: " + body.encode() + b"\n\n"


def chat(*events: dict[str, Any] | str, dialect: str = "openai-chat", n: int = 1) -> Played:
    """Play events of one stream."""
    bodies = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return play(dialect, [(i, chunk(body)) for i, body in enumerate(bodies)], n=n)


def delta(index: int = 0, finish: str | None = None, usage: object = None, **fields: Any) -> dict[str, Any]:
    """Return one chat chunk."""
    choice = {"index": index, "delta": fields, "finish_reason": finish}
    return {"id": "r1", "choices": [choice], **({} if usage is None else {"usage": usage})}


def used(tokens: object, prompt: object = 7, **more: object) -> dict[str, object]:
    """Return a usage object."""
    return {"prompt_tokens": prompt, "completion_tokens": tokens, **more}
