"""Work that can wait takes its turn between two looks at the sockets."""

from __future__ import annotations

from collections.abc import Callable

import gevent
from gevent import get_hub, socket

from llm_locust.wire.turn import give_way, turnstile


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
