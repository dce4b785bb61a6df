"""A proxy, where one is asked for: the same sink, limits and ends, with user times."""

from __future__ import annotations

from typing import Any

import gevent
import pytest
from gevent.server import StreamServer

from llm_locust.wire.transport import WireTransport
from llm_locust.wire.types import USER_TIME, End, Exchange, Limits
from tests.wire.scripted import FIN, HEAD, LAST, RST, Script, ScriptedServer, Sink, ask, best_of_three, chunk, user

TOKEN = chunk(b"data: x\n\n")
TARGET = "http://model.example/v1/chat/completions"


def proxied(script: Script, sink: Any = None, limits: Limits | None = None) -> tuple[Exchange, Any]:
    """Send to a host that only the proxy knows; the scripted server is the proxy."""
    sink = sink or Sink()
    with ScriptedServer([script]) as proxy, user(WireTransport(proxy=proxy.url)) as client:
        exchange = ask(client, TARGET, sink, limits)
        assert all(head.startswith(b"POST " + TARGET.encode()) for _, head, _ in proxy.requests)
        return exchange, sink


def test_stream_comes_through_a_proxy_with_user_times() -> None:
    exchange, sink = proxied([(0, HEAD), (20, TOKEN), (40, TOKEN + TOKEN + LAST)])
    assert (exchange.end, exchange.error, exchange.status) == (End.COMPLETE, "", 200)
    assert sink.body == b"data: x\n\n" * 3
    assert {lag_ns for _, _, lag_ns in sink.reads} == {USER_TIME}
    assert exchange.stamped_reads == 0
    assert exchange.reads == len(sink.reads)
    assert exchange.connect_ns is not None
    assert exchange.sent_ns is not None
    assert exchange.headers_ns is not None
    assert exchange.start_ns < exchange.sent_ns <= exchange.headers_ns < sink.reads[0][1]
    assert exchange.peer.startswith("127.0.0.1:")


@pytest.mark.parametrize(
    ("script", "limits", "end"),
    [
        pytest.param([(500, HEAD)], Limits(1, 0.1, 1, 1), End.TIMEOUT_FIRST_TOKEN, id="first token"),
        pytest.param([(0, HEAD + TOKEN), (500, LAST)], Limits(1, 1, 0.1, 1), End.TIMEOUT_STALL, id="stall"),
        pytest.param([(0, HEAD + TOKEN), (500, LAST)], Limits(1, 1, 1, 0.1), End.TIMEOUT_TOTAL, id="total"),
    ],
)
def test_limits_hold_through_a_proxy(script: Script, limits: Limits, end: End) -> None:
    def measure_ms() -> float:
        exchange, _ = proxied(script, limits=limits)
        assert exchange.end is end
        assert exchange.end_ns is not None
        return (exchange.end_ns - exchange.start_ns) / 1e6

    best_of_three(measure_ms, least=99.9, most=110)


@pytest.mark.parametrize(
    ("script", "end", "error"),
    [
        pytest.param([(0, HEAD + TOKEN), (20, FIN)], End.CUT, "incomplete body", id="cut"),
        pytest.param([(0, HEAD + TOKEN), (20, RST)], End.CUT, "connection reset", id="reset"),
        pytest.param([(20, FIN)], End.CUT, "closed before a response", id="no response"),
    ],
)
def test_ends_are_told_through_a_proxy(script: Script, end: End, error: str) -> None:
    exchange, _ = proxied(script)
    assert (exchange.end, exchange.error.removeprefix("[Errno 104] ").lower()[: len(error)]) == (end, error)


def test_proxy_that_is_not_there_is_a_connect_error() -> None:
    with user(WireTransport(proxy="http://127.0.0.1:1")) as client:
        assert ask(client, TARGET).end is End.CONNECT_ERROR


def test_sink_that_raises_ends_the_exchange_through_a_proxy() -> None:
    class Raising(Sink):
        def on_read(self, data: bytes, at_ns: int, lag_ns: int) -> None:
            raise KeyError("a bug")

    exchange, _ = proxied([(0, HEAD + TOKEN + LAST)], Raising())
    assert (exchange.end, exchange.error) == (End.SINK_ERROR, "KeyError: 'a bug'")


def test_stream_through_a_proxy_is_stopped_when_its_greenlet_is_killed() -> None:
    exchange = Exchange()
    with ScriptedServer([[(0, HEAD + TOKEN), (200, LAST)]]) as proxy, user(WireTransport(proxy=proxy.url)) as client:
        stream = gevent.spawn(ask, client, TARGET, exchange=exchange)
        gevent.sleep(0.06)
        stream.kill()
        assert proxy.ended.wait(1)
    assert (exchange.end, exchange.reads) == (End.STOPPED, 1)


def test_environment_is_used_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer([[(0, HEAD + TOKEN + LAST)]]) as proxy, ScriptedServer([[(0, HEAD + LAST)]]) as server:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.delenv("no_proxy", raising=False)
        with user() as client:
            assert ask(client, server.url).end is End.COMPLETE
        assert (len(proxy.requests), len(server.requests)) == (0, 1)
        with user(WireTransport(proxy="env")) as client:
            assert ask(client, server.url).end is End.COMPLETE
        assert (len(proxy.requests), len(server.requests)) == (1, 1)


def test_tunnel_that_is_refused_is_a_connect_error() -> None:
    def refuse(sock: Any, _: object) -> None:
        sock.recv(65536)
        sock.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    proxy = StreamServer(("127.0.0.1", 0), refuse)
    proxy.start()
    with user(WireTransport(proxy=f"http://127.0.0.1:{proxy.server_port}")) as client:
        exchange = ask(client, "https://model.example/")
    proxy.stop()
    assert (exchange.end, exchange.error) == (End.CONNECT_ERROR, "407 Proxy Authentication Required")
