"""Arrivals, gaps and token gaps of one request, with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from llm_locust.measure.timeline import Timeline
from llm_locust.protocol.types import ANSWER, REASONING, TOOL, Usage
from llm_locust.wire.types import USER_TIME
from tests.measure.given import MS, START_NS, TEXT, finished, ms, timeline_of

BOTH = ((0, ANSWER | REASONING),)
THINKING = ((0, REASONING),)


def test_first_and_last_are_arrivals_when_headers_came_early() -> None:
    """B01: TTFT is the first token's, never the headers'."""
    record, _ = finished([820 + 39.5 * i for i in range(41)], Usage(output_tokens=41))
    assert record.ttft_ns == 820 * MS
    assert record.e2e_ns == 2400 * MS
    assert record.tpot_ns == pytest.approx(39.5 * MS)
    assert record.headers_ns == MS


@pytest.mark.parametrize(
    ("events", "n", "icl", "itl", "tpot"),
    [
        pytest.param([100, 150, 200], 3, [50, 50], [50, 50], 50, id="A05 one token a chunk"),
        pytest.param([(100, 1), (160, 4), (180, 5)], 5, [60, 20], [20] * 4, 20, id="A06 V1 running count"),
        pytest.param([(100, 5), (160, 5), (180, 5)], 5, [60, 20], [], 20, id="A06 V2 constant count"),
        pytest.param([100, 180], 2, [80], [80], 80, id="A06 V3 count at the end"),
        pytest.param([(500, 8), (580, 12), (660, 16)], 16, [80, 80], [20] * 8, 20, id="A31 V1 bundled first chunk"),
        pytest.param([500, 580, 660], 16, [80, 80], [], 160 / 15, id="A31 V2 tokens of a chunk not known"),
        pytest.param([(80, 1), (100, 2), (120, 3), (140, 5)], 5, [20] * 3, [20, 20, 10, 10], 15, id="A33 generate"),
        pytest.param([(10, 2), (20, 2), (40, 4)], 4, [10, 20], [15, 15], 15, id="text before its count"),
        pytest.param([(10, 2), (20, None), (40, 4)], 4, [10, 20], [], 10, id="a count is missing"),
        pytest.param([(10, 3), (20, 2), (40, 4)], 4, [10, 20], [], 10, id="a count falls"),
    ],
)  # fmt: skip
def test_gaps_when_counts_are_and_are_not_known(
    events: list[float], n: int, icl: list[float], itl: list[float], tpot: float
) -> None:
    """ICL is each gap; ITL only where the tokens of each chunk are known; TPOT leaves out the first chunk's tokens."""
    record, samples = finished(events, Usage(output_tokens=n))
    assert ms(samples.icl_ns) == pytest.approx(icl)
    assert ms(samples.itl_ns) == pytest.approx(itl)
    assert record.tpot_ns is not None
    assert record.tpot_ns / MS == pytest.approx(tpot)
    assert record.icl_max_ns == max(icl) * MS


def test_token_gaps_are_absent_when_tokens_were_counted_from_chunks() -> None:
    """A01: an estimate never becomes a per-token gap; TPOT is there and its source is named."""
    record, samples = finished([220, 260])
    assert (record.output_tokens, record.output_tokens_source) == (2, "chunks")
    assert record.tpot_ns == 40 * MS
    assert ms(samples.icl_ns) == [40]
    assert samples.itl_ns.size == 0


@pytest.mark.parametrize(
    ("events", "usage", "ttft", "ttfa", "tpot", "chunks"),
    [
        pytest.param(
            [(120, None, THINKING), (160, None, THINKING), 900, 940],
            Usage(output_tokens=5, reasoning_tokens=3), 120, 900, 205, 4, id="V1 reasoning",
        ),
        pytest.param([(120, None, THINKING), 900], Usage(), 120, 900, 780, 2, id="V2 reasoning_content"),
        pytest.param([(100, None, THINKING), (200, None, BOTH), 240], Usage(), 100, 200, 70, 3, id="V5 both in one"),
        pytest.param([(180, None, ((0, TOOL),)), 260], Usage(output_tokens=17), 180, 260, 5, 2, id="A29 tool call"),
    ],
)  # fmt: skip
def test_first_answer_when_reasoning_comes_first(
    events: list[float], usage: Usage, ttft: float, ttfa: float, tpot: float, chunks: int
) -> None:
    """A03: TTFT counts any channel, TTFA the answer's; reasoning tokens are inside the output tokens."""
    record, _ = finished(events, usage)
    assert (record.ttft_ns, record.ttfa_ns, record.chunks) == (ttft * MS, ttfa * MS, chunks)
    assert record.tpot_ns == pytest.approx(tpot * MS)


def test_tpot_leaves_out_tokens_of_a_channel_that_was_never_streamed() -> None:
    """Hidden reasoning: 100 of 110 tokens never arrived; n of TPOT is 10, the output stays 110."""
    record, samples = finished([100 + 10 * i for i in range(10)], Usage(output_tokens=110, reasoning_tokens=100))
    assert (record.output_tokens, samples.streamed_tokens) == (110, 10)
    assert record.tpot_ns == 10 * MS
    assert ms(samples.itl_ns) == [10] * 9


def test_gaps_are_per_choice_when_several_were_asked_for() -> None:
    """Two interleaved choices: no gap between tokens of different choices."""
    first, second = ((0, ANSWER),), ((1, ANSWER),)
    timeline = timeline_of([(10, None, first), (12, None, second), (30, None, first), (33, None, second)])
    arrivals = timeline.analyse(n=2)
    assert ms(arrivals.gaps_ns) == [20, 21]
    assert arrivals.second_ns == START_NS + 30 * MS
    assert ms(arrivals.token_gaps_ns(4)) == [20, 21]


