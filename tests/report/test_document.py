"""What a report shows is what the live page showed, made again of the files alone; and known numbers of its own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.rig.fake_run import OPEN, FakeRun
from benchmarks.rig.written_run import WrittenRun, written
from llm_locust.measure.seconds import SECOND_COLUMNS
from llm_locust.outputs import RunState
from llm_locust.outputs.heat import HEAT_BINS, HEAT_LOWEST_MS, HEAT_RATIO, heat_bins_ms
from llm_locust.outputs.history import POINT_COLUMNS
from llm_locust.outputs.readers import read_requests, request_chunks
from llm_locust.outputs.report import report_document
from llm_locust.outputs.report_history import history
from llm_locust.outputs.report_requests import LATENCY_COLUMNS, EndedRequests
from llm_locust.outputs.report_run import load_run

FROM_SECONDS = [
    name for name in POINT_COLUMNS if not name.startswith(("ttft", "tpot", "user_wait", "dispatch_lag", "itl_ms_p"))
]
"""What is the same in a point of the page and of the report: the fake run books latencies at a request's start."""


@pytest.fixture(scope="module", params=["closed", "open"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> WrittenRun:
    """A run that was written, and shown live."""
    fake = FakeRun() if request.param == "closed" else FakeRun(OPEN)
    return written(tmp_path_factory.mktemp("reports"), fake)


def test_report_when_compared_with_the_live_page(run: WrittenRun) -> None:
    """The report's numbers are the live page's last ones: rows, outcomes, verdicts, failures, sample, seconds."""
    document = json.loads(json.dumps(report_document(load_run(run.directory)), default=str))
    live = json.loads(run.live.answer())
    for moment in (document["now"], live["now"]):
        del moment["at_s"], moment["progress"], moment["recent"]
        for worker in moment["workers"]:
            worker.pop("loop_lag_p99_ms"), worker.pop("cpu_percent"), worker.pop("report_age_s")
            worker.pop("clock_offset_ms")
    assert document["now"] == live["now"]
    assert document["history"]["bands"] == live["history"]["bands"]
    assert document["history"]["heat"] == live["history"]["heat"]
    places = [POINT_COLUMNS.index(name) for name in FROM_SECONDS]
    shown, told = (pd.DataFrame(h["points"]).iloc[:, places] for h in (document["history"], live["history"]))
    pd.testing.assert_frame_equal(shown, told, check_dtype=False)
    for mine, its in zip(document["distributions"], json.loads(run.live.distributions())["stages"], strict=True):
        assert (mine["stage"], mine["seen"]) == (its["stage"], its["seen"])
        # A tie of the third decimal may be rounded to either side.
        np.testing.assert_allclose(np.array(mine["requests"], float), np.array(its["requests"], float), atol=0.0011)


def test_report_when_its_numbers_are_sought_in_stages_csv(run: WrittenRun) -> None:
    """Each number of a stage row is the cell of stages.csv."""
    now = report_document(load_run(run.directory))["now"]
    stages = pd.read_csv(run.directory / "stages.csv").set_index(["stage", "name", "phase"])
    for row in now["rows"]:
        line: Any = stages.loc[[(row["stage"], row["name"], row["phase"])]].iloc[0]
        for column, value in zip(now["columns"], row["values"], strict=True):
            assert value == line[column] if value is not None else pd.isna(line[column])


def test_report_when_the_run_was_killed(tmp_path: Path) -> None:
    """What was flushed is shown, and that the run had not ended."""
    run = written(tmp_path, state=RunState.RUNNING)
    with open(run.directory / "requests.csv", "ab") as file:
        file.write(b"20260301-1015,w1,9")  # a line that the kill cut off
    document = report_document(load_run(run.directory))
    assert document["verdict"].startswith("The run had not ended when these files were written.")
    assert len(document["history"]["points"]) == 240


def test_report_when_the_committed_sample_is_read() -> None:
    """A run of this version stays readable by later ones; its verdict is that of its own console."""
    document = report_document(load_run(Path(__file__).parents[2] / "reports" / "sample"))
    assert document["verdict"].endswith(
        "users-8: the highest load that meets the SLO, with TTFT p50 296 ms, p99 308 ms, TPOT p50 21.2 ms, p99 21.3 "
        "ms, 341 output tok/s; no higher load was measured, so the limit may lie beyond."
    )
    assert [stage["seen"] for stage in document["distributions"]] == [12, 24, 48]


@pytest.mark.parametrize("how", ["gone", "empty", "head only"])
def test_report_when_the_disk_took_nothing(tmp_path: Path, how: str) -> None:
    """What summary.json has is told all the same."""
    run = written(tmp_path, FakeRun(FakeRun().stages[:1]))
    for name in ("requests.csv", "timeline.csv"):
        file = run.directory / name
        head = file.read_bytes().partition(b"\n")[0] + b"\n"
        if how == "gone":
            file.unlink()
        else:
            file.write_bytes(b"" if how == "empty" else head)
    document = report_document(load_run(run.directory))
    assert "8 users" in document["verdict"]
    assert (document["history"]["points"], document["distributions"]) == ([], [])


def test_history_when_points_are_known() -> None:
    """Percentiles are nearest-rank over the requests of the last 10 s; a request after the point is not in it."""
    timeline = seconds(100, 12)
    values = np.arange(1.0, 13.0, dtype=np.float32) * 100
    ended = EndedRequests(np.arange(100, 112), dict.fromkeys(LATENCY_COLUMNS, values))
    told = history(timeline, ended)
    points = [dict(zip(told["columns"], point, strict=True)) for point in told["points"]]
    assert [point["ttft_ms_p50"] for point in points] == [100, 100, 200, 200, 300, 300, 400, 400, 500, 500, 600, 700]
    assert [point["ttft_ms_p99"] for point in points] == [100 * n for n in range(1, 13)]
    assert points[0]["ttft_ms_heat"] == [int(heat_bins_ms(np.array([100.0]))[0]), 1]
    assert told["bands"] == [["8 users", "steady", 100, 112]]


def test_history_when_a_night_is_joined() -> None:
    """Points stay few; rates are means, extremes stay extremes, an ITL is the greatest of its seconds."""
    night = 12 * 3600
    timeline = seconds(0, night)
    timeline["output_tokens"] = [float(n % 100) for n in range(night)]
    timeline["itl_ms_p99"] = [9.0 if n == 500 else 1.0 for n in range(night)]
    timeline["stage"] = [f"{n // (night // 20)}" for n in range(night)]
    ended = EndedRequests(np.empty(0, np.int64), {name: np.empty(0, np.float32) for name in LATENCY_COLUMNS})
    told = history(timeline, ended)
    points = [dict(zip(told["columns"], point, strict=True)) for point in told["points"]]
    assert 400 <= len(points) <= 420
    assert sum(point["output_tok_per_s"] * (point["until_s"] - point["from_s"]) for point in points) == pytest.approx(
        timeline["output_tokens"].sum(), rel=1e-3
    )
    assert {point["output_tok_per_s_max"] for point in points} == {99}
    assert [point["from_s"] for point in points if point["itl_ms_p99"] == 9] == [432]
    assert len(told["bands"]) == 20


def test_history_when_nothing_happened() -> None:
    """A run that died at once has no points."""
    ended = EndedRequests(np.empty(0, np.int64), {name: np.empty(0, np.float32) for name in LATENCY_COLUMNS})
    assert history(seconds(0, 0), ended)["points"] == []


@pytest.mark.parametrize("value_ms", [0.0, 0.0009, 0.001, 0.5, 37.0, 5288.0, 9e7])
def test_heat_bins_when_values_are_given(value_ms: float) -> None:
    """A value lies between its bin's edges; what is outside of all bins in the first or last."""
    found = int(heat_bins_ms(np.array([value_ms]))[0])
    low, high = HEAT_LOWEST_MS * HEAT_RATIO**found, HEAT_LOWEST_MS * HEAT_RATIO ** (found + 1)
    assert found == 0 or low <= value_ms * (1 + 1e-9)
    assert found == HEAT_BINS - 1 or value_ms < high * (1 + 1e-9)


def test_request_chunks_when_read_in_pieces(run: WrittenRun) -> None:
    """Pieces together are the whole file."""
    columns = ("worker", "stage", "outcome", "ttft_ms", "input_tokens")
    pieces = list(request_chunks(run.directory, columns, rows=100))
    whole = read_requests(run.directory)[list(pieces[0].columns)]
    assert len(pieces) > 3
    assert set(whole.columns) == set(columns)
    joined = pd.concat([piece.astype(dict.fromkeys(("worker", "stage", "outcome"), str)) for piece in pieces])
    pd.testing.assert_frame_equal(joined, whole, check_dtype=False)


def test_request_chunks_when_a_text_looks_like_a_formula(tmp_path: Path) -> None:
    """The apostrophe that kept a spreadsheet from running it is taken off."""
    run = written(tmp_path, FakeRun((replace(FakeRun().stages[0], label="=1+1", seconds=20),)))
    assert {stage for piece in request_chunks(run.directory, ("stage",)) for stage in piece["stage"]} == {"=1+1"}


def seconds(first_s: int, n: int) -> pd.DataFrame:
    """Return a timeline of `n` quiet seconds."""
    frame = pd.DataFrame({"epoch_s": range(first_s, first_s + n), "stage": "8 users", "phase": "steady", "users": 8.0})
    return frame.assign(loop_lag_ms_max=np.nan, itl_ms_heat="", **dict.fromkeys(SECOND_COLUMNS, 0.0))
