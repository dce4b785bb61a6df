"""Connections: kept, found closed, sent again, refused, stopped; and requests too big for one write."""

from __future__ import annotations

import gc
import gzip
from time import monotonic_ns, thread_time_ns

import gevent
import httpx
import pytest

from llm_locust.wire.client import http_client
from llm_locust.wire.transport import WireTransport
from llm_locust.wire.types import End, Exchange, Limits
from tests.wire.scripted import FIN, HEAD, LAST, RST, ScriptedServer, Sink, ask, best_of_three, chunk, user, whole

OK = whole(b"data: x\n\n")


def test_connection_is_reused_when_the_server_keeps_it() -> None:
    with ScriptedServer([[(0, OK)]]) as server, user() as client:
        first, second = ask(client, server.url), ask(client, server.url)
        assert [number for number, _, _ in server.requests] == [1, 1]
    assert first.connect_ns is not None
    assert first.connect_ns > 0
    assert second.connect_ns is None
    assert (first.peer, second.peer) == (httpx.URL(server.url).netloc.decode(),) * 2
    for exchange in (first, second):
        assert exchange.sent_ns is not None
        assert exchange.headers_ns is not None
        assert exchange.end_ns is not None
        assert exchange.start_ns < exchange.sent_ns
        assert exchange.start_ns < exchange.headers_ns <= exchange.end_ns


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(whole(b"x", b"Connection: close"), id="Connection: close"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", id="HTTP/1.0"),
        pytest.param(OK + b"stray", id="stray bytes"),
        pytest.param(OK + OK, id="a second response"),
        pytest.param(HEAD + chunk(b"x") + LAST + b"\r\n\r\nHTTP", id="bytes after the last chunk"),
    ],
)
def test_connection_is_not_reused_when_it_is_spoilt(answer: bytes) -> None:
    with ScriptedServer([[(0, answer)], [(0, OK)]]) as server, user() as client:
        first, second = ask(client, server.url), ask(client, server.url)
        assert [number for number, _, _ in server.requests] == [1, 2]
    assert (first.end, second.end, second.resent) == (End.COMPLETE, End.COMPLETE, False)


def test_connection_is_not_reused_when_bytes_came_while_it_was_idle() -> None:
    with ScriptedServer([[(0, OK), (20, b"stray")], [(0, OK)]]) as server, user() as client:
        ask(client, server.url)
        gevent.sleep(0.05)
        second = ask(client, server.url)
        assert [number for number, _, _ in server.requests] == [1, 2]
    assert (second.end, second.status) == (End.COMPLETE, 200)


@pytest.mark.parametrize("end", [FIN, RST])
def test_connection_is_replaced_when_the_server_closed_it_while_idle(end: bytes) -> None:
    with ScriptedServer([[(0, OK), (10, end)], [(0, OK)]]) as server, user() as client:
        ask(client, server.url)
        gevent.sleep(0.05)
        second = ask(client, server.url)
    assert (second.end, second.resent) == (End.COMPLETE, False)
    assert second.connect_ns is not None


@pytest.mark.parametrize("end", [FIN, RST])
def test_request_is_sent_once_more_when_a_kept_connection_ends_before_a_byte(end: bytes) -> None:
    """The race with an idle close: the request was on its way when the server closed."""
    with ScriptedServer([[(0, OK)], [(0, end)], [(0, OK)]]) as server, user() as client:
        ask(client, server.url)
        sink = Sink()
        second = ask(client, server.url, sink)
        assert [number for number, _, _ in server.requests] == [1, 1, 2]
    assert (second.end, second.resent, sink.body) == (End.COMPLETE, True, b"data: x\n\n")
    assert second.connect_ns is not None
    assert second.sent_ns is not None
    assert second.start_ns < second.sent_ns - second.connect_ns


def test_request_is_sent_only_once_more() -> None:
    with ScriptedServer([[(0, OK)], [(0, FIN)], [(0, FIN)]]) as server, user() as client:
        ask(client, server.url)
        second = ask(client, server.url)
        assert len(server.requests) == 3
    assert (second.end, second.error, second.resent) == (End.CUT, "closed before a response", True)


