"""Cells of a run: merging in any order, deltas without loss, totals that compare."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_locust.measure.aggregate import FINISH_REASONS_LIMIT, STAGE_WIDE, Aggregate
from llm_locust.measure.finish import Samples
from llm_locust.measure.record import Outcome, RequestRecord
from tests.measure.given import EPOCH_OFFSET_NS, START_NS, S, record_of, samples_of

EPOCH_S = (EPOCH_OFFSET_NS + START_NS) // S

Booking = tuple[RequestRecord, Samples]


@st.composite
def bookings(draw: st.DrawFn) -> Booking:
    """A request that ended somehow."""
    ttft = draw(st.integers(0, 5000))
    e2e = ttft + draw(st.integers(0, 5000))
    gaps = draw(st.lists(st.integers(0, 3000), max_size=5))
    record = record_of(
        draw(st.integers(0, 10_000)),
        draw(st.sampled_from([Outcome.OK, Outcome.OK, Outcome.CUT, Outcome.UNFINISHED])),
        stage=draw(st.sampled_from(["a", "b"])),
        name=draw(st.sampled_from(["x", "y"])),
        phase=draw(st.sampled_from(["steady", "warmup"])),
        ttft_ms=ttft,
        e2e_ms=e2e,
        stream_end_ms=e2e,
        tpot_ms=draw(st.none() | st.integers(1, 100)),
        output_tokens=draw(st.none() | st.integers(1, 9)),
        output_tokens_source=draw(st.sampled_from([None, "usage", "chunks"])),
        finish_reason=draw(st.sampled_from([None, "stop", "length"])),
        chunks=len(gaps) + 1,
        slo_good=draw(st.none() | st.booleans()),
    )
    return record, samples_of(gaps, gaps, record.output_tokens)


def book(aggregate: Aggregate, booking: Booking) -> None:
    """Book as a worker does: the record, and what the ledger says of its second and window."""
    record, samples = booking
    aggregate.add(record, samples)
    epoch_s, offset_ns = divmod(record.start_epoch_ns, S)
    aggregate.window(record.stage, record.name, record.phase).counts["started"] += 1
    aggregate.second(epoch_s).sample("ttft_ms", record.ttft_ns)
    aggregate.raise_in_flight((record.stage, record.name, record.phase), epoch_s, 1)
    aggregate.add_starts(record.stage, record.phase, epoch_s, [offset_ns // 1000])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(bookings(), max_size=6), min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_merging_is_associative_and_commutative(parts: list[list[Booking]], random_: random.Random) -> None:
    """Deltas of several workers, in any order and grouping, give the aggregate of one process; nothing is lost."""
    whole, deltas = Aggregate(), []
    totals: Counter[str] = Counter()
    for part in parts:
        worker = Aggregate()
        for booking in part:
            book(worker, booking)
            book(whole, booking)
            if random_.random() < 0.3:
                deltas.append(worker.take_delta())
        deltas.append(worker.take_delta())
        totals.update(worker.totals())
    random_.shuffle(deltas)
    left, grouped = Aggregate(), Aggregate()
    for delta in deltas:
        left.merge(msgspec.msgpack.decode(msgspec.msgpack.encode(delta)))
    for first in range(0, len(deltas), 2):
        pair = Aggregate()
        for delta in deltas[first : first + 2]:
            pair.merge(delta)
        grouped.merge(pair.encode())
    assert left.encode() == grouped.encode() == whole.encode()
    assert left.totals() == whole.totals() == dict(sorted((+totals).items()))


def builtin(value: Any) -> bool:
    """Say whether a value is made of what msgpack carries as it is."""
    return type(value) in (int, str, bytes) or (type(value) is list and all(map(builtin, value)))


def test_a_delta_is_made_of_builtins_and_empty_without_news() -> None:
    """Ints, texts, bytes and lists only."""
    worker = Aggregate()
    assert worker.take_delta() == [[], [], [], [], []]
    book(worker, (record_of(ttft_ms=1, chunks=1, finish_reason="stop"), samples_of([1], [1])))
    worker.count("a", "steady", "arrivals_due", 3)
    delta = worker.take_delta()
    assert builtin(delta)
    assert worker.take_delta() == [[], [], [], [], []]


def test_size_does_not_depend_on_the_number_of_tokens() -> None:
    """C05, C16: tokens go into bins; a report of a million tokens is a few KB."""
    worker = Aggregate()
    for i in range(100):
        gaps = [18 + (token % 5) for token in range(1000)]
        worker.add(record_of(i, ttft_ms=200, e2e_ms=2000, chunks=1001), samples_of(gaps, gaps, 1001))
    delta = worker.take_delta()
    assert len(msgspec.msgpack.encode(delta)) < 3000


def test_failed_requests_have_their_own_row() -> None:
    """C26: 100 ok at 2000 ms, 150 rejected at 5 ms: neither spoils the other's percentiles."""
    aggregate = Aggregate()
    for _ in range(100):
        aggregate.add(record_of(ttft_ms=100, e2e_ms=2000, stream_end_ms=2001), samples_of())
    for _ in range(150):
        aggregate.add(record_of(outcome=Outcome.REJECTED, stream_end_ms=5), samples_of())
    aggregate.add(record_of(outcome=Outcome.CUT, ttft_ms=50, e2e_ms=60, stream_end_ms=70), samples_of([10]))
    histograms = aggregate.cells["8 users", "chat", "steady"].histograms
    assert histograms["e2e_ms"].quantile(0.5) == pytest.approx(2000e6, rel=0.005)
    assert histograms["failed_ms"].quantile(0.5) == pytest.approx(5e6, rel=0.005)
    assert (histograms["e2e_ms"].count, histograms["failed_ms"].count, histograms["ttft_ms"].count) == (100, 151, 100)
    assert histograms["failed_ttft_ms"].count == 1
    assert "icl_ms" not in histograms


