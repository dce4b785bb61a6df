"""THE metric table: every number that is printed anywhere is a row of it.

A metric's name is the base of its columns: a latency has one per statistic (`ttft_ms_p99`), anything
else has one of the metric's own name. Screens, files and the SLO grammar read names, units and
formulas here. Order is the order in tables and files; a column is never renamed, only added at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from llm_locust.measure.record import Outcome

Level = Literal["request", "stage"]
Better = Literal["low", "high", "none"]
Kind = Literal["latency", "rate", "count", "ratio", "text"]

STATISTICS = ("count", "mean", "min", "p50", "p90", "p95", "p99", "max")
"""What is shown of every distribution; percentiles are nearest-rank, relative error at most 0.25 %."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `kind` latency means a distribution with a column per statistic, whatever its unit.

    `field` is the attribute of `RequestRecord` that its samples come from (latencies of one request).
    """

    name: str
    title: str
    unit: str
    formula: str
    level: Level = "stage"
    better: Better = "none"
    kind: Kind = "count"
    field: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of this metric in stages.csv and in `StageRow.values`."""
        if self.kind == "latency":
            return tuple(f"{self.name}_{statistic}" for statistic in STATISTICS)
        return (self.name,)


def _latency(
    name: str, title: str, formula: str, *, field: str | None = None, better: Better = "low", unit: str = "ms"
) -> Metric:
    return Metric(name, title, unit, formula, "request", better, "latency", field)


def _count(name: str, title: str, formula: str, unit: str = "", better: Better = "none") -> Metric:
    return Metric(name, title, unit, formula, "stage", better, "count")


def _rate(name: str, title: str, unit: str, formula: str, better: Better = "high") -> Metric:
    return Metric(name, title, unit, formula, "stage", better, "rate")


def _ratio(name: str, title: str, formula: str, better: Better = "low") -> Metric:
    return Metric(name, title, "ratio", formula, "stage", better, "ratio")


def _text(name: str, title: str, formula: str) -> Metric:
    return Metric(name, title, "", formula, "stage", "none", "text")


LATENCIES: tuple[Metric, ...] = (
    _latency("ttft_ms", "TTFT", "first_token − start", field="ttft_ns"),
    _latency("ttft_scheduled_ms", "TTFT from schedule", "first_token − scheduled", field="ttft_scheduled_ns"),
    _latency("ttfa_ms", "TTFA", "first arrival with answer text (not reasoning) − start", field="ttfa_ns"),
    _latency("e2e_ms", "E2E latency", "last_token − start", field="e2e_ns"),
    _latency("e2e_scheduled_ms", "E2E from schedule", "last_token − scheduled", field="e2e_scheduled_ns"),
    _latency(
        "tpot_ms",
        "TPOT",
        "(last_token − first_token) / (n − k); n: streamed output tokens, k: tokens of the first event, "
        "1 where not known; absent when n ≤ k or when everything came in one read",
        field="tpot_ns",
    ),
    _latency("second_token_ms", "Second token", "second arrival − first_token", field="second_token_ns"),
    _latency("icl_ms", "ICL, inter-chunk latency", "each gap between consecutive arrivals (per choice)"),
    _latency(
        "itl_ms",
        "ITL, inter-token latency",
        "the gap divided by the tokens that arrived with it, once per token; only where the tokens of each chunk "
        "are known or every chunk is one token",
    ),
    _latency(
        "user_wait_ms",
        "User wait",
        "the part of start − scheduled in which all users were busy",
        field="user_wait_ns",
    ),
    _latency(
        "dispatch_lag_ms",
        "Dispatch lag",
        "the part of start − scheduled in which a user was free",
        field="dispatch_lag_ns",
    ),
    _latency("send_lag_ms", "Send lag", "sent − start − connect", field="send_lag_ns"),
    _latency(
        "connect_ms", "Connect", "connection set-up inside the request; absent on a reused one", field="connect_ns"
    ),
    _latency("headers_ms", "Headers", "headers − start", field="headers_ns"),
    _latency("stream_end_ms", "Stream end", "stream_end − start", field="stream_end_ns"),
    _latency("normalized_ms_per_token", "Normalized latency", "E2E / n", unit="ms/tok"),
    _latency("output_speed_tok_per_s", "Output speed (per request)", "1000 / TPOT in ms", unit="tok/s", better="high"),
    _latency("failed_ms", "Time to failure", "end − start of failed requests"),
    _latency("failed_ttft_ms", "TTFT of failed requests", "first_token − start of failed requests"),
    _latency("unstarted_wait_ms", "Wait of unstarted arrivals", "the stage's stop − scheduled"),
)

