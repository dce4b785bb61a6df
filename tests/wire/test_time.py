"""When a byte came: kernel stamps, late reads, the wall clock's steps, forks."""

from __future__ import annotations

import os
import subprocess
import sys
from statistics import median
from time import monotonic_ns, time_ns

import gevent
import pytest

from llm_locust.wire import clock as clock_module
from llm_locust.wire.clock import Clock, get_clock, wall_offset_ns
from llm_locust.wire.connection import open_connection
from llm_locust.wire.types import USER_TIME, End
from tests.wire.scripted import HEAD, LAST, ScriptedServer, Sink, ask, chunk, hold_until, user, whole

TOKEN = chunk(b"data: x\n\n")
SECOND_NS = 1_000_000_000


@pytest.mark.linux
def test_every_read_is_stamped_from_the_first_one_on() -> None:
    with ScriptedServer([[(0, HEAD + TOKEN), (2, TOKEN), (4, TOKEN), (6, LAST)]]) as server:
        for _ in range(20):
            with user() as client:
                sink = Sink()
                exchange = ask(client, server.url, sink)
                assert exchange.stamped_reads == exchange.reads == len(sink.reads)
                assert all(0 <= lag_ns < 50_000_000 for _, _, lag_ns in sink.reads)


@pytest.mark.linux
def test_stamp_is_the_instant_of_sending() -> None:
    class Sending(Sink):
        sent_ns: list[int] = []  # noqa: RUF012  # one instance

    sink = Sending()
    with ScriptedServer([[(0, HEAD), (500, LAST)]]) as server, user() as client:
        stream = gevent.spawn(ask, client, server.url, sink)
        gevent.sleep(0.05)
        for _ in range(20):
            sink.sent_ns.append(monotonic_ns())
            server.send_now(TOKEN)
            gevent.sleep(0.005)
        stream.join()
    errors_ns = [at_ns - sent_ns for (_, at_ns, _), sent_ns in zip(sink.reads, sink.sent_ns, strict=True)]
    assert min(errors_ns) >= 0
    assert median(errors_ns) < 1_000_000


@pytest.mark.linux
def test_read_lag_tells_when_the_hub_was_held() -> None:
    """The stamp stays true, and the lag says how late the read was."""
    sink = Sink()
    with ScriptedServer([[(0, HEAD), (200, LAST)]]) as server, user() as client:
        stream = gevent.spawn(ask, client, server.url, sink)
        gevent.sleep(0.05)
        sent_ns = monotonic_ns()
        server.send_now(TOKEN)
        hold_until(sent_ns + 50_000_000)
        stream.join()
    _, at_ns, lag_ns = sink.reads[0]
    assert 0 <= at_ns - sent_ns < 45_000_000
    assert lag_ns >= sent_ns + 50_000_000 - at_ns


def test_reads_carry_user_times_when_the_kernel_does_not_stamp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(get_clock(), "source", "user")
    sink = Sink()
    with ScriptedServer([[(0, HEAD + TOKEN), (20, TOKEN + LAST)]]) as server, user() as client:
        before_ns = monotonic_ns()
        exchange = ask(client, server.url, sink)
    assert (exchange.end, exchange.reads, exchange.stamped_reads) == (End.COMPLETE, 2, 0)
    assert [lag_ns for _, _, lag_ns in sink.reads] == [USER_TIME, USER_TIME]
    assert before_ns < sink.reads[0][1] < sink.reads[1][1] < monotonic_ns()


def test_reads_carry_user_times_when_the_system_has_no_recvmsg(monkeypatch: pytest.MonkeyPatch) -> None:
    class WithoutRecvmsg:
        def __init__(self, raw: object) -> None:
            self.recv_into = raw.recv_into  # type: ignore[attr-defined]
            self.send = raw.send  # type: ignore[attr-defined]

    def opened(*args: object) -> object:
        connection = open_connection(*args)  # type: ignore[arg-type]
        connection.raw = WithoutRecvmsg(connection.raw)  # type: ignore[assignment]
        return connection

    monkeypatch.setattr("llm_locust.wire.transport.open_connection", opened)
    sink = Sink()
    with ScriptedServer([[(0, HEAD + TOKEN + LAST)]]) as server, user() as client:
        exchange = ask(client, server.url, sink)
    assert (exchange.end, exchange.stamped_reads, sink.reads[0][2]) == (End.COMPLETE, 0, USER_TIME)


