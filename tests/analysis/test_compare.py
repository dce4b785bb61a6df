"""Runs side by side: known differences, which way is better, and what makes runs hard to compare."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.rig.fake_run import HOSTILE, SWEEP, FakeRun, facts
from benchmarks.rig.written_run import written
from llm_locust.analysis.commands import compare_main
from llm_locust.analysis.compare import compare, difference
from llm_locust.analysis.page import page
from llm_locust.measure.metrics import Better
from llm_locust.measure.rows import Value
from llm_locust.measure.snapshot import RUN, StageRow
from llm_locust.outputs import Picture, RunState, StageVerdict, Validity
from llm_locust.outputs.report_run import FinishedRun
from llm_locust.outputs.report_tables import Column, Table
from tests.outputs.pictures import closed, picture

EIGHT = closed("8 users", 8, 1000.0, 80.0, input_tokens_mean=1024.0, output_tokens_mean=2048.0)
SIXTEEN = closed("16 users", 16, 1500.0, 90.0)


def finished(*rows: StageRow, shown: Picture | None = None, **other: object) -> FinishedRun:
    """A run of these stages."""
    return FinishedRun(
        directory=Path("r"),
        facts=facts(**{"settings": {"prompts": "synthetic"}, **other}),  # type: ignore[arg-type]
        state=RunState.FINISHED,
        picture=shown or picture(*rows),
        failures=(),
        not_whole={},
    )


@pytest.mark.parametrize(
    ("first", "other", "better", "said"),
    [
        (100.0, 112.3, "low", "+12.3 % worse"),
        (100.0, 80.0, "low", "-20.0 % better"),
        (100.0, 150.0, "high", "+50.0 % better"),
        (100.0, 50.0, "high", "-50.0 % worse"),
        (100.0, 150.0, "none", "+50.0 %"),
        (100.0, 100.9, "low", "+0.9 % same"),
        (100.0, 100.0, "low", "same"),
        (0, 0, "low", "same"),
        (0, 5, "low", None),
        (None, 5.0, "low", None),
        (5.0, None, "low", None),
    ],
)
def test_difference_when_values_are_known(first: Value, other: Value, better: Better, said: str | None) -> None:
    """In % of the first run, with the word for it by the metric's direction."""
    assert difference(first, other, better) == said


def test_compare_when_stages_match() -> None:
    """Stages are matched by label; each metric has both values and their difference."""
    other = closed("8 users", 8, 1200.0, 72.0, input_tokens_mean=1024.0, output_tokens_mean=2048.0)
    tables = {table.title: table for table in compare([finished(EIGHT), finished(other)]).tables}
    rows = {row[0]: row[1:] for row in tables["Stage 8 users"].rows}
    assert rows["measurement"] == ("", "VALID", "VALID", "")
    assert rows["TTFT mean"] == ("ms", 1000.0, 1200.0, "+20.0 % worse")
    assert rows["E2E latency mean"][0] == "s"
    assert [value * 1e3 for value in rows["E2E latency mean"][1:3] if isinstance(value, float)] == [
        row.values["e2e_ms_mean"] for row in (EIGHT, other)
    ]
    assert rows["TPOT mean"] == ("ms", 80.0, 72.0, "-10.0 % better")
    assert rows["Output tok/s"] == ("tok/s", 185.08, 185.08, "same")
    assert rows["Output per GPU"] == ("tok/s", 185.08 / 32, 185.08 / 32, "same")
    assert "TTFT from schedule mean" not in rows


def test_compare_when_three_runs_are_given() -> None:
    """Each is measured by the first."""
    runs = [finished(closed("8 users", 8, ttft_ms, 80.0)) for ttft_ms in (1000.0, 1100.0, 900.0)]
    table = next(table for table in compare(runs).tables if table.title == "Stage 8 users")
    assert [column.title for column in table.columns] == ["metric", "unit", "A", "B", "B against A", "C", "C against A"]
    row = next(row for row in table.rows if row[0] == "TTFT mean")
    assert row[2:] == (1000.0, 1100.0, "+10.0 % worse", 900.0, "-10.0 % better")


def test_compare_when_runs_are_alike() -> None:
    """Only the seed is worth a word."""
    assert compare([finished(EIGHT), finished(EIGHT)]).warnings == (
        "A and B have the same seed, so the same prompts: a prefix cache that was still warm answers faster",
    )


def test_compare_when_everything_differs() -> None:
    """Validity, stages, settings, lengths, versions and seeds that differ are told; names and notes are not."""
    shorter = closed("8 users", 8, 1000.0, 80.0, input_tokens_mean=1024.0, output_tokens_mean=1500.0)
    suspect = StageVerdict(validity=Validity.SUSPECT, reasons=("late reads",))
    other = finished(
        shown=picture(shorter, SIXTEEN, verdicts={"8 users": suspect, RUN: suspect}),
        settings={"prompts": "sharegpt", "name": "b"},
        seeds={"run": 8},
        versions={"llm-locust": "0.1.0", "locust": "2.46.0"},
        note="another",
    )
    assert compare([finished(EIGHT), other]).warnings == (
        "B is SUSPECT: read its reasons before you trust a difference",
        "stage 16 users is in B only",
        "A and B differ in prompts: synthetic / sharegpt",
        "stage 8 users: A and B have outputs of different length, on the mean 2,048 / 1,500 tokens",
        "A and B were made with different versions of locust: 2.47.0 / 2.46.0",
        "A and B have different seeds: prompts and arrivals are other draws of the same kind",
    )


def test_compare_command_when_runs_are_on_the_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Console, Markdown and page tell the same rows; what is no run is one sentence."""
    slower = tuple(replace(stage, ttft_ms=stage.ttft_ms * 2) for stage in SWEEP)
    one = written(tmp_path, FakeRun(SWEEP), run_id="one").directory
    two = written(tmp_path, FakeRun(slower), run_id="two", tags={"gpu": "H200"}).directory
    assert compare_main([str(one), str(two), "--html", str(tmp_path / "c.html")]) == 0
    shown = capsys.readouterr().out
    assert "+100.0 % worse" in shown
    assert "differs" in shown
    assert compare_main([str(one), str(two), "--markdown"]) == 0
    assert "| TTFT mean | ms |" in capsys.readouterr().out
    assert '<span class="worse">+100.0 % worse</span>' in (tmp_path / "c.html").read_text(encoding="utf-8")
    assert compare_main([str(one), str(tmp_path / "nothing")]) == 1
    assert "no run there" in capsys.readouterr().err


def test_page_when_texts_are_hostile() -> None:
    """Every text is escaped, and the page may run nothing at all."""
    shown = page(HOSTILE, [HOSTILE], [Table(HOSTILE, (Column(HOSTILE),), ((HOSTILE,),))]).decode()
    assert HOSTILE not in shown
    assert "<script" not in shown
    assert "<img" not in shown
    assert "default-src 'none'" in shown
