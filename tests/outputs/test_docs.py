"""docs/files.md describes what the code writes: every column, in its order, and nothing else."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from llm_locust.measure.metrics import METRICS
from llm_locust.outputs.facts import RunFacts, RunState
from llm_locust.outputs.requests_csv import REQUEST_COLUMNS
from llm_locust.outputs.stages_csv import STAGES_COLUMNS
from llm_locust.outputs.summary import FailureBook, summary_document
from llm_locust.outputs.timeline_csv import TIMELINE_COLUMNS
from tests.outputs.pictures import FIRST, picture

FILES_MD = Path(__file__).parents[2] / "docs" / "files.md"
_METRICS = re.compile(r"(<!-- metrics: .*? -->\n).*?(<!-- end of metrics -->)", re.DOTALL)


def metrics_table() -> str:
    """Return the metric table as files.md shows it."""
    lines = ["| metric | unit | | what it is |", "|---|---|---|---|"]
    for metric in METRICS:
        kind = "distribution" if len(metric.columns) > 1 else ""
        lines.append(f"| `{metric.name}` | {metric.unit} | {kind} | {metric.formula.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def first_cells(section: str) -> list[str]:
    """Return the names in the first column of the first table of a section."""
    text = FILES_MD.read_text(encoding="utf-8").split(f"\n## {section}\n")[1].split("\n## ")[0]
    table = text[text.index("|---") :].split("\n\n")[0]
    return [line.split("|")[1].strip().strip("`") for line in table.splitlines()[1:]]


@pytest.mark.parametrize(
    ("section", "columns"),
    [
        ("requests.csv", REQUEST_COLUMNS),
        ("timeline.csv", TIMELINE_COLUMNS),
        ("stages.csv", (*STAGES_COLUMNS[:4], "…", *STAGES_COLUMNS[-3:])),
    ],
)
def test_files_md_when_columns_change(section: str, columns: tuple[str, ...]) -> None:
    """Each column is described, in its order."""
    assert first_cells(section) == list(columns)


def test_files_md_when_the_metric_table_changes() -> None:
    """The metrics are those of the code (`python -m tests.outputs.test_docs` writes them)."""
    found = _METRICS.search(FILES_MD.read_text(encoding="utf-8"))
    assert found is not None
    assert found.group(0) == found.group(1) + metrics_table() + found.group(2)


def test_files_md_when_the_summary_changes() -> None:
    """Each key of summary.json is described, before and after the first flush."""
    run = RunFacts(
        run_id="r", started=datetime(2026, 3, 1, tzinfo=UTC), host="h", model=None, shape=None, versions={},
        settings={}, options={},
    )  # fmt: skip
    for shown in (None, picture(FIRST)):
        document = json.loads(summary_document(run, RunState.RUNNING, shown, FailureBook(), {}))
        assert list(document) == first_cells("summary.json")


if __name__ == "__main__":
    before = FILES_MD.read_text(encoding="utf-8")
    FILES_MD.write_text(
        _METRICS.sub(lambda found: found.group(1) + metrics_table() + found.group(2), before), encoding="utf-8"
    )
