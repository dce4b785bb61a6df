"""The schedule is one sequence: it follows its law, whoever plays it, and no arrival is lost or doubled."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from llm_locust.load.arrivals import (
    BLOCK,
    ArrivalSpec,
    Cursor,
    Ownership,
    Profile,
    Schedule,
    Shares,
    first_index_from,
    pattern,
)

SEED = (20240613, 2)
THREE: Shares = ((0, (("a", 7), ("b", 7), ("c", 6))),)


def taken(
    spec: ArrivalSpec, profile: Profile, shares: Shares, count: int, worker: str = "a"
) -> tuple[list[int], list[int]]:
    """Take one worker's arrivals among the first `count` of all: (indices, offsets in ns)."""
    cursor = Cursor(Schedule(spec, profile, SEED), Ownership(shares, worker))
    indices, offsets_ns = [], []
    while (head := cursor.head()) is not None and head[0] < count:
        cursor.pop()
        indices.append(head[0])
        offsets_ns.append(head[1])
    return indices, offsets_ns


def merged_gaps_s(
    spec: ArrivalSpec, shares: Shares, count: int = 2000, rate_per_s: float = 20.0
) -> NDArray[np.float64]:
    """Merge what the workers start; return the gaps, the first one from the opening."""
    offsets_ns: list[int] = []
    for worker, _ in shares[0][1]:
        offsets_ns += taken(spec, ((0.0, rate_per_s),), shares, count, worker)[1]
    assert len(offsets_ns) == count
    return np.diff(np.sort(np.array(offsets_ns)) / 1e9, prepend=0.0)


def ks_statistic(samples: NDArray[np.float64], cdf: NDArray[np.float64]) -> float:
    """Largest distance between the samples' distribution and the law's (its values at the sorted samples)."""
    count = len(samples)
    above = np.arange(1, count + 1) / count - cdf
    below = cdf - np.arange(count) / count
    return float(max(above.max(), below.max()))


