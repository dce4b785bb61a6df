"""What `benchmarks.soak` and `benchmarks.many_users` say of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.many_users import REQUESTS, prompt, run, same
from benchmarks.soak import Look, Soaked

LOOKS = [
    Look(0.0, (50.0, 60.0), (1.0, 1.0)),
    Look(60.0, (70.0, 65.0), (7.0, 31.0)),
    Look(120.0, (72.0, 64.0), (13.0, 61.0)),
    Look(180.0, (71.0, 64.5), (19.0, 91.0)),
]


def test_growth_is_the_most_over_the_first_look_after_the_warm_up() -> None:
    """What was taken before it, and given back after it, both count for what they are."""
    soaked = Soaked(LOOKS, 1000, ("hold",))
    assert soaked.growth_mb(60.0) == (2.0, -0.5)
    assert soaked.growth_mb(0.0) == (22.0, 5.0)


def test_cpu_is_a_share_of_a_core_between_two_looks() -> None:
    """6 and 30 s of CPU in a minute."""
    assert LOOKS[1].cpu_ratio(LOOKS[0]) == (0.1, 0.5)


def test_prompts_have_the_size_that_is_asked_for_and_none_comes_twice() -> None:
    """64 KB are 65,536 bytes of one line."""
    made = [prompt(number, 65_536) for number in range(64)]
    assert {len(one.encode()) for one in made} == {65_536}
    assert len(set(made)) == 64
    assert not any("\n" in one for one in made)


@pytest.mark.parametrize(
    "changed",
    [{"completed": False}, {"outcome": "cut"}, {"output_tokens": 15}, {"token_send_ns": [1] * 15}],
    ids=["not ended", "another outcome", "another count", "another number of tokens"],
)
def test_a_row_is_compared_with_all_that_the_server_says(changed: dict[str, object]) -> None:
    """Outcome, end and tokens."""
    row = {"outcome": "ok", "output_tokens": "16"}
    told = {"completed": True, "outcome": "ok", "output_tokens": 16, "token_send_ns": [1] * 16}
    assert same(row, told)
    assert not same(row, {**told, **changed})
    assert not same(row, {})


@pytest.mark.linux
@pytest.mark.timeout(120)
def test_many_users_keep_their_connections(tmp_path: Path) -> None:
    """In small: 20 users over two workers, 16 KB each, right; the same with a connection too many is not."""
    found = run(tmp_path, 20, 16_384, 2)
    assert found.right, found
    assert found.rows >= 20 * (REQUESTS + 1)
    assert len(found.peak_mb) == len(found.peak_files) == 3
    assert not replace(found, connections=21, reopened=1).right
