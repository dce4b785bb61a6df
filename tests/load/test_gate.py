"""The gate lets the right request through at the right time, and counts what it could not let through."""

from __future__ import annotations

from collections.abc import Iterator

import gevent
import pytest

from llm_locust.load.arrivals import ArrivalSpec
from llm_locust.load.deal import Dealer
from llm_locust.load.gate import Gate
from llm_locust.load.stage import DRAIN, RAMP, STEADY, WARMUP
from llm_locust.measure.record import Outcome

from .stand import MS, FakeUser, S, Stand, order

CONSTANT = ArrivalSpec("constant")
EVERY_50_MS = ((0.0, 20.0),)


@pytest.fixture
def stand() -> Iterator[Stand]:
    """A gate on a fake clock."""
    stand = Stand()
    yield stand
    stand.close()


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


def test_closed_loop_issues_as_soon_as_a_user_is_free(stand: Stand) -> None:
    """No schedule: every user has one in flight from the opening to the end, indices rise by one."""
    stand.add_users(3)
    stand.gate.begin_stage(order(users=3))
    stand.gate.open(1 * S, STEADY)
    stand.gate.close(2 * S)
    stand.run_until(3 * S)
    assert [(r.start_ns - S) // MS for r in stand.started] == [0] * 3 + [200] * 3 + [400] * 3 + [600] * 3 + [800] * 3
    assert [r.ticket.index for r in stand.started] == list(range(15))
    assert {(r.ticket.scheduled_ns, r.ticket.user_wait_ns) for r in stand.started} == {(None, None)}
    assert (stand.tally("stage").arrivals_due, stand.tally("stage").cap_reached_ns) == (0, 0)


def test_users_start_spread_over_the_ramp(stand: Stand) -> None:
    """Users start evenly over the spread; one that is done before goes on at once and takes nobody's place."""
    stand.add_users(4)
    stand.gate.begin_stage(order(users=4, spread_s=2.0))
    stand.gate.open(1 * S, RAMP)
    stand.run_until(int(3.4 * S))
    first: dict[FakeUser, int] = {}
    for request in stand.started:
        first.setdefault(request.user, request.start_ns)
    assert sorted((at - S) // MS for at in first.values()) == [0, 500, 1000, 1500]
    assert len(stand.started) == 13 + 10 + 8 + 5


def test_spread_interleaves_the_users_of_two_workers() -> None:
    """Two workers with two users each start theirs in turn."""
    starts = []
    for worker in ("v", "w"):
        stand = Stand(service_ns=lambda _: 10 * S)
        stand.add_users(2)
        stand.gate.begin_stage(order(users=4, worker=worker, shares=((0, (("v", 2), ("w", 2))),), spread_s=2.0))
        stand.gate.open(1 * S, RAMP)
        stand.run_until(4 * S)
        starts += [(r.start_ns - S) // MS for r in stand.started]
        stand.close()
    assert sorted(starts) == [0, 500, 1000, 1500]


def test_phases_follow_the_marks(stand: Stand) -> None:
    """A request has the phase of its start; drain starts nothing."""
    stand.add_users(1)
    stand.gate.begin_stage(order())
    stand.gate.open(1 * S, RAMP)
    stand.gate.mark(WARMUP, int(1.3 * S))
    stand.gate.mark(STEADY, int(1.7 * S))
    stand.gate.mark(DRAIN, int(2.3 * S))
    stand.run_until(3 * S)
    phases = [((r.start_ns - S) // MS, r.ticket.phase) for r in stand.started]
    assert phases == [
        (0, RAMP), (200, RAMP), (400, WARMUP), (600, WARMUP), (800, STEADY), (1000, STEADY), (1200, STEADY),
    ]  # fmt: skip


def test_warm_when_every_user_has_finished_its_first_request(stand: Stand) -> None:
    """Closed loop: one slow user keeps the stage in its warm-up."""
    users = stand.add_users(3)
    stand.service_ns = lambda r: 900 * MS if r.user is users[2] else 200 * MS
    stand.gate.begin_stage(order(users=3, warmup_requests_per_user=1))
    stand.gate.open(1 * S, WARMUP)
    stand.run_until(int(1.8 * S))
    assert not stand.tally("stage").warm
    stand.run_until(int(1.95 * S))
    assert stand.tally("stage").warm


def test_not_warm_while_users_are_missing(stand: Stand) -> None:
    """Two of three users are here and done: the third has not begun."""
    stand.add_users(2)
    stand.gate.begin_stage(order(users=3, warmup_requests_per_user=1))
    stand.gate.open(1 * S, WARMUP)
    stand.run_until(2 * S)
    assert not stand.tally("stage").warm


def test_warm_without_a_user_that_died(stand: Stand) -> None:
    """A user whose greenlet ended before its first request had: the stage must not wait for it for ever."""
    died, *_ = stand.add_users(3)
    stand.gate.begin_stage(order(users=3, warmup_requests_per_user=1))
    stand.gate.open(0, WARMUP)
    stand.greenlets[died].kill()
    stand.run_until(int(0.3 * S))
    assert not stand.tally("stage").warm
    stand.gate.leave(died)
    stand.gate.leave(died)
    assert stand.tally("stage").warm


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


def test_quota_counts_requests_of_the_window_only(stand: Stand) -> None:
    """--llm-requests counts measured requests: those of the warm-up come on top; then users wait, and none is lost."""
    stand.add_users(2)
    stand.gate.begin_stage(order(users=2, quota=5))
    stand.gate.open(1 * S, WARMUP)
    stand.gate.mark(STEADY, int(1.5 * S))
    stand.run_until(5 * S)
    tally = stand.tally("stage")
    assert (tally.issued, tally.steady_issued, tally.steady_ok, tally.exhausted, tally.in_flight) == (11, 5, 5, True, 0)
    assert tally.last_steady_end_ns == int(2.2 * S)


def test_quota_of_a_lost_worker_goes_on_here(stand: Stand) -> None:
    """The stage sent again with a larger quota lets the waiting users go on."""
    stand.add_users(1)
    stand.gate.begin_stage(order(quota=2))
    stand.gate.open(1 * S, STEADY)
    stand.run_until(5 * S)
    assert len(stand.started) == 2
    stand.gate.begin_stage(order(quota=5))
    stand.run_until(10 * S)
    assert [r.ticket.index for r in stand.started] == [0, 1, 2, 3, 4]


def test_batch_is_released_at_one_instant_after_its_warm_up(stand: Stand) -> None:
    """FixedBatch: after its warm-up request each user waits; at the mark all start at the same instant, one each."""
    stand.service_ns = lambda r: (100 + 40 * r.ticket.index) * MS
    stand.add_users(4)
    stand.gate.begin_stage(order(users=4, quota=4, warmup_requests_per_user=1, release_together=True))
    stand.gate.open(1 * S, WARMUP)
    stand.run_until(2 * S)
    assert len(stand.started) == 4
    assert stand.tally("stage").warm
    stand.gate.mark(STEADY, 3 * S)
    stand.run_until(5 * S)
    batch = stand.started[4:]
    assert [r.start_ns for r in batch] == [3 * S] * 4
    assert len({r.user for r in batch}) == 4


def test_users_with_too_few_measured_requests_are_counted(stand: Stand) -> None:
    """hold is a minimum until each user has finished three measured requests."""
    users = stand.add_users(2)
    stand.service_ns = lambda r: 700 * MS if r.user is users[1] else 200 * MS
    stand.gate.begin_stage(order(users=2, min_requests_per_user=3))
    stand.gate.open(1 * S, STEADY)
    stand.run_until(int(2.5 * S))
    assert stand.tally("stage").users_short == 1
    stand.run_until(int(3.2 * S))
    assert stand.tally("stage").users_short == 0


def test_no_request_counts_in_two_stages(stand: Stand) -> None:
    """A new stage begins with counters at 0; what an older one had in flight is booked there."""
    stand.service_ns = lambda _: 900 * MS
    stand.add_users(2)
    stand.gate.begin_stage(order(label="one", users=2))
    stand.gate.open(1 * S, STEADY)
    stand.gate.close(int(1.5 * S))
    stand.run_until(int(1.6 * S))
    assert not stand.gate.drained
    stand.gate.begin_stage(order(1, "two", users=2))
    assert (stand.tally("two").issued, stand.tally("one").in_flight) == (0, 2)
    stand.gate.open(int(1.7 * S), STEADY)
    stand.run_until(int(1.95 * S))
    assert stand.tally("two").issued == 2
    assert [tally.label for tally in stand.gate.tallies()] == ["two"]
    assert stand.gate.in_flight == 2


def test_rows_of_a_stage_that_runs_through_split_its_counts(stand: Stand) -> None:
    """A label's mark begins a row; schedule and backlog run on: nothing is dropped, nothing counted twice."""
    stand.add_users(2)
    stand.gate.begin_stage(order(label="soak-1", users=2, arrivals=CONSTANT, profile=EVERY_50_MS))
    stand.gate.open(1 * S, STEADY)
    stand.gate.mark(STEADY, 2 * S, "soak-2")
    stand.gate.close(3 * S)
    stand.run_until(5 * S)
    one, two = stand.tally("soak-1"), stand.tally("soak-2")
    assert [(row.arrivals_due, row.issued, row.window_ns) for row in (one, two)] == [(20, 10, S), (20, 10, S)]
    assert (one.arrivals_unstarted, two.arrivals_unstarted, one.backlog_max, two.backlog_max) == (0, 20, 10, 20)
    assert one.issued + two.issued + two.arrivals_unstarted == one.arrivals_due + two.arrivals_due


def test_user_that_leaves_while_it_waits_ends_at_once(stand: Stand) -> None:
    """`leave` wakes a waiting user with StopUser; the others get its turns; one in flight ends first."""
    waiting, other = stand.add_users(2)
    stand.gate.begin_stage(order(users=2))
    stand.gate.leave(waiting)
    stand.settle()
    assert stand.greenlets[waiting].ready()
    stand.gate.open(1 * S, STEADY)
    stand.run_until(int(1.1 * S))
    stand.gate.leave(other)
    stand.run_until(2 * S)
    assert stand.greenlets[other].ready()
    assert [(r.user, r.end_ns) for r in stand.started] == [(other, int(1.2 * S))]
    assert stand.tally("stage").users == 0


def test_killed_waiter_takes_no_ticket(stand: Stand) -> None:
    """A greenlet killed in the instant in which it was given a ticket gives it back: no index is lost."""
    first, second = stand.add_users(2)
    stand.gate.begin_stage(order(users=2, arrivals=CONSTANT, profile=((0.0, 1.0),)))
    stand.gate.open(1 * S, STEADY)
    stand.now_ns = 1 * S
    stand.greenlets[second].kill(block=False)
    stand.alarm.ring()  # gives arrival 0 to the user that came last, before its end reaches it
    assert stand.gate.in_flight == 1
    stand.settle()
    stand.run_until(3 * S)
    assert [(r.user, r.ticket.index) for r in stand.started] == [(first, 0), (first, 1), (first, 2)]
    assert (stand.tally("stage").issued, stand.tally("stage").arrivals_due) == (3, 3)


def test_unfinished_requests_are_no_finish(stand: Stand) -> None:
    """A request that the stop ended is out of flight, but neither finished nor failed."""
    stand.service_ns = lambda _: 10 * S
    (user,) = stand.add_users(1)
    stand.gate.begin_stage(order(warmup_requests_per_user=1))
    stand.gate.open(1 * S, STEADY)
    stand.run_until(2 * S)
    assert not stand.gate.wait_idle(0)
    stand.greenlets[user].kill()
    tally = stand.tally("stage")
    assert (tally.in_flight, tally.finished, tally.steady_failed, tally.warm) == (0, 0, 0, False)
    assert stand.gate.wait_idle(0)


def test_failures_are_told_from_successes(stand: Stand) -> None:
    """A sweep looks at successes and failures of the window."""
    stand.outcome = lambda r: Outcome.REJECTED if r.ticket.index % 3 == 0 else Outcome.OK
    stand.add_users(1)
    stand.gate.begin_stage(order(quota=9))
    stand.gate.open(1 * S, STEADY)
    stand.run_until(5 * S)
    tally = stand.tally("stage")
    assert (tally.steady_ok, tally.steady_failed, tally.steady_finished) == (6, 3, 9)


def test_window_that_ends_in_the_past_ends_at_its_last_request(stand: Stand) -> None:
    """A stage that ended by its number of requests is closed afterwards, at the instant of its last completion."""
    stand.add_users(1)
    stand.gate.begin_stage(order(quota=2))
    stand.gate.open(1 * S, STEADY)
    stand.run_until(5 * S)
    stand.gate.close(int(1.4 * S))
    assert stand.tally("stage").window_ns == 400 * MS


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


def test_gate_before_any_stage_is_closed_and_idle(stand: Stand) -> None:
    """Users that come before the first stage wait."""
    stand.add_users(1)
    stand.run_until(10 * S)
    assert (stand.started, stand.gate.in_flight, stand.gate.drained, stand.gate.tallies()) == ([], 0, True, [])


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
