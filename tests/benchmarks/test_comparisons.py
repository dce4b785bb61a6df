"""What the comparisons with other clients make of a run: known loads, known answers."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.clients import Reading
from benchmarks.lab import Sent
from benchmarks.peers.compare import TAIL_NS, compared
from benchmarks.peers.peer import Said
from benchmarks.peers.tree import Ended, TreeUsage
from benchmarks.receive import BEHIND, level_table, missed

MS = 1_000_000
S = 1_000_000_000


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


def test_cpu_is_taken_evenly_between_samples() -> None:
    """Samples each 100 ms: half a core at first, then a whole one."""
    usage = TreeUsage(rows=[(0, 0.0), (100 * MS, 0.05), (200 * MS, 0.15)])
    assert usage.cpu_s(50 * MS, 150 * MS) == pytest.approx(0.025 + 0.05)
    assert usage.cpu_s(100 * MS, 900 * MS) == pytest.approx(0.10)


def test_tokens_of_the_warm_up_that_come_under_load_count_as_work() -> None:
    """Two counted requests of ten tokens; of the warm-up's four tokens fall into their time, six before it."""
    gap = 20 * MS
    starts = {"warm": 0, "a": 120 * MS, "b": 130 * MS}
    sent = [Sent(name, at, at + gap * np.arange(10, dtype=np.int64)) for name, at in starts.items()]
    usage = TreeUsage(rows=[(0, 0.0), (S, 1.0)])
    one = compared("any", Said(), sent, 2, Ended(0, "", usage, late=False))
    assert (one.tokens_sent, one.tokens_under_load) == (20, 24)
    span_ns = (130 + 9 * 20 - 120) * MS
    assert one.load_s == pytest.approx(span_ns / 1e9)
    assert one.cpu_us_a_token == pytest.approx((span_ns + TAIL_NS) / 1e9 / 24 * 1e6)
