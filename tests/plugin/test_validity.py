"""Each rule of validity speaks just beyond its limit and is silent at it."""

from __future__ import annotations

from typing import Any

import pytest

from llm_locust.measure.metrics import STAGE_COLUMNS
from llm_locust.outputs.picture import StageVerdict, Validity
from llm_locust.plugin.validity import Circumstances, judge, worst_of

# id: (values of the stage's row, circumstances, verdict, its reason)
BEYOND: dict[str, tuple[dict[str, Any], dict[str, Any], Validity, str]] = {
    "reports lost": ({}, {"reports_missing": 1}, Validity.INVALID, "1 reports of workers lost"),
    "totals differ": (
        {},
        {"totals_that_differ": ("10 requests at workers, 9 here",)},
        Validity.INVALID,
        "totals of workers and master differ: 10 requests at workers, 9 here",
    ),
    "broken record": (
        {"broken_records": 2},
        {},
        Validity.INVALID,
        "2 records violate 0 ≤ headers ≤ TTFT ≤ E2E ≤ stream end",
    ),
    "worker lost, users gone": (
        {},
        {"workers_lost": ("w2",), "users_replaced": False},
        Validity.INVALID,
        "lost without its users replaced: w2",
    ),
    "nothing measured": (
        {"requests_ok": 0, "arrivals_unstarted": 0},
        {"ended": True},
        Validity.SUSPECT,
        "nothing was measured: no request began in a window, ramps and warm-ups do not count",
    ),
    "nothing began": (
        {"requests_ok": 0, "concurrency_mean": 8.0},
        {"ended": True},
        Validity.SUSPECT,
        "no request began in its window: it has rates, and no latencies",
    ),
    "late tokens": ({"late_tokens_ratio": 0.011}, {}, Validity.SUSPECT, "1.1% of tokens in late reads (> 1%)"),
    "bundled": (
        {"bundled_tokens_ratio": 0.51},
        {},
        Validity.SUSPECT,
        "51% of tokens came bundled (> 50%): by the server or a proxy",
    ),
    "loop lag with user times": (
        {"stamped_by_user": 3, "stamped_mixed": 1},
        {"loop_lag_p99_ms": 5.1},
        Validity.SUSPECT,
        "event loop late by 5.1 ms at p99 (> 5 ms) while 4 have user times",
    ),
    "dispatch lag, quick server": (
        {"dispatch_lag_ms_p99": 2.1, "ttft_ms_p50": 10.0},
        {},
        Validity.SUSPECT,
        "dispatch lag p99 2.1 ms (> 2.0 ms)",
    ),
    "dispatch lag, slow server": (
        {"dispatch_lag_ms_p99": 51.0, "ttft_ms_p50": 1000.0},
        {},
        Validity.SUSPECT,
        "dispatch lag p99 51.0 ms (> 50.0 ms)",
    ),
    "first tokens late": (
        {"ttft_upper_bounds": 5, "ttft_ms_count": 400},
        {},
        Validity.SUSPECT,
        "5 of 400 TTFT are upper bounds (> 1%): their first tokens came in late reads",
    ),
    "send lag": (
        {"send_lag_ms_p99": 12.0, "ttft_ms_p50": 1000.0},
        {},
        Validity.SUSPECT,
        "send lag p99 12.0 ms (> 10.0 ms)",
    ),
    "rate too low": (
        {"rate_requested_per_s": 10.0, "arrivals_due": 1000, "arrivals_started": 940},
        {},
        Validity.SUSPECT,
        "940 of 1,000 arrivals started that fell due (-6%)",
    ),
    "arrivals of a lost worker": (
        {"rate_requested_per_s": 10.0, "arrivals_due": 940, "arrivals_started": 940, "unissued": 60},
        {},
        Validity.SUSPECT,
        "940 of 1,000 arrivals started that fell due (-6%)",
    ),
    "cpu": ({}, {"cpu_percent": 91.0}, Validity.SUSPECT, "a worker's CPU at 91 % (> 90 %): more workers needed"),
    "short window": (
        {"window_e2e_ratio": 2.9, "window_s": 29.0},
        {},
        Validity.SUSPECT,
        "window of 29.0 s is 2.9 × E2E p50 (< 3 ×)",
    ),
    "unfinished and unstarted": (
        {"unfinished_ratio": 0.07, "requests_unfinished": 2, "arrivals_unstarted": 5},
        {},
        Validity.SUSPECT,
        "2 unfinished and 5 not started: 7% of those started (> 5%)",
    ),
    "repeated prompts": (
        {"prompts_repeated_ratio": 0.06, "cached_tokens": 9, "cached_ratio": 0.25},
        {},
        Validity.SUSPECT,
        "6% of prompts repeated (> 5%) while a prefix cache is on: it answered 25.0% of the prompt tokens",
    ),
    "prompt length": (
        {"input_length_error_ratio": 0.06},
        {},
        Validity.SUSPECT,
        "prompts 6.0% off the requested length (> 5%)",
    ),
    "mixed token sources": (
        {"tokens_from_usage": 7, "tokens_from_chunks": 3, "token_sources_mixed": 1},
        {},
        Validity.SUSPECT,
        "token counts of mixed sources: 7 usage, 3 chunks",
    ),
    "clock step": (
        {},
        {"clock_steps": 1},
        Validity.SUSPECT,
        "clock step: the wall clock jumped, seen 1 × by all processes",
    ),
    "clock offset": (
        {},
        {"clock_uncertainty_ms": 5.5},
        Validity.SUSPECT,
        "a worker's clock offset uncertain by 5.5 ms (> 5 ms)",
    ),
}
WITHIN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing known": ({}, {}),
    "nothing measured yet": ({"requests_ok": 0}, {"ended": False}),
    "one that failed": ({"requests_failed": 1}, {"ended": True}),
    "absent metrics": (dict.fromkeys(STAGE_COLUMNS), {}),
    "late tokens": ({"late_tokens_ratio": 0.01}, {}),
    "bundled": ({"bundled_tokens_ratio": 0.5}, {}),
    "loop lag with kernel times": ({"stamped_by_kernel": 9}, {"loop_lag_p99_ms": 90.0}),
    "loop lag": ({"stamped_by_user": 9}, {"loop_lag_p99_ms": 5.0}),
    "dispatch lag": ({"dispatch_lag_ms_p99": 50.0, "ttft_ms_p50": 1000.0}, {}),
    "send lag": ({"send_lag_ms_p99": 1.0, "ttft_ms_p50": 1.0}, {}),
    "rate": ({"rate_requested_per_s": 10.0, "arrivals_due": 1000, "arrivals_started": 950}, {}),
    "rate of an uneven law": (
        {"rate_requested_per_s": 10.0, "rate_achieved_per_s": 8.0, "arrivals_due": 80, "arrivals_started": 80},
        {},
    ),
    "rate of a saturated stage": (
        {"rate_requested_per_s": 10.0, "arrivals_due": 1000, "arrivals_started": 200, "saturated": 1},
        {},
    ),
    "cpu": ({}, {"cpu_percent": 90.0}),
    "window": ({"window_e2e_ratio": 3.0}, {}),
    "window of whole requests": ({"window_e2e_ratio": 1.0, "window_s": 29.0}, {"whole_requests": True}),
    "unfinished": ({"unfinished_ratio": 0.05}, {}),
    "worker lost, users replaced": ({}, {"workers_lost": ("w2",), "users_replaced": True}),
    "repeated prompts without a cache": ({"prompts_repeated_ratio": 1.0, "cached_tokens": 0}, {}),
    "few prompts repeated": ({"prompts_repeated_ratio": 0.05, "cached_tokens": 9}, {}),
    "one token source": ({"tokens_from_usage": 7, "tokens_from_chunks": 0}, {}),
    "clock offset": ({}, {"clock_uncertainty_ms": 5.0}),
}