def test_request_is_not_sent_at_all_when_the_new_connection_is_refused() -> None:
    with ScriptedServer([[(0, OK)], [(20, FIN)]]) as server, user() as client:
        ask(client, server.url)
        server.stop_listening()
        second = ask(client, server.url)
    assert (second.end, second.resent, second.sent_ns) == (End.CONNECT_ERROR, True, None)


def test_request_is_not_sent_again_when_a_byte_of_the_response_came() -> None:
    with ScriptedServer([[(0, OK)], [(0, b"HTTP/1.1 2"), (20, FIN)]]) as server, user() as client:
        ask(client, server.url)
        second = ask(client, server.url)
        assert len(server.requests) == 2
    assert (second.end, second.error, second.resent) == (End.CUT, "closed before a response", False)


def test_request_is_not_sent_again_when_the_server_worked_on_it() -> None:
    """An end more than a second after the start is no race: the server died over this request."""
    with ScriptedServer([[(0, OK)], [(1050, FIN)]]) as server, user() as client:
        ask(client, server.url)
        second = ask(client, server.url)
        assert len(server.requests) == 2
    assert (second.end, second.error, second.resent) == (End.CUT, "closed before a response", False)


def test_no_connection_is_kept_when_keep_alive_is_off() -> None:
    with ScriptedServer([[(0, OK)]]) as server, user(WireTransport(keep_alive=False)) as client:
        ask(client, server.url)
        ask(client, server.url)
        assert [number for number, _, _ in server.requests] == [1, 2]
        assert all(b"\r\nconnection: close" in head.lower() for _, head, _ in server.requests)


def test_each_user_has_a_connection_of_its_own() -> None:
    transport = WireTransport()
    with ScriptedServer([[(0, OK)]]) as server, user(transport) as one, user(transport) as other:
        for client in (one, other, one, other):
            ask(client, server.url)
        assert [number for number, _, _ in server.requests] == [1, 2, 1, 2]


def test_each_origin_has_a_connection_of_its_own() -> None:
    with ScriptedServer([[(0, OK)]]) as one, ScriptedServer([[(0, OK)]]) as other, user() as client:
        for server in (one, other, one, other):
            ask(client, server.url)
        assert (one.connections, other.connections) == (1, 1)


def test_client_closes_its_idle_connection() -> None:
    with ScriptedServer([[(0, OK)]]) as server:
        with user() as client:
            ask(client, server.url)
        assert server.ended.wait(1)


def test_connection_is_refused_with_a_reason() -> None:
    with ScriptedServer([[(0, OK)]]) as server:
        url = server.url
    with user() as client:
        exchange = ask(client, url)
    assert (exchange.end, exchange.status) == (End.CONNECT_ERROR, None)
    assert exchange.error == f"cannot connect to {httpx.URL(url).netloc.decode()}: Connection refused"
    assert exchange.end_ns is not None


def test_name_that_does_not_exist_is_a_connect_error() -> None:
    with user() as client:
        exchange = ask(client, "http://no-such-host.invalid/")
    assert exchange.end is End.CONNECT_ERROR
    assert exchange.error.startswith("cannot resolve no-such-host.invalid: ")


def test_server_is_reached_over_ipv6() -> None:
    with ScriptedServer([[(0, OK)]], host="::1") as server, user() as client:
        exchange = ask(client, server.url)
    assert exchange.end is End.COMPLETE
    assert exchange.peer.startswith("[::1]:")


def test_stream_is_stopped_when_its_greenlet_is_killed() -> None:
    """The server sees the end, the exchange keeps what came, the greenlet ends as killed."""
    sink, exchange = Sink(), Exchange()
    with ScriptedServer([[(0, HEAD), (10, chunk(b"data: x\n\n")), (300, LAST)]]) as server, user() as client:
        stream = gevent.spawn(ask, client, server.url, sink, exchange=exchange)
        gevent.sleep(0.06)
        stream.kill()
        assert server.ended.wait(1)
    assert isinstance(stream.value, gevent.GreenletExit)
    assert (exchange.end, exchange.error, sink.body) == (End.STOPPED, "GreenletExit", b"data: x\n\n")
    assert exchange.end_ns is not None


