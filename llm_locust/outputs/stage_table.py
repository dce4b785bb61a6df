"""The stage table of the console: one line a stage on a wide screen, two on a narrow one.

Knows no stream. The numbers are the snapshot's, by the names of the metric table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from llm_locust.measure.rows import Value
from llm_locust.measure.snapshot import ALL, StageRow
from llm_locust.outputs import numbers
from llm_locust.outputs.picture import Picture, Validity
from llm_locust.outputs.text import drawn

LITERAL_MARK = " n<100"
LABEL_COLUMNS = 24
LEAST_LABEL_COLUMNS = 8

VERDICT_STYLES = {Validity.VALID: "green", Validity.SUSPECT: "yellow", Validity.INVALID: "bold red"}
_SCHEDULED = {"ttft_ms": "ttft_scheduled_ms", "e2e_ms": "e2e_scheduled_ms"}


@dataclass(frozen=True, slots=True)
class _Column:
    """One column: its two header lines, the value it shows, and how."""

    group: str
    title: str
    value: str
    show: Callable[[Value], str]
    line: int  # which of a stage's two lines it is in on a narrow screen


_COLUMNS: tuple[_Column, ...] = (
    _Column("", "users", "users", numbers.count, 1),
    _Column("", "rate/s", "rate_requested_per_s", numbers.three_digits, 1),
    _Column("", "ok", "requests_ok", numbers.count, 1),
    _Column("", "fail", "requests_failed", numbers.count, 1),
    _Column("", "short", "short_outputs", numbers.count, 1),
    _Column("TTFT ms", "mean", "ttft_ms_mean", numbers.three_digits, 2),
    _Column("", "p50", "ttft_ms_p50", numbers.three_digits, 2),
    _Column("", "p99", "ttft_ms_p99", numbers.three_digits, 2),
    _Column("TPOT ms", "mean", "tpot_ms_mean", numbers.three_digits, 2),
    _Column("", "p99", "tpot_ms_p99", numbers.three_digits, 2),
    _Column("E2E s", "mean", "e2e_ms_mean", numbers.seconds, 2),
    _Column("tok/s", "in", "input_tok_per_s", numbers.three_digits, 2),
    _Column("", "out", "output_tok_per_s", numbers.three_digits, 2),
    _Column("", "total", "total_tok_per_s", numbers.three_digits, 2),
    _Column("in", "flight", "concurrency_mean", numbers.three_digits, 1),
)


def stage_table(picture: Picture, width: int) -> tuple[Table, str]:
    """Return the table of all measured stages for a screen of `width` columns, and the mark of a p99 of few samples.

    One line a stage where that fits (about 120 columns), else two; the mark is `n<100` where there is room for it.
    """
    lines = list(_lines_of(picture))
    for fill, mark, least_label in ((_one_line, LITERAL_MARK, 99), (_one_line, "*", LEAST_LABEL_COLUMNS)):
        grid = fill(lines, picture, mark)
        if grid.fits(width, least_label):
            return grid.table(width), mark
    return _two_lines(lines, picture, "*").table(width), "*"


@dataclass(frozen=True, slots=True)
class _Grid:
    """Titles and cells before they become a table; the first column holds the labels and gives way to the others."""

    titles: list[str]
    rows: list[list[Text]]

    def fits(self, width: int, least_label: int) -> bool:
        """Say whether all but the label is whole on so many columns, and the label has its least or all it needs."""
        return self._room(width) >= min(least_label, self._columns_of(0))

    def table(self, width: int) -> Table:
        """Return the table, its labels shortened to the room that is left."""
        room = max(1, min(self._room(width), self._columns_of(0)))
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
        for number, title in enumerate(self.titles):
            table.add_column(title, justify="right" if number else "left", no_wrap=True)
        for label, *cells in self.rows:
            label.truncate(room, overflow="ellipsis")
            table.add_row(label, *cells)
        return table

    def _room(self, width: int) -> int:
        return min(LABEL_COLUMNS, width - sum(self._columns_of(number) + 1 for number in range(1, len(self.titles))))

    def _columns_of(self, number: int) -> int:
        texts = [self.titles[number], *(row[number].plain for row in self.rows if number < len(row))]
        return max(cell_len(line) for text in texts for line in text.split("\n"))


def has_few_samples(picture: Picture) -> bool:
    """Say whether a p99 in the table stands on fewer than 100 samples."""
    counts = (row.values[f"{name}_count"] for row in picture.snapshot.rows for name in ("ttft_ms", "tpot_ms"))
    return any(isinstance(samples, int) and 0 < samples < numbers.FEW for samples in counts)


@dataclass(frozen=True, slots=True)
class _Line:
    """One stage, name of a stage, or its view from the schedule."""

    label: str
    row: StageRow
    from_schedule: bool = False


def _lines_of(picture: Picture) -> Iterator[_Line]:
    """Give what the table lists: a stage, its latencies from the schedule, and its names where it has several."""
    rows = picture.snapshot.rows
    for row in rows:
        if row.name != ALL:
            continue
        yield _Line(row.stage, row)
        if row.values["load"] == "open loop":
            yield _Line(" scheduled", row, from_schedule=True)
        names = [part for part in rows if part.stage == row.stage and part.name != ALL]
        if len(names) > 1:
            yield from (_Line(f" {part.name}", part) for part in names)


def _one_line(lines: Sequence[_Line], picture: Picture, mark: str) -> _Grid:
    titles = ["\nstage", *(f"{column.group}\n{column.title}" for column in _COLUMNS), "\nverdict"]
    rows = [[_label(line), *(_cell(c, line, mark) for c in _COLUMNS), _verdict(line, picture)] for line in lines]
    return _Grid(titles, rows)


def _two_lines(lines: Sequence[_Line], picture: Picture, mark: str) -> _Grid:
    """Lay the counts over the latencies: both lines share the columns of the grid."""
    upper = [column for column in _COLUMNS if column.line == 1]
    lower = [column for column in _COLUMNS if column.line == 2]
    above = [f"{column.group} {column.title}".strip() for column in upper] + ["verdict"]
    titles = ["stage\nms", *map("\n".join, zip_longest(above, map(_narrow_title, lower), fillvalue=""))]
    rows = []
    for line in lines:
        cells = [_cell(column, line, mark) for column in lower]
        if not line.from_schedule:
            counts = [*(_cell(column, line, mark) for column in upper), _verdict(line, picture)]
            cells = [Text("\n").join(pair) for pair in zip_longest(counts, cells, fillvalue=Text())]
        rows.append([_label(line), *cells])
    return _Grid(titles, rows)


def _label(line: _Line) -> Text:
    return Text(drawn(line.label))


def _narrow_title(column: _Column) -> str:
    if column.title == "mean":
        return column.group.removesuffix(" ms")
    return f"{column.title}/s" if column.value.endswith("tok_per_s") else column.title


def _cell(column: _Column, line: _Line, mark: str) -> Text:
    values = line.row.values
    latency, _, statistic = column.value.rpartition("_")
    if line.from_schedule:
        if latency not in _SCHEDULED:
            return Text()
        latency = _SCHEDULED[latency]
    value = values[f"{latency}_{statistic}"] if line.from_schedule else values[column.value]
    if column.value == "rate_requested_per_s" and value is None:
        return Text("closed" if values["load"] == "closed loop" else "trace", "dim")
    shown = column.show(value)
    if value is not None and line.from_schedule and values["scheduled_lower_bounds"]:
        shown = f"≥{shown}"
    if statistic == "p99" and isinstance(samples := values[f"{latency}_count"], int) and 0 < samples < numbers.FEW:
        shown += mark
    return Text(shown, "red" if column.value == "requests_failed" and value else "")


def _verdict(line: _Line, picture: Picture) -> Text:
    verdict = picture.verdicts.get(line.row.stage)
    if verdict is None or line.from_schedule or line.row.name != ALL:
        return Text()
    return Text(verdict.validity.value, VERDICT_STYLES[verdict.validity])
