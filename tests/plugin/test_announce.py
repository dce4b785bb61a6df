"""What is said of a plan before the load, and of the time that is left."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from llm_locust.load.crew import Applied
from llm_locust.load.stage import NO_WARMUP, Stage
from llm_locust.plugin.announce import estimate_line, left_s, plan_lines
from llm_locust.plugin.view import progress_of

HELD = Stage(label="users-2", users=2, rate_per_s=None, hold_s=60.0, warmup=NO_WARMUP, spawn_rate=2.0)
ENDLESS = msgspec.structs.replace(HELD, label="run", hold_s=None)


def test_plan_is_a_table_with_its_least_duration() -> None:
    """One row a stage; 1 s for 2 users at 2 a second, then 60 s."""
    head, row, end = plan_lines([HELD], None)
    assert head.split()[:2] == ["stage", "users"]
    assert row.split()[:5] == ["users-2", "2", "closed", "loop", "1m"]
    assert end == "least duration: 1m1s; warm-ups by requests and drains come on top"


def test_least_duration_names_the_requests_that_are_counted() -> None:
    """Nobody knows how long ten requests take."""
    counted = msgspec.structs.replace(HELD, hold_s=None, requests=10)
    assert plan_lines([counted], None)[-1] == "least duration: 1s; requests, warm-ups and drains come on top"


@pytest.mark.parametrize(
    ("stages", "run_time_s", "end"),
    [
        ([ENDLESS], None, "it runs until it is stopped"),
        ([ENDLESS], 90.0, "it ends after 1m30s"),
        (
            [HELD],
            90.0,
            "least duration: 1m1s; warm-ups by requests and drains come on top; it ends after 1m30s at the latest",
        ),
        ([HELD], 60.0, "least duration: 1m1s; warm-ups by requests and drains come on top"),
    ],
    ids=["endless", "run time", "plan and run time", "a plan made of the run time"],
)
def test_end_of_the_plan_is_said(stages: list[Stage], run_time_s: float | None, end: str) -> None:
    """Who reads it knows when it will be over, or that it will not."""
    assert plan_lines(stages, run_time_s)[-1] == end


@pytest.mark.parametrize(
    ("plan_s", "run_time_s", "left"),
    [
        (None, None, None),
        (None, 60.0, 50.0),
        (30.0, None, 30.0),
        (30.0, 60.0, 30.0),
        (70.0, 60.0, 50.0),
        (None, 5.0, 0),
    ],
)
def test_time_left_is_that_of_the_earlier_end(plan_s: float | None, run_time_s: float | None, left: float) -> None:
    """10 s have passed."""
    assert left_s(plan_s, run_time_s, 10.0) == left


def test_estimate_says_on_what_it_rests() -> None:
    """It is no promise."""
    assert estimate_line(200.0) == "about 3m20s left, as long as requests take what they took in the warm-up"


def test_progress_of_the_last_stage_has_an_end() -> None:
    """A stage that has begun is not waiting any more, and its hold ends it."""
    conductor: Any = SimpleNamespace(
        row=Applied(label="users-2", users=2, opened_ns=1),
        applied=[Applied(label="users-1", users=1), Applied(label="users-2", users=2)],
        waiting=[HELD],
        phase="steady",
        left_s=lambda: 12.0,
    )
    shown = progress_of(conductor, users=2, in_flight=2, elapsed_s=70.0, run_time_s=None)
    assert (shown.stage, shown.stage_number, shown.stages, shown.left_s) == ("users-2", 2, 2, 12.0)


def test_stage_whose_gate_is_closed_is_opening() -> None:
    """Its label stands already, and no phase: nothing of it drains."""
    conductor: Any = SimpleNamespace(
        row=Applied(label="users-2", users=2),
        applied=[Applied(label="users-1", users=1, opened_ns=1), Applied(label="users-2", users=2)],
        waiting=[HELD],
        phase="drain",
        left_s=lambda: 12.0,
    )
    assert progress_of(conductor, users=1, in_flight=0, elapsed_s=7.0, run_time_s=None).phase == "opening"