def gamma_cdf(shape: float, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Regularized lower incomplete gamma function by its series: exact enough for x < 60."""
    values = []
    for point in x:
        term = total = 1.0 / shape
        order = shape
        while term > total * 1e-12:
            order += 1.0
            term *= point / order
            total += term
        values.append(total * math.exp(-point + shape * math.log(point) - math.lgamma(shape)) if point > 0 else 0.0)
    return np.array(values)


def critical(count: int) -> float:
    """KS distance that the true law exceeds once in a thousand runs; the seed is fixed, so this never flickers."""
    return 1.95 / math.sqrt(count)


SHARES = pytest.mark.parametrize("shares", [((0, (("a", 5),)),), THREE], ids=["one worker", "three workers"])


@SHARES
def test_gaps_follow_the_exponential_law_when_poisson(shares: Shares) -> None:
    """Poisson: merged over the workers the gaps are exponential (KS, 2000 arrivals)."""
    gaps_s = np.sort(merged_gaps_s(ArrivalSpec("poisson"), shares))
    assert ks_statistic(gaps_s, 1 - np.exp(-20.0 * gaps_s)) < critical(2000)
    assert gaps_s.std() / gaps_s.mean() == pytest.approx(1.0, abs=0.08)


@SHARES
@pytest.mark.parametrize("cv", [0.25, 2.0])
def test_gaps_follow_the_gamma_law_when_gamma(shares: Shares, cv: float) -> None:
    """gamma:CV: merged over the workers the gaps are gamma with that coefficient of variation."""
    gaps_s = np.sort(merged_gaps_s(ArrivalSpec("gamma", cv=cv), shares))
    shape = 1 / cv**2
    assert ks_statistic(gaps_s, gamma_cdf(shape, gaps_s * 20.0 * shape)) < critical(2000)
    assert gaps_s.std() / gaps_s.mean() == pytest.approx(cv, rel=0.1)


def test_ks_test_can_fail() -> None:
    """Independent streams of gamma CV 0.25 on three workers do not merge to the law: the test would notice."""
    streams = []
    for stream in range(3):
        schedule = Schedule(ArrivalSpec("gamma", cv=0.25), ((0.0, 20.0 / 3),), (SEED[0], stream))
        schedule.advance()
        streams.append(schedule.block_ns[:667])
    gaps_s = np.sort(np.diff(np.sort(np.concatenate(streams)) / 1e9))
    assert ks_statistic(gaps_s, gamma_cdf(16.0, gaps_s * 20.0 * 16)) > critical(2000)
    assert gaps_s.std() / gaps_s.mean() > 0.5


@SHARES
def test_gaps_are_equal_when_constant(shares: Shares) -> None:
    """Constant: CV < 0.05 after merging; the first is due at once, and rounding never adds up."""
    offsets = sorted(
        o for worker, _ in shares[0][1] for o in taken(ArrivalSpec("constant"), ((0.0, 3.0),), shares, 2000, worker)[1]
    )
    gaps = np.diff(offsets)
    assert gaps.std() / gaps.mean() < 0.05
    assert offsets[:4] == [0, 333_333_333, 666_666_667, 1_000_000_000]
    assert offsets[1999] == round(1999 / 3 * 1e9)


def test_sequence_is_the_same_for_any_number_of_workers() -> None:
    """Arrival i is due at the same time wherever it is computed, and belongs to exactly one worker."""
    spec, profile = ArrivalSpec("poisson"), ((0.0, 20.0),)
    alone = dict(zip(*taken(spec, profile, ((0, (("a", 1),)),), 10_000), strict=True))
    together: dict[int, int] = {}
    for worker in "abc":
        mine = dict(zip(*taken(spec, profile, THREE, 10_000, worker), strict=True))
        assert not mine.keys() & together.keys()
        together |= mine
    assert together == alone


def test_sequences_differ_when_seed_or_stage_differ() -> None:
    """Two stages of a run, and two runs, have different arrivals."""
    blocks = []
    for seed in ((1, 0), (1, 1), (2, 0)):
        schedule = Schedule(ArrivalSpec("poisson"), ((0.0, 1.0),), seed)
        schedule.advance()
        blocks.append(schedule.block_ns.tolist())
    assert len({tuple(block) for block in blocks}) == 3


@given(weights=st.lists(st.integers(0, 40), min_size=1, max_size=6).filter(any))
@settings(max_examples=50, deadline=None)
def test_pattern_gives_each_worker_its_share_evenly(weights: list[int]) -> None:
    """In one period each worker has exactly its weight; up to any place in it its share, to within a few turns."""
    owners = pattern(tuple((str(rank), weight) for rank, weight in enumerate(weights)))
    assert np.bincount(owners, minlength=len(weights)).tolist() == weights
    for rank, weight in enumerate(weights):
        running = np.cumsum(owners == rank)
        ideal = np.arange(1, len(owners) + 1) * weight / sum(weights)
        assert np.abs(running - ideal).max() <= len(weights) / 2 + 1


def test_shares_change_at_the_announced_index_without_gap_or_double() -> None:
    """To index 1000 three workers; then c is gone and d has joined: every index has one owner."""
    after = (("a", 5), ("b", 5), ("d", 10))
    shares: Shares = (*THREE, (1000, after))
    spec, profile = ArrivalSpec("poisson"), ((0.0, 20.0),)
    owned = {worker: taken(spec, profile, shares, 3000, worker)[0] for worker in "abcd"}
    assert sorted(index for indices in owned.values() for index in indices) == list(range(3000))
    assert max(owned["c"]) < 1000 <= min(owned["d"])
    assert len(owned["d"]) == 1000


def test_shares_change_at_the_announced_index_when_told_while_running() -> None:
    """A worker that hears of new shares on the way owns what one that knew them from the start owns."""
    spec, profile = ArrivalSpec("poisson"), ((0.0, 20.0),)
    shares: Shares = (*THREE, (5000, (("a", 1), ("b", 3))))
    cursor = Cursor(Schedule(spec, profile, SEED), Ownership(THREE, "a"))
    indices = []
    while (head := cursor.head()) is not None and head[0] < 12_000:
        cursor.pop()
        indices.append(head[0])
        if len(indices) == 1700:  # index about 4857, in the second block
            cursor.amend(profile, Ownership(shares, "a"))
    assert indices == taken(spec, profile, shares, 12_000)[0]


def test_passing_counts_what_popping_takes() -> None:
    """The two cursors of a line see the same arrivals: counted in one go or taken one by one."""
    spec, profile = ArrivalSpec("gamma", cv=2.0), ((0.0, 50.0),)
    _, offsets_ns = taken(spec, profile, THREE, 30_000)
    cursor = Cursor(Schedule(spec, profile, SEED), Ownership(THREE, "a"))
    passed: list[int] = []
    for until_ns in range(0, offsets_ns[-1], 1_700_000_000):
        while len(block := cursor.pass_until(until_ns)):
            passed += block.tolist()
    assert passed == [offset for offset in offsets_ns if offset <= until_ns]


def test_rate_profile_changes_the_rate_at_its_instant() -> None:
    """A spike is one schedule: 10/s, from 20 s on 40/s, from 30 s on 10/s; what was due before a change stays."""
    spike = ((0.0, 10.0), (20.0, 40.0), (30.0, 10.0))
    offsets = np.array(taken(ArrivalSpec("constant"), spike, ((0, (("a", 1),)),), 701)[1]) / 1e9
    counts = [int(((offsets >= start) & (offsets < end)).sum()) for start, end in ((0, 20), (20, 30), (30, 40))]
    assert counts == [200, 400, 100]
    flat = np.array(taken(ArrivalSpec("constant"), spike[:1], ((0, (("a", 1),)),), 200)[1]) / 1e9
    assert offsets[:200].tolist() == flat.tolist()


def test_rate_changed_while_running_keeps_earlier_arrivals() -> None:
    """A rate edited by hand at 5 s: arrivals before it keep their times, none is lost, then the new rate holds."""
    cursor = Cursor(Schedule(ArrivalSpec("constant"), ((0.0, 10.0),), SEED), Ownership(((0, (("a", 1),)),), "a"))
    offsets = []
    while (head := cursor.head()) is not None and head[1] < 8_000_000_000:
        cursor.pop()
        offsets.append(head[1])
        if len(offsets) == 40:
            cursor.amend(((0.0, 10.0), (5.0, 20.0)), Ownership(((0, (("a", 1),)),), "a"))
    assert offsets == [i * 100_000_000 for i in range(50)] + [5_000_000_000 + i * 50_000_000 for i in range(60)]


def test_trace_plays_its_instants_and_ends() -> None:
    """A trace's offsets come as they are, divided by the speed, and then no more."""
    offsets_ns = np.array([0, 200_000_000, 200_000_000, 31_000_000_000])
    cursor = Cursor(
        Schedule(ArrivalSpec("trace", speed=2.0), (), SEED, offsets_ns), Ownership(((0, (("a", 1),)),), "a")
    )
    played = []
    while (head := cursor.head()) is not None:
        cursor.pop()
        played.append(head)
    assert played == [(0, 0), (1, 100_000_000), (2, 100_000_000), (3, 15_500_000_000)]


def test_trace_without_a_dataset_is_refused() -> None:
    """A trace law needs the instants of a trace."""
    with pytest.raises(ValueError, match="timestamps"):
        Schedule(ArrivalSpec("trace"), (), SEED)


def test_worker_without_a_share_gets_nothing() -> None:
    """A worker that is in no shares, or with no users, is told so without searching for ever."""
    for shares in ((), ((0, (("b", 1),)),), ((0, (("a", 0), ("b", 1))),)):
        cursor = Cursor(Schedule(ArrivalSpec("poisson"), ((0.0, 1.0),), SEED), Ownership(shares, "a"))
        assert cursor.head() is None


def test_memory_holds_one_block_when_run_for_long() -> None:
    """A million arrivals later the schedule still holds one block."""
    schedule = Schedule(ArrivalSpec("poisson"), ((0.0, 20.0),), SEED)
    for _ in range(250):
        schedule.advance()
    assert len(schedule.block_ns) == BLOCK
    assert schedule.first == 249 * BLOCK
    assert schedule.block_ns[-1] / 1e9 == pytest.approx(250 * BLOCK / 20.0, rel=0.01)


def test_first_index_from_an_offset() -> None:
    """The master finds from which arrival on new shares can hold."""
    schedule = Schedule(ArrivalSpec("constant"), ((0.0, 10.0),), SEED)
    assert first_index_from(schedule, 1_950_000_000) == 20
    assert first_index_from(schedule, 500_000_000_000) == 5000
    assert first_index_from(schedule, 500_000_000_001) == 5001


def test_closed_loop_indices_walk_the_own_turns() -> None:
    """The turns of three workers together are all indices, each once."""
    owned = [Ownership(THREE, worker) for worker in "abc"]
    turns = (70, 70, 60)
    indices = [o.nth_of_last(turn) for o, count in zip(owned, turns, strict=True) for turn in range(count)]
    assert sorted(index for index in indices if index is not None) == list(range(200))


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (ArrivalSpec(), "poisson"),
        (ArrivalSpec("gamma", cv=0.25), "gamma:0.25"),
        (ArrivalSpec("trace", speed=2), "trace:2"),
    ],
)
def test_law_is_spelled_as_the_option_does(spec: ArrivalSpec, text: str) -> None:
    """What is printed can be typed."""
    assert str(spec) == text
