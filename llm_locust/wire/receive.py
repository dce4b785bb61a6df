"""One exchange on one connection: the request goes out, each read is stamped and goes to the sink.

Everything here but ``run`` happens in the hub's callbacks, so nothing here blocks, logs or formats per read. No
exception leaves a callback (gevent would drop the watcher and the waiting greenlet would hang): it becomes the
exchange's end and wakes the greenlet.
"""

from __future__ import annotations

import ssl
from time import monotonic_ns, time_ns
from typing import Any

import httptools
from gevent.event import Event

from llm_locust.wire.clock import ANCILLARY_BYTES, STEP_NS, get_clock, unpack_stamp
from llm_locust.wire.connection import Connection
from llm_locust.wire.held import EVENT_END, HeldReads, before_fault
from llm_locust.wire.http import ContentError, Inflater, ResponseParser, inflater
from llm_locust.wire.limits import LimitTimer
from llm_locust.wire.looks import looks
from llm_locust.wire.send import Sender
from llm_locust.wire.tls import tls_failure
from llm_locust.wire.turn import turnstile
from llm_locust.wire.types import USER_TIME, End, Exchange, Limits, Sink

_BUFFER = bytearray(65536)
_INTO = (_BUFFER,)
"""Where every read of the process lands first: a copy of what came takes less memory and time than a piece of 64 KB
that is shrunk to it.
"""
RACE_NS = 1_000_000_000
"""How long after the start a kept connection's end can be the race with the server's idle close."""