def test_an_event_of_two_choices_is_two_arrivals() -> None:
    """One arrival per event and choice."""
    both = ((0, ANSWER), (1, ANSWER))
    arrivals = timeline_of([(10, None, both), (30, None, both)]).analyse(n=2)
    assert arrivals.count == 4
    assert ms(arrivals.gaps_ns) == [20, 20]


def test_choices_beyond_the_requested_n_are_one() -> None:
    """A server that counts the index up with each chunk still sends one choice."""
    timeline = timeline_of([(10 * i, None, ((i, ANSWER),)) for i in range(1, 5)])
    arrivals = timeline.analyse(n=1)
    assert (arrivals.count, ms(arrivals.gaps_ns)) == (4, [10, 10, 10])


def test_late_and_bundled_events_when_reads_hold_several() -> None:
    """Over 1 ms after the stamp: upper bounds; within: sent together. A read of one event is neither."""
    timeline = Timeline()
    for events, lag_ns in ((2, 1_000_001), (3, 1_000_000), (2, USER_TIME)):
        for _ in range(events):
            timeline.add(TEXT, START_NS)
        timeline.close_read(events, lag_ns)
    timeline.add(TEXT, START_NS)
    assert (timeline.late_events, timeline.bundled_events, timeline.first_read_late) == (2, 5, True)


def test_ttft_is_no_upper_bound_when_only_a_later_read_was_late() -> None:
    """The flag is about the first token."""
    timeline = timeline_of([10])
    for _ in range(2):
        timeline.add(TEXT, START_NS + 20 * MS)
    timeline.close_read(2, 5 * MS)
    record, _ = finished(timeline)
    assert (record.late_tokens, record.ttft_upper_bound) == (2, False)


def test_burst_when_all_came_in_one_read() -> None:
    """B03: no TPOT, no speed, a flag; the tokens still count."""
    timeline = Timeline()
    for _ in range(4):
        timeline.add(TEXT, START_NS + 4000 * MS)
    timeline.close_read(4, 0)
    record, _ = finished(timeline, Usage(output_tokens=120))
    assert (record.burst, record.tpot_ns, record.output_tokens) == (True, None, 120)
    slow, _ = finished([500, 4070], Usage(output_tokens=120))
    assert not slow.burst
    assert slow.tpot_ns == 30 * MS


def test_no_burst_when_there_is_one_token() -> None:
    """n ≤ k: TPOT does not exist; that is not a burst."""
    record, _ = finished([300], Usage(output_tokens=1))
    assert (record.burst, record.tpot_ns) == (False, None)


def test_tpot_is_absent_when_usage_states_fewer_tokens_than_chunks() -> None:
    """n ≤ k, though two chunks came."""
    record, _ = finished([300, 400], Usage(output_tokens=1))
    assert (record.tpot_ns, record.burst) == (None, False)


def test_everything_is_absent_when_no_token_came() -> None:
    """Undefined is absent: never 0."""
    record, samples = finished([], Usage(output_tokens=1))
    assert (record.ttft_ns, record.ttfa_ns, record.e2e_ns, record.tpot_ns, record.second_token_ns) == (None,) * 5
    assert (record.icl_max_ns, record.chunks, record.output_tokens) == (None, 0, 1)
    assert samples.icl_ns.size == samples.itl_ns.size == 0


def test_second_token_is_the_second_arrival() -> None:
    """On a disaggregated server it holds the hand-off."""
    record, _ = finished([100, 350, 370])
    assert record.second_token_ns == 250 * MS


def test_gaps_are_never_negative_when_a_stamp_runs_back() -> None:
    """A refreshed clock offset moves a stamp back by microseconds: the gap is 0."""
    _, samples = finished([100, 99.99, 120])
    assert ms(samples.icl_ns) == [0, 20]


def test_events_since_an_index_when_cut_at_an_instant() -> None:
    """The ledger takes events in pieces: instants, counts, arrivals per event."""
    timeline = timeline_of([(10, 1), (20, 2), (30, 4)])
    at_ns, cumulative, arrivals = timeline.since(1, START_NS + 20 * MS)
    assert (ms(at_ns - START_NS), cumulative.tolist(), arrivals.tolist()) == ([20], [2], [1])
    assert np.concatenate(timeline.since(3)).size == 0


@pytest.mark.parametrize(
    ("events", "total", "tokens"),
    [
        pytest.param([10, 20, 30], 3, [1, 1, 1], id="one each"),
        pytest.param([10, 20, 30], 10, [3, 3, 4], id="spread evenly"),
        pytest.param([(10, 8), (20, 12), (30, 16)], 16, [8, 4, 4], id="known"),
        pytest.param([(10, 8), (20, 12), (30, 16)], 18, [9, 4, 5], id="known, but for two more"),
        pytest.param([(10, 6), (20, 6), (30, 6)], 6, [2, 2, 2], id="a constant count tells nothing"),
        pytest.param([10, 20, 30], 1, [0, 0, 1], id="fewer tokens than events"),
        pytest.param([10, 20], None, [1, 1], id="total not known"),
        pytest.param([], 5, [], id="no event"),
    ],
)
def test_tokens_of_each_event_when_the_total_is_known(
    events: list[float], total: int | None, tokens: list[int]
) -> None:
    """Exact in sum, never negative, where they arrived."""
    _, got = timeline_of(events).tokens(total)
    assert got.tolist() == tokens
