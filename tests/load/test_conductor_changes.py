"""What changes a plan while it runs: levels that fail, limits, stops, edits by hand, lost workers; the time left."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from llm_locust.load.arrivals import ArrivalSpec
from llm_locust.load.conductor import Conductor
from llm_locust.load.stage import NO_WARMUP, RAMP, STEADY, Stage
from llm_locust.measure.record import Outcome

from .ensemble import Ensemble, closed, per_stage
from .stand import MS, S

CONSTANT = ArrivalSpec("constant")


def test_sweep_stops_climbing_after_a_level_that_failed(make: Callable[..., Ensemble]) -> None:
    """Over 50 % failures at 4 users: the rest of this sweep is listed as skipped, the next shape goes on."""
    ensemble = make()
    for stand in ensemble.stands.values():
        stand.outcome = lambda r: (
            Outcome.REJECTED if r.ticket.stage == "users-4" and r.ticket.index % 5 < 3 else Outcome.OK
        )
    plan = [closed(f"users-{users}", users, sweep="users") for users in (2, 4, 8, 16)] + [closed("mixed", 3)]
    conductor = Conductor(plan, ensemble, seed=1)
    ensemble.run(conductor)
    assert [(row.label, row.skipped) for row in conductor.applied] == [
        ("users-2", ""), ("users-4", ""), ("users-8", "60% of the requests of users-4 failed"),
        ("users-16", "60% of the requests of users-4 failed"), ("mixed", ""),
    ]  # fmt: skip


def test_sweep_stops_climbing_after_a_level_without_a_success(make: Callable[..., Ensemble]) -> None:
    """Not one success: climbing further tells nothing."""
    ensemble = make()
    for stand in ensemble.stands.values():
        stand.outcome = lambda _: Outcome.CONNECT_ERROR
    conductor = Conductor([closed("u-2", 2, sweep="u"), closed("u-4", 4, sweep="u")], ensemble, seed=1)
    ensemble.run(conductor)
    assert [row.skipped for row in conductor.applied] == ["", "no request of u-2 succeeded"]


def test_half_of_the_requests_failed_goes_on(make: Callable[..., Ensemble]) -> None:
    """Exactly 50 % is not over 50 %."""
    ensemble = make(("a",))
    ensemble.stands["a"].outcome = lambda r: Outcome.REJECTED if r.ticket.index % 2 else Outcome.OK
    plan = [closed("u-2", 2, sweep="u", requests=20, hold_s=None), closed("u-4", 4, sweep="u")]
    conductor = Conductor(plan, ensemble, seed=1)
    ensemble.run(conductor)
    assert [row.skipped for row in conductor.applied] == ["", ""]


def test_drain_is_bounded_and_cut(make: Callable[..., Ensemble]) -> None:
    """A stream that does not end is cut after the drain limit, and the row says so; the next stage follows."""
    ensemble = make(service_ns=lambda r: 10_000 * S if r.ticket.index == 5 else S)
    conductor = Conductor([closed("one", 3, min_requests_per_user=0)], ensemble, seed=1, drain_limit_s=30)
    ensemble.run(conductor)
    (row,) = conductor.applied
    assert ("cut",) in ensemble.log
    assert row.notes == ["the drain was cut after 30 s"]
    assert 30 * S <= (row.drained_ns or 0) - (row.closed_ns or 0) < 35 * S


def test_run_time_ends_the_plan(make: Callable[..., Ensemble]) -> None:
    """--run-time: the window is closed, what is in flight drains, the rest is listed as skipped."""
    ensemble = make(service_ns=lambda _: 2 * S)
    conductor = Conductor([closed("one", 2), closed("two", 2), closed("three", 2)], ensemble, seed=1, run_time_s=25)
    took_s = ensemble.run(conductor)
    assert [(row.label, row.ended_by, row.skipped) for row in conductor.applied] == [
        ("one", "hold", ""), ("two", "run time", ""), ("three", "", "run time"),
    ]  # fmt: skip
    assert 25 <= took_s < 30
    assert all(r.end_ns is not None for r in ensemble.started)


def test_stop_keeps_the_last_answer(make: Callable[..., Ensemble]) -> None:
    """While the drain of a stop runs, tick repeats its last answer: no users are raised, none are cut."""
    ensemble = make()
    conductor = Conductor([closed("one", 2), closed("two", 9)], ensemble, seed=1)
    ensemble.run(conductor, until_s=6)
    conductor.stop("ctrl-c")
    conductor.stop("again")
    assert [conductor.tick() for _ in range(20)] == [(2, 100.0)] * 20
    assert [(row.label, row.ended_by, row.skipped) for row in conductor.applied] == [
        ("one", "ctrl-c", ""), ("two", "", "ctrl-c"),
    ]  # fmt: skip
    assert ensemble.log[-1] == ("mark", "one", STEADY)


def test_stop_between_the_announcement_of_a_window_and_its_begin_leaves_none(make: Callable[..., Ensemble]) -> None:
    """The stage ran and was not measured; it does not tell an instant that never came."""
    ensemble = make()
    conductor = Conductor([closed("one", 2)], ensemble, seed=1)
    ensemble.run(conductor, until_s=2.0)
    conductor.step()
    assert ensemble.log[-1] == ("mark", "one", STEADY)
    (row,) = conductor.applied
    assert row.steady_ns is not None
    assert row.steady_ns > ensemble.now_ns()
    conductor.stop("ctrl-c")
    assert row.unmeasured
    assert row.ended_by == "ctrl-c"
    assert conductor.applied[0].steady_ns is None


def test_run_time_just_before_a_window_opens_no_gate_again(make: Callable[..., Ensemble]) -> None:
    """The drain comes with what was announced, never before it: nothing starts after it, and the run ends."""
    ensemble = make()
    plan = [closed("one", 4, spread_s=5.2, warmup=NO_WARMUP)]
    conductor = Conductor(plan, ensemble, seed=1, run_time_s=5.5, drain_limit_s=120)
    ensemble.run(conductor)
    (row,) = conductor.applied
    assert conductor.finished
    assert row.closed_ns is not None
    assert max(request.start_ns for request in ensemble.started) <= row.closed_ns
    assert (row.ended_by, row.unmeasured, row.notes) == ("run time", True, [])


def test_run_time_just_before_the_next_row_leaves_it_out(make: Callable[..., Ensemble]) -> None:
    """A row of a leg that was announced and never began is told as one that did not come."""
    ensemble = make()
    plan = [closed("u-2", 2, hold_s=10), closed("u-4", 4, hold_s=10, through=True)]
    conductor = Conductor(plan, ensemble, seed=1, run_time_s=11.0, drain_limit_s=120)
    while len(conductor.applied) < 2:
        ensemble.run(conductor, until_s=ensemble.now_ns() / S + 0.1)
    ensemble.run(conductor)
    first, second = conductor.applied
    assert conductor.finished
    assert first.closed_ns is not None
    assert max(request.start_ns for request in ensemble.started) <= first.closed_ns
    assert (second.opened_ns, second.skipped) == (None, "run time")


def test_stop_just_before_the_next_row_ends_the_one_that_runs(make: Callable[..., Ensemble]) -> None:
    """Ctrl-C while a row of a leg is announced: it never began, and the one before ends now."""
    ensemble = make()
    conductor = Conductor([closed("u-2", 2, hold_s=10), closed("u-4", 4, hold_s=10, through=True)], ensemble, seed=1)
    while len(conductor.applied) < 2:
        ensemble.run(conductor, until_s=ensemble.now_ns() / S + 0.1)
    first, second = conductor.applied
    assert second.opened_ns is not None
    assert second.opened_ns > ensemble.now_ns()
    conductor.stop("ctrl-c")
    assert (first.closed_ns, first.ended_by) == (ensemble.now_ns(), "ctrl-c")
    assert second.skipped == "ctrl-c"
    assert [conductor.applied[1].opened_ns, conductor.applied[1].closed_ns] == [None, None]


def test_label_of_an_edited_row_is_nobody_elses(make: Callable[..., Ensemble]) -> None:
    """A plan may hold a stage that is called as the second piece of another would be."""
    ensemble = make()
    ensemble.asks = (2, None)
    plan = [Stage(label="night", users=2, hold_s=20), Stage(label="night-2", users=3, hold_s=5)]
    conductor = Conductor(plan, ensemble, seed=1)
    ensemble.run(conductor, until_s=6)
    ensemble.asks = (5, None)
    ensemble.run(conductor)
    assert [row.label for row in conductor.applied] == ["night", "night-3", "night-2"]


def test_stop_before_the_first_opening_skips_everything(make: Callable[..., Ensemble]) -> None:
    """A stop while the acknowledgements are awaited: nothing ran."""
    ensemble = make()
    ensemble.acks_after_s = 100
    conductor = Conductor([closed("one", 2), closed("two", 9)], ensemble, seed=1)
    ensemble.run(conductor, until_s=3)
    conductor.stop()
    assert [(row.label, row.skipped) for row in conductor.applied] == [("one", "stopped"), ("two", "stopped")]


def test_users_edited_by_hand_split_the_stage(make: Callable[..., Ensemble]) -> None:
    """4 → 8 users in the web form: `hold` and `hold-2`, each with its own window; the end stays where it was."""
    ensemble = make(service_ns=lambda _: S)
    stage = Stage(label="hold", users=4, rate_per_s=10, arrivals=CONSTANT, hold_s=60)
    ensemble.asks = (4, None)
    conductor = Conductor([stage], ensemble, seed=1)
    ensemble.run(conductor, until_s=20)
    ensemble.asks = (8, None)
    ensemble.run(conductor)
    first, second = conductor.applied
    assert [(row.label, row.users, row.ended_by) for row in (first, second)] == [
        ("hold", 4, "edit"),
        ("hold-2", 8, "hold"),
    ]
    assert first.steady_ns is not None
    assert second.closed_ns == first.steady_ns + 60 * S
    assert second.opened_ns == first.closed_ns
    assert (second.steady_ns or 0) > (second.opened_ns or 0)
    assert len({r.user for r in per_stage(ensemble)["hold-2"]}) == 8
    phases = [r.ticket.phase for r in per_stage(ensemble)["hold-2"]]
    assert phases[0] == RAMP
    assert phases[-1] == STEADY


def test_rate_edited_by_hand_splits_the_stage(make: Callable[..., Ensemble]) -> None:
    """4/s → 8/s in mid-stage: the same schedule goes on at the new rate, no arrival lost."""
    ensemble = make()
    stage = Stage(label="hold", users=10, rate_per_s=4, arrivals=CONSTANT, hold_s=60)
    ensemble.asks = (None, 4.0)
    conductor = Conductor([stage], ensemble, seed=1)
    ensemble.run(conductor, until_s=20)
    ensemble.asks = (None, 8.0)
    ensemble.run(conductor)
    first, second = conductor.applied
    assert (second.label, second.rate_per_s) == ("hold-2", 8.0)
    assert first.closed_ns is not None
    gaps_ms = {
        label: {(after.start_ns - before.start_ns) // MS for before, after in itertools.pairwise(rs)}
        for label, rs in per_stage(ensemble).items()
    }
    assert gaps_ms == {"hold": {250}, "hold-2": {125}}
    assert [r.ticket.index for r in ensemble.started] == list(range(len(ensemble.started)))


def test_edit_is_refused_where_the_shape_varies_users(make: Callable[..., Ensemble]) -> None:
    """In a sweep the levels are the shape's: the row says that the edit was ignored."""
    ensemble = make()
    conductor = Conductor([closed("users-2", 2, sweep="users")], ensemble, seed=1)
    ensemble.run(conductor, until_s=6)
    ensemble.asks = (50, None)
    ensemble.run(conductor)
    assert [row.label for row in conductor.applied] == ["users-2"]
    assert "edit of users or rate was ignored" in conductor.applied[0].notes[0]