def test_connecting_is_stopped_when_its_greenlet_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = Exchange()
    monkeypatch.setattr("llm_locust.wire.transport.open_connection", lambda *_: gevent.sleep(60))
    with user() as client:
        stream = gevent.spawn(ask, client, "http://127.0.0.1:1/", exchange=exchange)
        gevent.sleep(0.01)
        stream.kill()
    assert exchange.end is End.STOPPED


def test_next_request_gets_its_own_bytes_when_a_stream_was_killed() -> None:
    """A watcher left behind would eat the bytes of the next connection with the same descriptor."""
    script = [[(0, HEAD), (60_000, LAST)], [(0, HEAD), (20, chunk(b"data: y\n\n") + LAST)]]
    with ScriptedServer(script) as server, user() as client:
        stream = gevent.spawn(ask, client, server.url)
        gevent.sleep(0.03)
        stream.kill()
        sink = Sink()
        exchange = ask(client, server.url, sink)
    assert (exchange.end, sink.body) == (End.COMPLETE, b"data: y\n\n")


@pytest.mark.parametrize("method", ["on_head", "on_read"])
def test_sink_that_raises_ends_the_exchange(method: str) -> None:
    class Raising(Sink):
        pass

    def fail(*_: object) -> int:
        raise KeyError("a bug")

    sink = Raising()
    setattr(sink, method, fail)
    with ScriptedServer([[(0, HEAD), (10, chunk(b"x")), (300, LAST)]]) as server, user() as client:
        exchange = ask(client, server.url, sink)
        assert server.ended.wait(1)
    assert (exchange.end, exchange.error) == (End.SINK_ERROR, "KeyError: 'a bug'")


def test_sink_that_blocks_ends_the_exchange() -> None:
    class Blocking(Sink):
        def on_read(self, data: bytes, at_ns: int, lag_ns: int) -> None:
            gevent.sleep(0.01)

    with ScriptedServer([[(0, OK)]]) as server, user() as client:
        exchange = ask(client, server.url, Blocking())
    assert exchange.end is End.SINK_ERROR
    assert "BlockingSwitchOutError" in exchange.error


def test_interrupt_goes_through_when_it_hits_the_sink() -> None:
    """Ctrl-C arrives in whatever code is running; swallowed there, the run would go on."""

    class Interrupted(Sink):
        def on_read(self, data: bytes, at_ns: int, lag_ns: int) -> None:
            raise KeyboardInterrupt

    exchange = Exchange()
    with ScriptedServer([[(0, OK)]]) as server, user() as client, pytest.raises(KeyboardInterrupt):
        ask(client, server.url, Interrupted(), exchange=exchange)
    assert exchange.end is End.STOPPED


@pytest.mark.parametrize("size", [0, 1, 65_536, 1_000_000, 5_000_000])
def test_body_of_any_size_arrives_whole(size: int) -> None:
    body = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    with ScriptedServer([[(0, OK)]]) as server, user() as client:
        exchange = ask(client, server.url, body=body)
        assert server.requests[0][2] == body
    assert exchange.end is End.COMPLETE
    assert exchange.sent_ns is not None


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([(50, whole(b"too long", status=b"413 Content Too Large"))], id="connection left open"),
        pytest.param([(50, whole(b"too long", status=b"413 Content Too Large")), (60, FIN)], id="connection closed"),
    ],
)
def test_sending_ends_when_a_response_comes_early(script: list[tuple[float, bytes]]) -> None:
    sink = Sink()
    with ScriptedServer([script], read_bodies=False) as server, user() as client:
        exchange = ask(client, server.url, sink, body=b"x" * 20_000_000)
        ask(client, server.url)
        assert server.connections == 2, "a connection with half a request is not used again"
    assert (exchange.end, exchange.status, sink.body) == (End.COMPLETE, 413, b"too long")
    assert exchange.sent_ns is None


