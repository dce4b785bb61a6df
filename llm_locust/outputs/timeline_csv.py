"""timeline.csv: one line per second of the run, written when every live worker has reported past it.

Columns: what the caller knows of the second, then those of the timeline in measure, which count also what came late.
"""

from __future__ import annotations

from dataclasses import dataclass

from llm_locust.measure.seconds import SECOND_COLUMNS, SecondRow
from llm_locust.outputs.heat import heat_cell
from llm_locust.outputs.text import cell


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRow:
    """One second: the measured row, and what surrounded it; None is not known."""

    second: SecondRow
    stage: str | None = None
    phase: str | None = None
    users: int | None = None
    loop_lag_ms_max: float | None = None  # of the worst process


TIMELINE_COLUMNS: tuple[str, ...] = (
    "run_id",
    "epoch_s",
    "stage",
    "phase",
    "users",
    "loop_lag_ms_max",
    *SECOND_COLUMNS[:-1],
    "itl_ms_heat",
    SECOND_COLUMNS[-1],  # came later: a column is only added at the end
)
TIMELINE_TEXT_COLUMNS: frozenset[str] = frozenset({"run_id", "stage", "phase", "itl_ms_heat"})
TIMELINE_HEADER = ",".join(TIMELINE_COLUMNS)


def timeline_line(run_id: str, row: TimelineRow) -> str:
    """Return the second's line without its end."""
    head = (run_id, row.second.epoch_s, row.stage, row.phase, row.users, row.loop_lag_ms_max)
    *numbers, last = (row.second.values[name] for name in SECOND_COLUMNS)
    heat = heat_cell(row.second.distributions.get("itl_ms"))
    return ",".join(cell(value) for value in (*head, *numbers, heat, last))
