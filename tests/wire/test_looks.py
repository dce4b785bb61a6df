"""Looks at the sockets: kept apart while many exchanges run; and how long a read may have waited unseen."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from time import monotonic_ns

import gevent
import pytest
from gevent import monkey

from llm_locust.wire.looks import FEW_EVENTS, FROM_STREAMS, INTERVAL_NS, CoreWait, Looks, looks
from tests.wire.scripted import HEAD, LAST, ScriptedServer, Sink, ask, chunk, user

MS = 1_000_000
EVENT = chunk(b"data: x\n\n")

sleep_really = monkey.get_original("time", "sleep")


class Watching(Sink):
    """Notes for each read how long its bytes may have waited unseen."""

    def __init__(self) -> None:
        super().__init__()
        self.unseen_ns: list[int] = []

    def on_read(self, data: bytes, at_ns: int, lag_ns: int) -> None:
        self.unseen_ns.append(looks().unseen_ns())
        super().on_read(data, at_ns, lag_ns)

    @property
    def two_at_once(self) -> tuple[int, int]:
        """The first read of two events: the lag of its stamp, and how long it may have waited unseen."""
        place = next(n for n, (data, _, _) in enumerate(self.reads) if data.count(b"data: ") == 2)
        return self.reads[place][2], self.unseen_ns[place]


def two_events(between: Callable[[ScriptedServer], None]) -> Watching:
    """Read a stream in whose middle the server sends two events, `between` them whatever is given."""
    sink = Watching()
    with ScriptedServer([[(0, HEAD), (10, EVENT), (300, LAST)]]) as server, user() as client:
        asking = gevent.spawn(ask, client, server.url, sink)
        gevent.sleep(0.1)
        server.send_now(EVENT)
        between(server)
        server.send_now(EVENT)
        asking.get(timeout=5)
    return sink


@pytest.mark.linux
def test_two_events_of_one_moment_are_known_to_be() -> None:
    """The hub slept until they came: neither can be older than a moment."""
    best = min(two_events(lambda _: None).two_at_once[1] for _ in range(3))
    assert best < 1 * MS


@pytest.mark.linux
def test_an_event_that_came_while_the_hub_was_held_is_not_taken_for_new() -> None:
    """Two events 20 ms apart in one read, the second of them a moment old: the stamp alone would not tell."""
    for _ in range(5):
        lag_ns, unseen_ns = two_events(lambda _: sleep_really(0.02)).two_at_once
        assert unseen_ns >= 20 * MS
        if 0 <= lag_ns < 1 * MS:  # the case in question; another process may have come between once
            return
    pytest.fail("the second event was never fresh")


def test_nothing_is_unseen_while_nothing_is_watched() -> None:
    assert looks().unseen_ns() == 0


class FakeWatcher:
    """A watcher that is only told to start and to stop."""

    def __init__(self) -> None:
        self.callback: Callable[[], object] | None = None

    def start(self, callback: Callable[[], object]) -> None:
        self.callback = callback

    def stop(self) -> None:
        self.callback = None

    def run(self) -> None:
        """Do what the loop would."""
        assert self.callback is not None
        self.callback()


class FakeLoop:
    """Gives out watchers, and says how many events a look has found."""

    def __init__(self) -> None:
        self.pendingcnt = 1
        self.before, self.after, self.ticks = FakeWatcher(), FakeWatcher(), FakeWatcher()

    def prepare(self, priority: int) -> FakeWatcher:
        return self.before

    def check(self, priority: int) -> FakeWatcher:
        return self.after

    def timer(self, after: float, repeat: float) -> FakeWatcher:
        return self.ticks


@pytest.mark.parametrize(
    ("streams", "stamped", "paused"), [(FROM_STREAMS, True, True), (FROM_STREAMS - 1, True, False), (80, False, False)]
)
def test_looks_are_kept_apart_while_many_streams_are_stamped(streams: int, stamped: bool, paused: bool) -> None:
    """From 50 exchanges on; never where the read's own instant is the arrival."""
    loop = FakeLoop()
    made = Looks(loop, pausing=stamped)
    for _ in range(streams):
        made.enter()
    assert loop.before.callback is not None
    loop.before.callback()
    began_ns = monotonic_ns()
    loop.before.callback()
    took_ns = monotonic_ns() - began_ns
    assert (took_ns >= INTERVAL_NS * 0.5) == paused
    for _ in range(streams):
        assert loop.before.callback is not None
        made.leave()
    assert not any(watcher.callback for watcher in (loop.before, loop.after, loop.ticks))


