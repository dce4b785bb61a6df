"""What the page is told while a run goes on: one answer a refresh, small, encoded once however many pages look.

Knows no I/O, no clock and no Locust. Everything is a function of pictures, seconds and records that it is handed;
numbers of stages are those of stages.csv, unrounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from llm_locust.measure.metrics import METRICS
from llm_locust.measure.record import Outcome, RequestRecord
from llm_locust.measure.rows import Value
from llm_locust.measure.snapshot import ALL, StageRow
from llm_locust.outputs.facts import RunFacts, RunState
from llm_locust.outputs.heat import HEAT_LOWEST_MS, HEAT_RATIO
from llm_locust.outputs.history import POINT_COLUMNS, History
from llm_locust.outputs.picture import Picture, Validity
from llm_locust.outputs.sample import Sample
from llm_locust.outputs.summary import Failure
from llm_locust.outputs.text import json_bytes
from llm_locust.outputs.timeline_csv import TimelineRow

_LATENCIES = ("ttft_ms", "ttft_scheduled_ms", "ttfa_ms", "tpot_ms", "itl_ms", "e2e_ms", "e2e_scheduled_ms")

LIVE_COLUMNS: tuple[str, ...] = (
    "load",
    "users",
    "rate_requested_per_s",
    "rate_achieved_per_s",
    "window_s",
    "requests_started",
    "requests_ok",
    "requests_failed",
    "requests_unfinished",
    "error_ratio",
    "short_outputs",
    *(f"{name}_{statistic}" for name in _LATENCIES for statistic in ("count", "mean", "p50", "p90", "p99")),
    "request_throughput_per_s",
    "output_tok_per_s",
    "input_tok_per_s",
    "total_tok_per_s",
    "concurrency_mean",
    "input_tokens_mean",
    "output_tokens_mean",
    "goodput_per_s",
    "attainment_ratio",
    "arrivals_unstarted",
    "scheduled_lower_bounds",
    "saturated",
    "finish_reasons",
)
"""The columns of stages.csv that the page is told, in this order."""

_FORMULAS = {
    column: {"title": metric.title, "unit": metric.unit, "formula": metric.formula}
    for metric in METRICS
    for column in metric.columns
    if column in LIVE_COLUMNS
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerNow:
    """One process that sends requests, as its last report showed it; None is not known."""

    worker: str
    host: str
    timestamp_source: str
    users: int | None = None
    in_flight: int | None = None
    output_tok_per_s: float | None = None
    loop_lag_p99_ms: float | None = None
    cpu_percent: float | None = None
    report_age_s: float | None = None
    clock_offset_ms: float | None = None
    lost: bool = False


class LiveHistory:
    """One run (or the part of it since a reset) as the page sees it. ``key`` tells it from all others of the process.

    `add` costs about a ms per second of the run that it is handed; what only a page needs is made when one asks.
    """

    def __init__(self, run: RunFacts, key: str) -> None:
        self.run = run
        self._key = key
        self._history = History()
        self._sample = Sample()
        self._latest: Callable[[], dict[str, Any]] = dict
        self._now: msgspec.Raw | None = None
        self._adds = 0
        self._cached: dict[int, bytes] = {}

    def add(
        self,
        picture: Picture,
        seconds: Iterable[TimelineRow],
        workers: Sequence[WorkerNow],
        records: Iterable[RequestRecord] = (),
        failures: Sequence[Failure] = (),
        state: RunState = RunState.RUNNING,
    ) -> None:
        """Take what is new since the last call, and the picture as it is now."""
        for row in seconds:
            self._history.add(row)
        self._sample.add(records)
        self._adds += 1
        self._cached.clear()
        self._latest = lambda: self._document(picture, workers, failures, state)
        self._now = None

    def answer(self, token: str = "") -> bytes:
        """Return JSON: what changed since the answer that had this token; everything for a token of another run."""
        if self._adds == 0:  # begun, and nothing to show yet: pages of the run before drop what they have
            return json_bytes({"token": self._token, "whole": True, "now": None})
        adds, changes = self._place(token)
        if adds == self._adds:
            return json_bytes({"token": self._token, "whole": False, "now": None})
        answer = self._cached.get(changes)
        if answer is None:
            if len(self._cached) >= 16:  # readers that come and go; each answer is made again when asked for
                self._cached.clear()
            answer = self._cached[changes] = self._changed_since(changes)
        return answer

    def distributions(self) -> bytes:
        """Return JSON: the bounded sample of requests by stage."""
        return json_bytes({"run_id": self.run.run_id, "stages": self._sample.told()})

    @property
    def _token(self) -> str:
        return f"{self._key}.{self._adds}.{self._history.changes}"

    def _place(self, token: str) -> tuple[int, int]:
        """How far a token's owner has read; (-1, 0): nothing."""
        key, *numbers = token.split(".")
        if key != self._key or len(numbers) != 2 or not all(number.isdecimal() for number in numbers):
            return -1, 0
        adds, changes = map(int, numbers)
        return adds, changes

    def _changed_since(self, changes: int) -> bytes:
        if self._now is None:
            self._now = msgspec.Raw(json_bytes(self._latest()))
        return json_bytes(
            {
                "token": self._token,
                "whole": changes == 0,
                "now": self._now,
                "history": {
                    "columns": POINT_COLUMNS,
                    "heat": {"lowest_ms": HEAT_LOWEST_MS, "ratio": HEAT_RATIO},
                    "points": list(self._history.since(changes)),
                    "bands": [[band.stage, band.phase, band.from_s, band.until_s] for band in self._history.bands],
                },
            }
        )

    def _document(
        self, picture: Picture, workers: Sequence[WorkerNow], failures: Sequence[Failure], state: RunState
    ) -> dict[str, Any]:
        snapshot = picture.snapshot
        best = best_stage(picture)
        return {
            "run": _run(self.run),
            "state": state.value,
            "at_s": snapshot.at_epoch_ns / 1e9,
            "progress": picture.progress,
            "recent": self._history.recent(),
            "columns": LIVE_COLUMNS,
            "formulas": _FORMULAS,
            "rows": [_row(row, picture, self.run, best) for row in snapshot.rows],
            "excluded": [_row(row, picture, self.run, None) for row in snapshot.excluded if row.name == ALL],
            "total": _row(snapshot.run, picture, self.run, None),
            "skipped": picture.skipped,
            "failures": failures,
            "workers": workers,
        }


