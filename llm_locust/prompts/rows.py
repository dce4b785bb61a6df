"""Datasets of one prompt a row: JSONL (OpenQA too), CSV, plain lines, one constant text.

A row's prompt stands under `prompt`, `question`, `query`, `instruction`, `text` or `input`, or as
`messages`; its output limit under `output_tokens`, `max_tokens` or `output_len`.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from llm_locust.prompts.source import PromptError, Skipped
from llm_locust.prompts.textfile import TextFile
from llm_locust.protocol.types import Message, PromptRequest

PROMPT_KEYS = ("prompt", "question", "query", "instruction", "text", "input")
OUTPUT_KEYS = ("output_tokens", "max_tokens", "output_len")

LONGEST_CELL = 1 << 30
"""The csv module's own limit, 128 KB, is less than a long prompt."""
_CR_ALONE = re.compile(r"\r(?!\n)")
LONE_CR = "a carriage return without a line feed: where lines end so, tr '\\r' '\\n' < FILE mends it"

Keep = Callable[[PromptRequest], str | None]
"""Says why a prompt is not to be used (too long), or None."""

Parse = Callable[[str], PromptRequest | None]
"""Makes a prompt of a piece of the file; None for a blank one, ValueError for a bad one."""


class RowDataset:
    """Rows of a text file by index. Strict: the first bad row is an error; lenient: it is counted."""

    def __init__(self, path: Path, pieces: Iterator[tuple[int, int, str]], file: TextFile, parse: Parse, *,
                 keep: Keep, lenient: bool) -> None:  # fmt: skip
        self._file, self._parse = file, parse
        skipped = Skipped(path)
        places: list[tuple[int, int]] = []
        for number, offset, piece in pieces:
            try:
                prompt = parse(piece)
            except ValueError as error:
                if not lenient:
                    raise PromptError(f"{path}, line {number}: {error}") from None
                skipped.add(str(error), number)
                continue
            if prompt is None:
                continue
            if reason := keep(prompt):
                skipped.add(reason, number)
                continue
            places.append((offset, len(piece.encode())))
        self._places = np.array(places, dtype=np.int64).reshape(-1, 2)
        skipped.require(self._places)
        self.size: int | None = len(self._places)
        self.digest = file.digest
        self.notes = skipped.notes

    def prompt(self, index: int) -> PromptRequest:
        """Read the prompt of one request from the file."""
        offset, length = self._places[index % len(self._places)].tolist()
        prompt = self._parse(self._file.read(offset, length))
        if prompt is None:
            raise PromptError(f"{self._file.path} was changed while it was in use")
        return prompt


class ConstantText:
    """One text for every request: the prefix cache will answer, and the report says so."""

    size: int | None = 1
    notes: tuple[str, ...] = ()

    def __init__(self, text: str) -> None:
        if not text.strip():
            raise PromptError("text: the prompt is empty")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise PromptError(
                "text: the prompt is not UTF-8; where it is to be, put it into a file and say lines:FILE"
            ) from None
        self._prompt = PromptRequest(text=text)
        self.digest = ""

    def prompt(self, index: int) -> PromptRequest:
        """Return the one prompt."""
        return self._prompt


def open_jsonl(path: Path, *, keep: Keep, lenient: bool = False) -> RowDataset:
    """Open a JSONL file: one JSON object a line."""
    file = TextFile(path)
    return RowDataset(path, file.lines(), file, _parse_json, keep=keep, lenient=lenient)


def open_lines(path: Path, *, keep: Keep, lenient: bool = False) -> RowDataset:
    """Open a file of one prompt a line; blank lines are left out."""
    file = TextFile(path)
    return RowDataset(path, file.lines(), file, _parse_line, keep=keep, lenient=lenient)


def open_csv(path: Path, *, keep: Keep, lenient: bool = False) -> RowDataset:
    """Open a CSV file (RFC 4180) with a header that names a prompt column."""
    csv.field_size_limit(LONGEST_CELL)
    file = TextFile(path)
    records = _csv_records(file)
    first = next(records, None)
    if first is None:
        raise PromptError(f"{path}: it is empty")
    try:
        header = _cells(first[2])
    except ValueError as error:
        raise PromptError(f"{path}, line 1: {error}") from None
    if not any(key in header for key in PROMPT_KEYS):
        raise PromptError(
            f"{path}, line 1: no column named {', '.join(PROMPT_KEYS)}; the header has {', '.join(header)}"
        )

    def parse(record: str) -> PromptRequest | None:
        if not record.strip():
            return None
        cells = _cells(record)
        if len(cells) != len(header):
            raise ValueError(f"{len(cells)} cells, the header has {len(header)}")
        return _prompt_of(dict(zip(header, cells, strict=True)))

    return RowDataset(path, records, file, parse, keep=keep, lenient=lenient)


def _cells(record: str) -> list[str]:
    """Return the cells of a record. Raises ValueError that says what is wrong."""
    try:
        rows = list(csv.reader(io.StringIO(record, newline=""), strict=True))
    except csv.Error as error:
        raise ValueError(f"not CSV: {error}") from None
    if len(rows) != 1:
        raise ValueError(LONE_CR if _CR_ALONE.search(record) else "a quote inside a cell that is not quoted")
    return rows[0]


def _csv_records(file: TextFile) -> Iterator[tuple[int, int, str]]:
    """Join the lines of quoted cells that hold line ends; yield (line, offset, record)."""
    pending, first, start = "", 0, 0
    for number, offset, line in file.lines():
        if not pending:
            first, start = number, offset
        pending += line
        if pending.count('"') % 2 == 0:
            yield first, start, pending
            pending = ""
    if pending:
        raise PromptError(f"{file.path}, line {first}: a quoted cell has no end")


def _parse_json(line: str) -> PromptRequest | None:
    if not line.strip():
        return None
    try:
        row = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    return _prompt_of(row)


def _parse_line(line: str) -> PromptRequest | None:
    text = line.rstrip("\r\n")
    if "\r" in text:
        raise ValueError(LONE_CR)
    return PromptRequest(text=text) if text.strip() else None


def _prompt_of(row: Mapping[str, Any]) -> PromptRequest:
    """Find the prompt and the output limit in a row. Raises ValueError that says what is wrong."""
    output = _output_tokens(row)
    if "messages" in row:
        try:
            messages = msgspec.convert(row["messages"], tuple[Message, ...])
        except msgspec.ValidationError as error:
            raise ValueError(f"messages: {error}") from None
        if not messages:
            raise ValueError("messages is empty")
        return PromptRequest(messages=messages, output_tokens=output)
    for key in PROMPT_KEYS:
        if key in row:
            if not isinstance(row[key], str):
                raise ValueError(f"{key} is not a text")
            if not row[key].strip():
                raise ValueError(f"{key} is empty")
            return PromptRequest(text=row[key], output_tokens=output)
    raise ValueError(f"no {', '.join(PROMPT_KEYS)} or messages in it")


def _output_tokens(row: Mapping[str, Any]) -> int | None:
    for key in OUTPUT_KEYS:
        value = row.get(key)
        if value is None or value == "":
            continue
        try:
            tokens = int(value)
        except (TypeError, ValueError):
            raise ValueError(f"{key} is not a number: {value!r}") from None
        if tokens < 1:
            raise ValueError(f"{key} is {tokens}; a length is at least 1 token")
        return tokens
    return None