def watching() -> tuple[FakeLoop, Looks]:
    """Looks of a loop, while one exchange runs."""
    loop = FakeLoop()
    made = Looks(loop, pausing=True)
    made.enter()
    return loop, made


def one_look(monkeypatch: pytest.MonkeyPatch, *, work_s: float, look_s: float, others_s: float, sampled: bool) -> Looks:
    """Work, then a look, in which others had the core for `others_s`; the sample may come before the reads."""
    counted_ns = iter([round(others_s * 1e9)])
    monkeypatch.setattr(CoreWait, "take", lambda _: next(counted_ns, 0))
    loop, made = watching()
    loop.after.run()
    sleep_really(work_s)
    loop.before.run()
    sleep_really(look_s)
    loop.after.run()
    if sampled:
        loop.ticks.run()
    return made


@pytest.mark.parametrize("sampled", [False, True])
def test_every_read_of_a_look_is_told_what_others_had_of_the_core(
    monkeypatch: pytest.MonkeyPatch, sampled: bool
) -> None:
    """The hub slept, its wake-up waited 15 ms for the core: that holds for all it then reads, not for the first."""
    made = one_look(monkeypatch, work_s=0.0, look_s=0.03, others_s=0.015, sampled=sampled)
    assert min(made.unseen_ns() for _ in range(4)) >= 15 * MS
    made.leave()


def test_a_look_that_only_waited_for_the_core_did_not_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it found may have come in the 10 ms of work before it."""
    made = one_look(monkeypatch, work_s=0.01, look_s=0.005, others_s=0.02, sampled=False)
    assert made.unseen_ns() >= 15 * MS
    made.leave()


def test_a_look_that_slept_without_others_found_what_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    made = one_look(monkeypatch, work_s=0.01, look_s=0.005, others_s=0.0, sampled=True)
    assert min(made.unseen_ns() for _ in range(4)) < 1 * MS
    made.leave()


def busy(seconds: float) -> None:
    """Work."""
    until_ns = monotonic_ns() + seconds * 1e9
    while monotonic_ns() < until_ns:
        pass


def test_a_look_that_took_long_because_it_found_much_did_not_sleep() -> None:
    """What it found may have come in the 10 ms of work before it."""
    loop, made = watching()
    loop.after.run()
    busy(0.01)
    loop.before.run()
    busy(0.005)
    loop.after.run()
    assert made.unseen_ns() >= 15 * MS
    made.leave()


@pytest.mark.parametrize(("events", "since_ms"), [(FEW_EVENTS + 1, 15), (FEW_EVENTS, 5)])
def test_a_look_that_may_have_left_events_behind_does_not_count_as_one(events: int, since_ms: int) -> None:
    """The look after it finds what came before it."""
    loop, made = watching()
    loop.after.run()
    for work_s in (0.01, 0.005):
        busy(work_s)
        loop.pendingcnt = events
        loop.before.run()
        loop.after.run()
    assert since_ms * MS <= made.unseen_ns() < (since_ms + 5) * MS
    made.leave()


def test_what_a_look_did_after_its_sleep_counts() -> None:
    """What came first waited for the rest of the look."""
    loop, made = watching()
    loop.before.run()
    sleep_really(0.01)
    busy(0.005)
    loop.after.run()
    assert 5 * MS <= made.unseen_ns() < 10 * MS
    made.leave()


WAITING = """
import os, time
from llm_locust.wire.looks import CoreWait
os.sched_setaffinity(0, {CORE})
wait = CoreWait()
wait.open()
print("ready", flush=True)
until = time.monotonic() + 1.0
while time.monotonic() < until:
    pass
print(wait.take())
wait.close()
"""


@pytest.mark.linux
@pytest.mark.skipif(not os.path.exists("/proc/thread-self/schedstat"), reason="this kernel does not count it")
def test_what_others_had_of_the_core_is_known() -> None:
    """Two processes on one core: in a second each waits about half of it."""
    core = max(os.sched_getaffinity(0))
    program = WAITING.replace("CORE", str(core))
    both = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    waited_ns = []
    for process in both:
        output, _ = process.communicate(timeout=60)
        waited_ns.append(int(output.split()[1]))
    assert max(waited_ns) > 100 * MS


def test_a_core_that_is_not_counted_is_none_that_was_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("llm_locust.wire.looks._SCHEDSTAT", "/nowhere")
    wait = CoreWait()
    wait.open()
    assert wait.take() == 0
    wait.close()
