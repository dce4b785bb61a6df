"""Read a run's files back, as reports and comparisons do: pandas frames with absent numbers as NaN, texts as they were.

Not imported while a load runs (pandas takes half a second). A last line without its end, as a kill in the middle of a
write can leave it, is no line.
"""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterator
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


def request_chunks(path: Path, columns: Collection[str], rows: int = 100_000) -> Iterator[pd.DataFrame]:
    """Read these columns of requests.csv in pieces, so that a night of a million rows needs little memory.

    Texts are categories. A column that the file does not have is left out.
    """
    file = _file(path, "requests.csv")
    with io.BufferedReader(_WholeLines(file), 1 << 20) as whole:
        text = [column for column in columns if column in REQUEST_TEXT_COLUMNS]
        chunks = pd.read_csv(
            whole,
            usecols=lambda column: column in columns,
            dtype=dict.fromkeys(text, "category"),
            keep_default_na=False,
            na_values={column: [""] for column in columns if column not in text},
            chunksize=rows,
        )
        for chunk in chunks:
            for column in chunk.columns.intersection(text):
                chunk[column] = chunk[column].cat.rename_categories(unescaped)
            yield chunk


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


class _WholeLines(io.RawIOBase):
    """A file up to the end of its last whole line, as it is now."""

    def __init__(self, path: Path) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115  # closed with this one
        self._left = _length_of_whole_lines(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)[: self._left]
        n = self._file.readinto(view) or 0
        self._left -= n
        return n

    def close(self) -> None:
        self._file.close()
        super().close()


def _length_of_whole_lines(path: Path) -> int:
    block = 1 << 16
    with open(path, "rb") as file:
        end = file.seek(0, io.SEEK_END)
        while end > 0:
            start = max(0, end - block)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                return start + found + 1
            end = start
    return 0


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
