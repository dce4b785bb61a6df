"""Metrics of stages, with the arithmetic's values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from llm_locust.measure.aggregate import STAGE_WIDE, Aggregate
from llm_locust.measure.ledger import Ledger
from llm_locust.measure.metrics import BY_NAME, METRICS, STAGE_COLUMNS
from llm_locust.measure.record import Outcome
from llm_locust.measure.rows import Value, wilson
from llm_locust.measure.slo_grammar import parse_slo
from llm_locust.measure.snapshot import ALL, RUN, Snapshot, StageFacts, snapshot
from llm_locust.measure.timeline import Timeline
from tests.measure.given import EPOCH_OFFSET_NS, MS, START_NS, TEXT, S, record_of, samples_of


class Stage:
    """Requests told by their record, booked in a window of a given length as a worker would."""

    def __init__(self, window_ms: float) -> None:
        self.aggregate = Aggregate()
        self.ledger = Ledger(self.aggregate, EPOCH_OFFSET_NS)
        self.ledger.mark(START_NS, "8 users", "steady")
        self.window_ms = window_ms

    def request(self, start_ms: float = 0, outcome: Outcome = Outcome.OK, tokens: int = 1, **fields: Any) -> None:
        """Book a request; its tokens arrive evenly from TTFT to E2E."""
        fields = {"stream_end_ms": fields.get("e2e_ms"), "output_tokens": tokens or None} | fields
        record = record_of(start_ms, outcome, **fields)
        timeline = Timeline()
        first_ns, last_ns = record.ttft_ns or 0, record.e2e_ns or 0
        for token in range(tokens if record.e2e_ns is not None else 0):
            gap_ns = (last_ns - first_ns) / max(tokens - 1, 1)
            timeline.add(TEXT, START_NS + round(start_ms * MS + first_ns + token * gap_ns))
        samples = samples_of(streamed_tokens=tokens or None)
        stream = self.ledger.open(record.name, START_NS + round(start_ms * MS), timeline)
        self.ledger.close(stream, record, samples)
        self.aggregate.add(record, samples)

    def snapshot(self, **facts: Any) -> Snapshot:
        """End the window and compute."""
        self.ledger.mark(START_NS + round(self.window_ms * MS), "8 users", "drain")
        for _ in self.ledger.harvest(START_NS + round(self.window_ms * MS) + 600 * S):
            pass
        return snapshot(self.aggregate, 0, {"8 users": StageFacts(**facts)})

    def values(self, **facts: Any) -> Mapping[str, Value]:
        """The values of the stage's row `all`."""
        row = self.snapshot(**facts).row("8 users")
        assert row is not None
        assert tuple(row.values) == STAGE_COLUMNS
        return row.values


def some(values: Mapping[str, Value], *columns: str) -> tuple[Value, ...]:
    """Pick values."""
    return tuple(values[column] for column in columns)


def test_one_token_requests_have_no_tpot() -> None:
    """B02: TTFT of three, TPOT of one; nothing is divided by zero, nothing is 0 that is absent."""
    stage = Stage(1000)
    stage.request(ttft_ms=300, e2e_ms=300)
    stage.request(ttft_ms=280, e2e_ms=280)
    stage.request(ttft_ms=310, e2e_ms=510, tpot_ms=50, tokens=5)
    values = stage.values()
    assert some(values, "requests_ok", "output_tokens", "ttft_ms_count", "tpot_ms_count", "e2e_ms_count") == (
        3, 7, 3, 1, 3,
    )  # fmt: skip
    assert values["ttft_ms_mean"] == pytest.approx(296.67, abs=0.01)
    assert some(values, "tpot_ms_mean", "tpot_ms_p99", "tpot_ms_min") == (50, 50, 50)


def test_absent_is_absent_when_no_request_has_it() -> None:
    """B02: only one-token requests: TPOT has no number at all."""
    stage = Stage(1000)
    stage.request(ttft_ms=300, e2e_ms=300)
    values = stage.values()
    assert values["tpot_ms_count"] == 0
    assert {values[column] for column in BY_NAME["tpot_ms"].columns[1:]} == {None}
    assert some(values, "input_tokens", "cached_ratio", "goodput_per_s", "attainment_ratio") == (None,) * 4


def test_a_burst_adds_no_speed() -> None:
    """B03: the mean speed is that of the one request that has any; throughput uses all tokens."""
    stage = Stage(8000)
    stage.request(ttft_ms=4000, e2e_ms=4000, tokens=120, burst=True)
    stage.request(ttft_ms=500, e2e_ms=4070, tpot_ms=30, tokens=120)
    values = stage.values()
    assert some(values, "bursts", "output_speed_tok_per_s_count", "output_tok_per_s") == (1, 1, 30)
    assert values["output_speed_tok_per_s_mean"] == pytest.approx(33.33, abs=0.01)


