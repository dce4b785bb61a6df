"""Loop lag, CPU and clock steps are measured against a clock we hold."""

from __future__ import annotations

import time

import pytest

from llm_locust.plugin.health import CPU_OVER_NS, TICK_NS, Health, HealthBook, LoopLag


class FakeClock:
    """A clock that goes where it is put."""

    source = "kernel"

    def __init__(self) -> None:
        self.at_ns = 1_000_000_000
        self.steps = 0

    def now_ns(self) -> int:
        """The instant it was put to."""
        return self.at_ns


def test_lag_is_zero_when_the_timer_is_punctual() -> None:
    """A tick at its time adds a lag of 0."""
    clock = FakeClock()
    lag = LoopLag(clock.now_ns)
    for _ in range(5):
        lag.tick()
        clock.at_ns += TICK_NS
    taken = lag.take()
    assert (taken.count, taken.maximum) == (5, 0)
    assert lag.take().count == 0


def test_lag_does_not_add_up_when_each_tick_is_a_little_late() -> None:
    """Lateness is counted against the timer's grid: 3 ms late each time is 3 ms, not 0 after the first."""
    clock = FakeClock()
    lag = LoopLag(clock.now_ns)
    lag.tick()
    clock.at_ns += 3_000_000
    for _ in range(4):
        clock.at_ns += TICK_NS
        lag.tick()
    assert lag.take().total == 4 * 3_000_000


def test_lag_counts_swallowed_ticks_when_the_hub_was_held() -> None:
    """A hub held for five periods delays one tick by four; those that it swallowed were late by three, two, one."""
    clock = FakeClock()
    lag = LoopLag(clock.now_ns)
    lag.tick()
    clock.at_ns += 5 * TICK_NS
    lag.tick()
    taken = lag.take()
    assert taken.count == 5  # 0 at first
    assert taken.total == (4 + 3 + 2 + 1) * TICK_NS
    assert taken.maximum == 4 * TICK_NS


def test_health_reports_clock_steps_once() -> None:
    """A step of the wall clock is told in the report after it, and not again."""
    clock = FakeClock()
    health = Health(clock)
    clock.steps += 1
    assert health.take()["clock_steps"] == 1
    assert health.take()["clock_steps"] == 0


def test_health_measures_cpu_over_a_second_at_least() -> None:
    """The last report of a run follows the one before within ms: a tick of CPU in it is no load of 143 %."""
    clock = FakeClock()
    health = Health(clock)
    assert health.take()["cpu_percent"] is None
    clock.at_ns += CPU_OVER_NS
    told = health.take()["cpu_percent"]
    assert told >= 0.0
    clock.at_ns += 7_000_000
    until_s = time.process_time() + 0.03
    while time.process_time() < until_s:
        pass
    assert health.take()["cpu_percent"] == told


def test_book_keeps_no_cpu_where_none_is_known() -> None:
    """A run that was over before a second had passed says nothing of its CPU."""
    book = HealthBook()
    book.add(Health(FakeClock()).take())
    assert book.cpu_percent is None


def test_book_keeps_the_worst_cpu_and_all_lags() -> None:
    """The verdict of a stage is about its worst worker."""
    clock = FakeClock()
    book = HealthBook()
    assert (book.loop_lag_p99_ms, book.cpu_percent) == (None, None)
    for cpu_percent, late_ns in ((20.0, 0), (95.0, 7_000_000)):
        lag = LoopLag(clock.now_ns)
        lag.tick()
        clock.at_ns += TICK_NS + late_ns
        lag.tick()
        book.add({"cpu_percent": cpu_percent, "lag": lag.take().encode(), "clock_steps": 1})
    assert book.cpu_percent == 95.0
    assert book.clock_steps == 2
    assert book.loop_lag_p99_ms == pytest.approx(7.0, rel=0.005)