@pytest.mark.linux
@pytest.mark.parametrize("step_ns", [3_600 * SECOND_NS, -3_600 * SECOND_NS, 2_000_000, -2_000_000])
def test_reads_turn_to_user_times_when_the_wall_clock_steps(monkeypatch: pytest.MonkeyPatch, step_ns: int) -> None:
    """A step that nobody has noticed yet is seen in the first stamp after it."""
    clock = get_clock()
    steps, true_offset_ns = clock.steps, clock.offset_ns
    sink = Sink()
    # The kernel's stamps cannot be moved; an exchange that began under another offset sees the same difference.
    monkeypatch.setattr(clock, "offset_ns", true_offset_ns - step_ns)
    script = [(0, HEAD), (40, TOKEN), (60, TOKEN + LAST)]
    with ScriptedServer([script, [(0, HEAD + TOKEN + LAST)]]) as server, user() as client:
        exchange = ask(client, server.url, sink)
        assert exchange.clock_step
        assert exchange.stamped_reads == 0
        assert [lag_ns for _, _, lag_ns in sink.reads] == [USER_TIME, USER_TIME]
        assert clock.steps == steps + 1
        assert abs(clock.offset_ns - true_offset_ns) < 100_000
        later = ask(client, server.url)
    assert (later.clock_step, later.stamped_reads) == (False, 1)
    assert exchange.end_ns is not None
    assert exchange.start_ns < sink.reads[0][1] < sink.reads[1][1] <= exchange.end_ns


def test_exchange_says_so_when_the_clock_stepped_without_a_read_after_it() -> None:
    clock = get_clock()
    with ScriptedServer([[(0, HEAD + TOKEN), (50, LAST)]]) as server, user() as client:
        stream = gevent.spawn(ask, client, server.url)
        gevent.sleep(0.02)
        clock.steps += 1
        stream.join()
    assert stream.value.clock_step


def test_clock_counts_a_step_and_takes_the_new_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = get_clock()
    steps, offset_ns = clock.steps, clock.offset_ns
    monkeypatch.setattr(clock_module, "wall_offset_ns", lambda: offset_ns + 900_000)
    clock.check()
    assert (clock.steps, clock.offset_ns) == (steps, offset_ns + 900_000)
    monkeypatch.setattr(clock_module, "wall_offset_ns", lambda: offset_ns + 2_000_000)
    clock.check()
    assert (clock.steps, clock.offset_ns) == (steps + 1, offset_ns + 2_000_000)
    monkeypatch.undo()
    clock.check()


def test_clock_is_checked_each_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_module, "CHECK_EVERY_S", 0.01)
    clock = Clock()
    clock.offset_ns -= 5_000_000
    gevent.sleep(0.05)
    assert clock.steps == 1
    clock.close()
    clock.offset_ns -= 5_000_000
    gevent.sleep(0.05)
    assert clock.steps == 1


def test_clock_turns_monotonic_instants_into_epoch() -> None:
    assert abs(get_clock().epoch_ns(monotonic_ns()) - time_ns()) < 1_000_000
    spread = [wall_offset_ns() for _ in range(100)]
    assert max(spread) - min(spread) < 1_000_000


FORKED = """
import os, sys, gevent
from llm_locust.wire.clock import get_clock
from tests.wire.scripted import HEAD, LAST, ScriptedServer, ask, chunk, user
first = get_clock()
pid = gevent.fork()
if pid:
    os._exit(os.waitpid(pid, 0)[1] >> 8)
assert get_clock() is not first and get_clock().pid == os.getpid()
with ScriptedServer([[(0, HEAD + chunk(b"data: x")), (5, LAST)]]) as server, user() as client:
    exchange = ask(client, server.url)
assert exchange.end.name == "COMPLETE", exchange
assert exchange.reads == 1 and (get_clock().source == "user" or exchange.stamped_reads == 1), exchange
os._exit(7)
"""

UNTOUCHED = """
import gc, socket, ssl, sys
from gevent import monkey; monkey.patch_all()
import gevent, httpx
before = set(map(id, gc.get_objects()))
import llm_locust.wire.client
made = [o for o in gc.get_objects() if id(o) not in before
        and isinstance(o, (socket.socket, ssl.SSLContext, httpx.Client, gevent.Greenlet))]
sys.exit(f"{made}" if made or gevent.hub._get_hub() is not None else 0)
"""


@pytest.mark.parametrize(
    ("program", "code"), [pytest.param(FORKED, 7, id="fork"), pytest.param(UNTOUCHED, 0, id="import")]
)
def test_process(program: str, code: int) -> None:
    """A forked process has its own clock; importing makes no socket, hub, client, greenlet or TLS context."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=60, cwd=os.getcwd()
    )
    assert done.returncode == code, done.stderr


def test_peerless_head_is_stamped_too() -> None:
    with ScriptedServer([[(0, whole(b"x"))]]) as server, user() as client:
        sink = Sink()
        exchange = ask(client, server.url, sink)
    assert exchange.headers_ns == sink.heads[0][2] == sink.reads[0][1]
