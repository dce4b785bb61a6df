"""A worker's view of the master's clock; the doorway before the gates of runs."""

from __future__ import annotations

import gevent
import pytest
from hypothesis import given
from hypothesis import strategies as st
from locust.exception import StopUser

from llm_locust.load.gate import Gate
from llm_locust.load.stage import STEADY, StageOrder
from llm_locust.measure.record import Outcome
from llm_locust.plugin.doorway import Doorway
from llm_locust.plugin.messages import CLOCK_SAMPLES, ClockSync


def test_clock_takes_the_round_trip_that_was_quickest() -> None:
    """Master − worker is 1000 ns; a slow way back is wrong by half of it, the quick one by nothing."""
    sync = ClockSync("here")
    assert (sync.known, sync.offset_ns, sync.uncertainty_ns) == (False, 0, None)
    sync.add(sent_ns=0, master_ns=1_010, received_ns=500, master_identity="there")
    assert (sync.offset_ns, sync.uncertainty_ns) == (760, 250)
    sync.add(sent_ns=1_000, master_ns=2_010, received_ns=1_020, master_identity="there")
    assert (sync.offset_ns, sync.uncertainty_ns) == (1_000, 10)
    assert sync.to_worker_ns(5_000) == 4_000


def test_clock_forgets_old_samples() -> None:
    """Clocks drift: a quick sample of long ago gives way."""
    sync = ClockSync("here")
    sync.add(0, 1_000, 2, "there")
    for n in range(CLOCK_SAMPLES):
        sync.add(n * 100, n * 100 + 5_050, n * 100 + 100, "there")
    assert sync.offset_ns == 5_000


@given(
    offset_ns=st.integers(-(10**12), 10**12),
    trips=st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**7)), min_size=1, max_size=20),
)
def test_clock_is_right_to_within_what_it_says(offset_ns: int, trips: list[tuple[int, int]]) -> None:
    """Whatever the ways there and back took, the true offset lies within the uncertainty."""
    sync, at_ns = ClockSync("here"), 0
    for there_ns, back_ns in trips:
        sync.add(at_ns, at_ns + there_ns + offset_ns, at_ns + there_ns + back_ns, "there")
        at_ns += there_ns + back_ns + 1
    assert sync.uncertainty_ns is not None
    assert abs(sync.offset_ns - offset_ns) <= sync.uncertainty_ns + 1


def test_clock_of_the_same_kernel_is_the_workers_own() -> None:
    """No round trip is as exact as a clock that both read: a slow way back moves nothing."""
    sync = ClockSync("here")
    sync.add(sent_ns=0, master_ns=100, received_ns=1_000_000, master_identity="here")
    assert (sync.known, sync.offset_ns, sync.uncertainty_ns) == (True, 0, 0)


def test_clock_of_another_kernel_with_the_same_name_is_not_shared() -> None:
    """A machine woken from the same image is 5 s on: what the round trips say counts."""
    sync = ClockSync("here")
    sync.add(sent_ns=0, master_ns=5_000_000_500, received_ns=1_000, master_identity="here")
    assert (sync.offset_ns, sync.uncertainty_ns) == (5_000_000_000, 500)


def test_clocks_without_a_name_are_not_shared() -> None:
    """Where neither side can name its clock, they may still be two."""
    sync = ClockSync("")
    sync.add(sent_ns=0, master_ns=100, received_ns=1_000, master_identity="")
    assert (sync.offset_ns, sync.uncertainty_ns) == (-400, 500)


class User:
    """Somebody who asks for leave."""


def open_gate() -> Gate:
    """A gate that lets everybody through."""
    gate = Gate(lambda: 10)
    gate.begin_stage(StageOrder(number=0, label="a", worker="w", users=1, shares=((0, (("w", 1),)),), seed=1))
    gate.open(0, STEADY)
    return gate


def test_user_waits_in_the_doorway_until_there_is_a_run() -> None:
    """Locust may start users before the worker knows its run."""
    doorway, user = Doorway(), User()
    waiting = gevent.spawn(doorway.admit, user)
    gevent.idle()
    assert not waiting.ready()
    doorway.lead_to(open_gate())
    assert waiting.get(timeout=1).stage == "a"


def test_ticket_goes_back_to_the_gate_that_gave_it() -> None:
    """A request that ends after the next run began does not count there."""
    doorway, user = Doorway(), User()
    first, second = open_gate(), open_gate()
    doorway.lead_to(first)
    ticket = doorway.admit(user)
    doorway.lead_to(second)
    assert (first.in_flight, second.in_flight) == (1, 0)
    doorway.finished(user, ticket, Outcome.OK)
    assert (first.in_flight, second.in_flight) == (0, 0)


def test_user_that_left_gets_no_ticket() -> None:
    """Leave is passed on to the gate of the run."""
    doorway, user = Doorway(), User()
    doorway.lead_to(open_gate())
    doorway.leave(user)
    with pytest.raises(StopUser):
        doorway.admit(user)
