"""What all outputs print: the metrics of every stage and name at one instant, converted to their units.

Knows no I/O, no clock and no Locust. Formulas: METRICS in metrics.py and docs/metrics.md. This is
the one place where nanoseconds become ms and s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from llm_locust.measure.aggregate import Aggregate

ALL = "all"
"""The name of the row over all names of a stage."""
RUN = "run"
"""The stage of the row over all stages."""

Value = float | int | str | None


@dataclass(frozen=True, slots=True)
class StageFacts:
    """What the plan says of a stage; it is not measured. `rate_per_s` None is a closed loop."""

    users: int | None = None
    rate_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class StageRow:
    """One line of stages.csv: `values` has every key of `STAGE_COLUMNS`; None is absent, never 0."""

    stage: str
    name: str
    phase: str
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The run at `at_epoch_ns`. `rows` are the measured windows, `excluded` what ran outside of them.

    Each stage has its rows by name, then the row `all`; the stages stand in the order of the plan.
    `run` is the row over all measured windows.
    """

    at_epoch_ns: int
    rows: tuple[StageRow, ...]
    excluded: tuple[StageRow, ...]
    run: StageRow
    stages: Mapping[str, StageFacts] = field(default_factory=dict)

    def row(self, stage: str, name: str = ALL) -> StageRow | None:
        """Return the measured row of a stage; None where there is none."""
        return next((row for row in self.rows if row.stage == stage and row.name == name), None)


def snapshot(aggregate: Aggregate, at_epoch_ns: int, stages: Mapping[str, StageFacts] | None = None) -> Snapshot:
    """Compute every metric of every row. `stages` in the order of the plan; costs about 1 ms a row."""
    raise NotImplementedError
