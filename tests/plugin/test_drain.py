"""The drain gate: it waits for streams and hand-ins, within its limit, and ends when somebody stops again."""

from __future__ import annotations

from collections.abc import Callable

import gevent
import pytest

from llm_locust.plugin.drain import AFTER_CUT_S, Cause, DrainGate, cause_of_stop, limit_of


class Crowd:
    """Streams that end at given instants of a clock that `sleep` moves on."""

    def __init__(self, *ends_s: float, hands_in_after_cut: bool = True) -> None:
        self.at_s = 100.0
        self.ends_s = ends_s
        self.hands_in_after_cut = hands_in_after_cut
        self.closed_with: float | None = None
        self.cuts = 0
        self.said: list[str] = []
        self.interrupt_at_s: list[float] = []
        self.meanwhile: Callable[[], None] | None = None

    def now_s(self) -> float:
        """The instant."""
        return self.at_s

    def sleep(self, seconds: float) -> None:
        """Let time pass; Ctrl-C comes where it was planned."""
        self.at_s += seconds
        if self.meanwhile is not None:
            step, self.meanwhile = self.meanwhile, None
            step()
        gevent.sleep(0)
        if self.interrupt_at_s and self.at_s >= self.interrupt_at_s[0]:
            self.interrupt_at_s.pop(0)
            raise KeyboardInterrupt

    def close(self, limit_s: float) -> None:
        """Remember the limit."""
        self.closed_with = limit_s

    def cut(self) -> None:
        """Count the cut."""
        self.cuts += 1

    def in_flight(self) -> int:
        """Streams that have not ended."""
        return 0 if self.cuts else sum(end_s > self.at_s for end_s in self.ends_s)

    def handed_in(self) -> bool:
        """Everything has ended; after a cut only if this crowd does hand in then."""
        return self.hands_in_after_cut if self.cuts else not self.in_flight()

    def owing(self) -> tuple[str, ...]:
        """One worker, until it has handed in."""
        return () if self.handed_in() else ("worker-1",)

    def gate(self) -> DrainGate:
        """A gate before this crowd."""
        return DrainGate(self, self.now_s, self.said.append, self.sleep)


def test_drain_waits_until_the_last_stream_has_ended() -> None:
    """A planned end waits in silence, and no longer than needed."""
    crowd = Crowd(101.0, 103.0)
    gate = crowd.gate()
    gate.drain(Cause.PLANNED, 1800.0)
    assert 103.0 <= crowd.at_s < 103.2
    assert (crowd.closed_with, crowd.cuts, crowd.said, gate.passed, gate.was_cut) == (1800.0, 0, [], True, False)


def test_drain_cuts_at_its_limit() -> None:
    """What is in flight at the limit is ended."""
    crowd = Crowd(500.0)
    gate = crowd.gate()
    gate.drain(Cause.SIGTERM, 20.0)
    assert 120.0 <= crowd.at_s < 120.2
    assert (crowd.cuts, gate.was_cut) == (1, True)


def test_ctrl_c_counts_down() -> None:
    """After Ctrl-C the user is told what is waited for, how long, and that another one ends it."""
    crowd = Crowd(112.0)
    crowd.gate().drain(Cause.CTRL_C, 30.0)
    assert crowd.said == [
        "Ctrl-C: 1 streams are still open and have 30 s to end; Ctrl-C again ends them at once",
        "Ctrl-C: 1 streams are still open and have 25 s to end; Ctrl-C again ends them at once",
        "Ctrl-C: 1 streams are still open and have 20 s to end; Ctrl-C again ends them at once",
    ]


def test_ctrl_c_inside_the_gate_ends_the_drain_at_once() -> None:
    """It is caught: left alone it would end the process without a file."""
    crowd = Crowd(500.0)
    crowd.interrupt_at_s = [101.0]
    gate = crowd.gate()
    gate.drain(Cause.CTRL_C, 30.0)
    assert crowd.at_s < 101.2
    assert (crowd.cuts, gate.passed) == (1, True)


def test_third_ctrl_c_does_not_wait_for_workers() -> None:
    """Workers that do not hand in after the cut are left behind."""
    crowd = Crowd(500.0, hands_in_after_cut=False)
    crowd.interrupt_at_s = [101.0, 102.0]
    crowd.gate().drain(Cause.CTRL_C, 30.0)
    assert crowd.at_s < 102.2


def test_drain_gives_up_on_workers_that_do_not_hand_in_after_a_cut() -> None:
    """A worker that hangs cannot hold the run for ever."""
    crowd = Crowd(500.0, hands_in_after_cut=False)
    crowd.gate().drain(Cause.SIGTERM, 20.0)
    assert 120.0 + AFTER_CUT_S <= crowd.at_s < 120.3 + AFTER_CUT_S


def test_second_stop_ends_the_drain_of_the_first() -> None:
    """Two web stops run one gate: the second cuts, and both go on when the first is done."""
    crowd = Crowd(500.0)
    gate = crowd.gate()
    order: list[str] = []

    def stop_again() -> None:
        gate.drain(Cause.PLANNED, 1800.0)
        order.append("second")

    crowd.meanwhile = lambda: order.append("spawned") or gevent.spawn(stop_again)  # type: ignore[func-returns-value]
    gate.drain(Cause.PLANNED, 1800.0)
    order.append("first")
    gevent.idle()
    assert order == ["spawned", "first", "second"]
    assert crowd.cuts == 1
    assert crowd.at_s < 101.0


@pytest.mark.parametrize(
    ("cause", "drain_s", "limit_s"),
    [
        (Cause.PLANNED, None, 1800.0),
        (Cause.CTRL_C, None, 30.0),
        (Cause.SIGTERM, None, 20.0),
        (Cause.PLANNED, 7200.0, 7200.0),
        (Cause.CTRL_C, 7200.0, 30.0),
        (Cause.SIGTERM, 5.0, 5.0),
        (Cause.PLANNED, 0.0, 0.0),
    ],
)
def test_limit_follows_the_cause(cause: Cause, drain_s: float | None, limit_s: float) -> None:
    """Planned ends 30 min, Ctrl-C 30 s, SIGTERM 20 s; --llm-drain makes them shorter, a planned one longer too."""
    assert limit_of(cause, drain_s) == limit_s


def test_cause_is_told_by_the_greenlet_that_stops() -> None:
    """Ctrl-C arrives in the main greenlet or as the exception at hand, SIGTERM and planned ends in others."""
    assert cause_of_stop(terminating=True) is Cause.CTRL_C
    assert gevent.spawn(cause_of_stop, True).get() is Cause.SIGTERM
    assert gevent.spawn(cause_of_stop, False).get() is Cause.PLANNED

    def interrupted() -> Cause:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            return cause_of_stop(terminating=False)

    assert gevent.spawn(interrupted).get() is Cause.CTRL_C
