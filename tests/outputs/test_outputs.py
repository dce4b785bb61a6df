"""The files of a run as a whole: known numbers give known files."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from llm_locust.measure.metrics import STAGE_COLUMNS
from llm_locust.measure.seconds import SECOND_COLUMNS
from llm_locust.measure.slo import Verdict
from llm_locust.measure.snapshot import RUN
from llm_locust.outputs import Outputs, RunState, StageVerdict, Validity
from llm_locust.outputs.readers import read_stages, read_summary, read_timeline
from llm_locust.outputs.requests_csv import REQUESTS_HEADER, request_line
from llm_locust.outputs.stages_csv import STAGES_COLUMNS
from llm_locust.outputs.timeline_csv import TIMELINE_COLUMNS
from tests.outputs.pictures import FIRST, SECOND, WARMUP, picture
from tests.outputs.records import BARE, WHOLE
from tests.outputs.runs import RUN_ID, second


def test_open_when_the_run_dies_at_once(outputs: Outputs, directory: Path) -> None:
    """Every file is there from the start, with what is known then."""
    outputs.open()
    assert {path.name for path in outputs.paths} == {
        "requests.csv",
        "stages.csv",
        "timeline.csv",
        "summary.json",
        "run.conf",
        "llm.py",
    }
    assert (directory / "requests.csv").read_bytes() == REQUESTS_HEADER.encode() + b"\r\n"
    assert (directory / "llm.py").read_text() == "# mine\n"
    assert (directory.parent / "latest").readlink() == Path(RUN_ID)
    assert (directory / "run.conf").read_text() == (
        f"# {RUN_ID}: locust --config run.conf repeats this run\n"
        "# locust -f llm.py --host http://127.0.0.1:8000 --users 8\n"
        "host = http://127.0.0.1:8000\n"
        "users = 8\n"
        "# llm-api-key: secret: set LOCUST_LLM_API_KEY\n"
    )
    assert read_summary(directory) == {
        "format": 1,
        "run_id": RUN_ID,
        "state": "running",
        "started": "2026-03-01T18:00:00+08:00",
        "updated": "2026-03-01T18:00:00+08:00",
        "host": "http://127.0.0.1:8000",
        "model": "组织/m",
        "shape": None,
        "tags": {"gpu": "H100"},
        "note": "=1+1 \ufffd",
        "verdict": None,
        "slo": [],
        "totals": None,
        "stages": [],
        "excluded": [],
        "skipped": {},
        "applied": [],
        "failures": [],
        "settings": {"users": 8, "seed": None},
        "seeds": {"run": 42},
        "versions": {"python": "3.11.9", "locust": "2.47.0"},
        "server": {"usage": True},
        "lengths": [],
        "workers": [
            {
                "worker": "w1",
                "host": "h",
                "pid": 7,
                "version": "0.1.0",
                "timestamp_source": "kernel",
                "clock_offset_ms": None,
                "clock_uncertainty_ms": None,
                "lost": False,
            }
        ],
        "repeat_command": "locust -f llm.py --host http://127.0.0.1:8000 --users 8",
        "files": {
            "lines": {
                name: {"written": 1, "waiting": 0, "let_go": 0}
                for name in ("requests.csv", "stages.csv", "timeline.csv")
            },
            "cannot_write": {},
            "history": [],
        },
    }


def test_files_when_a_run_is_flushed_and_closed(outputs: Outputs, directory: Path) -> None:
    """Requests, seconds and finished stages are added as they come; the end has everything once."""
    running = StageVerdict(validity=Validity.VALID)
    done = replace(running, finished=True)
    outputs.open()
    outputs.flush(picture(FIRST, verdicts={"8 users": running}), [WHOLE], [second(100, requests_ok=1)])
    assert read_stages(directory).empty  # still running
    outputs.flush(picture(FIRST, SECOND, verdicts={"8 users": done, "64 users": running}), [], [])
    midway = (directory / "stages.csv").read_bytes()
    assert read_stages(directory)["phase"].tolist() == ["steady", "warmup"]
    slo = {"8 users": (Verdict("ttft p99 < 2s", "ttft_ms_p99", "ms", "< 2s", 1560.0, 24, True),)}
    last = picture(FIRST, SECOND, verdicts={"8 users": done, "64 users": done, RUN: done}, slo=slo)
    assert outputs.close(last, [BARE], [second(101, ttft_ms_p50=0.4)], RunState.FINISHED) == ()

    requests = "".join(f"{line}\r\n" for line in (REQUESTS_HEADER, request_line(WHOLE), request_line(BARE)))
    assert (directory / "requests.csv").read_bytes() == requests.encode()
    blank = "," * len(SECOND_COLUMNS)  # with itl_ms_heat behind them
    timeline = (directory / "timeline.csv").read_text(encoding="utf-8").splitlines()
    assert timeline[0] == ",".join(TIMELINE_COLUMNS)
    assert timeline[1].replace(",1,", ",,") == f"{RUN_ID},100,8 users,steady,8,,{blank}"
    assert read_timeline(directory)[["epoch_s", "requests_ok", "ttft_ms_p50"]].fillna(-1).to_numpy().tolist() == [
        [100, 1, -1],
        [101, -1, 0.4],
    ]
    assert (directory / "stages.csv").read_bytes().startswith(midway)
    stages = read_stages(directory)
    assert stages[["stage", "name", "phase", "requests_ok", "validity"]].fillna("").to_numpy().tolist() == [
        ["8 users", "all", "steady", 24, "VALID"],
        ["8 users", "all", "warmup", 8, "VALID"],
        ["64 users", "all", "steady", 1234, "VALID"],
        ["whole run", "all", "steady", 1258, "VALID"],
    ]
    for row, written in zip((FIRST, WARMUP, SECOND), stages.to_dict("records"), strict=False):
        cells = {name: written[name] for name in STAGE_COLUMNS}
        assert {name: cell for name, cell in cells.items() if cell != "" and not pd.isna(cell)} == {
            name: value for name, value in row.values.items() if value is not None
        }
    summary = read_summary(directory)
    assert (summary["state"], summary["updated"]) == ("finished", "2026-03-01T18:05:00.250000+08:00")
    assert summary["stages"][1]["metrics"] == dict(SECOND.values)
    assert summary["totals"]["requests_ok"] == 1258
    assert summary["slo"] == [
        {
            "stage": "8 users",
            "clause": "ttft p99 < 2s",
            "metric": "ttft_ms_p99",
            "unit": "ms",
            "wanted": "< 2s",
            "got": 1560.0,
            "n": 24,
            "passed": True,
        }
    ]
    assert summary["failures"] == [
        {"outcome": "connect_error", "http_status": None, "count": 1, "sample": "ConnectionRefusedError"}
    ]


def test_csv_files_when_any_reader_reads_them(outputs: Outputs, directory: Path) -> None:
    """A header once, the same number of columns in every line, no column twice."""
    outputs.open()
    outputs.flush(picture(FIRST), [WHOLE, BARE], [second(100), second(101)])
    outputs.close(picture(FIRST, SECOND), [], [second(102)], RunState.FINISHED)
    for name in ("requests.csv", "stages.csv", "timeline.csv"):
        with open(directory / name, encoding="utf-8", newline="") as file:
            header, *rows = list(csv.reader(file, strict=True))
        assert len(set(header)) == len(header)
        assert len(rows) >= 2
        assert [len(row) for row in rows] == [len(header)] * len(rows)
        assert header not in rows


def test_stages_csv_when_a_late_report_changes_a_finished_stage(outputs: Outputs, directory: Path) -> None:
    """The end has the final numbers, in the lines where the first ones stood."""
    outputs.open()
    outputs.flush(picture(SECOND, FIRST), [], [])
    corrected = replace(FIRST, values={**FIRST.values, "requests_ok": 25})
    outputs.close(picture(SECOND, corrected), [], [], RunState.FINISHED)
    stages = read_stages(directory)
    assert stages["stage"].tolist() == ["64 users", "8 users", "8 users", "whole run"]
    assert stages["requests_ok"].tolist() == [1234, 25, 8, 1258]


def test_stages_csv_when_a_split_stage_ends_after_its_rest(outputs: Outputs, directory: Path) -> None:
    """The final file follows time, whichever line could be written first."""
    done, running = StageVerdict(validity=Validity.VALID, finished=True), StageVerdict(validity=Validity.VALID)
    rest = replace(FIRST, stage="8 users-2")
    outputs.open()
    outputs.flush(picture(FIRST, rest, verdicts={"8 users": running, "8 users-2": done}), [], [])
    assert read_stages(directory)["stage"].tolist() == ["8 users-2"]
    outputs.close(picture(FIRST, rest, verdicts={"8 users": done, "8 users-2": done}), [], [], RunState.FINISHED)
    assert read_stages(directory)["stage"].tolist() == ["8 users", "8 users", "8 users-2", "whole run"]


def test_stages_csv_when_the_numbers_were_reset(outputs: Outputs, directory: Path) -> None:
    """A stage that was over before the reset keeps its lines."""
    done = StageVerdict(validity=Validity.VALID, finished=True)
    outputs.open()
    outputs.flush(picture(FIRST, verdicts={"8 users": done}), [], [])
    outputs.close(picture(SECOND, excluded=(), verdicts={"64 users": done}), [], [], RunState.FINISHED)
    assert read_stages(directory)["stage"].tolist() == ["8 users", "8 users", "64 users", "whole run"]


def test_stages_csv_when_labels_are_hostile(outputs: Outputs, directory: Path) -> None:
    """A label or a reason is a text, whatever it starts with."""
    evil = replace(FIRST, stage="=1+1")
    reasons = StageVerdict(validity=Validity.SUSPECT, reasons=("a, b", '"c"'), findings=("-SATURATED",))
    outputs.open()
    outputs.close(picture(evil, excluded=(), verdicts={"=1+1": reasons}), [], [], RunState.STOPPED)
    line = (directory / "stages.csv").read_text(encoding="utf-8").splitlines()[1]
    assert line.startswith(f"{RUN_ID},'=1+1,all,steady,8,")
    assert line.endswith(''',SUSPECT,"a, b; ""c""",'-SATURATED''')
    assert read_stages(directory)["stage"].tolist() == ["=1+1", "whole run"]


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not there")
def test_summary_when_jq_reads_it(outputs: Outputs, directory: Path) -> None:
    """The document is what other tools take for JSON."""
    outputs.open()
    outputs.close(picture(FIRST), [BARE], [], RunState.FINISHED)
    asked = [".state", ".stages[0].metrics.ttft_ms_p50", ".note", ".totals.ttft_ms_p99"]
    command = ["jq", "-c", f"[{','.join(asked)}]", str(directory / "summary.json")]
    answer = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert json.loads(answer) == ["finished", 1176.0, "=1+1 \ufffd", None]


def test_columns_when_the_metric_table_grows() -> None:
    """Every metric has its columns, in the table's order."""
    assert STAGES_COLUMNS[4 : 4 + len(STAGE_COLUMNS)] == STAGE_COLUMNS