_COUNTS: tuple[Metric, ...] = (
    _count("users", "Users", "users asked for", better="none"),
    Metric("window_s", "Window", "s", "length of the steady phase", "stage", "none", "count"),
    _count("requests_started", "Started", "requests whose start lies in the window"),
    _count("requests_ok", "OK", "requests that started in the window and ended ok", better="high"),
    _count("requests_failed", "Failed", "requests that started in the window and failed", better="low"),
    _count("requests_unfinished", "Unfinished", "requests that started in the window and were ended by the stop"),
    _ratio("error_ratio", "Error rate", "failed / (ok + failed)"),
    _count("short_outputs", "Short", "ok requests with fewer tokens than asked for", better="low"),
    _count("bursts", "Bursts", "ok requests whose tokens all came in one read (no TPOT)", better="low"),
    _count("ttft_upper_bounds", "TTFT upper bounds", "ok requests whose first token came in a late read"),
)

_RATES: tuple[Metric, ...] = (
    _rate("request_throughput_per_s", "Requests/s", "1/s", "ok requests finished in the window / window"),
    _rate("output_tok_per_s", "Output tok/s", "tok/s", "tokens that arrived in the window / window"),
    _rate(
        "completed_output_tok_per_s",
        "Completed output tok/s",
        "tok/s",
        "output tokens of ok requests / (last end − first start)",
    ),
    _rate("input_tok_per_s", "Input tok/s", "tok/s", "input tokens, counted at the first token / window"),
    _rate("total_tok_per_s", "Total tok/s", "tok/s", "(input + output tokens in the window) / window"),
    _rate(
        "completed_total_tok_per_s",
        "Completed total tok/s",
        "tok/s",
        "(input + output tokens of ok requests) / (last end − first start)",
    ),
    Metric("span_s", "Span", "s", "last end − first start of the stage's requests", "stage", "low", "count"),
    _rate(
        "e2e_speed_tok_per_s",
        "Speed over E2E",
        "tok/s",
        "output tokens of ok requests / the sum of their E2E latencies",
    ),
    _rate("concurrency_mean", "In flight", "", "time-average of requests in flight in the window", "none"),
    _count("concurrency_peak", "In flight, peak", "most requests in flight; each worker's peak of a second added up"),
)

_TOKENS: tuple[Metric, ...] = (
    _count("output_tokens", "Output tokens", "sum over ok requests", "tok"),
    _count("output_tokens_mean", "Output tokens, mean", "mean over ok requests", "tok"),
    _count("output_tokens_min", "Output tokens, least", "least of ok requests", "tok"),
    _count("output_tokens_requested_mean", "Output tokens asked for", "mean over ok requests", "tok"),
    _count("input_tokens", "Input tokens", "sum over ok requests", "tok"),
    _count("input_tokens_mean", "Input tokens, mean", "mean over ok requests", "tok"),
    _count("input_tokens_requested_mean", "Input tokens asked for", "mean over ok requests", "tok"),
    _count("cached_tokens", "Cached tokens", "input tokens that the server answered from its prefix cache", "tok"),
    _ratio("cached_ratio", "Cached share", "cached tokens / input tokens", "none"),
    _count("reasoning_tokens", "Reasoning tokens", "sum over ok requests", "tok"),
    _count("tokens_per_chunk", "Tokens per chunk", "streamed output tokens / arrivals, ok requests", "tok"),
    _count("tokens_from_usage", "Counted by usage", "requests whose output tokens the server stated"),
    _count("tokens_from_tokenizer", "Counted by tokenizer", "requests whose whole text was tokenized"),
    _count("tokens_from_chunks", "Counted by chunks", "requests whose chunks were counted: an estimate"),
)

