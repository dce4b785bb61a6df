"""Exchanges through a proxy: httpx's own transport, read in the user's greenlet, with user times.

Where a proxy is asked for, what arrives has passed a middleman anyway; the same sink, limits and ends hold, each
read is stamped when it returned. Needs gevent's patches, which Locust makes.
"""

from __future__ import annotations

from typing import Any

import gevent
import httpx

from llm_locust.wire.clock import get_clock
from llm_locust.wire.http import ContentError, inflater
from llm_locust.wire.limits import LimitTimer
from llm_locust.wire.transport import Call
from llm_locust.wire.types import USER_TIME, End, Exchange


class _LimitReached(BaseException):
    """Thrown into the greenlet by a limit's timer; no `except Exception` on the way may take it."""


class _SinkError(Exception):
    """The sink raised; the text names the error."""


def perform_through_proxy(client: httpx.Client, request: httpx.Request, call: Call) -> None:
    """Send the request, feed the sink, fill the exchange; blocks the greenlet until the end."""
    exchange = call.exchange
    greenlet = gevent.getcurrent()
    request.extensions["timeout"] = dict.fromkeys(("read", "write", "pool"), None) | {
        "connect": call.limits.connect_s or None
    }
    request.extensions["trace"] = _Instants(exchange).note
    exchange.start_ns = get_clock().now_ns()
    limit = LimitTimer(call.limits, exchange, call.sink, _nothing, lambda end: greenlet.throw(_LimitReached(end)))
    limit.arm()
    try:
        response = client.send(request, stream=True)
        try:
            _read(response, call)
        finally:
            response.close()
        end, error = End.COMPLETE, ""
    except _LimitReached as reached:
        end, error = reached.args[0], ""
    except _SinkError as failure:
        end, error = End.SINK_ERROR, str(failure)
    except ContentError as failure:
        end, error = End.PROTOCOL_ERROR, str(failure)
    except httpx.TransportError as failure:
        end, error = _end_of(failure)
    except BaseException as stop:
        exchange.end, exchange.error, exchange.end_ns = End.STOPPED, type(stop).__name__, get_clock().now_ns()
        raise
    finally:
        limit.close()
    exchange.end, exchange.error, exchange.end_ns = end, error, get_clock().now_ns()


class _Instants:
    """Reads start, connect and sent off httpcore's trace; a tunnel's own CONNECT counts as connecting."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._begun = False
        self._connecting_ns: int | None = None

    def note(self, event: str, _: dict[str, Any]) -> None:
        """Take one event of httpcore, named `where.what.started` or `….complete`."""
        now_ns = get_clock().now_ns()
        what = event.split(".", 1)[1]
        if not self._begun:
            self._begun = True
            self._exchange.start_ns = now_ns
        if what == "connect_tcp.started":
            self._connecting_ns = now_ns
        elif what in ("connect_tcp.complete", "start_tls.complete") and self._connecting_ns is not None:
            self._exchange.connect_ns = now_ns - self._connecting_ns
        elif what == "send_request_body.complete":
            self._exchange.sent_ns = now_ns


def _read(response: httpx.Response, call: Call) -> None:
    now_ns = get_clock().now_ns
    exchange, sink = call.exchange, call.sink
    exchange.status = response.status_code
    exchange.headers = [(name.lower(), value) for name, value in response.headers.raw]
    exchange.headers_ns = now_ns()
    host, port = response.extensions["network_stream"].get_extra_info("server_addr")[:2]
    exchange.peer = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    inflate = inflater(exchange.headers)
    try:
        sink.on_head(exchange.status, exchange.headers, exchange.headers_ns)
    except Exception as error:
        raise _SinkError(f"{type(error).__name__}: {error}") from error
    for raw in response.iter_raw():
        at_ns = now_ns()
        data = raw if inflate is None else inflate.feed(raw)
        if not data:
            continue
        exchange.reads += 1
        exchange.received_bytes += len(data)
        try:
            sink.on_read(data, at_ns, USER_TIME)
        except Exception as error:
            raise _SinkError(f"{type(error).__name__}: {error}") from error
    if inflate is not None and not inflate.finished:
        raise httpx.RemoteProtocolError("incomplete body")


def _end_of(failure: httpx.TransportError) -> tuple[End, str]:
    text = str(failure) or type(failure).__name__
    if isinstance(failure, httpx.ConnectTimeout):
        return End.TIMEOUT_CONNECT, text
    if isinstance(failure, httpx.ConnectError | httpx.ProxyError):
        return End.CONNECT_ERROR, text
    if "incomplete" in text or "without sending complete" in text:
        return End.CUT, "incomplete body"
    if "without sending a response" in text:
        return End.CUT, "closed before a response"
    if isinstance(failure, httpx.NetworkError):
        return End.CUT, "connection reset" if "reset" in text else text
    return End.PROTOCOL_ERROR, text


def _nothing() -> None:
    """What waits in the socket is not ours to read."""
