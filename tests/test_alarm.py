"""The alarms: exact where the platform has a timer of its own, the loop's elsewhere."""

import time
from pathlib import Path

import gevent
import pytest
from gevent.event import Event

from llm_locust.alarm import LoopAlarm, TimerFdAlarm


@pytest.mark.parametrize("kind", [TimerFdAlarm, LoopAlarm])
def test_alarm_rings_once_at_the_instant_set_last(kind: type[TimerFdAlarm] | type[LoopAlarm]) -> None:
    """Not before it, not twice; an instant in the past rings at once; none, or a closed alarm, never."""
    rings: list[int] = []
    rung = Event()

    def ring() -> None:
        rings.append(time.monotonic_ns())
        rung.set()

    alarm = kind(ring)
    start_ns = time.monotonic_ns()
    alarm.ring_at(start_ns + 10_000_000_000)
    alarm.ring_at(start_ns + 20_000_000)
    assert rung.wait(5)
    assert start_ns + 20_000_000 <= rings[0] < start_ns + 1_000_000_000
    rung.clear()
    alarm.ring_at(0)
    assert rung.wait(5)
    rung.clear()
    alarm.ring_at(time.monotonic_ns() + 10_000_000)
    alarm.ring_at(None)
    assert not rung.wait(0.03)
    alarm.close()
    alarm.ring_at(0)
    assert not rung.wait(0.03)
    assert len(rings) == 2


@pytest.mark.linux
def test_closing_gives_the_file_back() -> None:
    """Each run has an alarm of its own: they must not add up."""
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        TimerFdAlarm(lambda: None).close()
    gevent.sleep(0.01)  # gevent closes a watched file in the loop's next turn
    assert len(list(Path("/proc/self/fd").iterdir())) == before