def test_throughput_and_latency_without_the_failed() -> None:
    """B06: 8 ok of 10: 80 tok/s completed, 90 delivered, mean E2E 4000."""
    stage = Stage(10_000.000001)  # 1 ns after the last completion
    for i in range(8):
        stage.request(0 if i < 4 else 6000, ttft_ms=100, e2e_ms=4000, tokens=100)
    stage.request(0, Outcome.SERVER_ERROR, ttft_ms=100, e2e_ms=2000, tokens=40)
    stage.request(0, Outcome.TRUNCATED, ttft_ms=100, e2e_ms=2500, tokens=60)
    values = stage.values()
    assert some(values, "requests_ok", "requests_failed", "error_ratio", "e2e_ms_mean") == (8, 2, 0.2, 4000)
    assert values["completed_output_tok_per_s"] == 80
    assert values["output_tok_per_s"] == pytest.approx(90)
    assert values["request_throughput_per_s"] == pytest.approx(0.8)
    assert some(values, "outcome_server_error", "outcome_truncated", "failed_ms_count") == (1, 1, 2)


def test_requests_cut_by_the_end_are_neither_ok_nor_failed() -> None:
    """B07: 10,000 tokens completed, 12,000 delivered in 60 s; 10 unfinished, no failure."""
    stage = Stage(60_000)
    for _ in range(10):
        for start in (0, 25_000):
            stage.request(start, ttft_ms=0, e2e_ms=24_950, stream_end_ms=25_000, tokens=500)
        stage.request(50_000, Outcome.UNFINISHED, ttft_ms=0, e2e_ms=9950, stream_end_ms=10_000, tokens=200)
    values = stage.values()
    assert some(values, "requests_ok", "requests_unfinished", "requests_failed", "error_ratio") == (20, 10, 0, 0)
    assert values["completed_output_tok_per_s"] == pytest.approx(166.7, abs=0.1)
    assert values["output_tok_per_s"] == pytest.approx(200.0)
    assert values["concurrency_mean"] == pytest.approx(10)
    assert values["concurrency_peak"] == 10
    assert values["unfinished_ratio"] == pytest.approx(1 / 3)


def test_latency_from_the_schedule_shows_the_wait() -> None:
    """B09: arrivals every 50 ms, two at a time, 200 ms each: E2E 200 from start, 400 mean and 600 max from schedule."""
    stage = Stage(1100)
    starts = (0, 0 + 50, 200, 250, 400, 450, 600, 650, 800, 850)
    for i, start in enumerate(starts):
        wait = start - 50 * i
        stage.request(
            start, ttft_ms=200, e2e_ms=200, ttft_scheduled_ms=200 + wait, e2e_scheduled_ms=200 + wait,
            user_wait_ms=wait, dispatch_lag_ms=0,
            scheduled_epoch_ns=EPOCH_OFFSET_NS + START_NS + 50 * i * MS,
        )  # fmt: skip
    values = stage.values(rate_per_s=20.0)
    assert some(values, "e2e_ms_mean", "e2e_scheduled_ms_mean", "e2e_scheduled_ms_max") == (200, 400, 600)
    assert some(values, "user_wait_ms_mean", "user_wait_ms_max", "load") == (200, 400, "open loop")
    assert values["rate_requested_per_s"] == 20
    assert values["rate_achieved_per_s"] == pytest.approx(10 / 1.1)
    assert values["arrival_gap_mean_ms"] == pytest.approx(850 / 9)


def test_closed_loop_says_so() -> None:
    """Without a schedule its figures are absent."""
    stage = Stage(1000)
    stage.request(ttft_ms=10, e2e_ms=20)
    values = stage.values(users=8)
    assert some(values, "load", "users", "rate_achieved_per_s", "arrivals_due", "saturated") == (
        "closed loop", 8, None, None, None,
    )  # fmt: skip


def test_warm_up_is_excluded_and_listed() -> None:
    """B13: ten slow first requests own the p95 only where they are counted."""
    stage = Stage(1000)
    for _ in range(10):
        stage.request(ttft_ms=50_000, e2e_ms=50_000, phase="warmup")
    for _ in range(90):
        stage.request(ttft_ms=700, e2e_ms=700)
    got = stage.snapshot()
    row = got.row("8 users")
    assert row is not None
    assert some(row.values, "ttft_ms_count", "ttft_ms_mean", "ttft_ms_p95", "ttft_ms_max") == (90, 700, 700, 700)
    warmup = next(row for row in got.excluded if row.phase == "warmup" and row.name == ALL)
    assert some(warmup.values, "requests_ok", "ttft_ms_mean") == (10, 50_000)


