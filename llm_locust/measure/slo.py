"""Service level objectives: what a text like `ttft p99 < 2s; goodput(ttft < 2s) > 95%` demands, and whether it was met.

Knows no I/O, no clock and no Locust. Rules of goodput: docs/metrics.md section 4. With an arrival schedule `ttft`
and `e2e` mean the from-schedule values; `ttft_start` and `e2e_start` always those from the request's start.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from llm_locust.measure.metrics import BY_NAME, Metric
from llm_locust.measure.record import FAILURES, Outcome, RequestRecord

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}

GOODPUT = "goodput"
_FROM_SCHEDULE = {"ttft": "ttft_scheduled_ms", "e2e": "e2e_scheduled_ms"}
_ELAPSING = frozenset({"ttft", "ttft_start", "ttfa", "e2e", "e2e_start"})
"""Limits that a request under way has missed as soon as it has run for longer."""
_WAITING = frozenset({"ttft", "e2e", "user_wait"})
"""Limits that an arrival has missed as soon as it has waited for longer."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One comparison. `name` is the SLO grammar's, `value` is in the metric's unit."""

    name: str
    metric: Metric
    comparison: str
    value: float

    def holds(self, got: float) -> bool:
        """Say whether a value in the metric's unit meets the limit."""
        return OPERATORS[self.comparison](got, self.value)

    def measured(self, scheduled: bool) -> Metric:
        """Return the metric that is compared; with a schedule the from-schedule one."""
        return BY_NAME[_FROM_SCHEDULE[self.name]] if scheduled and self.name in _FROM_SCHEDULE else self.metric


@dataclass(frozen=True, slots=True)
class Clause:
    """One demand on a stage. `text` is its own part of the SLO; `wanted` what stands right of the metric."""

    text: str
    wanted: str
    limit: Limit
    statistic: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a clause. `got` is in `unit`, None where there was no sample; `n` counts the samples."""

    clause: str
    metric: str
    unit: str
    wanted: str
    got: float | None
    n: int
    passed: bool


@dataclass(frozen=True, slots=True)
class Slo:
    """The parsed objectives: clauses on a stage, and the limits that each request is judged by."""

    text: str
    clauses: tuple[Clause, ...]
    request_limits: tuple[Limit, ...] = ()

    def request_good(self, record: RequestRecord) -> bool | None:
        """Judge one request by the per-request limits; None where it is not judged.

        Not judged: everything without limits, and what the stop ended before it had missed one.
        """
        if not self.request_limits:
            return None
        if record.outcome in FAILURES:
            return False
        if record.outcome is Outcome.UNFINISHED:
            return False if any(_missed_already(limit, record) for limit in self.request_limits) else None
        return all(_met(limit, record) for limit in self.request_limits)

    def missed_by_waiting(self, wait_ns: int) -> bool:
        """Say whether an arrival that was never started has missed a limit by its wait alone."""
        return any(limit.name in _WAITING and not _may_still_hold(limit, wait_ns) for limit in self.request_limits)

    def verdicts(self, values: Mapping[str, float | int | str | None]) -> tuple[Verdict, ...]:
        """Judge every clause by the values of a `StageRow`; a clause without a sample has failed."""
        return tuple(_verdict(clause, values) for clause in self.clauses)


def _verdict(clause: Clause, values: Mapping[str, float | int | str | None]) -> Verdict:
    limit = clause.limit
    metric = limit.measured(scheduled=values["load"] == "open loop")
    if clause.statistic is not None:
        column, samples = f"{metric.name}_{clause.statistic}", values[f"{metric.name}_count"]
    elif limit.name == GOODPUT:
        column, samples = metric.name, values["slo_judged"]
    else:
        column, samples = metric.name, _number(values["requests_ok"]) + _number(values["requests_failed"])
    value = values[column]
    got = float(value) if isinstance(value, (int, float)) else None
    n = int(_number(samples))
    passed = got is not None and n > 0 and limit.holds(got)
    return Verdict(clause.text, column, metric.unit, clause.wanted, got if n else None, n, passed)


def _number(value: float | int | str | None) -> float:
    return value if isinstance(value, (int, float)) else 0


def _value_ns(limit: Limit, record: RequestRecord) -> float | None:
    field = limit.measured(record.scheduled_epoch_ns is not None).field
    return None if field is None else getattr(record, field)


def _met(limit: Limit, record: RequestRecord) -> bool:
    """Judge an ok request: what is absent by definition meets its limit, but a burst's TPOT does not."""
    value_ns = _value_ns(limit, record)
    if value_ns is None:
        return not (limit.name == "tpot" and record.burst)
    return limit.holds(value_ns / 1e6)


def _missed_already(limit: Limit, record: RequestRecord) -> bool:
    """Say whether a request that the stop ended had missed the limit by then, whatever had come after."""
    value_ns = _value_ns(limit, record)
    if limit.name in _ELAPSING and (value_ns is None or limit.name in ("e2e", "e2e_start")):
        elapsed_ns = record.stream_end_ns or 0
        if limit.name in _FROM_SCHEDULE and record.scheduled_epoch_ns is not None:
            elapsed_ns += record.start_epoch_ns - record.scheduled_epoch_ns
        return not _may_still_hold(limit, elapsed_ns)
    # A mean over tokens may yet fall; a duration that is complete stays.
    return value_ns is not None and limit.name != "tpot" and not limit.holds(value_ns / 1e6)


def _may_still_hold(limit: Limit, elapsed_ns: int) -> bool:
    return limit.comparison.startswith(">") or limit.holds(elapsed_ns / 1e6)
