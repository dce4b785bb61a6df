"""A plan is checked with its arithmetic before any load, and printed as it will run."""

from __future__ import annotations

import msgspec
import pytest

from llm_locust.load.arrivals import ArrivalSpec
from llm_locust.load.plan import (
    PLAN_COLUMNS,
    duration_text,
    estimated_duration_s,
    least_duration_s,
    plain_stage,
    plan_rows,
    spread_s,
    stage_problems,
)
from llm_locust.load.shapes import ConcurrencySteps, FullPlan
from llm_locust.load.stage import NO_WARMUP, Stage, Warmup

from .planning import Count, Law, options


@pytest.mark.parametrize(
    ("given", "users", "hold_s", "expected_s"),
    [
        ({}, 64, 300.0, 30.0),
        ({}, 64, 60.0, 6.0),
        ({}, 64, 3600.0, 30.0),
        ({}, 40, None, 4.0),
        ({}, 1, 300.0, 0.0),
        ({"start": "together"}, 64, 300.0, 0.0),
        ({"spawn_rate_per_s": 4.0}, 64, 300.0, 16.0),
    ],
    ids=["a tenth", "of a short hold", "at most 30 s", "ten a second without a hold", "one user", "together", "rate"],
)
def test_users_of_a_closed_loop_start_spread(
    given: dict[str, object], users: int, hold_s: float | None, expected_s: float
) -> None:
    """Spread evenly over a tenth of the hold, at most 30 s; --llm-spawn-rate and --llm-start say otherwise."""
    assert spread_s(options(**given), users, hold_s) == expected_s


def test_stage_shorter_than_its_ramp_is_refused_with_the_arithmetic() -> None:
    """20 users at 2 a second need 10 s and have 3 s."""
    stage = Stage(label="users-20", users=20, hold_s=3.0, spread_s=10.0)
    assert list(stage_problems([stage])) == [
        "stage users-20 needs 10 s to start 20 users at 2 a second, but holds 3 s: lengthen --llm-hold or raise "
        "--llm-spawn-rate"
    ]


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("label", "whole run", "whole run"),
        ("users", 0, "users"),
        ("rate_per_s", 0.0, "rate"),
        ("requests", 0, "requests"),
        ("hold_s", 0.0, "holds"),
    ],
)
def test_impossible_stage_is_named(field: str, value: float, word: str) -> None:
    """No users, no rate, no requests, no time: told before the load."""
    stage = msgspec.structs.replace(Stage(label="x", users=1, hold_s=10.0), **{field: value})
    (problem,) = stage_problems([stage])
    assert problem.startswith("stage ")
    assert word in problem


def test_least_duration_adds_users_spreads_and_holds() -> None:
    """8, 16, 32, 64 users of 5 min each: 4 × (5 min + 30 s), and 64 users at 100 a second."""
    plan = ConcurrencySteps().plan(options())
    assert least_duration_s(plan) == pytest.approx(4 * 330 + 0.64)
    timed = [Stage(label="x", users=1, hold_s=60.0, warmup=Warmup(0, 15.0))]
    assert least_duration_s(timed) == pytest.approx(75.01)


def test_estimate_grows_with_the_length_of_a_request() -> None:
    """A level of 64 users whose requests take 435 s: warm-up, three measured requests each, the drain."""
    stage = Stage(label="users-64", users=64, hold_s=300.0, spread_s=30.0)
    assert estimated_duration_s([stage], 435.0) == pytest.approx(0.64 + 30 + 435 + 3 * 435 + 435)
    assert estimated_duration_s([stage], 10.0) == pytest.approx(0.64 + 30 + 10 + 300 + 10)


def test_estimate_of_a_number_of_requests() -> None:
    """40 requests of 10 s by 8 users take five rounds; under a rate of 1 per second they take 40 s at least."""
    by_users = Stage(label="x", users=8, requests=40, warmup=NO_WARMUP)
    assert estimated_duration_s([by_users], 10.0) == pytest.approx(0.08 + 50 + 10)
    by_rate = Stage(label="x", users=80, requests=40, warmup=NO_WARMUP, rate_per_s=1.0, arrivals=ArrivalSpec())
    assert estimated_duration_s([by_rate], 10.0) == pytest.approx(0.8 + 40 + 10)


def test_estimate_is_at_most_max_hold_a_level() -> None:
    """A request of 30 min: the level ends at an hour, not at three requests."""
    stage = Stage(label="x", users=1, hold_s=300.0, warmup=NO_WARMUP)
    assert estimated_duration_s([stage], 1800.0) == pytest.approx(0.01 + 3600 + 1800)


def test_plan_is_printed_as_it_runs() -> None:
    """One row a stage; the arrival law beside the rate, the words of the options."""
    rows = [dict(zip(PLAN_COLUMNS, row, strict=True)) for row in plan_rows(FullPlan().plan(options()))]
    assert [row["stage"] for row in rows] == [
        "baseline", "users-8", "users-16", "users-32", "users-64", "rate-2", "rate-5", "rate-10", "rate-20", "mixed",
    ]  # fmt: skip
    assert rows[0] == {
        "stage": "baseline", "users": "1", "rate /s": "closed loop", "ends after": "10 requests",
        "warm-up": "1 a user", "spread": "–", "tokens in": "512", "tokens out": "1024",
    }  # fmt: skip
    assert rows[5] == {
        "stage": "rate-2", "users": "32", "rate /s": "2 poisson", "ends after": "5m", "warm-up": "the first requests",
        "spread": "–", "tokens in": "1024", "tokens out": "2048",
    }  # fmt: skip
    assert (rows[9]["tokens in"], rows[9]["tokens out"], rows[9]["users"]) == ("512-2048", "512-4096", "64")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (45, "45s"), (300, "5m"), (5400, "1h30m"), (3661, "1h1m1s"), (43200, "12h")]
)
def test_durations_are_spelled_as_options_are(seconds: float, text: str) -> None:
    """What is printed can be typed."""
    assert duration_text(seconds) == text


def test_plain_run_is_one_closed_loop_stage() -> None:
    """No shape, no rate: Locust's users, in flight as they are; open from the start, ended by the run."""
    stage = plain_stage(options(users=8), 2.0)
    assert stage == Stage(label="run", users=8, spawn_rate=2.0, users_first=False)
    assert plain_stage(options(), 1.0).users == 1


def test_plain_run_with_a_rate_has_512_users_where_none_are_given() -> None:
    """With a rate users are the cap: never Locust's 1."""
    stage = plain_stage(options(rate_per_s=5.0, arrivals=Law("gamma", 2.0)), 100.0)
    assert (stage.users, stage.rate_per_s, stage.arrivals) == (512, 5.0, ArrivalSpec("gamma", cv=2.0))
    assert plain_stage(options(rate_per_s=5.0, users=7), 100.0).users == 7


def test_plain_run_ends_after_its_requests() -> None:
    """--llm-requests 100, or 3x: three a user."""
    assert plain_stage(options(users=8, requests=[Count(100)]), 1.0).requests == 100
    assert plain_stage(options(users=8, requests=[Count(3, per_user=True)]), 1.0).requests == 24


def test_plain_run_of_a_trace_has_no_rate() -> None:
    """--llm-arrivals trace: the trace's own instants."""
    stage = plain_stage(options(arrivals=Law("trace", None)), 100.0)
    assert (stage.arrivals, stage.rate_per_s, stage.users) == (ArrivalSpec("trace"), None, 512)