def test_plain_run_goes_on_until_it_is_stopped(make: Callable[..., Ensemble]) -> None:
    """One stage `run`: open at once, ramp while Locust brings the users, then warm-up and the window without an end."""
    ensemble = make()
    ensemble.missing_users = 2
    conductor = Conductor([closed("run", 4, hold_s=None, users_first=False, spawn_rate=1.0)], ensemble, seed=1)
    ensemble.run(conductor, until_s=5)
    assert {r.ticket.phase for r in ensemble.started} == {RAMP}
    ensemble.missing_users = 0
    ensemble.run(conductor, until_s=600)
    assert conductor.phase == STEADY
    assert not conductor.finished
    conductor.stop("run time")
    assert conductor.applied[0].ended_by == "run time"


def test_time_left_counts_the_running_stage_and_the_rest(make: Callable[..., Ensemble]) -> None:
    """Before the warm-up the least time; after it, levels whose requests take 6 s are known to need three of them."""
    ensemble = make(service_ns=lambda _: 6 * S)
    plan = [closed("one", 2), closed("two", 2), closed("three", 2, requests=4, hold_s=None)]
    conductor = Conductor(plan, ensemble, seed=1)
    assert conductor.left_s() == pytest.approx(20, abs=0.1)
    ensemble.run(conductor, until_s=10)
    left_s = conductor.left_s()
    took_s = ensemble.run(conductor)
    assert left_s == pytest.approx(took_s - 10, rel=0.15)
    assert conductor.left_s() == 0


