"""Finished runs side by side: stages of the same label, differences in % against the first run, and what makes them
hard to compare.

Knows no files but by `load_run`. There are no statistics here: a difference may be chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from llm_locust.measure.metrics import BY_NAME, Better
from llm_locust.measure.rows import Value
from llm_locust.measure.snapshot import RUN, StageRow
from llm_locust.outputs import numbers
from llm_locust.outputs.live import economy
from llm_locust.outputs.report_run import FinishedRun
from llm_locust.outputs.report_tables import Column, Table
from llm_locust.outputs.report_verdict import verdict_sentence

LEAST_DIFFERENCE = 0.01
"""Differences up to this share are called `same`: each of two percentiles may be off by a quarter of it."""
_IN_SECONDS = ("e2e_ms", "e2e_scheduled_ms")
"""Shown in s, as on every screen."""
LENGTHS_DIFFER = 0.05
"""Mean lengths that differ by more make latencies incomparable."""

_COMPARED: tuple[tuple[str, str | None], ...] = (
    ("requests_ok", None),
    ("error_ratio", None),
    *(("ttft_ms", statistic) for statistic in ("mean", "p50", "p99")),
    *(("ttft_scheduled_ms", statistic) for statistic in ("mean", "p50", "p99")),
    *(("tpot_ms", statistic) for statistic in ("mean", "p50", "p99")),
    ("itl_ms", "p99"),
    *(("e2e_ms", statistic) for statistic in ("mean", "p99")),
    *(("e2e_scheduled_ms", statistic) for statistic in ("mean", "p99")),
    ("request_throughput_per_s", None),
    ("output_tok_per_s", None),
    ("input_tok_per_s", None),
    ("total_tok_per_s", None),
    ("concurrency_mean", None),
    ("goodput_per_s", None),
    ("attainment_ratio", None),
    ("input_tokens_mean", None),
    ("output_tokens_mean", None),
)
_MONEY: tuple[tuple[str, str, str, Better], ...] = (
    ("tok_per_s_per_gpu", "Output per GPU", "tok/s", "high"),
    ("cost_per_million_tokens", "Cost per million output tokens", "", "low"),
)
_OF_THE_RUN_ITSELF = frozenset(
    {"out", "name", "tags", "note", "given", "raw", "hosts", "seed", "model", "run_time_s", "dry_run", "no_preflight"}
    | {"wait_ready_s", "save_arrivals", "save_failures", "price_per_gpu_hour", "slo"}
)
"""Settings that change no request."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What is told: warnings first, then the tables."""

    warnings: tuple[str, ...]
    tables: tuple[Table, ...]


def compare(runs: Sequence[FinishedRun]) -> Comparison:
    """Compare two or more runs; the first one is what the others are measured by."""
    names = [chr(ord("A") + place) if place < 26 else f"R{place + 1}" for place in range(len(runs))]
    labels = list(dict.fromkeys(row.stage for run in runs for row in run.stages))
    matched = [label for label in labels if all(_row(run, label) is not None for run in runs)]
    tables = [_runs_table(runs, names), _tags_table(runs, names), *(_stage(runs, names, label) for label in matched)]
    return Comparison(
        warnings=tuple(_warnings(runs, names, labels, matched)), tables=tuple(table for table in tables if table.rows)
    )


def _row(run: FinishedRun, label: str) -> StageRow | None:
    return next((row for row in run.stages if row.stage == label), None)


def _runs_table(runs: Sequence[FinishedRun], names: Sequence[str]) -> Table:
    rows = [
        (name, run.facts.run_id, run.facts.model, _validity(run, RUN), verdict_sentence(run.picture, run.state))
        for name, run in zip(names, runs, strict=True)
    ]
    return Table("Runs", tuple(map(Column, ("", "run", "model", "measurement", "verdict"))), tuple(rows))


def _tags_table(runs: Sequence[FinishedRun], names: Sequence[str]) -> Table:
    keys = list(dict.fromkeys(key for run in runs for key in run.facts.tags))
    rows = []
    for key in keys:
        values = [run.facts.tags.get(key) for run in runs]
        rows.append((key, *values, "" if len(set(values)) == 1 else "differs"))
    return Table("Tags", (Column("tag"), *map(Column, names), Column("")), tuple(rows))


def _stage(runs: Sequence[FinishedRun], names: Sequence[str], label: str) -> Table:
    rows = [row for run in runs if (row := _row(run, label)) is not None]
    columns = [Column("metric"), Column("unit"), Column(names[0], numbers.three_digits)]
    for name in names[1:]:
        columns += [Column(name, numbers.three_digits), Column(f"{name} against {names[0]}")]
    return Table(f"Stage {label}", tuple(columns), tuple(_metric_rows(runs, rows, label)))