def best_stage(picture: Picture) -> str | None:
    """Return the stage with the most output tok/s of those that meet every objective and can be trusted."""
    candidates = {
        row.stage: tok_per_s
        for row in picture.snapshot.rows
        if row.name == ALL
        and isinstance(tok_per_s := row.values["output_tok_per_s"], int | float)
        and meets_slo(picture, row.stage)
        and (verdict := picture.verdicts.get(row.stage)) is not None
        and verdict.validity is not Validity.INVALID
    }
    return max(candidates, key=lambda stage: candidates[stage], default=None)


def meets_slo(picture: Picture, stage: str) -> bool | None:
    """Say whether a stage meets every objective; None where it has none."""
    clauses = picture.slo.get(stage)
    return all(clause.passed for clause in clauses) if clauses else None


def economy(run: RunFacts, output_tok_per_s: Value) -> dict[str, float | None]:
    """Return output tok/s per GPU (tag gpus) and the cost of a million output tokens (with a price per GPU hour)."""
    gpus = _number(run.tags.get("gpus"))
    price = _number(run.settings.get("price_per_gpu_hour"))
    if not gpus or not isinstance(output_tok_per_s, int | float) or not output_tok_per_s:
        return {"tok_per_s_per_gpu": None, "cost_per_million_tokens": None}
    cost = None if price is None else price * gpus * 1e6 / (3600 * output_tok_per_s)
    return {"tok_per_s_per_gpu": output_tok_per_s / gpus, "cost_per_million_tokens": cost}


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


def _run(run: RunFacts) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "started": run.started.isoformat(),
        "host": run.host,
        "model": run.model,
        "shape": run.shape,
        "note": run.note,
        "tags": run.tags,
        "seeds": run.seeds,
        "versions": run.versions,
    }


def _row(row: StageRow, picture: Picture, run: RunFacts, best: str | None) -> dict[str, Any]:
    verdict = picture.verdicts.get(row.stage)
    values = row.values
    return {
        "stage": row.stage,
        "name": row.name,
        "phase": row.phase,
        "values": [values[column] for column in LIVE_COLUMNS],
        "outcomes": {outcome.value: n for outcome in Outcome if (n := values[f"outcome_{outcome.value}"])},
        "verdict": None if verdict is None else asdict(verdict),
        "slo": picture.slo.get(row.stage, ()) if row.name == ALL else (),
        "meets_slo": meets_slo(picture, row.stage),
        "best": row.stage == best,
        **economy(run, values["output_tok_per_s"]),
    }