_SCHEDULE: tuple[Metric, ...] = (
    _text("load", "Load", "closed loop: users are the load; open loop: an arrival schedule is"),
    _rate("rate_requested_per_s", "Rate asked for", "1/s", "the stage's rate", "none"),
    _rate("rate_achieved_per_s", "Rate achieved", "1/s", "requests started in the window / window", "none"),
    Metric("arrival_gap_mean_ms", "Arrival gap", "ms", "mean gap between consecutive starts in the window"),
    _ratio("arrival_gap_cv", "Arrival gap CV", "standard deviation / mean of the gaps between starts", "none"),
    _count("arrivals_due", "Due", "arrivals of the schedule that fell due in the stage"),
    _count("arrivals_started", "Due and started", "of these, started"),
    _count("arrivals_unstarted", "Unstarted", "of these, dropped at the stage's stop", better="low"),
    _count("unissued", "Unissued", "fell due at a worker that was lost", better="low"),
    _count(
        "backlog_max",
        "Backlog, most",
        "most arrivals that waited at one time; each worker's most added up",
        better="low",
    ),
    _ratio("cap_reached_ratio", "At the cap", "share of the window with all users busy"),
    _count("scheduled_lower_bounds", "≥", "1: arrivals were dropped, so from-schedule percentiles are lower bounds"),
    _count("saturated", "SATURATED", "1: all users were busy for over 5 % of the window"),
    Metric("backoff_s", "Back-off", "s", "time users paused after a rejection", "stage", "low", "count"),
)

_GOODPUT: tuple[Metric, ...] = (
    _rate("goodput_per_s", "Goodput", "1/s", "ok requests in the window that meet every per-request SLO / window"),
    _ratio("attainment_ratio", "Attainment", "good requests / judged ones", "high"),
    _ratio("attainment_low_ratio", "Attainment, low", "Wilson interval at 95 %, lower end", "high"),
    _ratio("attainment_high_ratio", "Attainment, high", "Wilson interval at 95 %, upper end", "high"),
    _count("slo_judged", "Judged", "ok and failed requests, and unfinished or unstarted ones already over a limit"),
)

_VALIDITY: tuple[Metric, ...] = (
    _ratio("late_tokens_ratio", "Late tokens", "arrivals in late reads / arrivals"),
    _ratio("bundled_tokens_ratio", "Bundled tokens", "arrivals that were sent together / arrivals", "none"),
    _count("broken_records", "Broken records", "records that violate 0 ≤ headers ≤ ttft ≤ e2e ≤ stream_end"),
    _count("clock_steps", "Clock steps", "requests under way while the wall clock stepped"),
    _ratio("window_e2e_ratio", "Window / E2E", "window / median E2E", "high"),
    _ratio("unfinished_ratio", "Unfinished share", "(unfinished + unstarted) / started"),
    _ratio("prompts_repeated_ratio", "Repeated prompts", "requests whose prompt was sent before / requests"),
    _ratio("input_length_error_ratio", "Prompt length error", "|input tokens / asked for − 1|, over ok requests"),
    _count("token_sources_mixed", "Mixed token sources", "1: output tokens were counted in more than one way"),
    _count("stamped_by_kernel", "Kernel times", "requests whose reads all had a kernel stamp"),
    _count("stamped_by_user", "User times", "requests whose reads had none"),
    _count("stamped_mixed", "Mixed times", "requests of which some reads had one"),
)

_OUTCOMES: tuple[Metric, ...] = (
    *(
        _count(f"outcome_{outcome.value}", outcome.value, f"requests with outcome {outcome.value}")
        for outcome in Outcome
    ),
    _text("finish_reasons", "Finish reasons", "raw finish reasons of ended requests with their counts"),
)

METRICS: tuple[Metric, ...] = (
    *_COUNTS,
    *_RATES,
    *LATENCIES,
    *_TOKENS,
    *_SCHEDULE,
    *_GOODPUT,
    *_VALIDITY,
    *_OUTCOMES,
)
"""Every metric, in the order of tables and files."""

BY_NAME: dict[str, Metric] = {metric.name: metric for metric in METRICS}

STAGE_COLUMNS: tuple[str, ...] = tuple(column for metric in METRICS for column in metric.columns)
"""The columns of stages.csv after stage, name and phase; the keys of `StageRow.values`."""
