"""The timeline: every second once, in order; what comes late is told."""

from __future__ import annotations

import pytest

from llm_locust.measure.aggregate import Aggregate
from llm_locust.measure.gaps import GapStatistics
from llm_locust.measure.seconds import SECOND_COLUMNS


def test_seconds_are_handed_out_once_and_without_holes() -> None:
    """A second without anything is a row too."""
    aggregate = Aggregate()
    assert aggregate.pop_seconds(100) == []
    aggregate.second(10).counts["output_tokens"] += 5
    aggregate.second(10).counts["in_flight_ns"] += 1_500_000_000
    aggregate.second(12).counts["ok"] += 1
    rows = aggregate.pop_seconds(13)
    assert [(row.epoch_s, row.values["output_tokens"], row.values["requests_ok"]) for row in rows] == [
        (10, 5, 0), (11, 0, 0), (12, 0, 1),
    ]  # fmt: skip
    assert rows[0].values["in_flight"] == 1.5
    assert tuple(rows[0].values) == SECOND_COLUMNS
    assert aggregate.pop_seconds(13) == []
    assert aggregate.seconds == {}


def test_what_comes_late_is_told_in_the_next_row() -> None:
    """Never added to a row that is written already, never lost silently."""
    aggregate = Aggregate()
    aggregate.second(10).counts["ok"] += 1
    aggregate.pop_seconds(12)
    aggregate.second(10).counts["output_tokens"] -= 2
    aggregate.second(11).counts["failed"] += 1
    assert aggregate.pop_seconds(12) == []
    aggregate.second(11).counts["output_tokens"] += 7
    (row,) = aggregate.pop_seconds(13)
    assert (row.epoch_s, row.values["requests_failed"], row.values["output_tokens"]) == (12, 0, 0)
    assert (row.values["late_requests"], row.values["late_output_tokens"]) == (1, 5)
    (after,) = aggregate.pop_seconds(14)
    assert (after.values["late_requests"], after.values["late_output_tokens"]) == (0, 0)


def test_percentiles_look_back_over_ten_seconds() -> None:
    """Row 19 still sees second 10, row 20 does not; without a sample they are absent."""
    aggregate = Aggregate()
    aggregate.second(10).sample("ttft_ms", 5_000_000_000)
    aggregate.second(15).sample("ttft_ms", 1_000_000_000)
    rows = {row.epoch_s: row.values for row in aggregate.pop_seconds(30)}
    assert rows[19]["ttft_ms_p99"] == 5000
    assert rows[20]["ttft_ms_p99"] == 1000
    assert rows[20]["ttft_ms_p50"] == 1000
    assert rows[25]["ttft_ms_p50"] is None
    assert rows[10]["itl_ms_p99"] is None


def test_gap_statistics_over_seconds_and_workers() -> None:
    """Starts of several workers within a second are one sequence; gaps go over the second's edge."""
    gaps = GapStatistics()
    gaps.add_second(10, [600_000, 100_000])
    gaps.add_second(11, [100_000])
    gaps.add_second(13, [])
    gaps.add_second(14, [600_000])
    assert (gaps.count, gaps.mean_ms) == (3, 1500.0)
    assert gaps.variation == pytest.approx(((500 - 1500) ** 2 * 2 + 2000**2) ** 0.5 / 2**0.5 / 1500)


@pytest.mark.parametrize("starts", [[], [5]])
def test_gap_statistics_are_absent_without_gaps(starts: list[int]) -> None:
    """One start has no gap."""
    gaps = GapStatistics()
    gaps.add_second(1, starts)
    assert (gaps.mean_ms, gaps.variation) == (None, None)


def test_gap_variation_is_exactly_zero_for_a_constant_rate() -> None:
    """Integer sums: no rounding makes a square root of a negative number."""
    gaps = GapStatistics()
    for second in range(1_700_000_000, 1_700_000_300):
        gaps.add_second(second, [0, 333_333, 666_666])
    assert gaps.variation == pytest.approx(0, abs=2e-6)
    steady = GapStatistics()
    for second in range(300):
        steady.add_second(second, [250_000])
    assert steady.variation == 0.0
