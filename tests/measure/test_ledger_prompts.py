"""Where and when a prompt's tokens are booked."""

from __future__ import annotations

import pytest

from tests.measure.booking import EPOCH_S, Run


def test_prompt_is_booked_at_the_first_token_as_soon_as_its_length_is_told() -> None:
    """A server that tells it with every event: known while the stream runs; the end changes nothing."""
    run = Run()
    run.mark(0, "steady")
    run.open("a", 100)
    run.token("a", 500)
    run.harvest(900)
    assert run.window("steady").get("input_tokens", 0) == 0
    run.streams["a"][1].usage.input_tokens = 640
    run.token("a", 1500)
    run.harvest(2000)
    run.harvest(3000)
    assert run.per_second("input_tokens") == {0: 640, 1: 0, 2: 0}
    run.close("a", 3500, 2, input_tokens=640)
    run.harvest(4000)
    assert run.window("steady")["input_tokens"] == 640
    assert sum(run.per_second("input_tokens").values()) == 640


@pytest.mark.parametrize("told", [None, 600])
def test_prompt_whose_length_is_told_at_the_end_comes_late_and_whole(told: int | None) -> None:
    """The second of its first token was handed out: the next row says it, less what that second had."""
    run = Run()
    run.mark(0, "steady")
    run.open("a", 100)
    run.token("a", 500)
    run.streams["a"][1].usage.input_tokens = told
    run.harvest(1900)
    first = run.book.pop_seconds(EPOCH_S + 1)
    run.close("a", 2500, 1, input_tokens=640)
    run.harvest(3000)
    rows = [*first, *run.book.pop_seconds(EPOCH_S + 4)]
    assert [row.values["input_tokens"] for row in rows] == [told or 0, 0, 0, 0]
    assert [row.values["late_input_tokens"] for row in rows] == [0, 640 - (told or 0), 0, 0]
    assert run.window("steady")["input_tokens"] == 640


@pytest.mark.parametrize("told", [None, 640])
def test_prompt_whose_first_token_came_before_a_reset_is_not_counted_after_it(told: int | None) -> None:
    """Neither as a whole nor as a correction of what was forgotten: no total is below 0."""
    run = Run()
    run.mark(0, "steady")
    run.open("a", 100)
    run.open("b", 200)
    run.token("a", 500)
    run.streams["a"][1].usage.input_tokens = told
    run.harvest(1500)
    run.book.reset()
    run.ledger.restart()
    run.token("b", 1600)
    run.close("a", 2500, 1, input_tokens=600)
    run.close("b", 2600, 1, input_tokens=70)
    run.harvest(3000)
    assert run.window("steady")["input_tokens"] == 70
    assert min(second.counts["input_tokens"] for second in run.book.seconds.values()) >= 0
