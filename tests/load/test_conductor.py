"""The conductor runs the plan: what comes when, what waits for what, and how it is written down."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from llm_locust.load.arrivals import ArrivalSpec
from llm_locust.load.conductor import Conductor
from llm_locust.load.stage import DRAIN, NO_WARMUP, RAMP, STEADY, WARMUP, Stage, Warmup

from .ensemble import Ensemble, closed, opened_at, per_stage
from .stand import MS, S

CONSTANT = ArrivalSpec("constant")


def test_steps_drain_between_levels(make: Callable[..., Ensemble]) -> None:
    """Each level stands alone: nothing of the last level is in flight when the next opens; users change between."""
    ensemble = make(service_ns=lambda _: 2 * S)
    plan = [closed("users-2", 2), closed("users-5", 5), closed("users-3", 3)]
    conductor = Conductor(plan, ensemble, seed=1)
    ensemble.run(conductor)
    assert ensemble.log == [
        ("stage", 0, "users-2"), ("open", WARMUP, 2), ("mark", "users-2", STEADY), ("mark", "users-2", DRAIN),
        ("stage", 1, "users-5"), ("open", WARMUP, 5), ("mark", "users-5", STEADY), ("mark", "users-5", DRAIN),
        ("stage", 2, "users-3"), ("open", WARMUP, 3), ("mark", "users-3", STEADY), ("mark", "users-3", DRAIN),
    ]  # fmt: skip
    stages = per_stage(ensemble)
    assert {label: len({r.user for r in requests}) for label, requests in stages.items()} == {
        "users-2": 2, "users-5": 5, "users-3": 3,
    }  # fmt: skip
    for before, after in (("users-2", "users-5"), ("users-5", "users-3")):
        assert max(r.end_ns or 0 for r in stages[before]) < opened_at(conductor, after)
    assert [row.ended_by for row in conductor.applied] == ["hold"] * 3
    for row in conductor.applied:
        assert row.closed_ns is not None
        assert row.steady_ns is not None
        assert row.closed_ns - row.steady_ns == 10 * S


def test_indices_are_unique_over_the_run(make: Callable[..., Ensemble]) -> None:
    """No prompt comes twice: workers, warm-up, window and stages all have their own indices."""
    ensemble = make()
    plan = [
        closed("one", 3),
        closed("two", 3),
        Stage(label="three", users=4, rate_per_s=5, arrivals=CONSTANT, hold_s=9),
    ]
    ensemble.run(Conductor(plan, ensemble, seed=1))
    indices = [r.ticket.index for r in ensemble.started]
    assert len(set(indices)) == len(indices) > 300


def test_every_tick_answers_ints_and_none_at_the_end(make: Callable[..., Ensemble]) -> None:
    """Users are whole numbers of the plan: 7 on 3 workers are 3, 2, 2; fewer users than workers work."""
    ensemble = make(("a", "b", "c"))
    conductor = Conductor([closed("users-7", 7), closed("users-2", 2)], ensemble, seed=1)
    answers = []
    spread = set()
    while (answer := conductor.tick()) is not None:
        answers.append(answer)
        ensemble.spawn(answer[0])
        spread.add(tuple(sorted(len(users) for users in ensemble.users.values())))
        for stand in ensemble.stands.values():
            stand.run_until(stand.now_ns + S)
    assert {type(users) for users, _ in answers} == {int}
    assert {users for users, _ in answers} == {2, 7}
    assert {(2, 2, 3), (0, 1, 1)} <= spread
    assert conductor.tick() is None


@pytest.mark.parametrize("tick_s", [0.1, 1.0, 7.0], ids=["fast", "each second", "blocked by a ramp"])
def test_plan_is_the_same_however_seldom_it_ticks(make: Callable[..., Ensemble], tick_s: float) -> None:
    """A tick that comes late (a master's ramp blocks it) lengthens a stage but skips none: 20, 5, 8 users."""
    ensemble = make()
    plan = [closed("users-20", 20, hold_s=3.0), closed("users-5", 5, hold_s=3.0), closed("users-8", 8, hold_s=3.0)]
    conductor = Conductor(plan, ensemble, seed=1)
    ensemble.run(conductor, tick_s=tick_s)
    assert [len({r.user for r in requests}) for requests in per_stage(ensemble).values()] == [20, 5, 8]
    for row in conductor.applied:
        assert (row.closed_ns or 0) - (row.steady_ns or 0) >= 3 * S


def test_gate_waits_for_acknowledgements_and_users(make: Callable[..., Ensemble]) -> None:
    """Nothing is issued before every worker has the stage and the users are there."""
    ensemble = make()
    ensemble.acks_after_s = 5
    conductor = Conductor([closed("users-2", 2)], ensemble, seed=1)
    ensemble.run(conductor, until_s=4)
    assert (conductor.doing, conductor.target[0], ensemble.started) == ("acknowledgements", 0, [])
    ensemble.run(conductor)
    assert 5 * S < opened_at(conductor, "users-2") < 8 * S


def test_stage_opens_with_fewer_users_when_they_do_not_come(make: Callable[..., Ensemble]) -> None:
    """Users that never come are waited for a minute; then the stage says with how many it ran."""
    ensemble = make()
    ensemble.missing_users = 1
    conductor = Conductor([closed("users-4", 4, warmup=Warmup(0, 2.0))], ensemble, seed=1)
    ensemble.run(conductor)
    assert conductor.applied[0].notes == ["opened with 3 of 4 users"]
    assert 60 * S < (conductor.applied[0].opened_ns or 0) < 64 * S


def test_ramp_warm_up_and_window_follow_without_a_pause(make: Callable[..., Ensemble]) -> None:
    """Users start over 4 s (ramp), each finishes one request (warm-up), then the window lasts its hold to the ns."""
    ensemble = make(service_ns=lambda _: 2500 * MS)
    conductor = Conductor([closed("users-4", 4, spread_s=4.0)], ensemble, seed=1)
    ensemble.run(conductor)
    (row,) = conductor.applied
    assert row.opened_ns is not None
    assert row.steady_ns is not None
    first = {r.ticket.phase: r.start_ns for r in reversed(ensemble.started)}
    assert first[RAMP] == row.opened_ns
    assert row.opened_ns + 4 * S <= first[WARMUP] < row.steady_ns <= first[STEADY]
    starts_s = [(r.start_ns - row.opened_ns) / S for r in ensemble.started[:3]]
    assert starts_s == [0.0, 1.0, 2.0]
    assert row.steady_ns >= row.opened_ns + int(5.5 * S)  # the last user starts at 3 s and takes 2.5 s
    assert (row.closed_ns or 0) - row.steady_ns == 10 * S
    tally = ensemble.tally("users-4")
    assert tally is not None
    assert tally.window_ns == 2 * 10 * S  # of each of the two workers


@pytest.mark.parametrize(
    ("warmup", "steady_after_s"), [(NO_WARMUP, 0.0), (Warmup(0, 6.0), 6.0)], ids=["none", "six seconds"]
)
def test_warm_up_by_time_or_none(make: Callable[..., Ensemble], warmup: Warmup, steady_after_s: float) -> None:
    """`0` measures from the opening on; a time is kept to the ns."""
    ensemble = make()
    conductor = Conductor([closed("users-2", 2, warmup=warmup)], ensemble, seed=1)
    ensemble.run(conductor)
    (row,) = conductor.applied
    assert (row.steady_ns or 0) - (row.opened_ns or 0) == int(steady_after_s * S)


def test_warm_up_is_bounded_by_one_stage_length(make: Callable[..., Ensemble]) -> None:
    """One user whose first request takes 25 s of a stage of 10 s: the window begins without it, and the row says so."""
    ensemble = make(service_ns=lambda r: 25 * S if r.ticket.index == 0 else S)
    conductor = Conductor([closed("users-4", 4)], ensemble, seed=1)
    ensemble.run(conductor)
    (row,) = conductor.applied
    assert (row.steady_ns or 0) - (row.opened_ns or 0) == 10 * S
    assert "warm-up was cut" in row.notes[0]


def test_warm_up_does_not_wait_for_a_worker_that_had_nothing_to_do(make: Callable[..., Ensemble]) -> None:
    """2 requests a second, one worker with 1 of 50 users: its first arrival comes after 12 s, the window before."""
    ensemble = make()
    ensemble.users["a"] = ensemble.stands["a"].add_users(49)
    ensemble.users["b"] = ensemble.stands["b"].add_users(1)
    stage = Stage(label="rate-2", users=50, rate_per_s=2, arrivals=CONSTANT, hold_s=60)
    conductor = Conductor([stage], ensemble, seed=1)
    ensemble.run(conductor)
    (row,) = conductor.applied
    first_of_b = min(r.start_ns for r in ensemble.stands["b"].started)
    assert first_of_b - (row.opened_ns or 0) > 10 * S
    assert (row.steady_ns or 0) - (row.opened_ns or 0) < 3 * S
    assert row.notes == []


def test_hold_is_a_minimum_until_each_user_has_three_requests(make: Callable[..., Ensemble]) -> None:
    """Requests of 12 s in a stage of 10 s: it goes on until every user has finished three measured ones."""
    ensemble = make(service_ns=lambda _: 12 * S)
    conductor = Conductor([closed("users-3", 3)], ensemble, seed=1)
    ensemble.run(conductor)
    (row,) = conductor.applied
    tally = ensemble.tally("users-3")
    assert tally is not None
    assert (row.ended_by, tally.steady_ok) == ("hold", 12)  # three each ended the wait, three more were in flight
    assert 36 * S < (row.closed_ns or 0) - (row.steady_ns or 0) < 50 * S


def test_hold_ends_at_max_hold(make: Callable[..., Ensemble]) -> None:
    """A user that never gets through three requests does not hold the stage for ever."""
    ensemble = make(service_ns=lambda _: 40 * S)
    conductor = Conductor([closed("users-1", 1, max_hold_s=60.0)], ensemble, seed=1)
    ensemble.run(conductor)
    (row,) = conductor.applied
    assert (row.ended_by, (row.closed_ns or 0) - (row.steady_ns or 0)) == ("max hold", 60 * S)


def test_open_loop_needs_no_minimum_per_user(make: Callable[..., Ensemble]) -> None:
    """Most of 512 users get no request at 2 per second; the stage still lasts its hold."""
    ensemble = make(service_ns=lambda _: S)
    stage = Stage(label="rate-2", users=50, rate_per_s=2, arrivals=CONSTANT, hold_s=10)
    conductor = Conductor([stage], ensemble, seed=1)
    ensemble.run(conductor)
    (row,) = conductor.applied
    tally = ensemble.tally("rate-2")
    assert tally is not None
    assert ((row.closed_ns or 0) - (row.steady_ns or 0), tally.steady_due) == (10 * S, 20)


def test_stage_of_n_requests_ends_at_its_last_completion(make: Callable[..., Ensemble]) -> None:
    """--llm-requests 25: 25 measured over both workers, warm-up on top; the window ends with the last of them."""
    ensemble = make(service_ns=lambda _: 700 * MS)
    conductor = Conductor([closed("run", 4, hold_s=None, requests=25)], ensemble, seed=1)
    ensemble.run(conductor)
    (row,) = conductor.applied
    steady = [r for r in ensemble.started if r.ticket.phase == STEADY]
    assert len(steady) == 25
    assert row.ended_by == "requests"
    assert row.closed_ns == max(r.end_ns or 0 for r in steady)


def test_open_loop_stage_of_n_requests_issues_exactly_n(make: Callable[..., Ensemble]) -> None:
    """The same under a rate, dealt to two workers."""
    ensemble = make()
    stage = Stage(label="run", users=6, rate_per_s=5, arrivals=ArrivalSpec("poisson"), requests=31)
    conductor = Conductor([stage], ensemble, seed=1)
    ensemble.run(conductor)
    tally = ensemble.tally("run")
    assert tally is not None
    assert (tally.steady_issued, tally.steady_due, tally.arrivals_unstarted) == (31, 31, 0)


def test_batch_is_one_instant_over_two_workers(make: Callable[..., Ensemble]) -> None:
    """FixedBatch: a warm-up batch, then 7 requests start at one ns on both workers; the row lasts to the last end."""
    ensemble = make(service_ns=lambda r: (1000 + 100 * (r.ticket.index % 7)) * MS)
    plan = [closed("batch-7", 7, hold_s=None, requests=7, release_together=True)]
    conductor = Conductor(plan, ensemble, seed=1)
    ensemble.run(conductor)
    (row,) = conductor.applied
    batch = [r for r in ensemble.started if r.ticket.phase == STEADY]
    assert [r.start_ns for r in batch] == [row.steady_ns] * 7
    assert len({r.user for r in batch}) == 7
    assert row.closed_ns == max(r.end_ns or 0 for r in batch)
    assert row.whole_requests
    assert row.notes == ["batch of 7: 1.600 s from its release to the end of its last answer"]
    assert [r.ticket.phase for r in ensemble.started[:7]] == [WARMUP] * 7


def test_rows_of_a_soak_run_through(make: Callable[..., Ensemble]) -> None:
    """Three rows of 10 s under one schedule: no drain, no gap in the arrivals, rows at their exact instants."""
    ensemble = make(service_ns=lambda _: 1300 * MS)
    rows = [
        Stage(label=f"soak-{i}", users=20, rate_per_s=4, arrivals=CONSTANT, hold_s=10, through=i > 1) for i in (1, 2, 3)
    ]
    conductor = Conductor(rows, ensemble, seed=1)
    ensemble.run(conductor)
    opened_ns = opened_at(conductor, "soak-1")
    assert [row.closed_ns for row in conductor.applied] == [opened_ns + i * 10 * S for i in (1, 2, 3)]
    assert [r.start_ns - opened_ns for r in ensemble.started] == [i * S // 4 for i in range(120)]
    counts = [len(requests) for requests in per_stage(ensemble).values()]
    assert counts == [40, 40, 40]
    assert [entry[0] for entry in ensemble.log].count("stage") == 1
    assert [entry for entry in ensemble.log if entry[-1] == DRAIN] == [("mark", "soak-3", DRAIN)]


def test_spike_is_one_schedule_with_its_backlog(make: Callable[..., Ensemble]) -> None:
    """A spike's backlog is served after it: nothing is dropped at the row's end, the rows add up to the schedule."""
    ensemble = make(service_ns=lambda _: 1 * S)
    rates = ((4.0, 10), (16.0, 5), (4.0, 20))
    rows = [
        Stage(label=f"row-{i}", users=8, rate_per_s=rate, arrivals=CONSTANT, hold_s=hold, through=i > 0)
        for i, (rate, hold) in enumerate(rates)
    ]
    ensemble.run(Conductor(rows, ensemble, seed=1))
    tallies = [ensemble.tally(f"row-{i}") for i in range(3)]
    assert [tally.arrivals_due for tally in tallies if tally] == [40, 80, 80]
    assert [tally.arrivals_unstarted for tally in tallies if tally] == [0, 0, 0]
    assert sum(tally.issued for tally in tallies if tally) == 200
    assert tallies[1] is not None
    assert tallies[1].backlog_max > 20


def test_ramp_changes_users_without_a_drain(make: Callable[..., Ensemble]) -> None:
    """Stairs of users: each row has the users of its stair, and requests go on over the edges."""
    ensemble = make(service_ns=lambda _: 1500 * MS)
    rows = [closed(f"users-{users}", users, through=users > 2) for users in (2, 4, 6)]
    conductor = Conductor(rows, ensemble, seed=1)
    ensemble.run(conductor)
    assert [len({r.user for r in requests}) for requests in per_stage(ensemble).values()] == [2, 4, 6]
    over_the_edge = [r for r in per_stage(ensemble)["users-2"] if (r.end_ns or 0) > opened_at(conductor, "users-4")]
    assert over_the_edge
