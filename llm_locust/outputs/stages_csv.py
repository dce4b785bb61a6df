"""stages.csv: one line per stage, name and phase, written when nothing of the stage can change any more.

At the end of the run the stages stand in the order of time: one that an edit by hand has split may end after its rest.

Columns: run id, stage, name, phase, then the metric table's, then the verdict. The running stages are in summary.json.
"""

from __future__ import annotations

from collections.abc import Iterator

from llm_locust.measure.metrics import METRICS, STAGE_COLUMNS
from llm_locust.measure.snapshot import RUN, Snapshot, StageRow
from llm_locust.outputs.picture import Picture
from llm_locust.outputs.text import cell

STAGES_COLUMNS: tuple[str, ...] = (
    "run_id",
    "stage",
    "name",
    "phase",
    *STAGE_COLUMNS,
    "validity",
    "validity_reasons",
    "findings",
)

STAGES_TEXT_COLUMNS: frozenset[str] = frozenset(
    {"run_id", "stage", "name", "phase", "validity", "validity_reasons", "findings"}
    | {metric.name for metric in METRICS if metric.kind == "text"}
)

STAGES_HEADER = ",".join(STAGES_COLUMNS)

RowKey = tuple[str, str, str]


def all_rows(snapshot: Snapshot) -> Iterator[StageRow]:
    """Give every row in the order of the file: of each stage the measured window and the rest, then the whole run."""
    shown = [*snapshot.rows, *snapshot.excluded]
    for stage in dict.fromkeys([*snapshot.stages, *(row.stage for row in shown)]):
        yield from (row for row in shown if row.stage == stage)
    yield snapshot.run


def row_key(row: StageRow) -> RowKey:
    """What makes a line the only one of its kind."""
    return row.stage, row.name, row.phase


def stage_line(run_id: str, row: StageRow, picture: Picture) -> str:
    """Return the row's line without its end."""
    verdict = picture.verdicts.get(row.stage)
    judged = (
        (None, None, None)
        if verdict is None
        else (verdict.validity.value, "; ".join(verdict.reasons), "; ".join(verdict.findings))
    )
    head = (run_id, row.stage, row.name, row.phase)
    return ",".join(cell(value) for value in (*head, *(row.values[name] for name in STAGE_COLUMNS), *judged))


def is_finished(row: StageRow, picture: Picture) -> bool:
    """Say whether the row can be written while the run goes on; the row of the whole run never can."""
    verdict = picture.verdicts.get(row.stage)
    return row.stage != RUN and verdict is not None and verdict.finished
