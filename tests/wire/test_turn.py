"""Work that can wait takes its turn between two looks at the sockets."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns

import gevent
import pytest
from gevent import get_hub, socket

from llm_locust.wire.looks import Looks, looks
from llm_locust.wire.turn import MOST_TURNS, give_way, turnstile


def test_each_look_at_the_sockets_lets_one_through() -> None:
    """One turn, one look: a read that is ready is served between any two turns."""
    order: list[str] = []
    ours, theirs = socket.socketpair()
    reader = get_hub().loop.io(ours.fileno(), 1)
    ours.setblocking(False)

    def read() -> None:
        order.append("read")
        ours._sock.recv(1)

    def turn() -> None:
        give_way()
        order.append("turn")
        theirs._sock.send(b"x")

    reader.start(read)
    try:
        gevent.joinall([gevent.spawn(turn) for _ in range(3)], raise_error=True)
        give_way()
    finally:
        reader.stop()
        reader.close()
        ours.close()
        theirs.close()
    assert order == ["turn", "read", "turn", "read", "turn", "read"]


@pytest.mark.parametrize(("busy_ms", "at_once"), [(0.0, 1), (3.9, 1), (4.1, 2), (6.1, 3), (500.0, 6)])
def test_long_reads_let_more_through(monkeypatch: pytest.MonkeyPatch, busy_ms: float, at_once: int) -> None:
    """A worker that reads all the time would start next to nothing."""
    monkeypatch.setattr(Looks, "busy_ns", lambda _: int(busy_ms * 1e6))
    order: list[str] = []
    look = get_hub().loop.check()
    look.start(lambda: order.append("look"))
    try:
        for number in range(6):
            turnstile().call(lambda number=number: order.append(str(number)))  # type: ignore[misc]
        while len(order) < 6 or turnstile().waiting:
            gevent.sleep(0.001)
    finally:
        look.stop()
        look.close()
    turns = [turn.split() for turn in " ".join(order).split("look")]
    wanted = [[str(number) for number in range(first, min(first + at_once, 6))] for first in range(0, 6, at_once)]
    assert [turn for turn in turns if turn] == wanted


def test_one_that_raises_takes_no_turn_from_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """As Ctrl-C would, and while others ask for a turn."""
    monkeypatch.setattr(Looks, "busy_ns", lambda _: 10_000_000)
    monkeypatch.setattr(get_hub(), "handle_error", lambda *_: None)
    served: list[str] = []

    def broken() -> None:
        turnstile().call(lambda: served.append("asked meanwhile"))
        raise KeyboardInterrupt

    turnstile().call(lambda: served.append("first"))
    turnstile().call(broken)
    for name in ("third", "fourth"):
        turnstile().call(lambda name=name: served.append(name))  # type: ignore[misc]
    while turnstile().waiting:
        gevent.sleep(0.001)
    assert served == ["first", "third", "fourth", "asked meanwhile"]


def test_a_pause_of_the_process_lets_no_crowd_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Looks, "busy_ns", lambda _: 60_000_000_000)
    left: list[int] = []
    for _ in range(2 * MOST_TURNS):
        turnstile().call(lambda: left.append(turnstile().waiting))
    give_way()
    give_way()
    assert len(left) == 2 * MOST_TURNS
    assert left[MOST_TURNS - 1] >= MOST_TURNS


def test_how_long_the_reads_take_is_known() -> None:
    """From the end of the look that found them; 0 while no exchange runs."""
    assert looks().busy_ns() == 0
    looks().enter()
    try:
        until_ns = monotonic_ns() + 3_000_000
        while monotonic_ns() < until_ns:
            pass
        assert 3_000_000 <= looks().busy_ns() < 60_000_000
        gevent.sleep(0.001)
        assert looks().busy_ns() < 3_000_000
    finally:
        looks().leave()


def test_a_turn_is_given_in_order_and_once() -> None:
    """First come, first served; who was served is forgotten."""
    served: list[int] = []

    def serve(number: int) -> Callable[[], object]:
        return lambda: served.append(number)

    for number in range(5):
        turnstile().call(serve(number))
    give_way()
    give_way()
    assert served == [0, 1, 2, 3, 4]


def test_a_greenlet_killed_in_the_queue_holds_nobody_up() -> None:
    """The turn of a dead greenlet passes."""
    waiting = gevent.spawn(give_way)
    gevent.sleep(0)
    waiting.kill()
    give_way()
    assert waiting.dead
