"""The tables of a report as a workbook: a sheet a table. Texts are always texts: nothing is run as a formula or a link.

Needs XlsxWriter (extra `xlsx`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path

from llm_locust.outputs.report_tables import Table
from llm_locust.outputs.text import drawn

_MOST_CHARACTERS = 32767  # of a cell
_MOST_WIDTH = 60
_FORBIDDEN = re.compile(r"[\[\]:*?/\\]")


def write_workbook(path: Path, tables: Iterable[Table]) -> None:
    """Write the workbook. Raises OSError; ModuleNotFoundError where XlsxWriter is not installed."""
    import xlsxwriter

    book = xlsxwriter.Workbook(path, {"strings_to_formulas": False, "strings_to_urls": False})
    head = book.add_format({"bold": True, "text_wrap": True, "valign": "top", "bottom": 1})
    try:
        for table in tables:
            sheet = book.add_worksheet(_FORBIDDEN.sub(" ", table.title)[:31])
            for place, column in enumerate(table.columns):
                sheet.write_string(0, place, column.title, head)
                sheet.set_column(place, place, _width(table, place))
            for number, row in enumerate(table.rows, start=1):
                for place, value in enumerate(row):
                    if isinstance(value, str):
                        sheet.write_string(number, place, drawn(value)[:_MOST_CHARACTERS])
                    elif value is not None and math.isfinite(value):
                        sheet.write_number(number, place, value)
            sheet.freeze_panes(1, 1)
            sheet.autofilter(0, 0, len(table.rows), len(table.columns) - 1)
    finally:
        try:
            book.close()
        except xlsxwriter.exceptions.FileCreateError as error:
            raise OSError(f"{path}: {error}") from error


def _width(table: Table, place: int) -> float:
    texts = [table.columns[place].title.split(",")[0], *(row[place] for row in table.shown())]
    return float(min(max(len(text) for text in texts) + 2, _MOST_WIDTH))
