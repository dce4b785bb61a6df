"""The server's end of one connection: requests in, bytes out, nothing that blocks the pacing loop.

Plain or TLS (``ssl.MemoryBIO``). A send goes to the kernel at once; what the kernel does not take waits in
``backlog`` and follows when the socket is writable. Knows no API and no engine.
"""

from __future__ import annotations

import socket as std_socket
import ssl
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import httptools
from gevent import get_hub
from gevent import socket as gsocket

READ_BYTES = 1 << 16
LAST_CHUNK = b"0\r\n\r\n"
_REASONS = {
    200: b"OK", 400: b"Bad Request", 401: b"Unauthorized", 404: b"Not Found", 405: b"Method Not Allowed",
    422: b"Unprocessable Entity", 429: b"Too Many Requests", 500: b"Internal Server Error", 503: b"Service Unavailable",
}  # fmt: skip
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_WRITE = 2


class Request:
    """One parsed request; header names are lower case."""

    __slots__ = ("body", "headers", "method", "path")

    def __init__(self) -> None:
        self.method = ""
        self.path = ""
        self.headers: dict[bytes, bytes] = {}
        self.body = b""

    def header(self, name: bytes) -> str:
        """One header's text, "" where it is absent."""
        return self.headers.get(name, b"").decode("latin-1")


class Answer(Protocol):
    """What is being sent on a connection; told when the client goes away first."""

    def ended_early(self, by_client: bool) -> None:
        """The connection ended before the answer was complete: the client closed it, or this server stops."""
        ...


