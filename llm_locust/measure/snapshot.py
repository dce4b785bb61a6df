"""What all outputs print: the metrics of every stage and name at one instant, converted to their units.

Knows no I/O, no clock and no Locust. Formulas: METRICS in metrics.py and docs/metrics.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from llm_locust.measure.aggregate import STAGE_WIDE, Aggregate, Key
from llm_locust.measure.rows import Source, Value, row_values
from llm_locust.measure.tally import Tally

ALL = "all"
"""The name of the row over all names of a stage."""
RUN = "whole run"
"""The stage of the row over all stages; no stage of a plan may be called so."""
STEADY = "steady"
"""The phase that is measured."""


@dataclass(frozen=True, slots=True)
class StageFacts:
    """What the plan says of a stage; it is not measured. An open loop without a rate plays a trace."""

    users: int | None = None
    rate_per_s: float | None = None
    open_loop: bool = False


@dataclass(frozen=True, slots=True)
class StageRow:
    """One line of stages.csv: `values` has every key of `STAGE_COLUMNS`; None is absent, never 0."""

    stage: str
    name: str
    phase: str
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The run at `at_epoch_ns`. `rows` are the measured windows, `excluded` what started outside of them.

    Each stage has its rows by name, then the row `all`; the stages stand in the order of the plan, then in that of
    their first request. `run` is the row over all measured windows.
    """

    at_epoch_ns: int
    rows: tuple[StageRow, ...]
    excluded: tuple[StageRow, ...]
    run: StageRow
    stages: Mapping[str, StageFacts] = field(default_factory=dict)

    def row(self, stage: str, name: str = ALL) -> StageRow | None:
        """Return the measured row of a stage; None where there is none."""
        return next((row for row in self.rows if row.stage == stage and row.name == name), None)


@dataclass(frozen=True, slots=True)
class _Computed:
    """The rows of one stage and phase, and what they were computed from."""

    state: tuple[int, StageFacts]
    rows: list[StageRow]
    whole: Source


def snapshot(aggregate: Aggregate, at_epoch_ns: int, stages: Mapping[str, StageFacts] | None = None) -> Snapshot:
    """Compute every metric of every row, in the order of the plan.

    Costs under 1 ms for each row that changed since the last snapshot; the others are kept.
    """
    facts = dict(stages or {})
    names = _names_by_window(aggregate)
    planned = {stage: place for place, stage in enumerate(facts)}
    ordered = sorted(names, key=lambda window: (planned.get(window[0], len(planned)), _began_ns(aggregate, *window)))
    rows: list[StageRow] = []
    excluded: list[StageRow] = []
    measured: list[Source] = []
    for stage, phase in ordered:
        computed = _computed(aggregate, stage, phase, names[stage, phase], facts.get(stage, StageFacts()))
        (rows if phase == STEADY else excluded).extend(computed.rows)
        if phase == STEADY:
            measured.append(computed.whole)
    run = StageRow(RUN, ALL, STEADY, row_values(_run_source(measured)))
    return Snapshot(at_epoch_ns, tuple(rows), tuple(excluded), run, facts)


def _computed(aggregate: Aggregate, stage: str, phase: str, names: set[str], facts: StageFacts) -> _Computed:
    """Return the rows of a stage and phase, those of the last snapshot if nothing changed."""
    state = (aggregate.changes[stage, phase], facts)
    known = aggregate.computed.get((stage, phase))
    if isinstance(known, _Computed) and known.state == state:
        return known
    rows, whole = _rows_of(aggregate, stage, phase, sorted(names), facts)
    fresh = aggregate.computed[stage, phase] = _Computed(state, rows, whole)
    return fresh


def _names_by_window(aggregate: Aggregate) -> dict[tuple[str, str], set[str]]:
    """Return the names that each (stage, phase) has; the time before the first stage is none."""
    names: dict[tuple[str, str], set[str]] = {}
    for stage, name, phase in [*aggregate.cells, *aggregate.windows]:
        if not stage:
            continue
        found = names.setdefault((stage, phase), set())
        if name != STAGE_WIDE:
            found.add(name)
    return names


def _began_ns(aggregate: Aggregate, stage: str, phase: str) -> int:
    window = aggregate.windows.get((stage, STAGE_WIDE, phase))
    if window is not None and "from" in window.lows:
        return window.lows["from"]
    starts = (cell.lows["start"] for key, cell in aggregate.cells.items() if _in(key, stage, phase) and cell.lows)
    return min(starts, default=0)


def _rows_of(
    aggregate: Aggregate, stage: str, phase: str, names: list[str], facts: StageFacts
) -> tuple[list[StageRow], Source]:
    """Return the rows of one stage and phase, one per name, then `all`; and the source of that one."""
    shared = aggregate.windows.get((stage, STAGE_WIDE, phase), Tally())
    stage_wide = aggregate.cells.get((stage, STAGE_WIDE, phase), Tally())
    rows = []
    window_ns = _length_ns(shared)
    open_loop = facts.open_loop or facts.rate_per_s is not None
    whole = Source(
        Tally(), Tally(), shared, window_ns, facts.users, facts.rate_per_s, open_loop, measured=phase == STEADY
    )
    whole.cell.merge(stage_wide)
    for name in names:
        key = (stage, name, phase)
        cell, window = aggregate.cells.get(key, Tally()), aggregate.windows.get(key, Tally())
        whole.cell.merge(cell)
        whole.window.merge(window)
        source = Source(
            cell, window, shared, window_ns, open_loop=open_loop, in_flight_peak=aggregate.peak(key), of_one_name=True
        )
        rows.append(StageRow(stage, name, phase, row_values(source)))
    whole.in_flight_peak = aggregate.peak((stage, STAGE_WIDE, phase))
    whole.backlog_max = shared.counts["backlog_max"]
    whole.gaps = aggregate.gaps(stage, phase)
    return [*rows, StageRow(stage, ALL, phase, row_values(whole))], whole


def _run_source(measured: list[Source]) -> Source:
    """Return what the row over all measured windows is computed from; they follow each other, so lengths add."""
    run = Source(Tally(), Tally(), Tally())
    for stage in measured:
        run.cell.merge(stage.cell)
        run.window.merge(stage.window)
        run.shared.merge(stage.shared)
        run.window_ns += stage.window_ns
        run.open_loop |= stage.open_loop
    run.in_flight_peak = max((s.in_flight_peak for s in measured if s.in_flight_peak is not None), default=None)
    run.backlog_max = max((stage.backlog_max for stage in measured), default=0)
    return run


def _in(key: Key, stage: str, phase: str) -> bool:
    return key[0] == stage and key[2] == phase


def _length_ns(window: Tally) -> int:
    return window.highs["until"] - window.lows["from"] if "from" in window.lows else 0
