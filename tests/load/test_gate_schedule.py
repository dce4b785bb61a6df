"""The gate of an open loop: who starts which arrival when, and what becomes of those that nobody could start."""

from __future__ import annotations

import gevent

from llm_locust.load.arrivals import ArrivalSpec
from llm_locust.load.deal import Dealer
from llm_locust.load.gate import Gate
from llm_locust.load.stage import STEADY, WARMUP
from llm_locust.measure.record import Outcome

from .stand import MS, FakeUser, S, Stand, order

CONSTANT = ArrivalSpec("constant")
EVERY_50_MS = ((0.0, 20.0),)


def test_waits_count_from_the_schedule_when_all_users_are_busy(stand: Stand) -> None:
    """Arrivals every 50 ms, cap 2, service 200 ms: starts 0,50,200,…; the wait is the users', and E2E counts it."""
    stand.add_users(2)
    stand.gate.begin_stage(order(users=2, arrivals=CONSTANT, profile=EVERY_50_MS, quota=10))
    stand.gate.open(1 * S, STEADY)
    stand.run_until(5 * S)
    assert [(r.start_ns - S) // MS for r in stand.started] == [0, 50, 200, 250, 400, 450, 600, 650, 800, 850]
    delays_ms = [(r.start_ns - (r.ticket.scheduled_ns or 0)) // MS for r in stand.started]
    assert delays_ms == [0, 0, 100, 100, 200, 200, 300, 300, 400, 400]
    assert [(r.ticket.user_wait_ns or 0) // MS for r in stand.started] == delays_ms
    from_schedule_ms = [((r.end_ns or 0) - (r.ticket.scheduled_ns or 0)) // MS for r in stand.started]
    assert (sum(from_schedule_ms) / 10, max(from_schedule_ms)) == (400, 600)
    assert [r.ticket.index for r in stand.started] == list(range(10))
    tally = stand.tally("stage")
    assert (tally.arrivals_due, tally.issued, tally.backlog_max, tally.exhausted) == (10, 10, 4, True)


def test_delay_is_ours_when_a_user_was_free(stand: Stand) -> None:
    """The alarm rings 3 ms late: no part of that delay was spent waiting for a user."""
    stand.late_ns = 3 * MS
    stand.service_ns = lambda _: 10 * MS
    stand.add_users(2)
    stand.gate.begin_stage(order(users=2, arrivals=CONSTANT, profile=EVERY_50_MS))
    stand.gate.open(1 * S, STEADY)
    stand.run_until(2 * S)
    assert len(stand.started) == 20
    assert {r.start_ns - (r.ticket.scheduled_ns or 0) for r in stand.started} == {3 * MS}
    assert {r.ticket.user_wait_ns for r in stand.started} == {0}


def test_delay_is_split_when_a_late_alarm_finds_more_arrivals_than_users(stand: Stand) -> None:
    """Two arrivals at once, one free user, alarm 3 ms late: the second waits 3 ms for us, then for a user."""
    stand.late_ns = 3 * MS
    stand.service_ns = lambda _: 100 * MS
    stand.add_users(1)
    profile = ((0.0, 1e9), (2e-9, 1e-3))  # two within 2 ns, then none for long
    stand.gate.begin_stage(order(arrivals=CONSTANT, profile=profile))
    stand.gate.open(1 * S, STEADY)
    stand.run_until(2 * S)
    first, second = stand.started[:2]
    assert (first.start_ns - S, first.ticket.user_wait_ns) == (3 * MS, 0)
    assert (second.start_ns - S, second.ticket.user_wait_ns) == (103 * MS, 100 * MS)


def test_arrivals_not_started_are_dropped_with_their_waits(stand: Stand) -> None:
    """At the stage's end the backlog is dropped and counted, never issued in the drain; its waits are told."""
    stand.service_ns = lambda _: 10 * S
    stand.add_users(2)
    stand.gate.begin_stage(order(users=2, arrivals=CONSTANT, profile=EVERY_50_MS))
    stand.gate.open(1 * S, STEADY)
    stand.gate.close(int(1.475 * S))
    stand.run_until(20 * S)
    assert len(stand.started) == 2
    assert [wait // MS for _, wait in stand.unstarted] == [375, 325, 275, 225, 175, 125, 75, 25]
    tally = stand.tally("stage")
    assert (tally.arrivals_due, tally.issued, tally.arrivals_unstarted, tally.backlog_max) == (10, 2, 8, 8)
    assert (tally.unstarted_wait_ns, tally.unstarted_wait_max_ns) == (1600 * MS, 375 * MS)
    assert tally.drained
    assert stand.gate.drained


def test_dropping_a_large_backlog_counts_all_of_it(stand: Stand) -> None:
    """20 requests a second on 32 users of 24.7 s for 300 s: 6,000 due, most unstarted (several blocks)."""
    stand.service_ns = lambda _: int(24.7 * S)
    stand.add_users(32)
    stand.gate.begin_stage(order(users=32, arrivals=CONSTANT, profile=EVERY_50_MS))
    stand.gate.open(1 * S, STEADY)
    stand.gate.close(301 * S)
    stand.run_until(400 * S)
    tally = stand.tally("stage")
    assert tally.arrivals_due == 6000
    assert tally.issued + tally.arrivals_unstarted == 6000
    assert tally.arrivals_unstarted == len(stand.unstarted) > 5500


def test_cap_time_is_the_part_of_the_window_with_all_users_busy(stand: Stand) -> None:
    """1 user, service 60 ms, an arrival every 100 ms: 60 % of the window at the cap, nothing of the ramp counted."""
    stand.service_ns = lambda _: 60 * MS
    stand.add_users(1)
    stand.gate.begin_stage(order(arrivals=CONSTANT, profile=((0.0, 10.0),)))
    stand.gate.open(1 * S, WARMUP)
    stand.gate.mark(STEADY, 2 * S)
    stand.gate.close(4 * S)
    stand.run_until(5 * S)
    tally = stand.tally("stage")
    assert (tally.window_ns, tally.cap_reached_ns) == (2 * S, 1200 * MS)
    assert (tally.issued, tally.steady_issued, tally.steady_due) == (30, 20, 20)


def test_open_loop_prefers_the_user_that_was_busy_last(stand: Stand) -> None:
    """Of 50 users a load of one request at a time uses one: connections stay warm."""
    stand.service_ns = lambda _: 10 * MS
    stand.add_users(50)
    stand.gate.begin_stage(order(users=50, arrivals=CONSTANT, profile=EVERY_50_MS))
    stand.gate.open(1 * S, STEADY)
    stand.run_until(3 * S)
    assert len({r.user for r in stand.started}) == 1


def test_warm_in_an_open_loop_when_the_first_wave_has_ended(stand: Stand) -> None:
    """512 users are never all needed: warm is when what was in flight at the first end has ended."""
    stand.service_ns = lambda r: 1000 * MS if r.ticket.index == 3 else 180 * MS
    stand.add_users(50)
    stand.gate.begin_stage(order(users=50, arrivals=CONSTANT, profile=EVERY_50_MS, warmup_requests_per_user=1))
    stand.gate.open(1 * S, WARMUP)
    stand.run_until(int(2.1 * S))
    assert not stand.tally("stage").warm
    stand.run_until(int(2.2 * S))
    assert stand.tally("stage").warm


def test_three_workers_start_what_one_would(stand: Stand) -> None:
    """The merged starts of three gates are the schedule's; when one is lost the others take all from an index on."""
    weights = (("a", 2), ("b", 2), ("c", 1))
    dealer = Dealer(order(users=5, arrivals=ArrivalSpec("poisson"), profile=((0.0, 20.0),)), weights)
    stands = {worker: Stand(service_ns=lambda _: 1 * MS) for worker in "abc"}
    for own in dealer.orders():
        stands[own.worker].add_users(2)
        stands[own.worker].gate.begin_stage(own)
        stands[own.worker].gate.open(1 * S, STEADY)
    for worker, other in stands.items():
        other.run_until((20 if worker == "c" else 22) * S)
    dealer.lost("c", (("a", 2), ("b", 2)), steady_issued=0, last_seen_ns=19 * S, offset_ns=25 * S)
    for own in dealer.orders():
        stands[own.worker].gate.begin_stage(own)
        stands[own.worker].run_until(101 * S)
    starts = sorted(r.start_ns - S for other in stands.values() for r in other.started)
    indices = sorted(r.ticket.index for other in stands.values() for r in other.started)
    missing = sorted(set(range(indices[-1] + 1)) - set(indices))
    alone = Stand(service_ns=lambda _: 1 * MS)
    alone.add_users(5)
    alone.gate.begin_stage(order(users=5, arrivals=ArrivalSpec("poisson"), profile=((0.0, 20.0),)))
    alone.gate.open(1 * S, STEADY)
    alone.run_until(101 * S)
    expected = [r.start_ns - S for r in alone.started if r.ticket.index not in missing]
    assert starts == expected
    assert len(missing) == dealer.unissued > 0
    assert {19 * S <= alone.started[i].start_ns - S < 25 * S for i in missing} == {True}
    for other in (*stands.values(), alone):
        other.close()


def test_gate_works_on_the_hub_s_clock() -> None:
    """The real alarm wakes a user when its arrival is due: 3 arrivals, none early."""
    import time

    gate = Gate(time.monotonic_ns)
    gate.begin_stage(order(arrivals=CONSTANT, profile=((0.0, 200.0),), quota=3))
    opened_ns = time.monotonic_ns() + 5 * MS
    gate.open(opened_ns, STEADY)
    user, early_ns = FakeUser(), []
    with gevent.Timeout(5):
        for _ in range(3):
            ticket = gate.admit(user)
            early_ns.append((ticket.scheduled_ns or 0) - time.monotonic_ns())
            gate.finished(user, ticket, Outcome.OK)
    assert max(early_ns) <= 0
    gate.retire()
    assert gate.tallies()[0].steady_ok == 3
