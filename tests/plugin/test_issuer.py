"""A process that is told to end issues nothing more, whatever was announced before or comes after."""

from __future__ import annotations

import gevent
from gevent.pool import Group

from llm_locust.load.stage import DRAIN, STEADY, WARMUP, StageOrder
from llm_locust.plugin.collector import Collector
from llm_locust.plugin.issuer import Issuer
from llm_locust.plugin.library import Library
from llm_locust.plugin.settings import Settings

MS = 1_000_000


class Clock:
    """A clock that goes where it is put."""

    def __init__(self) -> None:
        self.at_ns = 1_000 * MS

    def now_ns(self) -> int:
        """The instant."""
        return self.at_ns


def make_issuer(clock: Clock) -> Issuer:
    """An issuer with one open stage."""
    issuer = Issuer(Collector("run", clock.now_ns, 0), clock.now_ns, Group(), Library(Settings()).of_stage)
    issuer.begin_stage(stage(0))
    issuer.open(clock.at_ns, WARMUP)
    return issuer


def stage(number: int) -> StageOrder:
    """A closed-loop stage of one worker."""
    return StageOrder(number=number, label="a", worker="w", users=1, shares=((0, (("w", 1),)),), seed=1)


def test_phase_announced_before_the_end_does_not_open_the_gate_again() -> None:
    """The window was to begin in 200 ms; the run ends now: a user that asks then gets nothing."""
    clock = Clock()
    issuer = make_issuer(clock)
    issuer.mark("a", STEADY, clock.at_ns + 200 * MS)
    issuer.close()
    clock.at_ns += 300 * MS
    asking = gevent.spawn(issuer.gate.admit, object())
    gevent.idle()
    assert not asking.ready()
    assert issuer.gate.drained
    asking.kill()


def test_message_after_the_end_does_not_open_the_gate_again() -> None:
    """The master did not know yet that this worker is being ended."""
    clock = Clock()
    issuer = make_issuer(clock)
    issuer.close()
    issuer.mark("a", STEADY, clock.at_ns)
    issuer.begin_stage(stage(1))
    issuer.open(clock.at_ns, STEADY)
    asking = gevent.spawn(issuer.gate.admit, object())
    gevent.idle()
    assert not asking.ready()
    assert (issuer.phase, issuer.number) == (DRAIN, 0)
    asking.kill()
