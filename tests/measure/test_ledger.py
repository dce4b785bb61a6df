"""What is booked when: exact totals under any harvest schedule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_locust.measure.aggregate import STAGE_WIDE, Aggregate
from llm_locust.measure.ledger import PARSED_PER_PIECE
from llm_locust.measure.record import Outcome
from tests.measure.booking import EPOCH_S, Run
from tests.measure.given import EPOCH_OFFSET_NS, MS, START_NS, S


def test_tokens_belong_to_the_window_and_second_in_which_they_arrived() -> None:
    """Rates count what happens inside the window, whatever phase the request started in."""
    run = Run()
    run.mark(0, "warmup")
    run.mark(1000, "steady")
    run.mark(3000, "drain")
    run.open("a", 500)
    for at_ms in (900, 1000, 1500, 2500, 3000, 3100):
        run.token("a", at_ms)
    run.close("a", 3200, 6, input_tokens=10)
    run.harvest(4000)
    assert run.window("warmup") == {"started": 1, "output_tokens": 1, "input_tokens": 10, "in_flight_ns": 500 * MS}
    assert run.window("steady") == {"output_tokens": 3, "in_flight_ns": 2000 * MS}
    assert run.window("drain") == {"ok": 1, "output_tokens": 2, "in_flight_ns": 200 * MS}
    assert run.per_second("output_tokens") == {0: 1, 1: 2, 2: 1, 3: 2}
    assert run.per_second("in_flight_ns") == {0: 500 * MS, 1: S, 2: S, 3: 200 * MS}
    steady = run.book.windows["s", STAGE_WIDE, "steady"]
    assert (steady.lows["from"], steady.highs["until"]) == (
        EPOCH_OFFSET_NS + START_NS + S,
        EPOCH_OFFSET_NS + START_NS + 3 * S,
    )


def test_arrivals_that_are_not_parsed_yet_are_fetched_for_the_harvest_that_passes_them() -> None:
    """Only those up to its end: the rest may wait."""
    run = Run()
    run.mark(0, "steady")
    run.open("a", 0)
    waiting = [100, 900, 1100]

    def catch_up(until_ns: int | None) -> None:
        while waiting and (until_ns is None or START_NS + waiting[0] * MS <= until_ns):
            run.token("a", waiting.pop(0))

    run.streams["a"][1].catch_up = catch_up
    run.harvest(1000)
    assert (run.per_second("output_tokens"), waiting) == ({0: 2}, [1100])


def test_true_count_is_spread_over_the_arrivals_when_it_becomes_known() -> None:
    """Four chunks of ten tokens in all: booked as four at first, as ten at the end, where they arrived."""
    run = Run()
    run.mark(0, "steady")
    run.open("a", 0)
    for at_ms in (100, 200, 1100, 2100):
        run.token("a", at_ms)
    run.harvest(2500)
    assert run.per_second("output_tokens") == {0: 2, 1: 1, 2: 1}
    run.close("a", 2600, 10)
    run.harvest(3000)
    assert run.per_second("output_tokens") == {0: 5, 1: 2, 2: 3}
    assert run.window("steady")["output_tokens"] == 10


def test_running_counts_are_booked_as_they_come() -> None:
    """Per-chunk usage tells before the end."""
    run = Run()
    run.mark(0, "steady")
    run.open("a", 0)
    run.token("a", 100, 8)
    run.token("a", 1100, 12)
    run.harvest(1500)
    assert run.per_second("output_tokens") == {0: 8, 1: 4}
    run.token("a", 1600, 16)
    run.close("a", 1700, 16)
    run.harvest(2000)
    assert run.per_second("output_tokens") == {0: 8, 1: 8}


def test_constant_count_is_not_claimed_for_the_first_chunk() -> None:
    """A06 V2: some gateways repeat the final figure; the end puts it right."""
    run = Run()
    run.mark(0, "steady")
    run.open("a", 0)
    for at_ms in (900, 1100, 1200):
        run.token("a", at_ms, 6)
    run.harvest(1300)
    run.close("a", 1300, 6)
    run.harvest(2000)
    assert run.per_second("output_tokens") == {0: 2, 1: 4}


def test_a_falling_count_never_books_less_than_nothing() -> None:
    """While the stream runs it is an estimate; the end puts it right."""
    run = Run()
    run.mark(0, "steady")
    run.open("a", 0)
    run.token("a", 900, 8)
    run.token("a", 1100, 3)
    run.harvest(1500)
    assert run.per_second("output_tokens") == {0: 8, 1: 0}
    run.close("a", 1600, 4)
    run.harvest(2000)
    assert run.per_second("output_tokens") == {0: 2, 1: 2}


def test_tokens_without_an_arrival_come_with_the_end() -> None:
    """A whole document, or a token that only usage tells of."""
    run = Run()
    run.mark(0, "steady")
    run.open("a", 0)
    run.close("a", 1500, 7, input_tokens=3)
    run.harvest(2000)
    assert run.per_second("output_tokens") == {0: 0, 1: 7}
    assert run.per_second("input_tokens") == {0: 0, 1: 3}


def test_tokens_of_unfinished_and_failed_requests_were_delivered_too() -> None:
    """B06, B07: output tok/s counts what arrived, completed tok/s only what was completed."""
    run = Run()
    run.mark(0, "steady")
    for key, outcome in (("a", Outcome.UNFINISHED), ("b", Outcome.SERVER_ERROR)):
        run.open(key, 0)
        run.token(key, 100)
        run.token(key, 200)
        run.close(key, 300, 2, outcome, input_tokens=5)
    run.open("c", 0)
    run.close("c", 300, None, Outcome.REJECTED, input_tokens=5)
    run.harvest(1000)
    counts = run.window("steady")
    assert (counts["output_tokens"], counts["unfinished"], counts["failed"]) == (4, 1, 2)
    assert counts["input_tokens"] == 10
    assert "ok" not in counts


def test_time_in_flight_is_taken_back_when_the_end_was_known_late() -> None:
    """A stream that ended before the harvest, but was closed after it."""
    run = Run()
    run.mark(0, "steady")
    run.open("a", 0)
    run.harvest(2500)
    run.close("a", 1500, None, Outcome.CUT)
    run.harvest(3000)
    assert run.per_second("in_flight_ns") == {0: S, 1: S // 2, 2: 0}


def test_a_mark_behind_the_harvest_takes_effect_after_it() -> None:
    """What is booked stays booked."""
    run = Run()
    run.mark(0, "steady")
    run.harvest(1000)
    assert run.ledger.mark(START_NS + 500 * MS, "s", "drain") == START_NS + 1000 * MS + 1


def test_what_comes_before_the_first_mark_is_kept_apart() -> None:
    """Nothing is lost, and nothing of it is measured."""
    run = Run()
    run.open("a", 0)
    run.token("a", 10)
    run.mark(100, "steady")
    run.close("a", 50, 1)
    run.harvest(200)
    assert run.window("", stage="") == {"started": 1, "output_tokens": 1, "ok": 1, "in_flight_ns": 50 * MS}
    assert run.window("steady") == {}


def test_peak_is_the_highest_of_each_second() -> None:
    """Three at one time in the first second, one in the second; a stream that begins as one ends adds none."""
    run = Run()
    run.mark(0, "steady")
    for key, start, name in (("a", 0, "x"), ("b", 100, "x"), ("c", 200, "y")):
        run.open(key, start, name)
    for until in (150, 400):
        run.harvest(until)
    run.close("a", 500, None)
    run.close("b", 600, None)
    run.open("d", 600, "x")
    run.close("c", 700, None)
    run.harvest(1900)
    run.close("d", 1950, None)
    run.harvest(2500)
    assert run.per_second("in_flight_peak") == {0: 3, 1: 1}
    assert run.book.peak(("s", STAGE_WIDE, "steady")) == 3
    assert run.book.peak(("s", "x", "steady")) == 2
    run.book.pop_seconds(EPOCH_S + 2)
    assert run.book.peak(("s", STAGE_WIDE, "steady")) == 3
    assert run.ledger.in_flight == 0


def test_peaks_of_workers_add_up_within_a_second_only() -> None:
    """Deltas may be taken in mid-second; the master's peak is the highest sum of a second."""
    master = Aggregate()
    for streams in (2, 3):
        run = Run()
        run.mark(0, "steady")
        for i in range(streams):
            run.open(str(i), 100 * i)
        for until in (150, 700, 1500):
            run.harvest(until)
            master.merge(run.book.take_delta())
    assert master.peak(("s", STAGE_WIDE, "steady")) == 5


