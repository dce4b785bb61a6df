"""The script player: byte segments at given times, for streams whose every byte matters.

A script file is a JSON object: name -> script. A name that starts with "/" is played for every request to
that path; any other is asked for with the header ``X-Mock-Script: name``. A script is a list of segments
``[ms, bytes]``, or an object::

    {"segments": [[20, "data: ..."], [200, "<FIN>"]],   ms since the request was read; bytes
     "encoding": "latin1",                              of the bytes: latin1 or base64
     "raw": false,                                      true: segments hold the HTTP head and framing
     "status": 200, "headers": {"Content-Type": "text/event-stream"}}

``"<FIN>"`` closes, ``"<RST>"`` resets, ``"<HOLD>"`` sends nothing more until the client closes; without one of
them the body ends properly right after the last segment (a raw one: by FIN). Times are divided by the time scale.
``X-Mock-Mode`` chooses ``whole`` (one send a segment), ``bytes`` (one send a byte) or ``joined`` (all in one send).
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from time import monotonic_ns
from typing import Any

import gevent
import msgspec

from llm_locust.mock.answer import AnswerUnderWay
from llm_locust.mock.http import LAST_CHUNK, Connection, chunk, head
from llm_locust.mock.pace import NS_PER_MS
from llm_locust.mock.truth import Told, Truth

ENDS = ("<FIN>", "<RST>", "<HOLD>")
MODES = ("whole", "bytes", "joined")


@dataclass(frozen=True, slots=True)
class Script:
    """One script, decoded. ``end`` is one of ENDS, or "" for a proper end."""

    segments: tuple[tuple[float, bytes], ...]
    end_ms: float
    end: str = ""
    raw: bool = False
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ((b"Content-Type", b"text/event-stream"),)


def read_scripts(path: Path) -> dict[str, Script]:
    """Read a script file; raises ValueError naming the script that is wrong."""
    try:
        contents = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ValueError(f"{path}: not a JSON object: {error}") from error
    scripts = {}
    for name, content in contents.items():
        try:
            scripts[name] = _script(content)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path}: script {name!r}: {error}") from error
    return scripts


def _script(content: Any) -> Script:
    fields: dict[str, Any] = {"segments": content} if isinstance(content, list) else dict(content)
    if unknown := fields.keys() - {"segments", "encoding", "raw", "status", "headers"}:
        raise ValueError(f"unknown fields {sorted(unknown)}")
    encoding = fields.get("encoding", "latin1")
    if encoding not in ("latin1", "base64"):
        raise ValueError(f"encoding {encoding!r} is not latin1 or base64")
    segments: list[tuple[float, bytes]] = []
    end, end_ms = "", 0.0
    for at_ms, text in fields["segments"]:
        if end or at_ms < end_ms:
            raise ValueError(f"segment at {at_ms} ms comes after the end, or before the one above it")
        end_ms = float(at_ms)
        if text in ENDS:
            end = text
        else:
            segments.append((end_ms, base64.b64decode(text) if encoding == "base64" else text.encode("latin-1")))
    headers = fields.get("headers", {"Content-Type": "text/event-stream"})
    pairs = tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items())
    return Script(tuple(segments), end_ms, end, bool(fields.get("raw")), int(fields.get("status", 200)), pairs)


class Player(AnswerUnderWay):
    """Plays one script on one connection."""

    def __init__(self, script: Script, mode: str, connection: Connection, truth: Truth, told: Told, time_scale: float):
        super().__init__(connection, truth, told)
        self._script = script
        self._mode = mode
        self._ns_per_ms = NS_PER_MS / time_scale
        told.outcome = "script"

    def start(self) -> None:
        """Play in a greenlet of its own."""
        self._connection.begin(self)
        gevent.spawn(self._play)

    def _play(self) -> None:
        script = self._script
        opening = b"" if script.raw else head(script.status, [*script.headers, (b"Transfer-Encoding", b"chunked")])
        if self._mode == "joined":
            self._wait_until(script.end_ms)
            self._send(opening + self._framed(b"".join(data for _, data in script.segments)) + self._ending())
        else:
            if opening:
                self._send(opening)
            for at_ms, data in script.segments:
                self._wait_until(at_ms)
                for piece in [data[i : i + 1] for i in range(len(data))] if self._mode == "bytes" else [data]:
                    self._send(self._framed(piece))
                    if self._mode == "bytes":
                        gevent.sleep(0)
            self._wait_until(script.end_ms)
            if ending := self._ending():
                self._send(ending)
        self._end()

    def _framed(self, data: bytes) -> bytes:
        return data if self._script.raw or not data else chunk(data)

    def _ending(self) -> bytes:
        return LAST_CHUNK if not self._script.raw and not self._script.end else b""

    def _wait_until(self, at_ms: float) -> None:
        wait_ns = self._told.arrival_ns + round(at_ms * self._ns_per_ms) - monotonic_ns()
        if wait_ns > 0:
            gevent.sleep(wait_ns / 1e9)

    def _send(self, payload: bytes) -> None:
        if self._over:
            raise gevent.GreenletExit
        self._told.segment_send_ns.append(monotonic_ns())
        self._told.sent_bytes += len(payload)
        self._connection.send(payload)

    def _end(self) -> None:
        if self._over or self._script.end == "<HOLD>":
            return
        self._told.completed = True
        self._close_books()
        if self._script.end == "<RST>":
            self._connection.reset()
        elif self._script.end == "<FIN>" or self._script.raw:
            self._connection.close()
        else:
            self._connection.finish()