def test_a_broken_record_is_counted_and_adds_no_latency() -> None:
    """It makes the measurement invalid; it is never dropped."""
    aggregate = Aggregate()
    aggregate.add(record_of(ttft_ms=-200, e2e_ms=100, stream_end_ms=100, output_tokens=3), samples_of([5]))
    cell = aggregate.cells["8 users", "chat", "steady"]
    assert (cell.counts["broken"], cell.counts["outcome:ok"], cell.counts["ok:output_tokens"]) == (1, 1, 3)
    assert cell.histograms == {}


def test_finish_reasons_are_kept_raw_but_bounded() -> None:
    """A server that invents reasons does not fill the memory."""
    aggregate = Aggregate()
    for i in range(1000):
        aggregate.add(record_of(finish_reason=f"r{i}"), samples_of())
    aggregate.add(record_of(finish_reason="r1"), samples_of())
    counts = aggregate.cells["8 users", "chat", "steady"].counts
    assert (counts["finish:r1"], counts["finish:(other)"]) == (2, 1000 - FINISH_REASONS_LIMIT)


def test_totals_stay_when_deltas_were_taken_and_go_with_a_reset() -> None:
    """A worker knows what it ever booked; the master's sum must be the same."""
    worker, master = Aggregate(), Aggregate()
    for i in range(5):
        book(worker, (record_of(i, output_tokens=2, chunks=2), samples_of([1])))
        master.merge(worker.take_delta())
    assert worker.totals() == master.totals()
    assert worker.totals()["cell:ok:output_tokens"] == 10
    master.pop_seconds(EPOCH_S + 100)
    assert worker.totals() == master.totals()
    worker.reset()
    assert worker.totals() == {}
    assert worker.take_delta() == [[], [], [], [], []]


def test_totals_differ_when_a_report_is_lost() -> None:
    """The comparison can fail."""
    worker, master = Aggregate(), Aggregate()
    book(worker, (record_of(), samples_of()))
    worker.take_delta()
    assert worker.totals() != master.totals()


def test_stage_wide_figures_have_their_own_cell() -> None:
    """Arrivals and back-off belong to the stage, not to a name."""
    aggregate = Aggregate()
    aggregate.count("a", "steady", "backoff_ns", 5)
    aggregate.count("a", "steady", "backoff_ns", 6)
    aggregate.add_unstarted("a", "steady", [1_000_000, 3_000_000], missed=1)
    cell = aggregate.cells["a", STAGE_WIDE, "steady"]
    assert dict(cell.counts) == {"backoff_ns": 11, "arrivals_unstarted": 2, "slo_judged": 1}
    assert cell.histograms["unstarted_wait_ms"].maximum == 3_000_000


def test_memory_is_bounded_over_a_simulated_night() -> None:
    """C13: after 12 h of seconds nothing per second is left on the master."""
    master = Aggregate()
    for hour in range(12):
        for second in range(0, 3600, 60):
            worker = Aggregate()
            book(worker, (record_of((hour * 3600 + second) * 1000, ttft_ms=100, chunks=1), samples_of([20])))
            master.merge(worker.take_delta())
            master.pop_seconds(EPOCH_S + hour * 3600 + second - 10)
    master.pop_seconds(EPOCH_S + 13 * 3600)
    assert len(master.cells) == len(master.windows) == 1
    assert not master.seconds
    assert sum(map(len, master.in_flight.values())) == sum(map(len, master.starts.values())) == 0
    assert master.cells["8 users", "chat", "steady"].histograms["ttft_ms"].count == 720
