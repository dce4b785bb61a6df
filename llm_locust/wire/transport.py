"""An httpx transport over gevent sockets: one exchange at a time on connections of its own.

``exchange`` runs one with a sink; a request of httpx's own (``handle_request``) is answered with its whole body.
"""

from __future__ import annotations

import gc
import ssl
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import gevent
import httpx

from llm_locust.wire.clock import get_clock
from llm_locust.wire.connection import ConnectError, Connection, Origin, open_connection
from llm_locust.wire.http import request_bytes
from llm_locust.wire.limits import connect_limit
from llm_locust.wire.receive import Receiver
from llm_locust.wire.tls import TLSOptions
from llm_locust.wire.types import Bundle, End, Exchange, Limits, Sink

_GC_THRESHOLDS = (500, 5, 100_000)
"""Nothing of a request needs the collector; a full collection with 400 streams in flight held the hub for 73 ms."""


@dataclass(frozen=True, slots=True)
class Call:
    """What one request wants from the transport beside a response."""

    sink: Sink
    limits: Limits
    exchange: Exchange


class SharedTLS:
    """The process's one TLS context, made at the first need."""

    def __init__(self, options: TLSOptions) -> None:
        self.options = options
        self._context: ssl.SSLContext | None = None

    def context(self) -> ssl.SSLContext:
        """Return the context; the first call takes some 20 ms."""
        if self._context is None:
            self._context = self.options.context()
        return self._context


