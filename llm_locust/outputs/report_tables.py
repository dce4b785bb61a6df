"""The tables of a report as values: what the workbook and the Markdown tables have in common.

Knows no files and no format. The numbers are the picture's, by the names of the metric table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from llm_locust.measure.metrics import METRICS
from llm_locust.measure.record import Outcome
from llm_locust.measure.rows import Value
from llm_locust.measure.snapshot import RUN, StageRow
from llm_locust.outputs import numbers
from llm_locust.outputs.live import best_stage, economy, meets_slo
from llm_locust.outputs.picture import StageVerdict
from llm_locust.outputs.report_run import FinishedRun
from llm_locust.outputs.report_verdict import got, verdict_sentence


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its title with the unit, and how a number of it is shown to a person."""

    title: str
    show: Callable[[Value], str] = numbers.three_digits


@dataclass(frozen=True, slots=True)
class Table:
    """One table. A cell is a number as it is in the files, a text, or None: absent."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]

    def shown(self) -> Iterator[tuple[str, ...]]:
        """Give each row as a person reads it."""
        for row in self.rows:
            yield tuple(_shown(column, value) for column, value in zip(self.columns, row, strict=True))


_STAGE_COLUMNS: tuple[tuple[str, str, Callable[[Value], str]], ...] = (
    ("users", "users", numbers.count),
    ("rate, req/s", "rate_requested_per_s", numbers.three_digits),
    ("window, s", "window_s", numbers.three_digits),
    ("ok", "requests_ok", numbers.count),
    ("failed", "requests_failed", numbers.count),
    ("short", "short_outputs", numbers.count),
    ("TTFT mean, ms", "ttft_ms_mean", numbers.three_digits),
    ("TTFT p50, ms", "ttft_ms_p50", numbers.three_digits),
    ("TTFT p99, ms", "ttft_ms_p99", numbers.three_digits),
    ("TTFT from schedule p50, ms", "ttft_scheduled_ms_p50", numbers.three_digits),
    ("TTFT from schedule p99, ms", "ttft_scheduled_ms_p99", numbers.three_digits),
    ("TPOT mean, ms", "tpot_ms_mean", numbers.three_digits),
    ("TPOT p50, ms", "tpot_ms_p50", numbers.three_digits),
    ("TPOT p99, ms", "tpot_ms_p99", numbers.three_digits),
    ("ITL p99, ms", "itl_ms_p99", numbers.three_digits),
    ("E2E mean, ms", "e2e_ms_mean", numbers.three_digits),
    ("E2E p99, ms", "e2e_ms_p99", numbers.three_digits),
    ("requests, req/s", "request_throughput_per_s", numbers.three_digits),
    ("output, tok/s", "output_tok_per_s", numbers.three_digits),
    ("input, tok/s", "input_tok_per_s", numbers.three_digits),
    ("in flight", "concurrency_mean", numbers.three_digits),
    ("goodput, req/s", "goodput_per_s", numbers.three_digits),
    ("attained", "attainment_ratio", numbers.three_digits),
)
_OPTIONAL = frozenset(
    {"rate_requested_per_s", "ttft_scheduled_ms_p50", "ttft_scheduled_ms_p99", "goodput_per_s", "attainment_ratio"}
)


def report_tables(run: FinishedRun) -> list[Table]:
    """Return the tables in the order of the report; those without a row are left out."""
    tables = [_about(run), _objectives(run), _validity(run), stage_table(run), _outcomes(run), _failures(run)]
    return [table for table in [*tables, _formulas()] if table.rows]


def stage_table(run: FinishedRun) -> Table:
    """Return a row a stage; columns that no stage has are left out."""
    rows = run.stages
    shown = [c for c in _STAGE_COLUMNS if c[1] not in _OPTIONAL or any(row.values[c[1]] is not None for row in rows)]
    prices = [economy(run.facts, row.values["output_tok_per_s"]) for row in rows]
    money = [name for name in ("tok_per_s_per_gpu", "cost_per_million_tokens") if any(p[name] for p in prices)]
    titles = {"tok_per_s_per_gpu": "output per GPU, tok/s", "cost_per_million_tokens": "cost per million output tokens"}
    best = best_stage(run.picture)
    return Table(
        "Stages",
        (
            *map(Column, ("stage", "validity", "SLO")),
            *(Column(title, show) for title, _, show in shown),
            *(Column(titles[name]) for name in money),
        ),
        tuple(
            (
                row.stage,
                _word(run.picture.verdicts.get(row.stage)),
                _slo(run, row, best),
                *(row.values[column] for _, column, _ in shown),
                *(price[name] for name in money),
            )
            for row, price in zip(rows, prices, strict=True)
        ),
    )


def _slo(run: FinishedRun, row: StageRow, best: str | None) -> str | None:
    met = meets_slo(run.picture, row.stage)
    if met is None:
        return None
    return "missed" if not met else "met, best" if row.stage == best else "met"


def _about(run: FinishedRun) -> Table:
    facts = run.facts
    pairs: list[tuple[str, Value]] = [
        ("verdict", verdict_sentence(run.picture, run.state)),
        ("run", facts.run_id),
        ("state", run.state.value),
        ("started", facts.started.isoformat()),
        ("server", facts.host),
        ("model", facts.model),
        ("shape", facts.shape),
        ("note", facts.note or None),
        *((f"tag {key}", value) for key, value in facts.tags.items()),
        *((f"seed {key}", str(value)) for key, value in facts.seeds.items()),
        *((f"version of {key}", value) for key, value in facts.versions.items()),
        ("repeat", facts.repeat_command or None),
    ]
    return _table("Run", ("what", "value"), [(key, value) for key, value in pairs if value is not None])


def _objectives(run: FinishedRun) -> Table:
    rows = [
        (stage, clause.clause, got(clause), clause.n, "met" if clause.passed else "MISSED")
        for stage, clauses in run.picture.slo.items()
        for clause in clauses
    ]
    return _table("Objectives", ("stage", "objective", "measured", "samples", "verdict"), rows)


def _validity(run: FinishedRun) -> Table:
    rows = [
        (
            "whole run" if stage == RUN else stage,
            _word(verdict),
            "; ".join(verdict.reasons),
            "; ".join(verdict.findings),
        )
        for stage, verdict in run.picture.verdicts.items()
    ]
    return _table("Validity", ("stage", "measurement", "reasons", "findings about the server"), rows)


def _outcomes(run: FinishedRun) -> Table:
    rows = [*run.stages, run.picture.snapshot.run]
    order = sorted(Outcome, key=lambda outcome: outcome is not Outcome.OK)
    found = [outcome.value for outcome in order if any(row.values[f"outcome_{outcome.value}"] for row in rows)]
    cells = [
        (
            "whole run" if row.stage == RUN else row.stage,
            *(row.values[f"outcome_{outcome}"] for outcome in found),
            row.values["finish_reasons"],
        )
        for row in rows
    ]
    return _table("Outcomes", ("stage", *found, "finish reasons"), cells)


def _failures(run: FinishedRun) -> Table:
    rows = [(f.outcome, f.http_status, f.count, f.sample) for f in run.failures]
    return _table("Failures, all phases", ("outcome", "status", "requests", "first message"), rows)


def _formulas() -> Table:
    rows = [(m.title, m.name, m.unit, m.formula) for m in METRICS if not m.name.startswith("outcome_")]
    return _table("Formulas", ("metric", "column", "unit", "formula"), rows)


def _table(title: str, titles: Sequence[str], rows: Sequence[tuple[Value, ...]]) -> Table:
    return Table(title, tuple(Column(name, numbers.count) for name in titles), tuple(rows))


def _word(verdict: StageVerdict | None) -> str | None:
    return None if verdict is None else verdict.validity.value


def _shown(column: Column, value: Value) -> str:
    return value if isinstance(value, str) else column.show(value)
