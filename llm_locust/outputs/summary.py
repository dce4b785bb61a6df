"""summary.json: the whole run in one document, there from its start and replaced as a whole at each flush.

Knows no files. Names of numbers are those of the metric table; instants are ISO 8601 with their zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from llm_locust.measure.record import FAILURES, Outcome, RequestRecord
from llm_locust.measure.snapshot import StageRow
from llm_locust.outputs.facts import RunFacts, RunState
from llm_locust.outputs.picture import AppliedStage, Picture
from llm_locust.outputs.text import drawn, json_document

FORMAT = 1
"""Raised when a key changes its meaning; keys are added without it."""


@dataclass(slots=True)
class Failure:
    """Failed requests of one outcome and status, with the first one's message."""

    outcome: str
    http_status: int | None
    count: int
    sample: str


class FailureBook:
    """Counts failures of all phases by outcome and status. Bounded: there are few of these."""

    def __init__(self) -> None:
        self._failures: dict[tuple[Outcome, int | None], Failure] = {}

    def add(self, record: RequestRecord) -> None:
        """Take one request; a success leaves no trace."""
        if record.outcome not in FAILURES:
            return
        key = (record.outcome, record.http_status)
        failure = self._failures.get(key)
        if failure is None:
            failure = self._failures[key] = Failure(record.outcome.value, record.http_status, 0, "")
        failure.count += 1
        failure.sample = failure.sample or drawn(record.error)

    def most_frequent_first(self) -> list[Failure]:
        """Return the failures, the most frequent first."""
        return sorted(self._failures.values(), key=lambda failure: -failure.count)


def summary_document(
    run: RunFacts, state: RunState, picture: Picture | None, failures: FailureBook, files: Mapping[str, Any]
) -> bytes:
    """Return summary.json; ``picture`` is None before the first flush."""
    return json_document(
        {
            "format": FORMAT,
            "run_id": run.run_id,
            "state": state.value,
            "started": run.started.isoformat(),
            "updated": _instant(picture.snapshot.at_epoch_ns, run) if picture else run.started.isoformat(),
            "host": run.host,
            "model": run.model,
            "shape": run.shape,
            "tags": run.tags,
            "note": run.note,
            **(_numbers(picture, run) if picture else _NO_NUMBERS),
            "failures": failures.most_frequent_first(),
            "settings": run.settings,
            "seeds": run.seeds,
            "versions": run.versions,
            "server": run.server,
            "lengths": run.lengths,
            "workers": run.workers,
            "repeat_command": run.repeat_command,
            "files": files,
        }
    )


_NO_NUMBERS: Mapping[str, Any] = {
    "verdict": None,
    "slo": [],
    "totals": None,
    "stages": [],
    "excluded": [],
    "skipped": {},
    "applied": [],
}


def _numbers(picture: Picture, run: RunFacts) -> dict[str, Any]:
    snapshot = picture.snapshot
    return {
        "verdict": picture.verdicts.get(snapshot.run.stage),
        "slo": [{"stage": stage, **asdict(clause)} for stage, clauses in picture.slo.items() for clause in clauses],
        "totals": snapshot.run.values,
        "stages": [_stage(row, picture) for row in snapshot.rows],
        "excluded": [_stage(row, picture) for row in snapshot.excluded],
        "skipped": picture.skipped,
        "applied": [_applied(stage, run) for stage in picture.applied],
    }


def _applied(stage: AppliedStage, run: RunFacts) -> dict[str, Any]:
    """Return a stage of the plan with the instants that it really had."""
    instants = {
        name: None if at_epoch_ns is None else _instant(at_epoch_ns, run)
        for name, at_epoch_ns in (
            ("opened", stage.opened_epoch_ns),
            ("steady", stage.steady_epoch_ns),
            ("closed", stage.closed_epoch_ns),
            ("drained", stage.drained_epoch_ns),
        )
    }
    plan = {"stage": stage.stage, "users": stage.users, "rate_per_s": stage.rate_per_s}
    return {**plan, **instants, "ended_by": stage.ended_by, "skipped": stage.skipped, "notes": stage.notes}


def _stage(row: StageRow, picture: Picture) -> dict[str, Any]:
    return {
        "stage": row.stage,
        "name": row.name,
        "phase": row.phase,
        "verdict": picture.verdicts.get(row.stage),
        "metrics": row.values,
    }


def _instant(epoch_ns: int, run: RunFacts) -> str:
    """Return the instant in the zone in which the run was started."""
    return datetime.fromtimestamp(epoch_ns // 1_000_000 / 1000, UTC).astimezone(run.started.tzinfo).isoformat()