def test_restart_counts_running_streams_from_there_on() -> None:
    """Reset: what was booked is gone, corrections of it never come back as negative numbers."""
    run = Run()
    run.mark(0, "steady")
    run.open("a", 0)
    for at_ms in (100, 200, 300, 400):
        run.token("a", at_ms)
    run.harvest(500)
    run.book.reset()
    run.ledger.restart()
    run.token("a", 600)
    run.token("a", 700)
    run.close("a", 800, 3)
    run.harvest(1000)
    assert run.window("steady")["output_tokens"] == 1
    assert run.window("steady")["in_flight_ns"] == 300 * MS
    assert run.book.peak(("s", STAGE_WIDE, "steady")) == 1


Story = list[tuple[int, list[int], int, int]]
"""Per stream: start, gaps between its events (the last one is to its end), its true tokens, how its counts came."""

STORIES = st.lists(
    st.tuples(
        st.integers(0, 4000),
        st.lists(st.integers(0, 900), min_size=1, max_size=12),
        st.integers(0, 40),
        st.sampled_from([0, 1, 2]),
    ),
    min_size=1,
    max_size=6,
)
HARVESTS = st.lists(st.integers(0, 16_000), max_size=8)


def play(story: Story, harvests: Iterable[int], deltas: bool) -> Aggregate:
    """Let everything happen in order of time, with harvests (and reports) between; return what was booked."""
    run, master = Run(), Aggregate()
    for at_ms, phase in ((0, "warmup"), (1500, "steady"), (6000, "drain")):
        run.mark(at_ms, phase)
    happenings: list[tuple[int, int, str, tuple[Any, ...]]] = []
    for i, (start, gaps, tokens, kind) in enumerate(story):
        at, counted = start, 0
        happenings.append((start, 0, "open", (str(i), start, f"name{i % 2}")))
        for gap in gaps[:-1]:
            at += gap
            counted += gap % 4
            happenings.append((at, 1, "token", (str(i), at, [None, counted, tokens or None][kind])))
        happenings.append((at + gaps[-1], 2, "close", (str(i), at + gaps[-1], tokens)))
    happenings += [(at, 3, "harvest", (at,)) for at in harvests]
    for _, _, method, arguments in sorted(happenings, key=lambda happening: happening[:2]):
        getattr(run, method)(*arguments)
        if deltas and method == "harvest":
            master.merge(run.book.take_delta())
    run.harvest(60_000)
    master.merge(run.book.take_delta())
    return master


