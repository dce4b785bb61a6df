"""The phases of a row, from the stage and what is known of its users."""

from __future__ import annotations

import pytest

from llm_locust.load.course import first_phase
from llm_locust.load.stage import RAMP, STEADY, WARMUP, Stage, Warmup

NONE = Warmup(requests_per_user=0)


@pytest.mark.parametrize(
    ("users_first", "users_there", "spread_s", "warmup", "phase"),
    [
        (False, True, 0.0, NONE, STEADY),
        (False, False, 0.0, NONE, RAMP),
        (True, False, 0.0, NONE, STEADY),
        (False, True, 5.0, NONE, RAMP),
        (False, True, 0.0, Warmup(duration_s=3.0), WARMUP),
    ],
    ids=["all are there", "some are to come", "waited for before", "spread over a time", "warm-up"],
)
def test_stage_opens_in_a_ramp_only_while_its_users_come(
    users_first: bool, users_there: bool, spread_s: float, warmup: Warmup, phase: str
) -> None:
    """A request between the opening and a ramp's end of the same instant belonged to no window, and to no quota."""
    stage = Stage(label="a", users=1, users_first=users_first, spread_s=spread_s, warmup=warmup, hold_s=60.0)
    assert first_phase(stage, users_there=users_there) == phase