def _metric_rows(runs: Sequence[FinishedRun], rows: Sequence[StageRow], label: str) -> Iterator[tuple[Value, ...]]:
    yield _worded("measurement", [_validity(run, label) for run in runs])
    for name, statistic in _COMPARED:
        metric = BY_NAME[name]
        column = name if statistic is None else f"{name}_{statistic}"
        values = [row.values[column] for row in rows]
        if all(value is None for value in values):
            continue
        few = statistic == "p99" and any(_few(row.values[f"{name}_count"]) for row in rows)
        title = f"{metric.title} {statistic or ''}".strip() + (" (n<100)" if few else "")
        unit = metric.unit
        if name in _IN_SECONDS:
            unit, values = "s", [value / 1e3 if isinstance(value, int | float) else None for value in values]
        yield _compared(title, unit, metric.better if name != "requests_ok" else "none", values)
    for name, title, unit, better in _MONEY:
        found = [economy(run.facts, row.values["output_tok_per_s"])[name] for run, row in zip(runs, rows, strict=True)]
        if any(value is not None for value in found):
            yield _compared(title, unit, better, found)


def _few(samples: Value) -> bool:
    return isinstance(samples, int) and 0 < samples < numbers.FEW


def _worded(title: str, words: Sequence[str | None]) -> tuple[Value, ...]:
    first, *others = words
    return (title, "", first, *(cell for word in others for cell in (word, "")))


def _compared(title: str, unit: str, better: Better, values: Sequence[Value]) -> tuple[Value, ...]:
    first, *others = values
    return (title, unit, first, *(cell for value in others for cell in (value, difference(first, value, better))))


def difference(first: Value, other: Value, better: Better) -> str | None:
    """Return what `other` is against `first`: `+12.3 % worse`; None where one is absent or the first is 0."""
    if not isinstance(first, int | float) or not isinstance(other, int | float):
        return None
    if first == other:
        return "same"
    if not first:
        return None
    share = other / first - 1
    if abs(share) <= LEAST_DIFFERENCE:
        return "same" if abs(share) < 0.0005 else f"{share:+.1%} same".replace("%", " %")
    word = "" if better == "none" else " better" if (share < 0) == (better == "low") else " worse"
    return f"{share:+.1%}".replace("%", " %") + word


def _validity(run: FinishedRun, stage: str) -> str | None:
    verdict = run.picture.verdicts.get(stage)
    return None if verdict is None else verdict.validity.value


def _warnings(
    runs: Sequence[FinishedRun], names: Sequence[str], labels: Sequence[str], matched: Sequence[str]
) -> Iterator[str]:
    first = runs[0]
    for name, run in zip(names, runs, strict=True):
        validity = _validity(run, RUN)
        if validity not in (None, "VALID"):
            yield f"{name} is {validity}: read its reasons before you trust a difference"
    for label in labels:
        if label not in matched:
            having = ", ".join(n for n, run in zip(names, runs, strict=True) if _row(run, label) is not None)
            yield f"stage {label} is in {having} only"
    for name, run in zip(names[1:], runs[1:], strict=True):
        pair = f"{names[0]} and {name}"
        yield from _settings_that_differ(pair, first.facts.settings, run.facts.settings)
        yield from _lengths_that_differ(pair, first, run, matched)
        yield from _versions_that_differ(pair, first.facts.versions, run.facts.versions)
        if first.facts.seeds != run.facts.seeds:
            yield f"{pair} have different seeds: prompts and arrivals are other draws of the same kind"
        else:
            yield f"{pair} have the same seed, so the same prompts: a prefix cache that was still warm answers faster"


def _settings_that_differ(pair: str, first: Mapping[str, object], other: Mapping[str, object]) -> Iterator[str]:
    for key in sorted((first.keys() | other.keys()) - _OF_THE_RUN_ITSELF):
        one, two = first.get(key), other.get(key)
        if one != two:
            yield f"{pair} differ in {key}: {_told(one)} / {_told(two)}"


def _versions_that_differ(pair: str, first: Mapping[str, str], other: Mapping[str, str]) -> Iterator[str]:
    for key in sorted(first.keys() | other.keys()):
        if first.get(key) != other.get(key):
            yield f"{pair} were made with different versions of {key}: {first.get(key, '–')} / {other.get(key, '–')}"


def _lengths_that_differ(pair: str, first: FinishedRun, other: FinishedRun, matched: Sequence[str]) -> Iterator[str]:
    for label in matched:
        one, two = _row(first, label), _row(other, label)
        for column, what in (("input_tokens_mean", "inputs"), ("output_tokens_mean", "outputs")):
            a, b = (None if row is None else row.values[column] for row in (one, two))
            if not isinstance(a, int | float) or not isinstance(b, int | float) or not a:
                continue
            if abs(b / a - 1) > LENGTHS_DIFFER:
                yield (
                    f"stage {label}: {pair} have {what} of different length, on the mean {numbers.three_digits(a)} / "
                    f"{numbers.three_digits(b)} tokens"
                )


def _told(value: object) -> str:
    return "not set" if value is None else str(value)