class WireTransport(httpx.BaseTransport):
    """An httpx transport over gevent sockets with kernel receive times.

    One is made per process; ``http_client`` gives each user a sibling of it, which keeps one idle connection
    per origin and shares the TLS context. ``proxy`` is None, a URL, or "env" for what HTTP_PROXY and its kin say;
    with a proxy the clients use httpx's own transport.
    """

    def __init__(
        self, tls: TLSOptions | SharedTLS | None = None, *, keep_alive: bool = True, proxy: str | None = None
    ) -> None:
        self.tls = tls if isinstance(tls, SharedTLS) else SharedTLS(tls or TLSOptions())
        self.keep_alive = keep_alive
        self.proxy = proxy
        self._idle: dict[Origin, Connection] = {}

    def sibling(self) -> WireTransport:
        """Return a transport with the same settings and TLS context, and connections of its own."""
        return WireTransport(self.tls, keep_alive=self.keep_alive)

    def prepare(self, *urls: str) -> None:
        """Make clock and TLS context now, before the load, and keep the collector off all that is loaded.

        A full garbage collection held the hub for 39 ms over what the imports had made; frozen, it is not looked
        through again. Together at most 150 ms, once per run.
        """
        get_clock()
        if self.proxy is not None or any(httpx.URL(url).scheme == "https" for url in urls):
            self.tls.context()
        gc.collect()
        gc.freeze()
        gc.set_threshold(*_GC_THRESHOLDS)

    def exchange(self, origin: Origin, method: str, payload: bytes, call: Call) -> None:
        """Send ``payload``, feed the sink, fill the exchange; blocks the greenlet until the end."""
        exchange = call.exchange
        kept = self._take(origin)
        if kept is not None:
            if self._converse(kept, origin, method, payload, call, starts=True):
                return
            exchange.resent = True
            exchange.sent_ns = None
        else:
            exchange.start_ns = get_clock().now_ns()
        connection = self._connect(origin, call)
        if connection is not None:
            self._converse(connection, origin, method, payload, call, starts=False)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer with the whole body; blocks the greenlet. Raises httpx.TransportError without a response."""
        timeout = request.extensions.get("timeout", {})
        read_s = timeout.get("read") or 0.0
        limits = Limits(connect_s=timeout.get("connect") or 0.0, first_token_s=read_s, stall_s=read_s, total_s=0.0)
        body = _Body()
        exchange = Exchange()
        payload = request_bytes(request, keep_alive=self.keep_alive)
        self.exchange(origin_of(request), request.method, payload, Call(body, limits, exchange))
        if exchange.end is not End.COMPLETE or exchange.status is None:
            raise _httpx_error(exchange, request)
        headers = [(name, value) for name, value in exchange.headers if name != b"content-encoding"]
        return httpx.Response(exchange.status, headers=headers, stream=httpx.ByteStream(b"".join(body.pieces)))

    def close(self) -> None:
        """Close the idle connections."""
        while self._idle:
            self._idle.popitem()[1].close()

    def _converse(
        self, connection: Connection, origin: Origin, method: str, payload: bytes, call: Call, *, starts: bool
    ) -> bool:
        receiver = Receiver(connection, method, call.sink, call.limits, call.exchange)
        ended = receiver.run(payload, starts=starts)
        if receiver.reusable:
            connection.used = True
            if self.keep_alive and origin not in self._idle:
                self._idle[origin] = connection
            else:
                connection.close()
        return ended

    def _take(self, origin: Origin) -> Connection | None:
        connection = self._idle.pop(origin, None)
        if connection is not None and not connection.alive():
            connection.close()
            return None
        return connection

    def _connect(self, origin: Origin, call: Call) -> Connection | None:
        """Open a connection within the limits; None when the exchange has ended over it."""
        exchange = call.exchange
        clock = get_clock()
        begun_ns = clock.now_ns()
        limit = connect_limit(call.limits, (begun_ns - exchange.start_ns) / 1e9)
        timer = gevent.Timeout(limit[0] if limit else None)
        end, error = End.CONNECT_ERROR, ""
        try:
            with timer:
                connection = open_connection(origin, self.tls.context() if origin.tls else None)
                exchange.connect_ns = clock.now_ns() - begun_ns
                return connection
        except ConnectError as failure:
            error = str(failure)
        except ValueError as failure:  # the TLS files
            error = str(failure)
        except BaseException as stop:
            if stop is not timer or limit is None:
                exchange.end, exchange.error, exchange.end_ns = End.STOPPED, type(stop).__name__, clock.now_ns()
                raise
            end, error = limit[1], f"no connection to {origin} within {limit[0]:.3g} s"
        exchange.end, exchange.error, exchange.end_ns = end, error, clock.now_ns()
        return None


class _Body:
    """A sink that keeps the whole body; any byte feeds its read limit."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.last_token_ns = 0

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]], at_ns: int) -> None:
        """Nothing to do: the exchange has the head."""

    def on_read(self, data: bytes, at_ns: int, lag_ns: int) -> None:
        """Keep the bytes."""
        self.pieces.append(data)
        self.last_token_ns = at_ns

    def may_hold(self, catch_up: Callable[[int | None], object]) -> bool:
        """Nothing is held: any byte counts."""
        return False

    def on_held(self, body: bytes, at_ns: array[int], bundles: Sequence[Bundle], until_ns: int) -> None:
        """Nothing comes here."""


def origin_of(request: httpx.Request) -> Origin:
    """Say where a request goes. Raises httpx.UnsupportedProtocol for a scheme that is not http or https."""
    url = request.url
    if url.scheme not in ("http", "https") or not url.host:
        raise httpx.UnsupportedProtocol(f"not an http or https URL: {url}", request=request)
    tls = url.scheme == "https"
    return Origin(url.raw_host.decode("ascii").strip("[]"), url.port or (443 if tls else 80), tls)


def _httpx_error(exchange: Exchange, request: httpx.Request) -> httpx.TransportError:
    kinds: dict[End | None, type[httpx.TransportError]] = {
        End.CONNECT_ERROR: httpx.ConnectError,
        End.TIMEOUT_CONNECT: httpx.ConnectTimeout,
        End.TIMEOUT_FIRST_TOKEN: httpx.ReadTimeout,
        End.TIMEOUT_STALL: httpx.ReadTimeout,
        End.CUT: httpx.ReadError,
    }
    return kinds.get(exchange.end, httpx.RemoteProtocolError)(exchange.error or "timed out", request=request)