def test_cached_and_repeated_prompts_are_told() -> None:
    """B14: 96 of 100 prompts repeated, 95.2 % of the prompt tokens from the cache."""
    stage = Stage(1000)
    for i in range(100):
        record = record_of(e2e_ms=5, input_tokens=1000, cached_tokens=0 if i < 4 else 992)
        stage.aggregate.add(record, replace(samples_of(), prompt_repeated=i >= 4))
    values = stage.values()
    assert some(values, "cached_tokens", "input_tokens", "prompts_repeated_ratio") == (95_232, 100_000, 0.96)
    assert values["cached_ratio"] == pytest.approx(0.952, abs=0.001)


def test_dropped_arrivals_make_lower_bounds() -> None:
    """Unstarted arrivals are counted with their wait; all users busy for over 5 % of the window is SATURATED."""
    stage = Stage(1000)
    stage.request(ttft_ms=1, e2e_ms=2, scheduled_epoch_ns=1)
    stage.aggregate.count("8 users", "steady", "arrivals_due", 5)
    stage.aggregate.count("8 users", "steady", "arrivals_started", 1)
    stage.aggregate.add_unstarted("8 users", "steady", [100 * MS, 200 * MS, 300 * MS, 400 * MS])
    shared = stage.aggregate.window("8 users", STAGE_WIDE, "steady")
    shared.counts["backlog_max"] += 4
    shared.counts["cap_reached_ns"] += 60 * MS
    stage.aggregate.count("8 users", "steady", "backoff_ns", 1_500_000_000)
    values = stage.values()
    assert some(values, "arrivals_due", "arrivals_started", "arrivals_unstarted", "backlog_max") == (5, 1, 4, 4)
    assert some(values, "scheduled_lower_bounds", "cap_reached_ratio", "saturated", "backoff_s") == (1, 0.06, 1, 1.5)
    assert some(values, "unstarted_wait_ms_count", "unstarted_wait_ms_max", "unfinished_ratio") == (4, 400, 4.0)
    of_names = [row for row in stage.snapshot().rows if row.name != ALL]
    of_a_name = ("arrivals_due", "arrivals_started", "arrivals_unstarted", "unissued", "saturated")
    assert all(some(row.values, *of_a_name) == (None,) * 5 for row in of_names)
    assert [row.values["backoff_s"] for row in of_names] == [None]  # known of the stage alone


def test_goodput_counts_what_met_every_limit() -> None:
    """Two good of four judged: failures and unstarted arrivals over the limit are missed ones."""
    slo = parse_slo("goodput(ttft < 2s) > 95%")
    stage = Stage(2000)
    for ttft, outcome in ((100, Outcome.OK), (100, Outcome.OK), (100, Outcome.CUT)):
        record = record_of(outcome=outcome, ttft_ms=ttft)
        stage.request(outcome=outcome, ttft_ms=ttft, e2e_ms=200, slo_good=slo.request_good(record))
    stage.aggregate.add_unstarted("8 users", "steady", [3000 * MS], missed=1)
    values = stage.values()
    assert some(values, "slo_judged", "attainment_ratio", "goodput_per_s") == (4, 0.5, 1.0)
    low, high = values["attainment_low_ratio"], values["attainment_high_ratio"]
    assert (low, high) == pytest.approx((0.15, 0.85), abs=0.005)


@pytest.mark.parametrize(
    ("good", "judged", "low", "high"),
    [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (95, 100, 0.8882, 0.9785), (1, 2, 0.0945, 0.9055)],
)
def test_wilson_interval(good: int, judged: int, low: float, high: float) -> None:
    """Published values of the score interval at 95 %."""
    assert wilson(good, judged) == pytest.approx((low, high), abs=1e-4)


def test_token_sources_are_mixed_by_successes_only() -> None:
    """A failed request is counted by its chunks; the successes' own counts are all of one source."""
    stage = Stage(1000)
    stage.request(ttft_ms=10, e2e_ms=100, output_tokens_source="usage")
    stage.request(ttft_ms=10, e2e_ms=100, output_tokens_source="chunks", outcome=Outcome.CUT)
    assert some(stage.values(), "token_sources_mixed", "tokens_from_usage", "tokens_from_chunks") == (0, 1, 1)