@pytest.mark.parametrize(("values", "around", "validity", "reason"), BEYOND.values(), ids=BEYOND.keys())
def test_verdict_names_the_figure_when_a_limit_is_passed(
    values: dict[str, Any], around: dict[str, Any], validity: Validity, reason: str
) -> None:
    """Just beyond a limit the verdict says which, with the figure."""
    verdict = judge(values, Circumstances(**around))
    assert (verdict.validity, verdict.reasons) == (validity, (reason,))


@pytest.mark.parametrize(("values", "around"), WITHIN.values(), ids=WITHIN.keys())
def test_verdict_is_valid_at_the_limit(values: dict[str, Any], around: dict[str, Any]) -> None:
    """At a limit, or where a figure is not known, nothing is said."""
    verdict = judge(values, Circumstances(**around))
    assert (verdict.validity, verdict.reasons) == (Validity.VALID, ())


def test_rules_read_metrics_that_exist() -> None:
    """A metric that was renamed must not silence its rule."""
    named = {metric for values, _, _, _ in BEYOND.values() for metric in values}
    assert named <= set(STAGE_COLUMNS)


def test_verdict_has_every_reason_the_worst_first() -> None:
    """One fault does not hide another; SATURATED is a finding and no fault."""
    verdict = judge({"saturated": 1, "cap_reached_ratio": 0.4}, Circumstances(clock_steps=1, reports_missing=2))
    assert verdict == StageVerdict(
        validity=Validity.INVALID,
        reasons=("2 reports of workers lost", "clock step: the wall clock jumped, seen 1 × by all processes"),
        findings=("SATURATED: all users busy for 40% of the window",),
    )


