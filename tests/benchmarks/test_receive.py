"""What the comparison with other clients asks of the product."""

from __future__ import annotations

import pytest

from benchmarks.clients import Reading
from benchmarks.receive import BEHIND, level_table, missed


def reading(client: str, tokens_per_s: float, error_p50_ms: float, streams: int = 1600) -> Reading:
    """Make what a client of a rate came to."""
    kinds = {"mean": 50.0, "p50": error_p50_ms, "p99": 100.0, "max": 200.0}
    both = {"ttft_ms": kinds, "itl_ms": kinds}
    return Reading(client, streams, int(tokens_per_s), 1.0, both, both, kinds)


@pytest.mark.parametrize(
    ("of_the_limit", "of_aiohttp", "aiohttp_late_ms", "expected"),
    [
        (0.50, 1.3, 3.0, False),
        (0.44, 1.3, 3.0, True),
        (0.50, 1.1, 3.0, True),
        (0.50, 1.1, 19.9, True),
        (0.50, 0.9, 20.0, False),
        (0.44, 0.9, 97.0, True),
    ],
)
def test_the_bare_loop_sets_a_bar_only_where_it_keeps_up(
    of_the_limit: float, of_aiohttp: float, aiohttp_late_ms: float, expected: bool
) -> None:
    """45 % of the C limit are asked for at 1600 streams in any case; 1.2 × a loop that is a gap late are not."""
    ours = 50_000 * of_the_limit / 0.5
    found = [reading("C limit", 100_000, 0.0), reading("llm-locust", ours, 0.0),
             reading("aiohttp", ours / of_aiohttp, aiohttp_late_ms)]  # fmt: skip
    assert missed(1600, [found]) is expected
    assert (BEHIND in level_table(1600, [found])) is (aiohttp_late_ms >= 20.0)


def test_without_the_bare_loop_only_the_c_limit_counts() -> None:
    """Neither a bar nor a word of it."""
    found = [reading("C limit", 100_000, 0.0), reading("llm-locust", 46_000, 0.0)]
    assert not missed(1600, [found])
    assert BEHIND not in level_table(1600, [found])
