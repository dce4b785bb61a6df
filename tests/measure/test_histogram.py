"""The histogram as mathematics: its error bound, its merging, its edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_locust.measure.histogram import GROWTH_BINS, HIGHEST, LOWEST, PENDING_LIMIT, Histogram
from tests.measure.given import MS

VALUES = st.lists(st.integers(0, 2 * HIGHEST), max_size=400)
QUANTILES = (0.0, 0.01, 0.5, 0.9, 0.95, 0.99, 1.0)


def of(values: list[int]) -> Histogram:
    """A histogram with these samples, some one by one and some at once."""
    histogram = Histogram()
    half = len(values) // 2
    for value in values[:half]:
        histogram.add(value)
    histogram.fill(np.array(values[half:], np.int64))
    return histogram


def nearest_rank(values: list[int], q: float) -> int:
    """The definition."""
    return sorted(values)[max(1, math.ceil(q * len(values))) - 1]


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_quantiles_stay_in_their_bound(values: list[int]) -> None:
    """Relative error ≤ 0.25 % from 1 us to below 24 h; below, 0; above, clamped to the greatest."""
    for q, got in zip(QUANTILES, of(values).quantiles(QUANTILES), strict=True):
        if not values:
            assert got is None
            continue
        true = nearest_rank(values, q)
        assert got is not None
        assert got <= max(values)
        if true < LOWEST:
            assert got == 0
        elif true < HIGHEST:
            assert abs(got - true) <= 0.0025 * true
        else:
            assert got >= HIGHEST


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_count_sum_and_extremes_are_exact(values: list[int]) -> None:
    """Only the bins are approximate; what is below 1 us is 0."""
    histogram = of(values)
    exact = [value if value >= LOWEST else 0 for value in values]
    assert (histogram.count, histogram.total) == (len(exact), sum(exact))
    assert (histogram.minimum, histogram.maximum) == (min(exact, default=None), max(exact, default=None))
    assert histogram.mean == (sum(exact) / len(exact) if exact else None)


@settings(max_examples=100, deadline=None)
@given(VALUES, VALUES, VALUES)
def test_merging_is_associative_and_commutative(a: list[int], b: list[int], c: list[int]) -> None:
    """In whatever order: the histogram of all samples."""
    left, right = of(a), of(c)
    left.merge(of(b))
    left.merge(of(c))
    inner = of(b)
    inner.merge_encoded(of(a).encode())
    right.merge_encoded(inner.encode())
    assert left.encode() == right.encode() == of(a + b + c).encode()


def test_encoded_samples_are_sparse_builtins() -> None:
    """A report carries only bins that hold something."""
    bins, counts, *numbers = of([20 * MS] * 100_000).encode()
    assert (len(bins), len(counts)) == (2, 4)
    assert numbers == [100_000, 2_000_000 * MS, 20 * MS, 20 * MS]
    assert {type(part) for part in of([1, 5000]).encode()} == {bytes, int}


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, -1], ids=str)
def test_no_value_that_is_no_duration(value: float) -> None:
    """NaN is an error, and so are infinite and negative values: they never become a sample."""
    histogram = Histogram()
    with pytest.raises(ValueError, match="not a duration"):
        histogram.add(value)
    with pytest.raises(ValueError, match="not a duration"):
        histogram.fill([5000, value])
    assert histogram.count == 0


def test_small_and_close_values_are_told_apart() -> None:
    """C07: 0.4 ms stays 0.4; 1234 and 1249 ms stay apart; no percentile above the greatest sample."""
    gaps, ttft, single = Histogram(), Histogram(), Histogram()
    gaps.fill([0.4 * MS] * 40)
    ttft.fill([1234 * MS] * 100 + [1249 * MS] * 100)
    single.add(58_760 * MS)
    assert gaps.quantile(0.5) == pytest.approx(0.4 * MS, rel=0.005)
    assert ttft.quantile(0.5) == pytest.approx(1234 * MS, rel=0.005)
    assert ttft.quantile(0.75) == pytest.approx(1249 * MS, rel=0.005)
    assert ttft.quantile(0.5) != ttft.quantile(0.75)
    assert single.quantile(0.99) == 58_760 * MS


def test_an_empty_histogram_holds_no_bins() -> None:
    """Made lazily: a cell has twenty metrics, most of them unused."""
    histogram = Histogram()
    assert histogram.encode() == [b"", b"", 0, 0, 0, 0]
    histogram.merge_encoded(Histogram().encode())
    assert histogram._bins.size == 0
    histogram.fill([20 * MS, 30 * MS])
    assert histogram._bins.size <= 2 * GROWTH_BINS


def test_single_values_are_binned_in_batches() -> None:
    """The list of pending values is bounded."""
    histogram = Histogram()
    for i in range(3 * PENDING_LIMIT + 1):
        histogram.add(LOWEST + i)
    assert len(histogram._pending) == 1
    assert histogram.count == 3 * PENDING_LIMIT + 1


def test_quantile_at_the_last_rank_is_the_largest_sample() -> None:
    """A p99 of fewer than 100 samples is exact, so it is never below their mean."""
    near = of([4_093_000_000, 4_093_100_000, 4_093_200_000])
    assert near.quantile(0.99) == 4_093_200_000