def test_time_left_of_quick_requests_is_not_that_of_looking_once_a_second(make: Callable[..., Ensemble]) -> None:
    """A warm-up of 50 ms is over within the next step: 200 requests by 2 users take 5 s, not 2 min."""
    ensemble = make(service_ns=lambda _: S // 20)
    conductor = Conductor([closed("one", 2, hold_s=None, requests=200)], ensemble, seed=1)
    while conductor.phase != STEADY:
        ensemble.run(conductor, until_s=ensemble.now_ns() / S + 1)
    assert conductor.left_s() == pytest.approx(5, abs=2)


def test_time_left_is_unknown_in_a_run_without_an_end(make: Callable[..., Ensemble]) -> None:
    """A plain run ends when it is stopped."""
    ensemble = make()
    conductor = Conductor([closed("run", 2, hold_s=None)], ensemble, seed=1)
    ensemble.run(conductor, until_s=9)
    assert conductor.left_s() is None


def test_lost_worker_does_not_hold_the_stage(make: Callable[..., Ensemble]) -> None:
    """What a lost worker told last counts, and nobody waits for it: warm, drained, no user of it short."""
    ensemble = make(service_ns=lambda _: 30 * S)
    conductor = Conductor([closed("one", 2)], ensemble, seed=1)
    ensemble.run(conductor, until_s=10)
    tally = ensemble.stands["a"].gate.tallies()[0]
    lost = tally.lost()
    assert (tally.warm, tally.in_flight, tally.users) == (False, 1, 1)
    assert (lost.warm, lost.drained, lost.exhausted, lost.in_flight, lost.users, lost.issued) == (True,) * 3 + (0, 0, 1)
