"""The gate lets the right request through at the right time: phases, warm-up, quotas, rows, users that go."""

from __future__ import annotations

from llm_locust.load.arrivals import ArrivalSpec
from llm_locust.load.stage import DRAIN, RAMP, STEADY, WARMUP
from llm_locust.measure.record import Outcome

from .stand import MS, FakeUser, S, Stand, order

CONSTANT = ArrivalSpec("constant")
EVERY_50_MS = ((0.0, 20.0),)


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


def test_gate_before_any_stage_is_closed_and_idle(stand: Stand) -> None:
    """Users that come before the first stage wait."""
    stand.add_users(1)
    stand.run_until(10 * S)
    assert (stand.started, stand.gate.in_flight, stand.gate.drained, stand.gate.tallies()) == ([], 0, True, [])
