"""The commands `llm-locust report` and `llm-locust compare`: from files of runs to pages, charts, tables."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from llm_locust.analysis.compare import Comparison, compare
from llm_locust.analysis.page import page
from llm_locust.outputs.report import report_document, write_report
from llm_locust.outputs.report_markdown import markdown
from llm_locust.outputs.report_run import load_run
from llm_locust.outputs.report_tables import Table, report_tables
from llm_locust.outputs.report_verdict import verdict_sentence
from llm_locust.outputs.text import drawn

_FILE_COLUMNS = 160


def report_main(arguments: Sequence[str]) -> int:
    """Build report.html of a run again, and what else is asked for; return the exit code."""
    parser = ArgumentParser(prog="llm-locust report", description="Build a run's report.html again from its files.")
    parser.add_argument("run", nargs="?", default="reports/latest", help="the folder of the run (reports/latest)")
    parser.add_argument("--png", metavar="DIR", help="write the charts there as PNG and SVG too (extra png)")
    parser.add_argument("--xlsx", metavar="FILE", help="write the tables as a workbook too (extra xlsx)")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    options = parser.parse_args(arguments)
    return _told("report", lambda: _report(options))


def compare_main(arguments: Sequence[str]) -> int:
    """Compare runs; return the exit code."""
    parser = ArgumentParser(prog="llm-locust compare", description="Put the stages of runs side by side.")
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of two or more runs; the first is the measure")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    parser.add_argument("--html", metavar="FILE", help="write the comparison as a page too")
    options = parser.parse_args(arguments)
    if len(options.runs) < 2:
        parser.error("two runs at least")
    return _told("compare", lambda: _compare(options))


def _told(command: str, work: Callable[[], None]) -> int:
    """Do the work; what is wrong with files, disks and installed packages is one sentence."""
    try:
        work()
    except (OSError, ValueError) as error:
        named = getattr(error, "filename", None)
        reason = f"{named}: {error.strerror}" if isinstance(error, OSError) and named and error.strerror else str(error)
        print(f"llm-locust {command}: {drawn(reason)}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        extra = {"matplotlib": "png", "xlsxwriter": "xlsx"}.get(error.name or "")
        if extra is None:
            raise
        print(
            f"llm-locust {command}: {error.name} is not installed: pip install 'llm-locust[{extra}]'", file=sys.stderr
        )
        return 1
    return 0


def _report(options: Namespace) -> None:
    run = load_run(Path(options.run))
    said: Any = sys.stderr if options.markdown else sys.stdout
    print(drawn(verdict_sentence(run.picture, run.state)), file=said)
    print(write_report(run.directory), file=said)
    if options.png:
        from llm_locust.outputs.report_png import write_charts

        for path in write_charts(Path(options.png), report_document(run), _warn):
            print(path, file=said)
    if options.xlsx:
        from llm_locust.outputs.report_xlsx import write_workbook

        write_workbook(Path(options.xlsx), report_tables(run))
        print(options.xlsx, file=said)
    if options.markdown:
        print(markdown(report_tables(run)))


def _warn(sentence: str) -> None:
    print(f"llm-locust report: {sentence}", file=sys.stderr)


def _compare(options: Namespace) -> None:
    runs = [load_run(Path(run)) for run in options.runs]
    found = compare(runs)
    if options.markdown:
        print("".join(f"- {drawn(warning)}\n" for warning in found.warnings))
        print(markdown(found.tables))
    else:
        _print(found)
    if options.html:
        title = "Comparison of " + " and ".join(run.facts.run_id for run in runs)
        Path(options.html).write_bytes(page(title, found.warnings, found.tables))
        print(options.html, file=sys.stderr if options.markdown else sys.stdout)


def _print(found: Comparison) -> None:
    console = Console(width=None if sys.stdout.isatty() else _FILE_COLUMNS, markup=False, highlight=False, emoji=False)
    for table in found.tables:
        console.print(_rich(table))
        console.print()
    for warning in found.warnings:
        console.print(Text(f"! {drawn(warning)}", "yellow"))
    console.print(Text("No statistics: a small difference may be chance. Repeat runs to know.", "dim"))


def _rich(table: Table) -> RichTable:
    shown = RichTable(title=drawn(table.title), title_justify="left", title_style="bold", box=None, pad_edge=False)
    for place, column in enumerate(table.columns):
        numeric = any(isinstance(row[place], int | float) for row in table.rows)
        shown.add_column(column.title, justify="right" if numeric else "left", overflow="fold")
    for row in table.shown():
        shown.add_row(*(_coloured(text) for text in row))
    return shown


def _coloured(text: str) -> Text:
    style = "green" if text.endswith(" better") else "yellow" if text.endswith(" worse") else ""
    return Text(drawn(text), style)
