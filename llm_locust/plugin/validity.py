"""Can the measurement be trusted? One rule per row; the verdict of a stage has every reason with its figures.

Pure. It judges the measurement, never the server: a slow server is a finding, a slow client is a fault.
The rules are those of docs/metrics.md, "Validity of the measurement"; a figure that is None is not known
and gives no reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from llm_locust.measure.rows import Value
from llm_locust.outputs.picture import StageVerdict, Validity

LATE_TOKENS_MOST = 0.01
BUNDLED_TOKENS_MOST = 0.50
LOOP_LAG_MOST_MS = 5.0
DISPATCH_LAG_MOST_MS, DISPATCH_LAG_MOST_OF_TTFT = 2.0, 0.05
SEND_LAG_MOST_MS, SEND_LAG_MOST_OF_TTFT = 1.0, 0.01
RATE_OFF_MOST = 0.05
CPU_MOST_PERCENT = 90.0
WINDOW_LEAST_E2E = 3.0
UNFINISHED_MOST = 0.05
REPEATED_PROMPTS_MOST = 0.05
PROMPT_LENGTH_OFF_MOST = 0.05
CLOCK_UNCERTAINTY_MOST_MS = 5.0
IN_FLIGHT_LEAST = 0.8
NOTHING_MEASURED = "nothing was measured: no request began in a window, ramps and warm-ups do not count"
NOTHING_BEGAN = "no request began in its window: it has rates, and no latencies"
_SEVERITY = (Validity.VALID, Validity.SUSPECT, Validity.INVALID)


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What the metrics of a stage do not say: the workers, their reports, their clocks; None is "not known"."""

    reports_missing: int = 0
    totals_that_differ: tuple[str, ...] = ()
    workers_lost: tuple[str, ...] = ()
    users_replaced: bool = True
    loop_lag_p99_ms: float | None = None
    cpu_percent: float | None = None  # of the busiest worker
    clock_steps: int = 0  # seen by any process
    clock_uncertainty_ms: float | None = None  # of the least certain worker
    notes: tuple[str, ...] = ()  # what the conductor noted while the stage ran
    whole_requests: bool = False  # the window is made of its requests: a batch, or one user that asks so many
    ended: bool = False  # all that was to come of it has come


class Figures:
    """The figures of one stage: its metrics (`StageRow.values`), and its circumstances."""

    def __init__(self, values: Mapping[str, Value], circumstances: Circumstances) -> None:
        self._values = values
        self.around = circumstances

    def number(self, metric: str) -> float | None:
        """The value of a metric, where it has one."""
        value = self._values.get(metric)
        return value if isinstance(value, (int, float)) else None

    def count(self, metric: str) -> int:
        """The value of a count; 0 where there is none."""
        return int(self.number(metric) or 0)


Rule = Callable[[Figures], str | None]


def judge(values: Mapping[str, Value], circumstances: Circumstances) -> StageVerdict:
    """Give the verdict of one stage (its findings about the server too), from its row's values."""
    figures = Figures(values, circumstances)
    invalid = [reason for rule in INVALID_RULES if (reason := rule(figures))]
    suspect = [reason for rule in SUSPECT_RULES if (reason := rule(figures))]
    findings = (*(finding for rule in FINDINGS if (finding := rule(figures))), *circumstances.notes)
    validity = Validity.INVALID if invalid else Validity.SUSPECT if suspect else Validity.VALID
    return StageVerdict(validity=validity, reasons=tuple(invalid + suspect), findings=findings)


def worst_of(verdicts: Mapping[str, StageVerdict], run_reasons: Iterable[str] = ()) -> StageVerdict:
    """Give the verdict of the run: that of its worst stage; each of `run_reasons` alone makes it INVALID."""
    at_large = tuple(run_reasons)
    worst = max((verdict.validity for verdict in verdicts.values()), key=_SEVERITY.index, default=Validity.VALID)
    reasons = [f"{stage}: {reason}" for stage, verdict in verdicts.items() for reason in verdict.reasons]
    findings = [f"{stage}: {finding}" for stage, verdict in verdicts.items() for finding in verdict.findings]
    return StageVerdict(
        validity=Validity.INVALID if at_large else worst, reasons=(*at_large, *reasons), findings=tuple(findings)
    )