def test_repeated_prompts_are_a_finding_where_the_server_is_silent_about_its_cache() -> None:
    """Without a count of cached tokens nobody knows: it is said, and it is no fault of the measurement."""
    verdict = judge({"prompts_repeated_ratio": 0.5}, Circumstances())
    assert verdict.validity is Validity.VALID
    assert verdict.findings == ("50% of prompts repeated: a prefix cache may have answered, the server does not say",)
    said = judge({"prompts_repeated_ratio": 1.0, "cached_tokens": 0}, Circumstances())
    assert said.validity is Validity.VALID
    assert said.findings == (
        "100% of prompts repeated: a prefix cache could have answered, the server says that none did",
    )


@pytest.mark.parametrize(
    ("values", "around", "told"),
    [
        ({"users": 8, "concurrency_mean": 2.04}, {}, "2.0 requests in flight of 8 users on average: "),
        ({"users": 8, "concurrency_mean": 6.4}, {}, ""),
        ({"users": 8, "concurrency_mean": 2.04}, {"whole_requests": True}, ""),
        ({"users": 8, "concurrency_mean": 2.04, "rate_achieved_per_s": 3.0}, {}, ""),
        ({"concurrency_mean": 2.04}, {}, ""),
    ],
)
def test_users_of_a_closed_loop_who_ask_nothing_are_a_finding(
    values: dict[str, Any], around: dict[str, Any], told: str
) -> None:
    """Below four fifths of the users; a schedule, and a batch that runs out, have fewer by nature."""
    findings = judge(values, Circumstances(**around)).findings
    assert [finding[: len(told)] for finding in findings] == ([told] if told else [])


def test_run_has_the_verdict_of_its_worst_stage() -> None:
    """The run is as good as its worst stage; what concerns no stage makes it INVALID by itself."""
    stages = {
        "a": StageVerdict(validity=Validity.VALID, findings=("SATURATED",)),
        "b": StageVerdict(validity=Validity.SUSPECT, reasons=("x",)),
    }
    assert worst_of(stages) == StageVerdict(validity=Validity.SUSPECT, reasons=("b: x",), findings=("a: SATURATED",))
    assert worst_of(stages, ["lost"]).validity is Validity.INVALID
    assert worst_of(stages, ["lost"]).reasons == ("lost", "b: x")
