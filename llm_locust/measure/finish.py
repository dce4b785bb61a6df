"""From an ended exchange to its record: every field of `RequestRecord`, and the samples beside it.

Knows no I/O, no clock and no Locust. Formulas: docs/metrics.md section 2. Runs once per request.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

import msgspec

from llm_locust.measure.judge import Answer, AskFacts, judge
from llm_locust.measure.metrics import LATENCIES
from llm_locust.measure.record import Outcome, RequestRecord
from llm_locust.measure.timeline import Arrivals, Gaps
from llm_locust.protocol.types import Usage
from llm_locust.wire.types import Exchange

OFFSET_NOISE_NS = 1_000_000
"""Instants of one request may disagree by this much: between two refreshes of the clock offset the
wall clock is slewed, and kernel stamps are wall clock. More is a broken record."""


_durations = attrgetter(*(metric.field for metric in LATENCIES if metric.field is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which request it was. `epoch_offset_ns` turns the process's monotonic ns into epoch ns.

    `scheduled_ns` (monotonic) and `user_wait_ns` come from the gate; None in a closed loop.
    """

    run_id: str
    worker: str
    request_id: int
    user_class: str
    name: str
    dialect: str
    stage: str
    phase: str
    epoch_offset_ns: int
    scheduled_ns: int | None = None
    user_wait_ns: int | None = None
    endpoint: str = ""
    client_request_id: str = ""


@dataclass(frozen=True, slots=True)
class Samples:
    """What a request adds to the distributions beyond its record; never sent, only binned."""

    icl_ns: Gaps
    itl_ns: Gaps
    streamed_tokens: int | None
    """n of TPOT: output tokens without those of channels that were never streamed."""
    prompt_repeated: bool = False


RequestLimits = Callable[[RequestRecord], "bool | None"]
"""Per-request SLO: True met, False missed, None not judged (no limits, or ended by the stop in time)."""


def finish_record(
    answer: Answer, asked: AskFacts, identity: Identity, slo_good: RequestLimits | None = None
) -> tuple[RequestRecord, Samples]:
    """Judge an ended request and compute its record. `exchange.start_ns` must be set, also for our own errors."""
    outcome, error = judge(answer, asked)
    exchange, reader = answer.exchange, answer.reader
    arrivals = answer.timeline.analyse(asked.n)
    usage = reader.usage
    output_tokens, source = _count_output(usage, answer.counted_tokens, arrivals.count)
    streamed = _streamed_tokens(output_tokens, usage, arrivals)
    first_ns, last_ns, end_ns = _instants(exchange, arrivals, asked, outcome)
    burst = first_ns is not None and first_ns == last_ns and (streamed or 0) > arrivals.first_tokens
    start_ns = exchange.start_ns
    gaps = arrivals.gaps_ns
    record = RequestRecord(
        run_id=identity.run_id,
        worker=identity.worker,
        request_id=identity.request_id,
        user_class=identity.user_class,
        name=identity.name,
        dialect=identity.dialect,
        stage=identity.stage,
        phase=identity.phase,
        start_epoch_ns=start_ns + identity.epoch_offset_ns,
        scheduled_epoch_ns=_plus(identity.scheduled_ns, identity.epoch_offset_ns),
        user_wait_ns=identity.user_wait_ns,
        dispatch_lag_ns=_dispatch_lag(identity, start_ns),
        send_lag_ns=_minus(exchange.sent_ns, start_ns + (exchange.connect_ns or 0)),
        connect_ns=exchange.connect_ns,
        headers_ns=_settled(_minus(exchange.headers_ns, start_ns), _minus(first_ns, start_ns)),
        ttft_ns=_minus(first_ns, start_ns),
        ttfa_ns=_minus(arrivals.first_answer_ns, start_ns),
        e2e_ns=_minus(last_ns, start_ns),
        stream_end_ns=_minus(end_ns, start_ns),
        ttft_scheduled_ns=_since(identity.scheduled_ns, first_ns),
        e2e_scheduled_ns=_since(identity.scheduled_ns, last_ns),
        tpot_ns=_tpot(arrivals, streamed),
        second_token_ns=_since(arrivals.first_ns, arrivals.second_ns),
        icl_max_ns=int(gaps.max()) if gaps.size else None,
        input_tokens=usage.input_tokens,
        input_tokens_requested=asked.input_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=output_tokens,
        output_tokens_requested=asked.output_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        output_tokens_source=source,
        chunks=arrivals.count,
        reads=exchange.reads,
        late_tokens=answer.timeline.late_events,
        bundled_tokens=answer.timeline.bundled_events,
        ttft_upper_bound=answer.timeline.first_read_late,
        burst=burst,
        outcome=outcome,
        http_status=exchange.status,
        finish_reason=reader.finish_reason,
        error=error,
        malformed_events=reader.malformed_events,
        timestamp_source=_timestamp_source(exchange),
        endpoint=identity.endpoint,
        peer=exchange.peer,
        server_request_id=reader.server_request_id,
        client_request_id=identity.client_request_id,
        clock_step=exchange.clock_step,
    )
    if slo_good is not None:
        record = _with_slo(record, slo_good)
    by_usage = streamed if source == "usage" else None
    return record, Samples(gaps, arrivals.token_gaps_ns(by_usage), streamed, asked.prompt_repeated)