def _reports_missing(f: Figures) -> str | None:
    return f"{f.around.reports_missing} reports of workers lost" if f.around.reports_missing else None


def _totals(f: Figures) -> str | None:
    differ = f.around.totals_that_differ
    return f"totals of workers and master differ: {', '.join(differ)}" if differ else None


def _broken_records(f: Figures) -> str | None:
    broken = f.count("broken_records")
    return f"{broken} records violate 0 ≤ headers ≤ TTFT ≤ E2E ≤ stream end" if broken else None


def _worker_lost(f: Figures) -> str | None:
    if not f.around.workers_lost or f.around.users_replaced:
        return None
    return f"lost without its users replaced: {', '.join(f.around.workers_lost)}"


def _nothing_measured(f: Figures) -> str | None:
    ended = f.count("requests_ok") + f.count("requests_failed") + f.count("requests_unfinished")
    if not f.around.ended or ended or f.count("arrivals_unstarted"):
        return None
    return NOTHING_BEGAN if f.number("concurrency_mean") else NOTHING_MEASURED


def _late_tokens(f: Figures) -> str | None:
    ratio = f.number("late_tokens_ratio") or 0.0
    return f"{ratio:.1%} of tokens in late reads (> {LATE_TOKENS_MOST:.0%})" if ratio > LATE_TOKENS_MOST else None


def _late_first_tokens(f: Figures) -> str | None:
    """A p99 of TTFT is itself an upper bound where over 1 % of its samples are."""
    late, of = f.count("ttft_upper_bounds"), f.count("ttft_ms_count")
    if late <= LATE_TOKENS_MOST * of:
        return None
    return f"{late:,} of {of:,} TTFT are upper bounds (> {LATE_TOKENS_MOST:.0%}): their first tokens came in late reads"


def _bundled_tokens(f: Figures) -> str | None:
    ratio = f.number("bundled_tokens_ratio") or 0.0
    if ratio <= BUNDLED_TOKENS_MOST:
        return None
    return f"{ratio:.0%} of tokens came bundled (> {BUNDLED_TOKENS_MOST:.0%}): by the server or a proxy"


def _loop_lag(f: Figures) -> str | None:
    lag_ms = f.around.loop_lag_p99_ms
    unstamped = f.count("stamped_by_user") + f.count("stamped_mixed")
    if lag_ms is None or not unstamped or lag_ms <= LOOP_LAG_MOST_MS:
        return None
    return f"event loop late by {lag_ms:.1f} ms at p99 (> {LOOP_LAG_MOST_MS:g} ms) while {unstamped} have user times"


def _dispatch_lag(f: Figures) -> str | None:
    lag_ms = f.number("dispatch_lag_ms_p99")
    limit_ms = max(DISPATCH_LAG_MOST_MS, DISPATCH_LAG_MOST_OF_TTFT * (f.number("ttft_ms_p50") or 0.0))
    if lag_ms is None or lag_ms <= limit_ms:
        return None
    return f"dispatch lag p99 {lag_ms:.1f} ms (> {limit_ms:.1f} ms)"


def _send_lag(f: Figures) -> str | None:
    lag_ms = f.number("send_lag_ms_p99")
    limit_ms = max(SEND_LAG_MOST_MS, SEND_LAG_MOST_OF_TTFT * (f.number("ttft_ms_p50") or 0.0))
    if lag_ms is None or lag_ms <= limit_ms:
        return None
    return f"send lag p99 {lag_ms:.1f} ms (> {limit_ms:.1f} ms)"


def _rate_off(f: Figures) -> str | None:
    """Compare with what fell due, not with the nominal rate: 100 arrivals of a Poisson law are 100 ± 10."""
    due, started = f.count("arrivals_due") + f.count("unissued"), f.count("arrivals_started")
    if not due or f.count("saturated"):
        return None
    off = started / due - 1
    if round(abs(off), 6) <= RATE_OFF_MOST:
        return None
    return f"{started:,} of {due:,} arrivals started that fell due ({off:+.0%})"


def _cpu(f: Figures) -> str | None:
    percent = f.around.cpu_percent
    if percent is None or percent <= CPU_MOST_PERCENT:
        return None
    return f"a worker's CPU at {percent:.0f} % (> {CPU_MOST_PERCENT:.0f} %): more workers needed"


