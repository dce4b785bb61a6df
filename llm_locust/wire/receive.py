"""One exchange on one connection: the request goes out, each read is stamped and handed to the sink.

Everything here but ``run`` happens in the hub's callbacks, so nothing here blocks, logs or formats per read. No
exception leaves a callback (gevent would drop the watcher and the waiting greenlet would hang): it becomes the
exchange's end and wakes the greenlet. Measured: 13 µs per token in all against 25 for a loop over a stream.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from time import monotonic_ns, time_ns
from typing import Any

import httptools
from gevent.event import Event

from llm_locust.wire.clock import ANCILLARY_BYTES, STEP_NS, get_clock, unpack_stamp
from llm_locust.wire.connection import Connection
from llm_locust.wire.http import ContentError, Inflater, ResponseParser, inflater
from llm_locust.wire.limits import LimitTimer
from llm_locust.wire.looks import looks
from llm_locust.wire.tls import tls_failure
from llm_locust.wire.turn import turnstile
from llm_locust.wire.types import USER_TIME, End, Exchange, Limits, Sink

_READ = memoryview(bytearray(65536))
_INTO = (_READ,)
"""Where every read of the process lands first: a copy of what came takes less memory and time than a piece of 64 KB
that is shrunk to it (6.0 instead of 7.4 µs a read).
"""
SEND_BYTES = 262_144
TLS_SEND_BYTES = 65536  # encrypting is slower than copying
RACE_NS = 1_000_000_000
"""How long after the start a kept connection's end can be the race with the server's idle close."""


class Receiver:
    """Runs one exchange on one connection and fills the ``Exchange``.

    If a connection that was used before ends within a second and before the first byte of a response, ``run``
    returns False and the exchange stays open: the server had closed the idle connection while the request was
    on its way (RFC 9112 §9.3.1), and it may be sent once more. Later than that a server has died over the
    request, which is a cut. The exchange says ``resent``, and its start stays that of the first try.
    """

    __slots__ = (
        "_clock",
        "_clock_steps",
        "_connection",
        "_ended",
        "_exchange",
        "_feed",
        "_head_handed",
        "_inflater",
        "_kernel",
        "_limit",
        "_offset_ns",
        "_outgoing",
        "_parser",
        "_pieces",
        "_plain",
        "_reads",
        "_received_bytes",
        "_recvmsg_into",
        "_request_sent",
        "_send_error",
        "_sink",
        "_stale",
        "_unsent",
        "_unstamped_reads",
    )

    def __init__(self, connection: Connection, method: str, sink: Sink, limits: Limits, exchange: Exchange) -> None:
        clock = get_clock()
        self._clock = clock
        self._clock_steps = clock.steps
        self._offset_ns = clock.offset_ns
        self._kernel = clock.source == "kernel"
        self._connection = connection
        self._parser = ResponseParser(method)
        self._sink = sink
        self._exchange = exchange
        self._limit = LimitTimer(limits, exchange, sink, self._readable, self._finish)
        self._reads = self._received_bytes = self._unstamped_reads = 0
        self._plain = False  # the head is handed, and the body comes as it is
        self._feed: Callable[[Any], object] = self._parser.feed if connection.tls is None else self._feed_tls
        self._pieces = self._parser.pieces
        self._recvmsg_into = getattr(connection.raw, "recvmsg_into", None) or self._recv_into
        self._inflater: Inflater | None = None
        self._head_handed = False
        self._unsent = memoryview(b"")  # plain bytes that wait
        self._outgoing = memoryview(b"")  # bytes, encrypted where need be, that the kernel has not taken
        self._request_sent = False
        self._send_error: OSError | None = None
        self._stale = False
        self._ended = Event()

    def run(self, payload: bytes, *, starts: bool) -> bool:
        """Send, wait for the end, return whether the exchange has one. Leaves the connection open or closed.

        ``starts``: the exchange starts with the first write. Raises whatever killed the greenlet, after End.STOPPED.
        """
        self._unsent = memoryview(payload)
        connection = self._connection
        self._exchange.peer = connection.peer
        watched = looks()
        watched.enter()
        try:
            connection.reader.start(self._readable)
            if starts:
                self._exchange.start_ns = monotonic_ns()
            self._send()
            self._limit.arm()
            if self._unsent or self._outgoing:
                connection.writer.start(self._writable)
            self._ended.wait()
        except BaseException as stop:
            self._finish(End.STOPPED, type(stop).__name__)
            raise
        finally:
            watched.leave()
            self._settle()
        return not self._stale

    @property
    def reusable(self) -> bool:
        """Whether the connection may carry another request."""
        parser = self._parser
        return (
            self._exchange.end is End.COMPLETE
            and parser.keep_alive
            and not parser.leftover
            and self._request_sent
            and not self._outgoing
        )

    def _settle(self) -> None:
        connection, exchange = self._connection, self._exchange
        exchange.reads += self._reads
        exchange.received_bytes += self._received_bytes
        exchange.stamped_reads += self._reads - self._unstamped_reads
        if not self._stale and self._clock.steps != self._clock_steps:
            exchange.clock_step = True
        if not self.reusable:
            connection.close()
        # The parser and this object hold bound methods of each other: untied, they need no collector.
        del self._feed, self._recvmsg_into, self._parser.feed, self._parser._parser, self._limit

    # -- receiving ---------------------------------------------------------------------------------------

    def _readable(self) -> None:
        """Take one read. The hot path.

        Here and further down it, a callable in a slot is loaded into a name before it is called: CPython 3.11 makes
        the load fast, but never a call through a slot.
        """
        try:
            recvmsg_into, feed = self._recvmsg_into, self._feed
            try:
                size, ancillary, _, _ = recvmsg_into(_INTO, ANCILLARY_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._connection_lost(error)
                return
            now_ns = monotonic_ns()
            if ancillary and self._kernel:
                seconds, nanos = unpack_stamp(ancillary[0][2])
                at_ns = seconds * 1_000_000_000 + nanos - self._offset_ns
                lag_ns = now_ns - at_ns
                if not 0 <= lag_ns <= STEP_NS:
                    at_ns, lag_ns = self._odd_stamp(at_ns, now_ns)
            else:
                at_ns = now_ns
                lag_ns = USER_TIME
            if size:
                try:
                    feed(_READ[:size])
                except Exception as error:
                    self._take(at_ns, lag_ns)  # what came before the fault still counts
                    self._broken(error)
                else:
                    self._take(at_ns, lag_ns)
            else:
                self._end_of_stream(now_ns)
        except Exception as error:
            self._finish(End.SINK_ERROR, _named(error))
        except BaseException as stop:  # Ctrl-C arrives in whatever code is running: the hub passes it on
            self._finish(End.STOPPED, type(stop).__name__)
            raise

    def _take(self, at_ns: int, lag_ns: int) -> None:
        """Hand to the sink what the parser has made of one read. The hot path's second half.

        Some 400 streams' objects do not stay in a core's cache from one token to the next: what it touches is what
        it costs, so the parser, the exchange and the limits are left alone here.
        """
        pieces = self._pieces
        if self._plain and len(pieces) == 1:
            body = pieces.pop()
            if body:
                self._reads += 1
                self._received_bytes += len(body)
                if lag_ns < 0:
                    self._unstamped_reads += 1
                self._sink.on_read(body, at_ns, lag_ns)
                return
            pieces.append(body)
        self._take_rest(at_ns, lag_ns)

    def _take_rest(self, at_ns: int, lag_ns: int) -> None:
        """Take a read that is more than a piece of a plain body."""
        if not self._head_handed and not self._hand_head(at_ns):
            return
        if self._pieces:
            body = self._parser.body()
            if self._inflater is not None:
                body = self._inflate(body)
            if body:
                self._reads += 1
                self._received_bytes += len(body)
                self._unstamped_reads += lag_ns < 0
                self._sink.on_read(body, at_ns, lag_ns)
        if self._parser.done:
            self._complete(at_ns)

    def _hand_head(self, at_ns: int) -> bool:
        """Hand a head that is complete to the sink; return whether the body may follow."""
        parser = self._parser
        if not parser.head_complete:
            return False
        exchange = self._exchange
        self._head_handed = True
        exchange.status = parser.status
        exchange.headers = parser.headers
        exchange.headers_ns = at_ns
        if not self._request_sent:  # an early response: nobody reads the rest of the request
            self._unsent = memoryview(b"")
            self._connection.writer.stop()
        try:
            self._inflater = inflater(parser.headers)
        except ContentError as error:
            self._finish(End.PROTOCOL_ERROR, str(error))
            return False
        self._sink.on_head(parser.status, parser.headers, at_ns)
        self._plain = self._inflater is None
        return True

    def _inflate(self, body: bytes) -> bytes:
        assert self._inflater is not None
        try:
            return self._inflater.feed(body)
        except ContentError as error:
            self._finish(End.PROTOCOL_ERROR, str(error))
            return b""

    def _feed_tls(self, data: memoryview) -> None:
        tls = self._connection.tls
        assert tls is not None
        feed = self._parser.feed
        for piece in tls.decrypt(data):
            feed(piece)
        answer = tls.answer()
        if answer:
            self._outgoing = memoryview(bytes(self._outgoing) + answer)
            self._connection.writer.start(self._writable)

    def _recv_into(self, buffers: tuple[memoryview], _: int) -> tuple[int, list[Any], int, None]:
        return self._connection.raw.recv_into(buffers[0]), [], 0, None

    def _odd_stamp(self, at_ns: int, now_ns: int) -> tuple[int, int]:
        """Look whether a stamp that lies over 1 ms back, or ahead, comes from a late read or a clock step."""
        if self._exchange.clock_step:
            return now_ns, USER_TIME
        if abs(time_ns() - monotonic_ns() - self._offset_ns) > STEP_NS:
            self._clock.check()
        if self._clock.steps != self._clock_steps or abs(self._clock.offset_ns - self._offset_ns) > STEP_NS:
            self._exchange.clock_step = True
            return now_ns, USER_TIME
        return min(at_ns, now_ns), max(now_ns - at_ns, 0)

    # -- sending -----------------------------------------------------------------------------------------

    def _send(self) -> None:
        """Give the kernel one piece. Never blocks; a fault is judged at the next read: an answer may be there."""
        tls = self._connection.tls
        try:
            if not self._outgoing:
                size = SEND_BYTES if tls is None else TLS_SEND_BYTES
                piece, self._unsent = self._unsent[:size], self._unsent[size:]
                self._outgoing = piece if tls is None else memoryview(tls.encrypt(piece))
            sent = self._connection.raw.send(self._outgoing)
        except (BlockingIOError, InterruptedError):
            return
        except ssl.SSLError as error:
            self._broken(error)
            return
        except OSError as error:
            self._send_error = error
            self._unsent = self._outgoing = memoryview(b"")
            return
        self._outgoing = self._outgoing[sent:]
        if not self._request_sent and not self._outgoing and not self._unsent:
            self._request_sent = True
            self._exchange.sent_ns = monotonic_ns()

    def _writable(self) -> None:
        try:
            if self._outgoing or self._unsent:
                self._send()
            if not self._outgoing and not self._unsent:
                self._connection.writer.stop()
        except Exception as error:
            self._finish(End.CUT, _named(error))
        except BaseException as stop:
            self._finish(End.STOPPED, type(stop).__name__)
            raise

    # -- ends --------------------------------------------------------------------------------------------

    def _complete(self, at_ns: int) -> None:
        if self._inflater is not None and not self._inflater.finished:
            self._finish(End.CUT, "incomplete body")
        elif self._exchange.end is None:
            self._finish(End.COMPLETE)
            self._exchange.end_ns = at_ns

    def _end_of_stream(self, now_ns: int) -> None:
        """Judge the connection's end: the end of a body without a length, or a cut."""
        parser = self._parser
        tls = self._connection.tls
        proper = tls is None or tls.closed  # RFC 9112 §9.8: without close_notify it may be a cut
        if proper and parser.head_complete and parser.finish():
            self._complete(now_ns)
        elif parser.head_complete:
            self._finish(End.CUT, "incomplete body")
        elif self._send_error is not None:  # the kernel tells a reset once, here to the write
            self._connection_lost(self._send_error)
        else:
            self._lost("closed before a response")

    def _connection_lost(self, error: OSError) -> None:
        reset = isinstance(error, ConnectionResetError | BrokenPipeError)
        self._lost("connection reset" if reset else error.strerror or str(error))

    def _lost(self, text: str) -> None:
        if self._connection.used and not self._parser.begun and monotonic_ns() - self._exchange.start_ns < RACE_NS:
            self._stale = True
            self._finish(End.CUT)
        else:
            self._finish(End.CUT, text)

    def _broken(self, problem: Exception) -> None:
        """Judge what the parser or TLS could not read; after the response's end it only spoils the connection."""
        if self._parser.done:
            self._parser.leftover = True
        elif isinstance(problem, ssl.SSLError):
            if self._parser.begun or self._connection.used:
                self._finish(End.PROTOCOL_ERROR, tls_failure(problem))
            else:  # with TLS 1.3 a server refuses a client's certificate only after the handshake
                self._finish(End.CONNECT_ERROR, tls_failure(problem))
        elif isinstance(problem, httptools.HttpParserError):
            self._finish(End.PROTOCOL_ERROR, f"not HTTP: {problem}")
        else:
            self._finish(End.PROTOCOL_ERROR, f"not HTTP: {_named(problem)}")

    def _finish(self, end: End, error: str = "") -> None:
        """Give the exchange its end, once, and wake the greenlet."""
        exchange = self._exchange
        if exchange.end is None and not self._stale:
            exchange.end = end
            exchange.error = error
            exchange.end_ns = monotonic_ns()
        connection = self._connection
        connection.reader.stop()
        connection.writer.stop()
        self._limit.close()
        turnstile().call(self._ended.set)


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