class Receiver:
    """Runs one exchange on one connection and fills the ``Exchange``.

    If a connection that was used before ends within a second and before the first byte of a response, ``run``
    returns False and the exchange stays open: the server had closed the idle connection while the request was
    on its way (RFC 9112 §9.3.1), and it may be sent once more. Later than that a server has died over the
    request, which is a cut. The exchange says ``resent``, and its start stays that of the first try.

    A read that ends an event is stamped and held; what is held is parsed together, some events later or when somebody
    must know (``catch_up``).
    """

    __slots__ = (
        "_clock",
        "_clock_steps",
        "_connection",
        "_ended",
        "_exchange",
        "_head_handed",
        "_held",
        "_inflater",
        "_kernel",
        "_limit",
        "_offset_ns",
        "_parser",
        "_reads",
        "_received_bytes",
        "_recvmsg_into",
        "_sender",
        "_sink",
        "_stale",
        "_tls",
        "_unstamped_reads",
    )

    def __init__(self, connection: Connection, method: str, sink: Sink, limits: Limits, exchange: Exchange) -> None:
        clock = get_clock()
        self._clock = clock
        self._clock_steps = clock.steps
        self._offset_ns = clock.offset_ns
        self._kernel = clock.source == "kernel"
        self._connection = connection
        self._tls = connection.tls
        self._recvmsg_into = getattr(connection.raw, "recvmsg_into", None) or self._recv_into
        self._sender = Sender(connection, exchange, self._writable)
        self._parser = ResponseParser(method)
        self._inflater: Inflater | None = None
        self._head_handed = False
        self._sink = sink
        self._exchange = exchange
        self._limit = LimitTimer(limits, exchange, sink, self._look_again, self._finish)
        self._reads = self._received_bytes = self._unstamped_reads = 0
        self._held: HeldReads | None = None  # None: each read is parsed at once
        self._stale = False
        self._ended = Event()

    def run(self, payload: bytes, *, starts: bool) -> bool:
        """Send, wait for the end, return whether the exchange has one. Leaves the connection open or closed.

        ``starts``: the exchange starts with the first write. Raises whatever killed the greenlet, after End.STOPPED.
        """
        exchange = self._exchange
        exchange.peer = self._connection.peer
        watched = looks()
        watched.enter()
        try:
            self._connection.reader.start(self._readable)
            if starts:
                exchange.start_ns = monotonic_ns()
            try:
                self._sender.start(payload)
            except ssl.SSLError as error:
                self._broken(error)
            else:
                self._limit.arm()
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
        parser, sender = self._parser, self._sender
        return (
            self._exchange.end is End.COMPLETE
            and parser.keep_alive
            and not parser.leftover
            and sender.done
            and sender.idle
        )

    def catch_up(self, until_ns: int | None = None) -> None:
        """Parse what is held if some of it came up to an instant. Never raises; later than the end it does nothing."""
        held = self._held
        if held is not None and held.at_ns and (until_ns is None or held.at_ns[0] <= until_ns):
            try:
                self._parse_held(held)
            except Exception as error:
                self._finish(End.SINK_ERROR, _named(error))

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
        self._sender.close()
        self._parser.close()
        del self._recvmsg_into, self._limit

    # -- receiving ---------------------------------------------------------------------------------------

    def _readable(self) -> None:
        """Take one read: stamp it, and hold it or parse it. The hot path.

        A callable in a slot is loaded into a name before it is called: CPython 3.11 makes the load fast, but never a
        call through a slot.
        """
        try:
            recvmsg_into = self._recvmsg_into
            try:
                size, ancillary, _, _ = recvmsg_into(_INTO, ANCILLARY_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self.catch_up()
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
            if not size:
                self.catch_up()
                self._end_of_stream(now_ns)
                return
            data: bytes | bytearray = _BUFFER[:size]
            if self._tls is not None:
                data = self._decrypted(data)
            held = self._held
            if held is None or lag_ns < 0 or not held.add(data, at_ns, lag_ns):
                self._parse(data, at_ns, lag_ns)
            elif held.full:
                self._parse_held(held)
        except Exception as error:
            self._finish(End.SINK_ERROR, _named(error))
        except BaseException as stop:  # Ctrl-C arrives in whatever code is running: the hub passes it on
            self._finish(End.STOPPED, type(stop).__name__)
            raise

    def _parse_held(self, held: HeldReads) -> None:
        """Hand to the sink what the parser makes of the reads that are held; what came before a fault counts."""
        taken = held.take()
        until_ns = taken.at_ns[-1]
        fault = self._feed(taken.raw)
        body = self._parser.body()
        whole = taken if fault is None else before_fault(taken, body.count(EVENT_END))
        self._reads += len(whole.at_ns) - sum(events - 1 for _, events, _ in whole.bundles)
        self._received_bytes += len(body)
        self._sink.on_held(body, whole.at_ns, whole.bundles, until_ns)
        if self._parser.done:
            self._complete(until_ns)
        if fault is not None:
            ended = self._exchange.end is not None
            self._broken(fault)
            if not ended and self._exchange.end is not None:  # by the first read that could not be parsed
                self._exchange.end_ns = taken.at_ns[min(len(whole.at_ns), len(taken.at_ns) - 1)]

    def _parse(self, data: bytes | bytearray, at_ns: int, lag_ns: int) -> None:
        """Hand to the sink what the parser makes of one read; what came before a fault counts."""
        self.catch_up()
        fault = self._feed(data) if data else None
        if self._head_handed or self._hand_head(at_ns):
            self._take(at_ns, lag_ns)
        if fault is not None:
            self._broken(fault)

    def _feed(self, data: bytes | bytearray) -> Exception | None:
        try:
            self._parser.feed(data)
        except Exception as fault:
            return fault.with_traceback(None)  # it would hold the frame that holds it
        return None

    def _take(self, at_ns: int, lag_ns: int) -> None:
        """Take the body bytes of one read, and the body's end."""
        parser = self._parser
        if parser.pieces:
            body = parser.body()
            if self._inflater is not None:
                body = self._inflate(body)
            if body:
                self._reads += 1
                self._received_bytes += len(body)
                self._unstamped_reads += lag_ns < 0
                self._sink.on_read(body, at_ns, lag_ns)
        if parser.done:
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
        if not self._sender.done:  # an early response: nobody reads the rest of the request
            self._sender.drop()
        try:
            self._inflater = inflater(parser.headers)
        except ContentError as error:
            self._finish(End.PROTOCOL_ERROR, str(error))
            return False
        self._sink.on_head(parser.status, parser.headers, at_ns)
        if parser.chunked and self._inflater is None and self._sink.may_hold(self.catch_up):
            self._held = HeldReads()
        return True

    def _inflate(self, body: bytes) -> bytes:
        assert self._inflater is not None
        try:
            return self._inflater.feed(body)
        except ContentError as error:
            self._finish(End.PROTOCOL_ERROR, str(error))
            return b""

    def _decrypted(self, data: bytes | bytearray) -> bytes:
        """Return the plain bytes of one read; none of them where TLS finds a fault, which ends the exchange."""
        tls = self._tls
        assert tls is not None
        try:
            pieces = tls.decrypt(data)
        except ssl.SSLError as error:
            self.catch_up()
            self._broken(error)
            return b""
        answer = tls.answer()
        if answer:
            self._sender.answer(answer)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _recv_into(self, buffers: tuple[bytearray], _: int) -> tuple[int, list[Any], int, None]:
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

    def _look_again(self) -> None:
        """Take what waits in the socket and parse all of it: a limit is to be judged."""
        self._readable()
        self.catch_up()

    # -- sending -----------------------------------------------------------------------------------------

    def _writable(self) -> None:
        try:
            self._sender.pump()
        except ssl.SSLError as error:
            self._broken(error)
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
        parser, sender = self._parser, self._sender
        proper = self._tls is None or self._tls.closed  # RFC 9112 §9.8: without close_notify it may be a cut
        if proper and parser.head_complete and parser.finish():
            self._complete(now_ns)
        elif parser.head_complete:
            self._finish(End.CUT, "incomplete body")
        elif sender.error is not None:  # the kernel tells a reset once, here to the write
            self._connection_lost(sender.error)
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
        """Give the exchange its end, once, and wake the greenlet. What is held counts."""
        now_ns = monotonic_ns()
        self.catch_up()
        exchange = self._exchange
        if exchange.end is None and not self._stale:
            exchange.end = end
            exchange.error = error
            exchange.end_ns = now_ns
        connection = self._connection
        connection.reader.stop()
        connection.writer.stop()
        self._limit.close()
        turnstile().call(self._ended.set)


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
