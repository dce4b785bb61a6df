"""Read a run's files back, as reports and comparisons do: pandas frames with absent numbers as NaN, texts as they were.

Not imported while a load runs (pandas takes half a second). A last line without its end, as a kill in the middle of a
write can leave it, is no line.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pandas as pd

from llm_locust.outputs.requests_csv import REQUEST_TEXT_COLUMNS
from llm_locust.outputs.stages_csv import STAGES_TEXT_COLUMNS
from llm_locust.outputs.text import unescaped
from llm_locust.outputs.timeline_csv import TIMELINE_TEXT_COLUMNS


def read_requests(path: Path) -> pd.DataFrame:
    """Read requests.csv (or the one in a run's directory): one row per request."""
    return _read_table(_file(path, "requests.csv"), REQUEST_TEXT_COLUMNS)


def read_stages(path: Path) -> pd.DataFrame:
    """Read stages.csv (or the one in a run's directory): one row per stage, name and phase."""
    return _read_table(_file(path, "stages.csv"), STAGES_TEXT_COLUMNS)


def read_timeline(path: Path) -> pd.DataFrame:
    """Read timeline.csv (or the one in a run's directory): one row per second."""
    return _read_table(_file(path, "timeline.csv"), TIMELINE_TEXT_COLUMNS)


def read_summary(path: Path) -> dict[str, Any]:
    """Read summary.json (or the one in a run's directory)."""
    summary: dict[str, Any] = json.loads(_file(path, "summary.json").read_bytes())
    return summary


def _file(path: Path, name: str) -> Path:
    return path / name if path.is_dir() else path


def _read_table(path: Path, text_columns: frozenset[str]) -> pd.DataFrame:
    """Read whole lines. A text is never taken for a number or for "absent": a user class may be called NA or 007."""
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    header = pd.read_csv(io.BytesIO(whole), nrows=0).columns
    frame = pd.read_csv(
        io.BytesIO(whole),
        dtype={column: str for column in header if column in text_columns},
        keep_default_na=False,
        na_values={column: [""] for column in header if column not in text_columns},
    )
    for column in header.intersection(list(text_columns)):
        frame[column] = frame[column].map(unescaped)
    return frame
