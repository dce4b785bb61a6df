"""A run as its summary.json tells it, in the values from which the live outputs are made.

So whatever is made of a run's files afterwards (report, workbook, comparison) is made by the same code as while it ran.
Knows no Locust. Reading is lenient: what an older run did not write is absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from llm_locust.measure.metrics import STAGE_COLUMNS
from llm_locust.measure.slo import Verdict
from llm_locust.measure.snapshot import ALL, RUN, STEADY, Snapshot, StageRow
from llm_locust.outputs.facts import RunFacts, RunState, WorkerFacts
from llm_locust.outputs.picture import Picture, StageVerdict, Validity
from llm_locust.outputs.readers import read_summary
from llm_locust.outputs.rundir import find_run_directory
from llm_locust.outputs.summary import Failure

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """One run. `state` RUNNING: it still goes on, or was killed; then the picture is that of the last flush."""

    directory: Path
    facts: RunFacts
    state: RunState
    picture: Picture
    failures: tuple[Failure, ...]
    not_whole: Mapping[str, str]

    @property
    def stages(self) -> list[StageRow]:
        """The measured stages as wholes, in the order of the plan."""
        return [row for row in self.picture.snapshot.rows if row.name == ALL]


def load_run(path: Path) -> FinishedRun:
    """Read the run that a path names (its directory, `latest`, or a file in it).

    Raises FileNotFoundError where there is none, ValueError where summary.json is not one of ours.
    """
    directory = find_run_directory(path)
    try:
        summary = read_summary(directory)
        return FinishedRun(
            directory=directory,
            facts=_facts(summary),
            state=RunState(summary["state"]),
            picture=_picture(summary),
            failures=tuple(_fill(Failure, failure) for failure in summary["failures"]),
            not_whole=dict(summary.get("files", {}).get("cannot_write", {})),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{directory / 'summary.json'} is no summary of a run: {error!r}") from error


def _facts(summary: Mapping[str, Any]) -> RunFacts:
    return RunFacts(
        run_id=summary["run_id"],
        started=datetime.fromisoformat(summary["started"]),
        host=summary["host"],
        model=summary["model"],
        shape=summary["shape"],
        versions=summary["versions"],
        settings=summary["settings"],
        options={},
        seeds=summary["seeds"],
        repeat_command=summary["repeat_command"],
        server=summary["server"],
        lengths=tuple(summary.get("lengths", ())),
        tags=summary["tags"],
        note=summary["note"],
        workers=tuple(_fill(WorkerFacts, worker) for worker in summary["workers"]),
    )


def _picture(summary: Mapping[str, Any]) -> Picture:
    rows = tuple(map(_row, summary["stages"]))
    excluded = tuple(map(_row, summary["excluded"]))
    totals = {"stage": RUN, "name": ALL, "phase": STEADY, "metrics": summary["totals"] or {}}
    at_epoch_ns = int(datetime.fromisoformat(summary["updated"]).timestamp() * 1000) * 1_000_000
    told = {row["stage"]: row["verdict"] for row in (*summary["excluded"], *summary["stages"])}
    verdicts = {stage: _verdict(verdict) for stage, verdict in told.items() if verdict is not None}
    if summary["verdict"] is not None:
        verdicts[RUN] = _verdict(summary["verdict"])
    slo: dict[str, tuple[Verdict, ...]] = {}
    for clause in summary["slo"]:
        slo[clause["stage"]] = (*slo.get(clause["stage"], ()), _fill(Verdict, clause))
    return Picture(
        snapshot=Snapshot(at_epoch_ns, rows, excluded, _row(totals)),
        verdicts=verdicts,
        slo=slo,
        skipped=summary["skipped"],
    )


def _row(row: Mapping[str, Any]) -> StageRow:
    values = {column: row["metrics"].get(column) for column in STAGE_COLUMNS}
    return StageRow(row["stage"], row["name"], row["phase"], values)


def _verdict(verdict: Mapping[str, Any]) -> StageVerdict:
    return StageVerdict(
        validity=Validity(verdict["validity"]),
        reasons=tuple(verdict["reasons"]),
        findings=tuple(verdict["findings"]),
        finished=bool(verdict["finished"]),
    )


def _fill(kind: type[T], values: Mapping[str, Any]) -> T:
    """Make a value of the keys that it has; others were added by a newer version."""
    known = {field.name for field in fields(kind)}  # type: ignore[arg-type]  # dataclasses only come here
    return kind(**{name: value for name, value in values.items() if name in known})
