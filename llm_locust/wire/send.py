"""The request on its way out: given to the kernel in pieces, while the response may already come.

Nothing here blocks. That the kernel takes nothing more is judged by whoever reads: an answer may be there.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns

from llm_locust.wire.connection import Connection
from llm_locust.wire.types import Exchange

SEND_BYTES = 262_144
TLS_SEND_BYTES = 65536  # encrypting is slower than copying


class Sender:
    """Sends one request on one connection, and notes in the exchange when the kernel had all of it.

    ``done`` says that it has, ``error`` what the kernel said instead. ``on_writable`` is called in the hub while
    something waits and the kernel takes more; it calls ``pump``.
    """

    __slots__ = ("_connection", "_exchange", "_on_writable", "_outgoing", "_unsent", "done", "error")

    def __init__(self, connection: Connection, exchange: Exchange, on_writable: Callable[[], object]) -> None:
        self._connection = connection
        self._exchange = exchange
        self._on_writable = on_writable
        self._unsent = memoryview(b"")  # plain bytes that wait
        self._outgoing = memoryview(b"")  # bytes, encrypted where need be, that the kernel has not taken
        self.done = False
        self.error: OSError | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be sent."""
        return not self._outgoing and not self._unsent

    def start(self, payload: bytes) -> None:
        """Give the kernel the first piece; the rest follows as it takes it. Raises ssl.SSLError."""
        self._unsent = memoryview(payload)
        self._send()
        self._wait()

    def answer(self, data: bytes) -> None:
        """Send what TLS itself has to say."""
        self._outgoing = memoryview(bytes(self._outgoing) + data)
        self._wait()

    def pump(self) -> None:
        """Give the kernel the next piece. Raises ssl.SSLError."""
        if not self.idle:
            self._send()
        if self.idle:
            self._connection.writer.stop()

    def drop(self) -> None:
        """Forget what has not been encrypted or sent: nobody reads it any more."""
        self._unsent = memoryview(b"")
        self._connection.writer.stop()

    def close(self) -> None:
        """Forget whom to call; nothing is sent any more."""
        del self._on_writable

    def _wait(self) -> None:
        if not self.idle:
            self._connection.writer.start(self._on_writable)

    def _send(self) -> None:
        tls = self._connection.tls
        if not self._outgoing:
            size = SEND_BYTES if tls is None else TLS_SEND_BYTES
            piece, self._unsent = self._unsent[:size], self._unsent[size:]
            self._outgoing = piece if tls is None else memoryview(tls.encrypt(piece))
        try:
            sent = self._connection.raw.send(self._outgoing)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.error = error
            self._unsent = self._outgoing = memoryview(b"")
            return
        self._outgoing = self._outgoing[sent:]
        if not self.done and self.idle:
            self.done = True
            self._exchange.sent_ns = monotonic_ns()
