"""The values of one row: counters and histograms of its cells, turned into the columns of METRICS.

Knows no I/O and no clock. The one place where nanoseconds become ms and s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from llm_locust.measure.gaps import GapStatistics
from llm_locust.measure.histogram import Histogram
from llm_locust.measure.metrics import LATENCIES, STAGE_COLUMNS
from llm_locust.measure.record import FAILURES, Outcome
from llm_locust.measure.tally import Tally

SATURATED_RATIO = 0.05
WILSON_Z = 1.959963984540054
"""Normal quantile of a two-sided 95 % interval."""

Value = float | int | str | None

_EMPTY = Histogram()


@dataclass(slots=True)
class Source:
    """What a row is computed from. `cell`: requests that started in the window; `window`: what happened in it;
    `shared`: what the stage's names have in common.
    """

    cell: Tally
    window: Tally
    shared: Tally
    window_ns: int = 0
    users: int | None = None
    rate_per_s: float | None = None
    open_loop: bool = False  # the plan says so; of a run without one the requests do
    in_flight_peak: int | None = None
    backlog_max: int = 0
    gaps: GapStatistics = field(default_factory=GapStatistics)
    of_one_name: bool = False
    measured: bool = True  # whether it is a window: arrivals are counted in windows only


def row_values(source: Source) -> dict[str, Value]:
    """Return a value for every column of `STAGE_COLUMNS`; None where a metric is absent."""
    values: dict[str, Value] = dict.fromkeys(STAGE_COLUMNS)
    for metric in LATENCIES:
        columns = metric.columns
        values.update(zip(columns, _distribution(source.cell.histograms.get(metric.name, _EMPTY)), strict=True))
    for part in (_counts, _rates, _tokens, _schedule, _goodput, _validity):
        values.update(part(source, values))
    return values


def wilson(good: int, judged: int) -> tuple[float, float]:
    """Return the Wilson score interval of a share at 95 %; `judged` is at least 1."""
    share, square = good / judged, WILSON_Z * WILSON_Z
    middle = share + square / (2 * judged)
    half = WILSON_Z * math.sqrt(share * (1 - share) / judged + square / (4 * judged * judged))
    scale = 1 + square / judged
    return max((middle - half) / scale, 0.0), min((middle + half) / scale, 1.0)


def _distribution(samples: Histogram) -> list[Value]:
    """Return the statistics in the order of STATISTICS; samples are in millionths of the unit."""
    mean, least, most = samples.mean, samples.minimum, samples.maximum
    numbers = [mean, least, *samples.quantiles((0.5, 0.9, 0.95, 0.99)), most]
    return [samples.count, *(None if number is None else number / 1e6 for number in numbers)]


def _counts(source: Source, _: dict[str, Value]) -> dict[str, Value]:
    counts = source.cell.counts
    outcomes = {outcome: counts[f"outcome:{outcome.value}"] for outcome in Outcome}
    ok = outcomes[Outcome.OK]
    failed = sum(outcomes[outcome] for outcome in FAILURES)
    reasons = sorted((-n, key.removeprefix("finish:")) for key, n in counts.items() if key.startswith("finish:"))
    return {
        "users": source.users,
        "window_s": source.window_ns / 1e9 if source.window_ns else None,
        "requests_started": source.window.counts["started"],
        "requests_ok": ok,
        "requests_failed": failed,
        "requests_unfinished": outcomes[Outcome.UNFINISHED],
        "error_ratio": _per(failed, ok + failed),
        "short_outputs": counts["ok:short"],
        "bursts": counts["ok:bursts"],
        "ttft_upper_bounds": counts["ok:upper_bounds"],
        **{f"outcome_{outcome.value}": n for outcome, n in outcomes.items()},
        "finish_reasons": ", ".join(f"{reason}={-n}" for n, reason in reasons) or None,
    }


def _rates(source: Source, _: dict[str, Value]) -> dict[str, Value]:
    counts, booked = source.cell.counts, source.window.counts
    window_s = source.window_ns / 1e9
    lows, highs = source.cell.lows, source.cell.highs
    span_s = (highs["end"] - lows["start"]) / 1e9 if "start" in lows else 0.0
    input_known = counts["ok:input_tokens:requests"] or booked["input_tokens"]
    output_known = counts["ok:output_tokens:requests"]
    e2e = source.cell.histograms.get("e2e_ms", _EMPTY)
    return {
        "request_throughput_per_s": _per(booked["ok"], window_s),
        "output_tok_per_s": _per(booked["output_tokens"], window_s),
        "completed_output_tok_per_s": _per(counts["ok:output_tokens"], span_s) if output_known else None,
        "input_tok_per_s": _per(booked["input_tokens"], window_s) if input_known else None,
        "total_tok_per_s": _per(booked["input_tokens"] + booked["output_tokens"], window_s) if input_known else None,
        "completed_total_tok_per_s": _per(counts["ok:input_tokens"] + counts["ok:output_tokens"], span_s)
        if output_known and counts["ok:input_tokens:requests"]
        else None,
        "span_s": span_s or None,
        "e2e_speed_tok_per_s": _per(counts["ok:e2e_tokens"], e2e.total / 1e9),
        "concurrency_mean": _per(booked["in_flight_ns"], source.window_ns),
        "concurrency_peak": source.in_flight_peak,
    }


def _tokens(source: Source, _: dict[str, Value]) -> dict[str, Value]:
    counts = source.cell.counts
    return {
        "output_tokens": _known(source, "output_tokens"),
        "output_tokens_mean": _mean(source, "output_tokens"),
        "output_tokens_min": source.cell.lows.get("output_tokens"),
        "output_tokens_requested_mean": _mean(source, "output_tokens_requested"),
        "input_tokens": _known(source, "input_tokens"),
        "input_tokens_mean": _mean(source, "input_tokens"),
        "input_tokens_requested_mean": _mean(source, "input_tokens_requested"),
        "cached_tokens": _known(source, "cached_tokens"),
        "cached_ratio": _per(counts["ok:cached_tokens"], counts["ok:input_tokens"])
        if counts["ok:cached_tokens:requests"]
        else None,
        "reasoning_tokens": _known(source, "reasoning_tokens"),
        "tokens_per_chunk": _per(counts["ok:streamed_tokens"], counts["ok:chunks"]),
        "tokens_from_usage": counts["source:usage"],
        "tokens_from_tokenizer": counts["source:tokenizer"],
        "tokens_from_chunks": counts["source:chunks"],
    }


def _schedule(source: Source, _: dict[str, Value]) -> dict[str, Value]:
    counts, shared = source.cell.counts, source.shared.counts
    backoff = {"backoff_s": None if source.of_one_name else counts["backoff_ns"] / 1e9}
    if not (source.open_loop or counts["scheduled"] or counts["arrivals_due"]):
        return {"load": "closed loop", **backoff}
    own = {
        "load": "open loop",
        "rate_requested_per_s": source.rate_per_s,
        "rate_achieved_per_s": _per(source.window.counts["started"], source.window_ns / 1e9),
        "arrival_gap_mean_ms": source.gaps.mean_ms,
        "arrival_gap_cv": source.gaps.variation,
        **backoff,
    }
    if source.of_one_name or not source.measured:
        return own
    cap_reached = _per(shared["cap_reached_ns"], shared["observed_ns"])
    return {
        **own,
        "arrivals_due": counts["arrivals_due"],
        "arrivals_started": counts["arrivals_started"],
        "arrivals_unstarted": counts["arrivals_unstarted"],
        "unissued": counts["unissued"],
        "backlog_max": source.backlog_max,
        "cap_reached_ratio": cap_reached,
        "scheduled_lower_bounds": int(counts["arrivals_unstarted"] > 0),
        "saturated": None if cap_reached is None else int(cap_reached > SATURATED_RATIO),
    }


def _goodput(source: Source, _: dict[str, Value]) -> dict[str, Value]:
    counts = source.cell.counts
    judged, good = counts["slo_judged"], counts["slo_good"]
    if not judged:
        return {"slo_judged": 0}
    low, high = wilson(good, judged)
    return {
        "goodput_per_s": _per(source.window.counts["good"], source.window_ns / 1e9),
        "attainment_ratio": good / judged,
        "attainment_low_ratio": low,
        "attainment_high_ratio": high,
        "slo_judged": judged,
    }


def _validity(source: Source, values: dict[str, Value]) -> dict[str, Value]:
    counts = source.cell.counts
    ended = sum(counts[f"outcome:{outcome.value}"] for outcome in Outcome)
    started = source.window.counts["started"]
    sources = [counts[f"ok:source:{name}"] for name in ("usage", "tokenizer", "chunks")]
    e2e_ms = values["e2e_ms_p50"]
    missing = counts["outcome:unfinished"] + counts["arrivals_unstarted"]
    return {
        "late_tokens_ratio": _per(counts["late"], counts["chunks"]),
        "bundled_tokens_ratio": _per(counts["bundled"], counts["chunks"]),
        "broken_records": counts["broken"],
        "clock_steps": counts["clock_steps"],
        "window_e2e_ratio": _per(source.window_ns / 1e6, e2e_ms)
        if isinstance(e2e_ms, float) and source.window_ns
        else None,
        "unfinished_ratio": _per(missing, started),
        "prompts_repeated_ratio": _per(counts["repeated"], ended),
        "input_length_error_ratio": _per(counts["ok:length_error"], counts["ok:length_known"]),
        "token_sources_mixed": int(sum(n > 0 for n in sources) > 1),
        "stamped_by_kernel": counts["stamp:kernel"],
        "stamped_by_user": counts["stamp:user"],
        "stamped_mixed": counts["stamp:mixed"],
    }


def _per(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _known(source: Source, name: str) -> int | None:
    """Return a sum of tokens; absent where no request had the count."""
    return source.cell.counts[f"ok:{name}"] if source.cell.counts[f"ok:{name}:requests"] else None


def _mean(source: Source, name: str) -> float | None:
    return _per(source.cell.counts[f"ok:{name}"], source.cell.counts[f"ok:{name}:requests"])
