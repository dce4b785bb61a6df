"""The least an HTTP client can be: raw bytes with the instants at which they came, and how it ended."""

from __future__ import annotations

import json
import socket
import ssl
import time
from dataclasses import dataclass, field
from typing import Any

FAST = ("--profile", "fast", "--ttft-ms", "10", "--itl-ms", "2")
"""Options of a server whose tokens come soon."""
LIMIT_S = 20.0
LAST_CHUNK = b"\r\n0\r\n\r\n"


@dataclass(slots=True)
class Answer:
    """One response as it came."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""  # without the chunk framing
    ended: str = ""  # last-chunk, content-length, eof, reset
    reads: list[tuple[int, bytes]] = field(default_factory=list)  # (CLOCK_MONOTONIC ns after the read, raw bytes)

    @property
    def events(self) -> list[str]:
        """The data lines of an SSE body."""
        lines = self.body.decode().split("\n")
        return [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The decoded events, [DONE] left out."""
        return [json.loads(event) for event in self.events if event != "[DONE]"]

    @property
    def json(self) -> Any:
        """The body as one JSON value."""
        return json.loads(self.body)


class Client:
    """One kept connection."""

    def __init__(self, port: int, tls: bool = False) -> None:
        self.sock: socket.socket = socket.create_connection(("127.0.0.1", port), timeout=LIMIT_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._left = b""  # of the next answer, where it came with the last
        if tls:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.sock = context.wrap_socket(self.sock)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, path: str, body: Any = None, headers: dict[str, str] | None = None) -> None:
        """Send one request: a GET without a body, else a POST of JSON."""
        payload = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [
            f"{'GET' if body is None else 'POST'} {path} HTTP/1.1",
            "Host: mock",
            f"Content-Length: {len(payload)}",
        ]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + payload)

    def ask(self, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """Send one request and read its answer."""
        self.send(path, body, headers)
        return self.read()

    def read(self) -> Answer:
        """Read one answer to its end."""
        answer, received = Answer(), bytearray(self._left)
        self._left = _parse(bytes(received), answer)
        while not answer.ended:
            try:
                piece = self.sock.recv(1 << 16)
            except ConnectionResetError:
                answer.ended = "reset"
                piece = b""
            answer.reads.append((time.monotonic_ns(), piece))
            received += piece
            if not piece or received.endswith(LAST_CHUNK) or b"chunked" not in received[:1000]:
                self._left = _parse(bytes(received), answer)
            if not piece and not answer.ended:
                answer.ended = "eof"
        return answer


def _parse(received: bytes, answer: Answer) -> bytes:
    """Fill in what has come so far; return what follows the answer's end."""
    head, found, rest = received.partition(b"\r\n\r\n")
    if not found:
        return b""
    first, *lines = head.decode("latin-1").split("\r\n")
    answer.status = int(first.split()[1])
    answer.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    if "content-length" in answer.headers:
        length = int(answer.headers["content-length"])
        answer.body = rest[:length]
        if len(rest) >= length:
            answer.ended = "content-length"
        return rest[length:]
    pieces = []
    while True:
        size_text, found, after = rest.partition(b"\r\n")
        size = int(size_text, 16) if found else 0
        if not found or len(after) < size + 2:
            break
        rest = after[size + 2 :]
        if size == 0:
            answer.ended = "last-chunk"
            break
        pieces.append(after[:size])
    answer.body = b"".join(pieces)
    return rest if answer.ended else b""


def ask(port: int, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
    """One request on a connection of its own."""
    with Client(port) as client:
        return client.ask(path, body, headers)


def chat(words: str = "one two three", **fields: Any) -> dict[str, Any]:
    """The body of a streamed chat request that asks for its usage."""
    return {
        "model": "mock",
        "messages": [{"role": "user", "content": words}],
        "stream": True,
        "stream_options": {"include_usage": True},
        **fields,
    }
