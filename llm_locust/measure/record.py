"""The record of one request: what happened, in integer nanoseconds, and its one outcome.

Knows no I/O, no clock and no Locust. Source of the fields: METRICS in docs/metrics.md.
"""

from __future__ import annotations

import enum

import msgspec


class Outcome(enum.Enum):
    """How a request ended; exactly one each, the first that applies in this order."""

    CLIENT_ERROR = "client_error"
    CONNECT_ERROR = "connect_error"
    TIMEOUT_CONNECT = "timeout_connect"
    TIMEOUT_FIRST_TOKEN = "timeout_first_token"
    TIMEOUT_STALL = "timeout_stall"
    TIMEOUT_TOTAL = "timeout_total"
    REJECTED = "rejected"
    HTTP_ERROR = "http_error"
    NOT_STREAMED = "not_streamed"
    SERVER_ERROR = "server_error"
    ABORTED = "aborted"
    MALFORMED = "malformed"
    CUT = "cut"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    OK = "ok"
    UNFINISHED = "unfinished"


FAILURES = frozenset(Outcome) - {Outcome.OK, Outcome.UNFINISHED}


class RequestRecord(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One row of requests.csv before its conversion; durations are ns, instants epoch ns.

    None is "absent": it becomes an empty cell, and adds no sample anywhere.
    """

    run_id: str
    worker: str
    request_id: int
    user_class: str
    name: str
    dialect: str
    stage: str
    phase: str  # ramp, warmup, steady, drain
    start_epoch_ns: int
    scheduled_epoch_ns: int | None = None
    user_wait_ns: int | None = None
    dispatch_lag_ns: int | None = None
    send_lag_ns: int | None = None
    connect_ns: int | None = None
    headers_ns: int | None = None
    ttft_ns: int | None = None
    ttfa_ns: int | None = None
    e2e_ns: int | None = None
    stream_end_ns: int | None = None
    ttft_scheduled_ns: int | None = None
    e2e_scheduled_ns: int | None = None
    tpot_ns: float | None = None
    second_token_ns: int | None = None
    icl_max_ns: int | None = None
    input_tokens: int | None = None
    input_tokens_requested: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_requested: int | None = None
    reasoning_tokens: int | None = None
    output_tokens_source: str | None = None  # usage, tokenizer, chunks
    chunks: int = 0
    reads: int = 0
    late_tokens: int = 0
    bundled_tokens: int = 0
    ttft_upper_bound: bool = False
    burst: bool = False  # all tokens in one read: no TPOT
    outcome: Outcome
    http_status: int | None = None
    finish_reason: str | None = None
    error: str = ""
    malformed_events: int = 0
    timestamp_source: str | None = None  # kernel, user, mixed
    slo_good: bool | None = None
    endpoint: str = ""
    peer: str = ""
    server_request_id: str | None = None
    client_request_id: str = ""
    clock_step: bool = False
