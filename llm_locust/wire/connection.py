"""One TCP or TLS connection: its setting up, its watchers, whether it still lives, its closing.

Knows no HTTP. Setting up blocks the greenlet, never the hub; names are resolved by gevent's resolver.
"""

from __future__ import annotations

import _socket
import ssl
from dataclasses import dataclass
from typing import Any

from gevent import get_hub, socket

from llm_locust.wire.clock import SO_TIMESTAMPNS, get_clock
from llm_locust.wire.tls import TLSStream, tls_failure

_READABLE, _WRITABLE = 1, 2
_IDLE_READ_BYTES = 65536


class ConnectError(Exception):
    """No connection; the text says why."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a connection goes."""

    host: str
    port: int
    tls: bool

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


class Connection:
    """An open connection. ``raw`` is the non-blocking socket itself, for the hub's callbacks.

    The two watchers live as long as the connection; they are closed before the socket, since a watcher left
    behind would eat the bytes of the next connection with the same descriptor. ``used``: it has carried a request.
    """

    __slots__ = ("_sock", "peer", "raw", "reader", "tls", "used", "writer")

    def __init__(self, sock: Any, tls: TLSStream | None, address: tuple[Any, ...]) -> None:
        self._sock = sock
        self.raw: _socket.socket = sock._sock
        self.tls = tls
        self.used = False
        host, port = address[:2]  # the socket's own word is gone where the server has closed already
        self.peer = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        loop = get_hub().loop
        self.reader = loop.io(sock.fileno(), _READABLE)
        self.writer = loop.io(sock.fileno(), _WRITABLE)

    def alive(self) -> bool:
        """Say whether an idle connection can carry another request: no end and no stray bytes have come."""
        while True:
            try:
                data = self.raw.recv(_IDLE_READ_BYTES)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data or self.tls is None:
                return False
            try:  # TLS 1.3 sends session tickets whenever it likes; they are not stray
                if any(self.tls.decrypt(data)) or self.tls.closed:
                    return False
            except ssl.SSLError:
                return False

    def close(self) -> None:
        """Close watchers, then the socket. May be called twice."""
        for watcher in (self.reader, self.writer):
            watcher.stop()
            watcher.close()
        self._sock.close()


def open_connection(origin: Origin, context: ssl.SSLContext | None) -> Connection:
    """Connect, trying every address of the name in turn; blocks the greenlet. Raises ConnectError."""
    try:
        addresses = _addresses(origin)
    except OSError as error:
        raise ConnectError(f"cannot resolve {origin.host}: {error.strerror or error}") from None
    failure = "no address"
    for family, kind, protocol, _, address in addresses:
        sock = socket.socket(family, kind, protocol)
        try:
            return _connected(sock, address, origin, context)
        except ssl.SSLError as error:
            sock.close()
            raise ConnectError(f"{origin}: {tls_failure(error)}") from None
        except OSError as error:
            sock.close()
            failure = error.strerror or str(error)
        except BaseException:
            sock.close()
            raise
    raise ConnectError(f"cannot connect to {origin}: {failure}")


def _connected(sock: Any, address: Any, origin: Origin, context: ssl.SSLContext | None) -> Connection:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if get_clock().source == "kernel":
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.connect(address)
    if context is None:
        return Connection(sock, None, address)
    tls = TLSStream(context, origin.host)
    tls.handshake(sock)
    return Connection(sock, tls, address)


def _addresses(origin: Origin) -> list[tuple[Any, ...]]:
    try:  # a literal address needs no resolver
        found = _socket.getaddrinfo(
            origin.host, origin.port, 0, socket.SOCK_STREAM, socket.IPPROTO_TCP, socket.AI_NUMERICHOST
        )
    except socket.gaierror:
        found = socket.getaddrinfo(origin.host, origin.port, 0, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    return list(found)