def test_validity_figures() -> None:
    """What the verdict needs, in every row."""
    stage = Stage(1000)
    stage.request(
        ttft_ms=10, e2e_ms=100, chunks=10, late_tokens=1, bundled_tokens=4, output_tokens_source="usage",
        timestamp_source="kernel", input_tokens=90, input_tokens_requested=100, clock_step=True, finish_reason="stop",
        output_tokens=8, output_tokens_requested=9, ttft_upper_bound=True,
    )  # fmt: skip
    stage.request(
        ttft_ms=10, e2e_ms=100, chunks=10, output_tokens_source="chunks", timestamp_source="user", finish_reason="stop",
    )  # fmt: skip
    stage.request(headers_ms=5, ttft_ms=1, e2e_ms=100, finish_reason="length")
    values = stage.values()
    assert some(values, "late_tokens_ratio", "bundled_tokens_ratio", "broken_records", "clock_steps") == (
        0.05, 0.2, 1, 1,
    )  # fmt: skip
    assert some(values, "window_e2e_ratio", "input_length_error_ratio", "token_sources_mixed") == (10, 0.1, 1)
    assert some(values, "stamped_by_kernel", "stamped_by_user", "tokens_from_usage", "tokens_from_chunks") == (
        1, 1, 1, 1,
    )  # fmt: skip
    assert some(values, "finish_reasons", "short_outputs", "ttft_upper_bounds") == ("stop=2, length=1", 1, 1)


def test_rows_stand_in_the_order_of_the_plan() -> None:
    """Per stage its names, then `all`; the run's row adds up windows."""
    aggregate = Aggregate()
    for stage, start in (("late", 0), ("early", 5000)):
        for name in ("y", "x"):
            aggregate.add(record_of(start, stage=stage, name=name, e2e_ms=10, output_tokens=5), samples_of())
        window = aggregate.window(stage, STAGE_WIDE, "steady")
        window.low("from", start)
        window.high("until", start + 2 * S)
        aggregate.window(stage, "x", "steady").counts["output_tokens"] += 10
    aggregate.add(record_of(stage="unplanned"), samples_of())
    got = snapshot(aggregate, 7, {"early": StageFacts(users=1), "late": StageFacts(users=2), "never": StageFacts()})
    assert [(row.stage, row.name) for row in got.rows] == [
        ("early", "x"), ("early", "y"), ("early", "all"), ("late", "x"), ("late", "y"), ("late", "all"),
        ("unplanned", "chat"), ("unplanned", "all"),
    ]  # fmt: skip
    assert (got.at_epoch_ns, got.run.stage, got.run.name, got.excluded) == (7, RUN, ALL, ())
    assert some(got.run.values, "window_s", "output_tok_per_s", "requests_ok", "users") == (4, 5, 5, None)


@pytest.mark.parametrize("facts", [StageFacts(users=1, rate_per_s=5.0), StageFacts(users=1, open_loop=True)])
def test_every_row_of_an_open_loop_is_one_before_a_request_of_it_has_ended(facts: StageFacts) -> None:
    """A rate or a trace is the plan's; the rows of names and the run's say nothing else than the stage's."""
    aggregate = Aggregate()
    window = aggregate.window("s", STAGE_WIDE, "steady")
    window.low("from", 0)
    window.high("until", S)
    aggregate.window("s", "x", "steady").counts["started"] += 1
    got = snapshot(aggregate, 0, {"s": facts})
    assert [(row.name, row.values["load"]) for row in (*got.rows, got.run)] == [
        ("x", "open loop"), ("all", "open loop"), ("all", "open loop"),
    ]  # fmt: skip


def test_time_before_the_first_stage_is_no_row() -> None:
    """A process harvests from its start on; no request is let through before a stage."""
    aggregate = Aggregate()
    ledger = Ledger(aggregate, 0)
    ledger.mark(2 * S, "s", "steady")
    for _ in ledger.harvest(5 * S):
        pass
    got = snapshot(aggregate, 0)
    assert {(row.stage, row.phase) for row in (*got.rows, *got.excluded)} == {("s", "steady")}


def test_rows_are_computed_anew_only_where_something_changed() -> None:
    """Twenty ended stages cost nothing; a change is never missed, and facts of the plan count as one."""
    aggregate = Aggregate()
    for stage in ("a", "b"):
        aggregate.add(record_of(stage=stage, e2e_ms=10), samples_of())
    before = snapshot(aggregate, 0)
    aggregate.add(record_of(stage="b", e2e_ms=30), samples_of())
    after = snapshot(aggregate, 0)
    assert after.row("a") is before.row("a")
    row = after.row("b")
    assert row is not None
    assert row.values["e2e_ms_count"] == 2
    planned = snapshot(aggregate, 0, {"a": StageFacts(users=3)}).row("a")
    assert planned is not None
    assert planned.values["users"] == 3
    aggregate.reset()
    assert snapshot(aggregate, 0).rows == ()


def test_every_metric_has_its_meaning() -> None:
    """One table: names and columns are unique, each has a title and a formula."""
    assert len(set(STAGE_COLUMNS)) == len(STAGE_COLUMNS)
    assert len(BY_NAME) == len(METRICS)
    assert all(metric.title and metric.formula for metric in METRICS)
