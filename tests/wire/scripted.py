"""A server that plays bytes at given times, and a sink that notes what it is told."""

from __future__ import annotations

import socket as real_socket
import ssl
import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from time import monotonic_ns
from typing import Any

import gevent
from gevent.event import Event
from gevent.server import StreamServer

from llm_locust.wire.client import UserClient, http_client
from llm_locust.wire.transport import WireTransport
from llm_locust.wire.types import Bundle, Exchange, Limits

FIN = b"<FIN>"
RST = b"<RST>"
GOODBYE = b"<close_notify>"
Script = Sequence[tuple[float, bytes]]
"""(ms since the request was read, bytes); FIN and RST end the connection, GOODBYE ends TLS."""

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Return one HTTP chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def whole(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    """Return a response with a Content-Length."""
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@dataclass
class Sink:
    """Notes heads and reads; an event is a `data: ` in a read."""

    heads: list[tuple[int, list[tuple[bytes, bytes]], int]] = field(default_factory=list)
    reads: list[tuple[bytes, int, int]] = field(default_factory=list)

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]], at_ns: int) -> None:
        self.heads.append((status, headers, at_ns))

    def on_read(self, data: bytes, at_ns: int, lag_ns: int) -> None:
        self.reads.append((data, at_ns, lag_ns))

    def may_hold(self, catch_up: Callable[[int | None], object]) -> bool:
        return False

    def on_held(self, body: bytes, at_ns: array[int], bundles: Sequence[Bundle], until_ns: int) -> None:
        raise AssertionError("nothing was to be held")

    @property
    def last_token_ns(self) -> int:
        return next((at_ns for data, at_ns, _ in reversed(self.reads) if b"data: " in data), 0)

    @property
    def body(self) -> bytes:
        return b"".join(data for data, _, _ in self.reads)


class ScriptedServer:
    """Plays one script per request, in turn; the last one is played again and again.

    ``requests`` are (number of the connection, head, body); ``ended`` is set when a client closed. With
    ``read_bodies`` off, a script starts at the head's end and the body stays unread. ``greeting`` is sent first.
    """

    def __init__(
        self,
        scripts: Sequence[Script],
        *,
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
        read_bodies: bool = True,
        greeting: bytes = b"",
    ) -> None:
        self.scripts = list(scripts)
        self.requests: list[tuple[int, bytes, bytes]] = []
        self.connections = 0
        self.ended = Event()
        self._read_bodies = read_bodies
        self._greeting = greeting
        self._newest: Any = None
        family = real_socket.AF_INET6 if ":" in host else real_socket.AF_INET
        listener = gevent.socket.socket(family)
        listener.setsockopt(real_socket.SOL_SOCKET, real_socket.SO_REUSEADDR, 1)
        listener.bind((host, 0))
        listener.listen(64)
        options = {} if tls is None else {"ssl_context": tls}
        self._server = StreamServer(listener, self._serve, **options)
        scheme, name = ("http" if tls is None else "https"), (f"[{host}]" if ":" in host else host)
        self.url = f"{scheme}://{name}:{listener.getsockname()[1]}/v1/chat/completions"

    def __enter__(self) -> ScriptedServer:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def stop_listening(self) -> None:
        """Refuse new connections; those that are open go on."""
        self._server.close()

    def send_now(self, data: bytes) -> None:
        """Send on the newest connection without going through the hub."""
        self._newest._sock.send(data)

    def _serve(self, sock: Any, _: object) -> None:
        self.connections += 1
        number = self.connections
        self._newest = sock
        sock.setsockopt(real_socket.IPPROTO_TCP, real_socket.TCP_NODELAY, 1)
        rest = b""
        try:
            sock.sendall(self._greeting)
            while True:
                head, body, rest = self._read(sock, rest)
                self.requests.append((number, head, body))
                script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
                if not _play(sock, script):
                    return
        except (OSError, EOFError):
            self.ended.set()
        finally:
            sock.close()

    def _read(self, sock: Any, rest: bytes) -> tuple[bytes, bytes, bytes]:
        while b"\r\n\r\n" not in rest:
            rest += _received(sock)
        head, rest = rest.split(b"\r\n\r\n", 1)
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        while self._read_bodies and len(rest) < length:
            rest += _received(sock)
        return head, rest[:length], rest[length:]


def _received(sock: Any) -> bytes:
    data: bytes = sock.recv(65536)
    if not data:
        raise EOFError
    return data


def _play(sock: Any, script: Script) -> bool:
    begun = gevent.get_hub().loop.now()
    for at_ms, data in script:
        gevent.get_hub().loop.update_now()
        gevent.sleep(max(begun + at_ms / 1000 - gevent.get_hub().loop.now(), 0))
        if data == RST:
            sock.setsockopt(real_socket.SOL_SOCKET, real_socket.SO_LINGER, struct.pack("ii", 1, 0))
        if data in (FIN, RST):
            return False
        if data == GOODBYE:
            with suppress(ssl.SSLWantReadError):
                sock._sslobj.shutdown()
            continue
        sock.sendall(data)
    return True


def hold_until(mono_ns: int) -> None:
    """Hold the hub."""
    while monotonic_ns() < mono_ns:
        pass


def best_of_three(measure: Callable[[], float], *, least: float, most: float) -> None:
    """Assert that a time lies in its bounds; the machine may be busy twice, never early once."""
    times = []
    for _ in range(3):
        times.append(measure())
        assert times[-1] >= least
        if times[-1] <= most:
            return
    raise AssertionError(f"at most {most} expected, measured {times}")


@contextmanager
def user(transport: WireTransport | None = None) -> Iterator[UserClient]:
    """Give one user's client, closed at the end."""
    client = http_client(transport or WireTransport())
    try:
        yield client
    finally:
        client.close()


def ask(
    client: UserClient,
    url: str,
    sink: Any = None,
    limits: Limits | None = None,
    *,
    body: bytes = b"{}",
    method: str = "POST",
    exchange: Exchange | None = None,
) -> Exchange:
    """Send one request and wait for its end."""
    request = client.outgoing(method, url, {}, body if method == "POST" else b"", "1")
    return client.perform(request, sink or Sink(), limits or Limits(10, 10, 10, 20), exchange)


def played(*script: tuple[float, bytes], sink: Any = None, limits: Limits | None = None) -> tuple[Exchange, Any]:
    """Play one script to one request; return its exchange and its sink."""
    sink = sink or Sink()
    with ScriptedServer([script]) as server, user() as client:
        return ask(client, server.url, sink, limits), sink
