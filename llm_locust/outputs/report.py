"""report.html: one page that tells a run to somebody who was not there, made of the files of the run alone.

The page is the live page's components with the numbers inside (webui/report.html, built into one file); it asks nothing
of a network. Knows no Locust. Everything that a server or a dataset said is JSON in a script element that is no script,
with every `<` escaped, so that no text can end it; React writes it as text.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
from pandas.errors import EmptyDataError

from llm_locust.measure.metrics import METRICS
from llm_locust.outputs import REPORT
from llm_locust.outputs.appendfile import replace_file
from llm_locust.outputs.live import LiveHistory, WorkerNow
from llm_locust.outputs.readers import read_timeline
from llm_locust.outputs.report_history import history
from llm_locust.outputs.report_requests import read_ended
from llm_locust.outputs.report_run import FinishedRun, load_run
from llm_locust.outputs.report_verdict import verdict_sentence
from llm_locust.outputs.text import json_document
from llm_locust.outputs.timeline_csv import TIMELINE_COLUMNS

TEMPLATE = Path(__file__).parent.parent / "webui" / REPORT
PLACEHOLDER = "{{LLM_LOCUST_RUN}}"

_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def write_report(run_dir: Path) -> Path:
    """Write report.html of a run into its directory, in one step; return its path.

    Raises ValueError, with one sentence, for whatever is wrong with the files or the disk; never OSError.
    """
    try:
        path = run_dir / REPORT
        replace_file(path, report_html(load_run(run_dir)), durable=False)
    except OSError as error:
        raise ValueError(f"{error.filename or run_dir}: {error.strerror or error}") from error
    return path


def report_html(run: FinishedRun) -> bytes:
    """Return the page. Raises OSError where a file of the run cannot be read."""
    before, found, after = TEMPLATE.read_text(encoding="utf-8").partition(PLACEHOLDER)
    if not found:
        raise ValueError(f"{TEMPLATE} has no place for the numbers: build webui again")
    numbers = msgspec.json.encode(msgspec.json.decode(json_document(report_document(run)))).decode()
    return (before + numbers.translate(_ESCAPES) + after).encode()


def report_document(run: FinishedRun) -> dict[str, Any]:
    """Return what the page shows: the live page's answer at the end of the run, and what only a report tells."""
    ended, sample = read_ended(run.directory)
    return {
        "verdict": verdict_sentence(run.picture, run.state),
        "now": _now(run),
        "history": history(_timeline(run.directory), ended),
        "distributions": [asdict(stage) for stage in sample],
        "validity": run.picture.verdicts,
        "settings": {name: value for name, value in run.facts.settings.items() if _said(name, value)},
        "server": {name: value for name, value in run.facts.server.items() if _said(name, value)},
        "lengths": run.facts.lengths,
        "repeat_command": run.facts.repeat_command,
        "formulas": [
            {"name": m.name, "title": m.title, "unit": m.unit, "formula": m.formula, "better": m.better}
            for m in METRICS
            if not m.name.startswith("outcome_")
        ],
        "not_whole": run.not_whole,
    }


def _timeline(directory: Path) -> pd.DataFrame:
    try:
        return read_timeline(directory)
    except (FileNotFoundError, EmptyDataError):  # the disk took none of it
        return pd.DataFrame(columns=list(TIMELINE_COLUMNS))


def _now(run: FinishedRun) -> Any:
    workers = [
        WorkerNow(
            worker=worker.worker,
            host=worker.host,
            timestamp_source=worker.timestamp_source,
            clock_offset_ms=worker.clock_offset_ms,
            lost=worker.lost,
        )
        for worker in run.facts.workers
    ]
    live = LiveHistory(run.facts, "report")
    live.add(run.picture, (), workers, (), run.failures, run.state)
    return json.loads(live.answer())["now"]


def _said(name: str, value: object) -> bool:
    """Whether a setting says something: `given` and `raw` repeat the others."""
    return name not in ("given", "raw") and value not in (None, "", [], {}, ())


if __name__ == "__main__":  # the plugin runs this as a process of its own: a big run holds its hub for half a minute
    try:
        print(write_report(Path(sys.argv[1])))
    except ValueError as problem:
        sys.exit(str(problem))
