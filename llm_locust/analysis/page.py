"""Tables as a page without a script: what a comparison is mailed as. Every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from llm_locust.outputs.report_tables import Table
from llm_locust.outputs.text import drawn, encodable

_STYLE = """
:root { color-scheme: light dark; --line: #d1d5db; --worse: #b45309; --better: #15803d; }
@media (prefers-color-scheme: dark) { :root { --line: #3f3f46; --worse: #fbbf24; --better: #4ade80; } }
body { font: 14px/1.45 Roboto, Helvetica, Arial, "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif;
  max-width: 1200px; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; font-variant-numeric: tabular-nums; }
td, th { border-bottom: 1px solid var(--line); padding: .25rem .75rem .25rem 0; text-align: left; vertical-align: top; }
td.n, th.n { text-align: right; }
.worse { color: var(--worse); } .better { color: var(--better); }
@page { size: A4 landscape; margin: 10mm; }
@media print { body { margin: 0; max-width: none; font-size: 9pt; }
  tr, h2 { break-inside: avoid; break-after: avoid; } }
"""


def page(title: str, warnings: Sequence[str], tables: Iterable[Table]) -> bytes:
    """Return the page."""
    notes = "".join(f"<li>{_text(warning)}</li>" for warning in warnings)
    body = f"<h1>{_text(title)}</h1>" + (f"<ul>{notes}</ul>" if notes else "") + "".join(map(_table, tables))
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>{body}</body></html>\n"
    ).encode()


def _table(table: Table) -> str:
    head = "".join(f"<th{_side(table, place)}>{_text(c.title)}</th>" for place, c in enumerate(table.columns))
    rows = "".join(
        "<tr>" + "".join(f"<td{_side(table, place)}>{_cell(text)}</td>" for place, text in enumerate(row)) + "</tr>"
        for row in table.shown()
    )
    return f"<h2>{_text(table.title)}</h2><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _side(table: Table, place: int) -> str:
    values = [row[place] for row in table.rows if row[place] is not None]
    return ' class="n"' if any(isinstance(value, int | float) for value in values) else ""


def _cell(text: str) -> str:
    for word in ("better", "worse"):
        if text.endswith(f" % {word}"):
            return f'<span class="{word}">{_text(text)}</span>'
    return _text(text)


def _text(text: str) -> str:
    return escape(encodable(drawn(text)))
