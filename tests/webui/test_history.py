"""The thinned history: bounded, in order, and with the true extremes and percentiles of all its seconds."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from llm_locust.measure.histogram import Histogram
from llm_locust.measure.seconds import SECOND_COLUMNS, SecondRow
from llm_locust.outputs import TimelineRow
from llm_locust.outputs.heat import HEAT_LOWEST_MS, HEAT_RATIO
from llm_locust.outputs.history import POINT_COLUMNS, Cell, History

BEGAN_S = 1_772_359_200


def second(
    at_s: int, *, tokens: int = 0, ttft_ms: tuple[float, ...] = (), stage: str = "a", users: int = 8
) -> TimelineRow:
    """Return a second in which these things happened."""
    values: dict[str, float | int | None] = dict.fromkeys(SECOND_COLUMNS, 0)
    values["output_tokens"] = tokens
    histogram = Histogram()
    histogram.fill(np.array([value * 1e6 for value in ttft_ms]))
    row = SecondRow(BEGAN_S + at_s, values, {"ttft_ms": histogram} if ttft_ms else {})
    return TimelineRow(second=row, stage=stage, phase="steady", users=users, loop_lag_ms_max=0.5)


def column(history: History, name: str) -> list[object]:
    """Return one column of all points."""
    return [cells[POINT_COLUMNS.index(name)] for cells in history.since(0)]


def test_points_cover_the_run_without_gap_or_overlap_when_thinned() -> None:
    """However much is joined, each second lies in exactly one point, and there are never too many."""
    history = History(most_points=20)
    for at_s in range(500):
        history.add(second(at_s))
        assert len(column(history, "from_s")) <= 20
    spans = list(zip(column(history, "from_s"), column(history, "until_s"), strict=True))
    assert spans[0][0] == BEGAN_S
    assert spans[-1][1] == BEGAN_S + 500
    assert all(before[1] == after[0] for before, after in pairwise(spans))


def test_rates_hold_what_became_known_late() -> None:
    """Prompts whose length was told after their second was written are in the point of the second that tells them.

    Output is what arrived: corrections of earlier seconds would make peaks, and rates below 0.
    """
    history = History()
    late = second(0, tokens=30)
    assert isinstance(late.second.values, dict)
    late.second.values.update(input_tokens=100, late_input_tokens=900, late_output_tokens=-70)
    history.add(late)
    rates = ("input_tok_per_s", "output_tok_per_s", "output_tok_per_s_min", "output_tok_per_s_max")
    assert [column(history, name) for name in rates] == [[1000.0], [30.0], [30.0], [30.0]]


def test_points_have_nearly_one_length_when_thinned() -> None:
    """No part of a night is told in less detail than another: at most four times."""
    history = History(most_points=50)
    for at_s in range(5000):
        history.add(second(at_s))
    lengths = [
        int(str(until)) - int(str(start))
        for start, until in zip(column(history, "from_s"), column(history, "until_s"), strict=True)
    ]
    assert max(lengths) <= 4 * 5000 / 50


def test_extremes_and_mean_are_those_of_all_seconds_when_thinned() -> None:
    """One second with a burst and one without a token are still seen; tokens are neither lost nor doubled."""
    history = History(most_points=4)
    per_second = [100] * 64
    per_second[17], per_second[40] = 9000, 0
    for at_s, tokens in enumerate(per_second):
        history.add(second(at_s, tokens=tokens))
    assert max(float(str(v)) for v in column(history, "output_tok_per_s_max")) == 9000
    assert min(float(str(v)) for v in column(history, "output_tok_per_s_min")) == 0
    told = sum(
        float(str(rate)) * (int(str(until)) - int(str(start)))
        for rate, start, until in zip(
            column(history, "output_tok_per_s"), column(history, "from_s"), column(history, "until_s"), strict=True
        )
    )
    assert told == pytest.approx(sum(per_second), rel=1e-3)


def test_percentile_is_that_of_all_samples_when_points_are_joined() -> None:
    """A percentile is never the mean of percentiles: 99 fast requests in one second and 1 slow in the next."""
    history = History(most_points=1)
    history.add(second(0, ttft_ms=(100.0,) * 99))
    history.add(second(1, ttft_ms=(10_000.0,)))
    [p50], [p99] = column(history, "ttft_ms_p50"), column(history, "ttft_ms_p99")
    assert p50 == pytest.approx(100, rel=0.005)
    assert p99 == pytest.approx(100, rel=0.005)
    history.add(second(2, ttft_ms=(10_000.0,)))
    assert column(history, "ttft_ms_p99") == [pytest.approx(10_000, rel=0.005)]


def test_percentile_is_absent_where_nothing_ended_for_ten_seconds() -> None:
    """Short points look back ten seconds as timeline.csv does; then there is no sample, and no 0."""
    history = History()
    history.add(second(0, ttft_ms=(300.0,)))
    for at_s in range(1, 12):
        history.add(second(at_s))
    told = column(history, "ttft_ms_p50")
    assert told[:10] == [pytest.approx(300, rel=0.005)] * 10
    assert told[10:] == [None, None]


def test_heat_counts_every_sample_in_its_bin() -> None:
    """Two modes stay two modes; the bin's edges hold the value."""
    history = History(most_points=1)
    for at_s in range(30):
        history.add(second(at_s, ttft_ms=(200.0, 210.0, 3000.0)))
    [heat] = column(history, "ttft_ms_heat")
    assert isinstance(heat, list)
    first, *counts = heat
    by_bin = {first + offset: n for offset, n in enumerate(counts) if n}
    assert sum(by_bin.values()) == 90
    held = {place: HEAT_LOWEST_MS * HEAT_RATIO**place for place in by_bin}
    assert sum(n for place, n in by_bin.items() if held[place] <= 3000 < held[place] * HEAT_RATIO) == 30
    assert sum(n for place, n in by_bin.items() if 150 < held[place] < 220) == 60


def test_since_tells_only_what_changed_and_joining_gives_the_whole() -> None:
    """A reader that drops what lies within a changed point has what a new reader is told."""
    history = History(most_points=16)
    known: list[list[Cell]] = []
    read = 0
    for at_s in range(300):
        history.add(second(at_s, tokens=at_s))
        if at_s % 7:
            continue
        changed = [list(cells) for cells in history.since(read)]
        read = history.changes
        known = [point for point in known if not any(_within(point, newer) for newer in changed)] + changed
        known.sort(key=lambda point: int(str(point[0])))
        assert known == [list(cells) for cells in history.since(0)]


def _within(point: list[Cell], newer: list[Cell]) -> bool:
    return int(str(newer[0])) <= int(str(point[0])) and int(str(point[1])) <= int(str(newer[1]))


def test_bands_follow_stage_and_phase_and_survive_thinning() -> None:
    """A stage's band keeps its true edges even where points are joined."""
    history = History(most_points=3)
    for at_s in range(40):
        history.add(second(at_s, stage="a" if at_s < 13 else "b"))
    assert [(band.stage, band.from_s - BEGAN_S, band.until_s - BEGAN_S) for band in history.bands] == [
        ("a", 0, 13),
        ("b", 13, 40),
    ]


def test_recent_is_over_the_last_ten_seconds() -> None:
    """What the tiles call "last 10 s"."""
    history = History()
    assert history.recent() == {}
    for at_s in range(30):
        history.add(second(at_s, tokens=10 if at_s < 20 else 50))
    assert history.recent()["output_tok_per_s"] == 50