@settings(max_examples=150, deadline=None)
@given(STORIES, HARVESTS, st.booleans())
def test_totals_are_exact_under_any_harvest_schedule(story: Story, harvests: list[int], deltas: bool) -> None:
    """Same windows and seconds as with one harvest at the end; sums are the true counts; nothing below 0."""
    booked, whole = play(story, harvests, deltas), play(story, [], deltas=False)
    assert booked.encode() == whole.encode()
    sums: Counter[str] = Counter()
    for window in booked.windows.values():
        assert all(n >= 0 for n in window.counts.values())
        sums.update(window.counts)
    assert sums["output_tokens"] == sum(tokens for _, _, tokens, _ in story)
    assert sums["ok"] == sums["started"] == len(story)
    assert sums["in_flight_ns"] == sum(sum(gaps) for _, gaps, _, _ in story) * MS
    for key in ("output_tokens", "in_flight_ns", "ok", "started"):
        assert sum(second.counts[key] for second in booked.seconds.values()) == sums[key]


@pytest.mark.parametrize("streams", [400])
def test_harvest_comes_in_pieces(streams: int) -> None:
    """The hub is never held for long: a piece has 256 starts, 32 streams, or the levels, at most."""
    run = Run()
    run.mark(0, "steady")
    for i in range(streams):
        run.open(str(i), i)
        run.token(str(i), 500)
    pieces = sum(1 for _ in run.ledger.harvest(START_NS + S))
    assert pieces == streams // 256 + streams // 32 + 2
    assert run.window("steady")["output_tokens"] == streams


def test_harvest_that_parses_much_comes_in_smaller_pieces() -> None:
    """Streams of which many events wait: the hub is free after some 256 of them, and none is lost."""
    run = Run()
    run.mark(0, "steady")
    for i in range(64):
        name = str(i)
        run.open(name, i)

        def catch_up(_: int | None, name: str = name) -> None:
            run.streams[name][1].catch_up = None
            for number in range(64):
                run.token(name, 500 + number)

        run.streams[name][1].catch_up = catch_up
    pieces = sum(1 for _ in run.ledger.harvest(START_NS + S))
    assert pieces == 64 * 64 // PARSED_PER_PIECE + 2
    assert run.window("steady")["output_tokens"] == 64 * 64


def test_harvest_that_is_left_loses_no_start() -> None:
    """Who harvests may be ended between two pieces."""
    run = Run()
    run.mark(0, "steady")
    for i in range(400):
        run.open(str(i), i)
    harvest = run.ledger.harvest(START_NS + S)
    next(harvest)
    del harvest
    for _ in run.ledger.harvest(START_NS + 2 * S):
        pass
    assert run.window("steady")["started"] == 400
