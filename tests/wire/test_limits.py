"""Each of the four limits ends the exchange at its instant, and closes the connection."""

from __future__ import annotations

import _socket

import pytest

from llm_locust.wire.types import End, Exchange, Limits
from tests.wire.scripted import (
    FIN,
    HEAD,
    LAST,
    ScriptedServer,
    Sink,
    ask,
    best_of_three,
    chunk,
    hold_until,
    user,
    whole,
)

TOKEN = chunk(b"data: x\n\n")
COMMENT = chunk(b": keep-alive\n\n")
NONE = Limits(0, 0, 0, 0)
TOLERANCE_MS = 5


def since_start_ms(exchange: Exchange) -> float:
    assert exchange.end_ns is not None
    return (exchange.end_ns - exchange.start_ns) / 1e6


@pytest.mark.parametrize(
    ("script", "limits", "end", "at_ms"),
    [
        pytest.param([(0, HEAD)], Limits(0, 0.1, 0, 0), End.TIMEOUT_FIRST_TOKEN, 100, id="first token: head only"),
        pytest.param([(500, HEAD)], Limits(0, 0.1, 0, 0), End.TIMEOUT_FIRST_TOKEN, 100, id="first token: nothing"),
        pytest.param(
            [(0, HEAD), *[(at, COMMENT) for at in range(10, 300, 20)]],
            Limits(0, 0.1, 0, 0),
            End.TIMEOUT_FIRST_TOKEN,
            100,
            id="first token: comments only",
        ),
        pytest.param(
            [(0, HEAD), *[(at, TOKEN) for at in range(10, 300, 20)]],
            Limits(0, 5, 0.2, 0.1),
            End.TIMEOUT_TOTAL,
            100,
            id="total in mid-stream",
        ),
        pytest.param([(500, HEAD)], Limits(0, 0, 0, 0.1), End.TIMEOUT_TOTAL, 100, id="total before the head"),
        pytest.param([(0, HEAD), (30, TOKEN)], Limits(0, 0, 0, 0.1), End.TIMEOUT_TOTAL, 100, id="total alone"),
    ],
)
def test_exchange_ends_at_its_limit(script: list[tuple[float, bytes]], limits: Limits, end: End, at_ms: float) -> None:
    def measure_ms() -> float:
        with ScriptedServer([script]) as server, user() as client:
            exchange = ask(client, server.url, limits=limits)
            assert exchange.end is end
            assert server.ended.wait(1), "the connection is closed"
            return since_start_ms(exchange)

    best_of_three(measure_ms, least=at_ms - 0.1, most=at_ms + TOLERANCE_MS)


def test_stall_counts_from_the_last_token_when_comments_go_on() -> None:
    """Case A39 in a hundredth of its time: the token at 100, comments on and on, 150 without a token."""
    script = [(0, HEAD), (100, TOKEN), *[(at, COMMENT) for at in range(120, 600, 20)]]

    def measure_ms() -> float:
        sink = Sink()
        with ScriptedServer([script]) as server, user() as client:
            exchange = ask(client, server.url, sink, Limits(1, 1, 0.15, 5))
            assert exchange.end is End.TIMEOUT_STALL
            assert len(sink.reads) > 5
            assert server.ended.wait(1)
            assert exchange.end_ns is not None
            return (exchange.end_ns - next(at_ns for data, at_ns, _ in sink.reads if b"data" in data)) / 1e6

    best_of_three(measure_ms, least=149.9, most=150 + TOLERANCE_MS)


def test_stall_does_not_end_a_stream_whose_tokens_go_on() -> None:
    script = [(0, HEAD), *[(at, TOKEN) for at in range(10, 310, 30)], (310, LAST)]
    with ScriptedServer([script]) as server, user() as client:
        assert ask(client, server.url, limits=Limits(1, 0.1, 0.1, 5)).end is End.COMPLETE


def test_limit_does_not_end_a_stream_when_the_token_waits_in_the_socket() -> None:
    """A hub held past the limit finds the limit and the bytes at once: the bytes were in time."""

    class Holding(Sink):
        def on_read(self, data: bytes, at_ns: int, lag_ns: int) -> None:
            if not self.reads:
                hold_until(at_ns + 80_000_000)
                server.send_now(TOKEN)
                hold_until(at_ns + 120_000_000)
            super().on_read(data, at_ns, lag_ns)

    with ScriptedServer([[(0, HEAD), (20, TOKEN), (170, LAST)]]) as server, user() as client:
        assert ask(client, server.url, Holding(), Limits(1, 1, 0.1, 5)).end is End.COMPLETE


def test_nothing_ends_an_exchange_when_all_limits_are_zero() -> None:
    with ScriptedServer([[(0, HEAD), (150, TOKEN), (300, LAST)]]) as server, user() as client:
        assert ask(client, server.url, limits=NONE).end is End.COMPLETE


@pytest.fixture
def deaf_url() -> object:
    """A listener whose queue is full: a connect to it neither succeeds nor fails."""
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    waiting = []
    for _ in range(4):
        sock = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.connect_ex(listener.getsockname())
        waiting.append(sock)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    for sock in [*waiting, listener]:
        sock.close()


@pytest.mark.linux
@pytest.mark.parametrize(
    ("limits", "end"),
    [
        (Limits(0.1, 5, 5, 5), End.TIMEOUT_CONNECT),
        (Limits(5, 0.1, 5, 5), End.TIMEOUT_FIRST_TOKEN),
        (Limits(5, 5, 5, 0.1), End.TIMEOUT_TOTAL),
    ],
)
def test_connecting_ends_at_the_first_limit(deaf_url: str, limits: Limits, end: End) -> None:
    def measure_ms() -> float:
        with user() as client:
            exchange = ask(client, deaf_url, limits=limits)
        assert (exchange.end, exchange.status, exchange.connect_ns) == (end, None, None)
        assert exchange.error.endswith("within 0.1 s")
        return since_start_ms(exchange)

    best_of_three(measure_ms, least=99, most=100 + TOLERANCE_MS)


def test_connect_limit_ends_with_the_connection() -> None:
    with ScriptedServer([[(200, whole(b"x")), (210, FIN)]]) as server, user() as client:
        assert ask(client, server.url, limits=Limits(0.05, 5, 5, 5)).end is End.COMPLETE
