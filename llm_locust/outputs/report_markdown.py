"""Tables as GitHub's Markdown. No text of a server becomes markup: what could begin it is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable

from llm_locust.outputs.report_tables import Table
from llm_locust.outputs.text import drawn

_MARKUP = re.compile(r"([\\`*_\[\]<>|~&$])")


def markdown(tables: Iterable[Table]) -> str:
    """Return the tables below each other, each under its title."""
    return "\n".join(_table(table) for table in tables)


def _table(table: Table) -> str:
    titles = [column.title for column in table.columns]
    numeric = [_is_numeric(table, place) for place in range(len(titles))]
    lines = [
        f"### {_cell(table.title)}",
        "",
        _line(titles),
        "|" + "|".join("---:" if right else "---" for right in numeric) + "|",
        *(_line(row) for row in table.shown()),
        "",
    ]
    return "\n".join(lines)


def _is_numeric(table: Table, place: int) -> bool:
    values = [row[place] for row in table.rows if row[place] is not None]
    return bool(values) and not any(isinstance(value, str) for value in values)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(text: str) -> str:
    return _MARKUP.sub(r"\\\1", drawn(text))