def chunk(payload: bytes) -> bytes:
    """Frame bytes as one HTTP chunk."""
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def head(status: int, headers: list[tuple[bytes, bytes]]) -> bytes:
    """Build a response's head."""
    lines = [b"HTTP/1.1 %d %b" % (status, _REASONS.get(status, b"Status"))]
    lines += [b"%b: %b" % pair for pair in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


class Connection:
    """One client's connection. ``run`` is its greenlet; ``send`` may be called from anywhere in the hub's thread."""

    def __init__(
        self, sock: Any, tls_context: ssl.SSLContext | None, on_request: Callable[[Connection, Request], None]
    ):
        self._sock = sock
        self._on_request = on_request
        self._parser = httptools.HttpRequestParser(self)
        self._request = Request()
        self._body: list[bytes] = []
        self._waiting: deque[tuple[Request, bool]] = deque()
        self._answer: Answer | None = None
        self._serving = False
        self._keep_alive = True
        self._backlog = bytearray()
        self._writable: Any = None
        self._end_after_backlog = False
        self.open = True
        self.blocked = False  # since begin(): bytes had to wait for the client to read
        self._tls: ssl.SSLObject | None = None
        if tls_context is not None:
            self._tls_in, self._tls_out = ssl.MemoryBIO(), ssl.MemoryBIO()
            self._tls = tls_context.wrap_bio(self._tls_in, self._tls_out, server_side=True)
        sock.setsockopt(std_socket.IPPROTO_TCP, std_socket.TCP_NODELAY, 1)

    # -- reading ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Read until the client or the server closes."""
        try:
            if self._tls is not None:
                if not self._handshake(self._tls):
                    return
                # A client's last word of the handshake may bring its first request along.
                self._parser.feed_data(self._decrypt(self._tls, b""))
            while self.open:
                received = self._sock.recv(READ_BYTES)
                if not received:
                    break
                self._parser.feed_data(received if self._tls is None else self._decrypt(self._tls, received))
        except httptools.HttpParserError:
            self.send(head(400, [(b"Content-Length", b"0"), (b"Connection", b"close")]))
        except OSError:
            pass
        finally:
            self._lost()

    def _handshake(self, tls: ssl.SSLObject) -> bool:
        while True:
            try:
                tls.do_handshake()
                self._sock.sendall(self._tls_out.read())
                return True
            except ssl.SSLWantReadError:
                if self._tls_out.pending:
                    self._sock.sendall(self._tls_out.read())
            received = self._sock.recv(READ_BYTES)
            if not received:
                return False
            self._tls_in.write(received)

    def _decrypt(self, tls: ssl.SSLObject, received: bytes) -> bytes:
        self._tls_in.write(received)
        plain: list[bytes] = []
        while True:
            try:
                piece = tls.read(READ_BYTES)
            except ssl.SSLWantReadError:
                return b"".join(plain)
            if not piece:  # close_notify
                return b"".join(plain)
            plain.append(piece)

    def on_url(self, url: bytes) -> None:
        self._request.path += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._request.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self._request.method = self._parser.get_method().decode("latin-1")
        if self._request.headers.get(b"expect", b"").lower() == b"100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body.append(body)

    def on_message_complete(self) -> None:
        request, self._request = self._request, Request()
        request.body, self._body = b"".join(self._body), []
        request.path = request.path.partition("?")[0]
        self._waiting.append((request, self._parser.should_keep_alive()))
        self._serve_waiting()

    def _serve_waiting(self) -> None:
        """Serve pipelined requests one after the other, each when the answer before it is complete."""
        if self._serving:
            return
        self._serving = True
        while self._waiting and self._answer is None and self.open and not self._end_after_backlog:
            request, self._keep_alive = self._waiting.popleft()
            self._on_request(self, request)
        self._serving = False

    # -- writing ----------------------------------------------------------------------------------------------------

    def begin(self, answer: Answer) -> None:
        """An answer that takes time starts; it is told when the client goes away."""
        self._answer = answer
        self.blocked = False

    def reply(self, status: int, body: bytes, content_type: bytes = b"application/json",
              headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:  # fmt: skip
        """Send a whole answer."""
        length = b"%d" % len(body)
        self.send(head(status, [(b"Content-Type", content_type), (b"Content-Length", length), *headers]) + body)
        self.finish()

    def send(self, payload: bytes) -> None:
        """Hand bytes to the kernel, or to the backlog when it takes no more. Hot path."""
        if not self.open:
            return
        if self._tls is not None:
            self._tls.write(payload)
            payload = self._tls_out.read()
        if self._backlog:
            self._backlog += payload
            return
        try:
            sent = self._sock.send(payload, 0, 0.0)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._lost()
            return
        if sent < len(payload):
            self._backlog += payload[sent:]
            self.blocked = True
            self._writable = get_hub().loop.io(self._sock.fileno(), _WRITE)
            self._writable.start(self._flush)

    def _flush(self) -> None:
        try:
            sent = self._sock.send(self._backlog, 0, 0.0)
        except BlockingIOError:
            return
        except OSError:
            self._lost()
            return
        del self._backlog[:sent]
        if not self._backlog:
            self._stop_flushing()
            if self._end_after_backlog:
                self._say_goodbye()

    def _stop_flushing(self) -> None:
        if self._writable is not None:
            self._writable.stop()
            self._writable.close()
            self._writable = None

    def finish(self) -> None:
        """The current answer is complete: go on with the next request, or close if the client asked so."""
        self._answer = None
        if self._keep_alive:
            self._serve_waiting()
            return
        self._end_after_backlog = True
        if not self._backlog:
            self._say_goodbye()

    def _say_goodbye(self) -> None:
        if self._tls is not None:
            try:
                self._tls.unwrap()  # sends close_notify; the client's own is not waited for
            except ssl.SSLError:
                pass
            try:
                self._sock.send(self._tls_out.read(), 0, 0.0)
            except OSError:
                pass
        self.close()

    def close(self) -> None:
        """Close with a FIN, whatever was promised."""
        self._answer = None
        if self.open:
            self.open = False
            self._stop_flushing()
            try:
                self._sock.shutdown(std_socket.SHUT_RDWR)
            except OSError:
                pass
            self._sock.close()

    def reset(self) -> None:
        """Close with a RST."""
        self._answer = None
        if self.open:
            self.open = False
            self._stop_flushing()
            self._sock.setsockopt(std_socket.SOL_SOCKET, std_socket.SO_LINGER, _RESET_ON_CLOSE)
            self._sock.close()

    def _lost(self) -> None:
        self._end_early(by_client=True)

    def stop(self) -> None:
        """This server stops."""
        self._end_early(by_client=False)

    def _end_early(self, by_client: bool) -> None:
        answer = self._answer
        self.close()
        if answer is not None:
            answer.ended_early(by_client)


def listen(host: str, port: int) -> Any:
    """Open the listening socket. Raises ValueError where the address cannot be had."""
    family = std_socket.AF_INET6 if ":" in host else std_socket.AF_INET
    listener = gsocket.socket(family, std_socket.SOCK_STREAM)
    listener.setsockopt(std_socket.SOL_SOCKET, std_socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(4096)
    except OSError as error:
        listener.close()
        raise ValueError(f"{host}, port {port}: {error.strerror}; --port 0 takes a free one and says which") from None
    return listener