def test_hub_stays_free_when_a_big_body_is_sent() -> None:
    def measure_ms() -> float:
        worst_ns = 0

        def beat() -> None:
            nonlocal worst_ns
            while True:
                before_ns = thread_time_ns()  # of the CPU: other processes do not count
                gevent.sleep(0)
                worst_ns = max(worst_ns, thread_time_ns() - before_ns)

        with ScriptedServer([[(0, OK)]]) as server, user() as client:
            ask(client, server.url)  # what is done once is done
            beating = gevent.spawn(beat)
            gevent.sleep(0)
            assert ask(client, server.url, body=b"x" * 1_000_000).end is End.COMPLETE
            beating.kill()
        return worst_ns / 1e6

    best_of_three(measure_ms, least=0, most=5)


def test_plain_requests_work_as_httpx_does() -> None:
    with ScriptedServer([[(0, whole(b'{"a":1}', b"Content-Type: application/json"))]]) as server, user() as client:
        response = client.get(server.url)
        posted = client.post(server.url, json={"b": 2})
        assert server.requests[1][2] == b'{"b":2}'
    assert (response.status_code, response.json(), posted.json()) == (200, {"a": 1}, {"a": 1})


def test_plain_response_is_inflated_once() -> None:
    packed = whole(gzip.compress(b"text"), b"Content-Encoding: gzip")
    with ScriptedServer([[(0, packed)]]) as server, user() as client:
        assert client.get(server.url).text == "text"


def test_plain_requests_raise_as_httpx_does() -> None:
    with ScriptedServer([[(0, FIN)]]) as server, user() as client, pytest.raises(httpx.ReadError):
        client.get(server.url)
    with user() as client, pytest.raises(httpx.ConnectError, match="Connection refused"):
        client.get(server.url)
    with ScriptedServer([[(5000, OK)]]) as server, user() as client, pytest.raises(httpx.ReadTimeout):
        client.get(server.url, timeout=0.05)


def test_response_is_kept_when_its_location_is_no_url() -> None:
    answer = b"HTTP/1.1 302 Found\r\nLocation: http://[\r\nContent-Length: 0\r\n\r\n"
    with ScriptedServer([[(0, answer)]]) as server, user() as client:
        exchange = ask(client, server.url)
    assert (exchange.end, exchange.status) == (End.COMPLETE, 302)


def test_header_with_a_line_break_is_refused() -> None:
    with user() as client, pytest.raises(httpx.LocalProtocolError):
        client.get("http://127.0.0.1:1/", headers={"X-A": "b\r\nX-C: d"})


def test_limits_hold_for_the_second_try_too() -> None:
    with ScriptedServer([[(0, OK)], [(0, FIN)], [(60_000, OK)]]) as server, user() as client:
        ask(client, server.url)
        exchange = ask(client, server.url, limits=Limits(1, 0.1, 1, 1))
    assert (exchange.end, exchange.resent) == (End.TIMEOUT_FIRST_TOKEN, True)


def test_client_is_light() -> None:
    transport = WireTransport()
    http_client(transport)
    begun_ns = monotonic_ns()
    clients = [http_client(transport, {"Authorization": "Bearer x"}) for _ in range(100)]
    assert (monotonic_ns() - begun_ns) / len(clients) < 1_000_000


@pytest.mark.parametrize("script", [[(0, OK)], [(0, HEAD), (1, FIN)], [(0, FIN)]], ids=["complete", "cut", "no head"])
def test_exchange_leaves_nothing_for_the_garbage_collector(script: list[tuple[float, bytes]]) -> None:
    """A collection holds the hub; so what a request made goes when the request goes."""
    with ScriptedServer([script]) as server, user() as client:
        for _ in range(3):
            ask(client, server.url)
        gc.collect()
        gc.disable()
        try:
            for _ in range(5):
                ask(client, server.url)
            assert [thing for thing in gc.get_objects() if isinstance(thing, Sink)] == []
        finally:
            gc.enable()