def is_broken(record: RequestRecord) -> bool:
    """Say whether a record violates 0 ≤ headers ≤ ttft ≤ e2e ≤ stream_end in what it has of them, or has a
    duration below 0.
    """
    reached = 0
    for instant in (record.headers_ns, record.ttft_ns, record.e2e_ns, record.stream_end_ns):
        if instant is not None:
            if instant < reached:
                return True
            reached = instant
    negative = [duration for duration in _durations(record) if duration is not None and duration < 0]
    return bool(negative)


def _count_output(usage: Usage, counted_tokens: int | None, arrivals: int) -> tuple[int | None, str | None]:
    """Return the output tokens and where the number comes from."""
    if usage.output_tokens:
        return usage.output_tokens, "usage"
    if counted_tokens:
        return counted_tokens, "tokenizer"
    return (arrivals, "chunks") if arrivals else (None, None)


def _streamed_tokens(output_tokens: int | None, usage: Usage, arrivals: Arrivals) -> int | None:
    """Return n without reasoning tokens that were counted but never streamed."""
    if output_tokens is None or arrivals.reasoning_seen or not usage.reasoning_tokens or not usage.output_tokens:
        return output_tokens
    return max(output_tokens - usage.reasoning_tokens, 0)


def _instants(
    exchange: Exchange, arrivals: Arrivals, asked: AskFacts, outcome: Outcome
) -> tuple[int | None, int | None, int | None]:
    """Return first token, last token and end. A whole document's last token is its end; it has no first one."""
    if not asked.stream and outcome is Outcome.OK:
        return None, exchange.end_ns, exchange.end_ns
    return arrivals.first_ns, arrivals.last_ns, _settled_end(exchange.end_ns, arrivals.last_ns)


def _settled(earlier_ns: int | None, later_ns: int | None) -> int | None:
    """Return `earlier_ns`, moved to `later_ns` where it is after it by no more than the offset's noise."""
    if earlier_ns is None or later_ns is None or not 0 < earlier_ns - later_ns <= OFFSET_NOISE_NS:
        return earlier_ns
    return later_ns


def _settled_end(end_ns: int | None, last_ns: int | None) -> int | None:
    """Return `end_ns`, moved to `last_ns` where it is before it by no more than the offset's noise."""
    if end_ns is None or last_ns is None or not 0 < last_ns - end_ns <= OFFSET_NOISE_NS:
        return end_ns
    return last_ns


def _tpot(arrivals: Arrivals, streamed: int | None) -> float | None:
    """Return (last_token − first_token) / (n − k); None for n ≤ k and for a burst."""
    if arrivals.first_ns is None or arrivals.last_ns is None or streamed is None:
        return None
    tokens = streamed - arrivals.first_tokens
    if tokens <= 0 or arrivals.last_ns == arrivals.first_ns:
        return None
    return (arrivals.last_ns - arrivals.first_ns) / tokens


def _dispatch_lag(identity: Identity, start_ns: int) -> int | None:
    if identity.scheduled_ns is None:
        return None
    return max(start_ns - identity.scheduled_ns - (identity.user_wait_ns or 0), 0)


def _timestamp_source(exchange: Exchange) -> str | None:
    if not exchange.reads:
        return None
    if not exchange.stamped_reads:
        return "user"
    return "kernel" if exchange.stamped_reads == exchange.reads else "mixed"


def _with_slo(record: RequestRecord, slo_good: RequestLimits) -> RequestRecord:
    return msgspec.structs.replace(record, slo_good=slo_good(record))


def _minus(instant_ns: int | None, origin_ns: int) -> int | None:
    return None if instant_ns is None else instant_ns - origin_ns


def _since(origin_ns: int | None, instant_ns: int | None) -> int | None:
    return None if origin_ns is None or instant_ns is None else instant_ns - origin_ns


def _plus(instant_ns: int | None, offset_ns: int) -> int | None:
    return None if instant_ns is None else instant_ns + offset_ns
