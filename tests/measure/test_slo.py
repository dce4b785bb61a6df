"""The SLO grammar, the verdicts, and what makes a request good."""

from __future__ import annotations

from typing import Any

import pytest

from llm_locust.measure.metrics import STAGE_COLUMNS
from llm_locust.measure.record import Outcome
from llm_locust.measure.rows import Value
from llm_locust.measure.slo_grammar import SloError, parse_slo
from tests.measure.given import MS, record_of

EXAMPLE = "ttft p99 < 2s; tpot p99 < 50ms; error_rate < 1%; goodput(ttft < 2s, tpot < 50ms) > 95%"


def row(load: str = "closed loop", /, **values: Any) -> dict[str, Value]:
    """The values of a stage's row."""
    counts: dict[str, Value] = {"load": load, "requests_ok": 100, "requests_failed": 0, "slo_judged": 0}
    return dict.fromkeys(STAGE_COLUMNS) | counts | values


def test_whole_example_when_read_and_judged() -> None:
    """Each clause with what it wanted, what it got, over how many samples."""
    slo = parse_slo(EXAMPLE)
    values = row(
        ttft_ms_p99=1500.0, ttft_ms_count=100, tpot_ms_p99=50.0, tpot_ms_count=90, error_ratio=0.0,
        attainment_ratio=0.96, slo_judged=100,
    )  # fmt: skip
    verdicts = [(v.clause, v.metric, v.wanted, v.got, v.n, v.passed) for v in slo.verdicts(values)]
    assert verdicts == [
        ("ttft p99 < 2s", "ttft_ms_p99", "< 2s", 1500, 100, True),
        ("tpot p99 < 50ms", "tpot_ms_p99", "< 50ms", 50, 90, False),
        ("error_rate < 1%", "error_ratio", "< 1%", 0, 100, True),
        ("goodput(ttft < 2s, tpot < 50ms) > 95%", "attainment_ratio", "> 95%", 0.96, 100, True),
    ]
    assert [(limit.name, limit.value) for limit in slo.request_limits] == [("ttft", 2000), ("tpot", 50)]


@pytest.mark.parametrize(
    ("text", "value", "passed"),
    [
        pytest.param("ttft p50 < 0.2s", 199.9, True, id="s"),
        pytest.param("ttft p50 <= 200ms", 200.0, True, id="at most"),
        pytest.param("ttft p50 < 200ms", 200.0, False, id="below"),
        pytest.param("ttft p50 >= 200ms", 200.0, True, id="at least"),
        pytest.param("ttft p50 < 1min", 59_999.0, True, id="min"),
        pytest.param("ttft p50 < 1h", 3_600_001.0, False, id="h"),
        pytest.param("  ttft   p50<500us ", 0.4, True, id="us, blanks"),
    ],
)
def test_units_and_comparisons(text: str, value: float, passed: bool) -> None:
    """Every unit is converted to that of the metric."""
    (verdict,) = parse_slo(text).verdicts(row(ttft_ms_p50=value, ttft_ms_count=10))
    assert verdict.passed is passed


@pytest.mark.parametrize(
    ("text", "column", "value", "passed"),
    [
        pytest.param("output_tok_per_s > 1000 tok/s", "output_tok_per_s", 1001.0, True, id="rate with a unit"),
        pytest.param("request_throughput_per_s >= 2/s", "request_throughput_per_s", 1.9, False, id="per second"),
        pytest.param("concurrency_mean < 64", "concurrency_mean", 63.0, True, id="no unit"),
        pytest.param("requests_failed < 1", "requests_failed", 0, True, id="count"),
        pytest.param("error_rate <= 5%", "error_ratio", 1 / 30, True, id="C24 b one of thirty"),
        pytest.param("error_ratio < 0.01", "error_ratio", 0.02, False, id="ratio without percent"),
        pytest.param("attainment_ratio > 90%", "attainment_ratio", 0.91, True, id="a share"),
    ],
)
def test_metrics_that_are_no_distribution(text: str, column: str, value: float, passed: bool) -> None:
    """Each metric of the table that is a number can stand in a clause."""
    (verdict,) = parse_slo(text).verdicts(row(**{column: value}))
    assert (verdict.got, verdict.passed) == (value, passed)


@pytest.mark.parametrize(
    "text", ["ttft p95 < 500ms", "error_rate < 1%", "requests_failed < 1", "goodput(ttft < 1s) > 0%"]
)
def test_a_clause_without_a_sample_fails(text: str) -> None:
    """C24 c: no data is not a pass."""
    values = row(requests_ok=0, ttft_ms_count=0, error_ratio=None)
    (verdict,) = parse_slo(text).verdicts(values)
    assert (verdict.got, verdict.n, verdict.passed) == (None, 0, False)


def test_ttft_means_from_schedule_when_there_is_one() -> None:
    """`ttft_start` names the other."""
    values = row(
        "open loop", ttft_ms_p99=100.0, ttft_ms_count=5, ttft_scheduled_ms_p99=900.0, ttft_scheduled_ms_count=5
    )
    verdicts = parse_slo("ttft p99 < 500ms; ttft_start p99 < 500ms").verdicts(values)
    assert [(v.metric, v.passed) for v in verdicts] == [("ttft_scheduled_ms_p99", False), ("ttft_ms_p99", True)]