def _short_window(f: Figures) -> str | None:
    ratio = f.number("window_e2e_ratio")
    if ratio is None or ratio >= WINDOW_LEAST_E2E or f.around.whole_requests:
        return None
    return f"window of {f.number('window_s') or 0.0:.1f} s is {ratio:.1f} × E2E p50 (< {WINDOW_LEAST_E2E:g} ×)"


def _unfinished(f: Figures) -> str | None:
    ratio = f.number("unfinished_ratio") or 0.0
    if ratio <= UNFINISHED_MOST:
        return None
    open_ends = f"{f.count('requests_unfinished')} unfinished and {f.count('arrivals_unstarted')} not started"
    return f"{open_ends}: {ratio:.0%} of those started (> {UNFINISHED_MOST:.0%})"


def _repeated_prompts(f: Figures) -> str | None:
    ratio = f.number("prompts_repeated_ratio") or 0.0
    if not f.count("cached_tokens") or ratio <= REPEATED_PROMPTS_MOST:
        return None
    cached = f.number("cached_ratio") or 0.0
    return (
        f"{ratio:.0%} of prompts repeated (> {REPEATED_PROMPTS_MOST:.0%}) while a prefix cache is on: "
        f"it answered {cached:.1%} of the prompt tokens"
    )


def _prompt_length(f: Figures) -> str | None:
    ratio = f.number("input_length_error_ratio") or 0.0
    if ratio <= PROMPT_LENGTH_OFF_MOST:
        return None
    return f"prompts {ratio:.1%} off the requested length (> {PROMPT_LENGTH_OFF_MOST:.0%})"


def _mixed_sources(f: Figures) -> str | None:
    if not f.count("token_sources_mixed"):
        return None
    used = {source: f.count(f"tokens_from_{source}") for source in ("usage", "tokenizer", "chunks")}
    return "token counts of mixed sources: " + ", ".join(f"{n} {source}" for source, n in used.items() if n)


def _clock_steps(f: Figures) -> str | None:
    if f.around.clock_steps:
        return f"clock step: the wall clock jumped, seen {f.around.clock_steps} × by all processes"
    return None


def _clock_uncertain(f: Figures) -> str | None:
    uncertain_ms = f.around.clock_uncertainty_ms
    if uncertain_ms is None or uncertain_ms <= CLOCK_UNCERTAINTY_MOST_MS:
        return None
    return f"a worker's clock offset uncertain by {uncertain_ms:.1f} ms (> {CLOCK_UNCERTAINTY_MOST_MS:g} ms)"


def _saturated(f: Figures) -> str | None:
    if not f.count("saturated"):
        return None
    return f"SATURATED: all users busy for {f.number('cap_reached_ratio') or 0.0:.0%} of the window"


def _repeated(f: Figures) -> str | None:
    ratio = f.number("prompts_repeated_ratio") or 0.0
    if ratio <= REPEATED_PROMPTS_MOST or f.count("cached_tokens"):
        return None
    if f.number("cached_tokens") is None:
        return f"{ratio:.0%} of prompts repeated: a prefix cache may have answered, the server does not say"
    return f"{ratio:.0%} of prompts repeated: a prefix cache could have answered, the server says that none did"


def _idle_users(f: Figures) -> str | None:
    """Of a closed loop: fewer requests in flight than users."""
    users, in_flight = f.number("users"), f.number("concurrency_mean")
    if not users or in_flight is None or f.around.whole_requests or f.number("rate_achieved_per_s") is not None:
        return None
    if in_flight >= IN_FLIGHT_LEAST * users:
        return None
    return (
        f"{in_flight:.1f} requests in flight of {users:.0f} users on average: "
        "the others thought, paused, or had nothing to ask"
    )


INVALID_RULES: tuple[Rule, ...] = (_reports_missing, _totals, _broken_records, _worker_lost)
SUSPECT_RULES: tuple[Rule, ...] = (
    _nothing_measured,
    _late_tokens,
    _late_first_tokens,
    _bundled_tokens,
    _loop_lag,
    _dispatch_lag,
    _send_lag,
    _rate_off,
    _cpu,
    _short_window,
    _unfinished,
    _repeated_prompts,
    _prompt_length,
    _mixed_sources,
    _clock_steps,
    _clock_uncertain,
)
FINDINGS: tuple[Rule, ...] = (_saturated, _idle_users, _repeated)