@pytest.mark.parametrize(
    ("text", "problem", "position"),
    [
        pytest.param("", "an objective expected, such as ttft p99 < 2s", 0, id="empty"),
        pytest.param("tftt p99 < 2s", "unknown metric tftt; did you mean ttft?", 0, id="misspelt"),
        pytest.param("ttft p99 < 2s; xyzzy < 1", "unknown metric xyzzy", 15, id="in the second clause"),
        pytest.param("ttft < 2s", "one of mean, min, p50, p90, p95, p99, max expected", 5, id="no statistic"),
        pytest.param("ttft p98 < 2s", "one of mean, min, p50, p90, p95, p99, max expected", 5, id="another percentile"),
        pytest.param("ttft p99 2s", "<, <=, > or >= expected", 9, id="no comparison"),
        pytest.param("ttft p99 <", "a number expected", 10, id="no number"),
        pytest.param("ttft p99 < 2", "a unit expected: us, µs, ms, s, min, h", 12, id="no unit"),
        pytest.param("ttft p99 < 2 parsec", "a unit expected: us, µs, ms, s, min, h", 13, id="wrong unit"),
        pytest.param("error_rate < 1% ttft", "; expected", 16, id="no semicolon"),
        pytest.param("ttft p99 = 2s", "this is not understood", 9, id="a strange sign"),
        pytest.param("goodput ttft < 2s", "( expected", 8, id="no parenthesis"),
        pytest.param("goodput(ttft < 2s > 95%", ") expected", 18, id="not closed"),
        pytest.param("goodput(error_rate < 1%) > 95%", "error_rate is no metric of one request", 8, id="no request's"),
        pytest.param(
            "goodput(ttft < 2s) > 9%; goodput(e2e < 2s) > 9%",
            "goodput(...) may stand once: a request has one verdict", 25, id="twice",
        ),
    ],
)  # fmt: skip
def test_error_points_at_the_wrong_place(text: str, problem: str, position: int) -> None:
    """The message has the text and a ^ below the place."""
    with pytest.raises(SloError) as caught:
        parse_slo(text)
    assert (caught.value.problem, caught.value.position) == (problem, position)
    assert str(caught.value).splitlines()[-2:] == [f"  {text}", "  " + " " * position + "^"]


@pytest.mark.parametrize(
    ("limits", "record", "good"),
    [
        pytest.param("ttft < 2s", {"ttft_ms": 1999}, True, id="met"),
        pytest.param("ttft < 2s", {"ttft_ms": 2000}, False, id="missed"),
        pytest.param("ttft < 2s, tpot < 50ms", {"ttft_ms": 100, "tpot_ms": 60}, False, id="one of two missed"),
        pytest.param("tpot < 50ms", {"ttft_ms": 100}, True, id="absent by definition meets"),
        pytest.param("tpot < 50ms", {"burst": True}, False, id="a burst's TPOT does not"),
        pytest.param("ttft < 2s", {"outcome": Outcome.CUT, "ttft_ms": 1}, False, id="a failure is not good"),
        pytest.param(
            "ttft < 2s", {"ttft_ms": 100, "ttft_scheduled_ms": 3000, "scheduled_epoch_ns": 1}, False, id="scheduled"
        ),
        pytest.param(
            "ttft_start < 2s", {"ttft_ms": 100, "ttft_scheduled_ms": 3000, "scheduled_epoch_ns": 1}, True,
            id="from start",
        ),
        pytest.param("ttft < 2s", {"outcome": Outcome.UNFINISHED, "stream_end_ms": 3000}, False, id="over already"),
        pytest.param("ttft < 2s", {"outcome": Outcome.UNFINISHED, "stream_end_ms": 1000}, None, id="not over yet"),
        pytest.param(
            "ttft < 2s", {"outcome": Outcome.UNFINISHED, "ttft_ms": 1, "e2e_ms": 9000, "stream_end_ms": 9000}, None,
            id="unfinished after a good first token",
        ),
        pytest.param(
            "e2e < 2s", {"outcome": Outcome.UNFINISHED, "ttft_ms": 1, "e2e_ms": 1500, "stream_end_ms": 2500}, False,
            id="unfinished and over E2E",
        ),
        pytest.param(
            "tpot < 50ms", {"outcome": Outcome.UNFINISHED, "tpot_ms": 60, "stream_end_ms": 9000}, None,
            id="a mean may yet fall",
        ),
        pytest.param(
            "ttft < 2s",
            {"outcome": Outcome.UNFINISHED, "stream_end_ms": 500, "start_ms": 1800,
             "scheduled_epoch_ns": record_of().start_epoch_ns},
            False, id="the wait counts",
        ),
    ],
)  # fmt: skip
def test_good_request(limits: str, record: dict[str, Any], good: bool | None) -> None:
    """METRICS section 4: what an SLO says of one request."""
    slo = parse_slo(f"goodput({limits}) > 95%")
    assert slo.request_good(record_of(**record)) is good


def test_no_request_is_judged_without_goodput() -> None:
    """Percentile clauses judge the stage."""
    assert parse_slo("ttft p99 < 2s").request_good(record_of(ttft_ms=9000)) is None


def test_unstarted_arrival_has_missed_what_it_waited_for_too_long() -> None:
    """A wait beyond the limit can no longer be met; a TPOT still could."""
    slo = parse_slo("goodput(ttft < 2s, tpot < 1ms) > 9%")
    assert slo.missed_by_waiting(2001 * MS)
    assert not slo.missed_by_waiting(1999 * MS)
    assert not parse_slo("goodput(ttft_start < 2s) > 9%").missed_by_waiting(9000 * MS)
