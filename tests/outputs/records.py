"""Hand-made records that the tests of the outputs share."""

from __future__ import annotations

from typing import Any

import msgspec

from llm_locust.measure.record import Outcome, RequestRecord
from tests.measure.given import WHICH

_WHICH = WHICH | {"run_id": "20260301-101500_m_users"}

WHOLE = RequestRecord(
    **_WHICH,
    start_epoch_ns=1_772_359_200_123_456_789,
    scheduled_epoch_ns=1_772_359_200_000_000_001,
    user_wait_ns=120_000_000,
    dispatch_lag_ns=3_456_788,
    send_lag_ns=41_000,
    connect_ns=250_001,
    headers_ns=9_000_000,
    ttft_ns=300_000_000,
    ttfa_ns=350_000_000,
    e2e_ns=1_250_000_001,
    stream_end_ns=1_260_000_000,
    ttft_scheduled_ns=423_456_788,
    e2e_scheduled_ns=1_373_456_789,
    tpot_ns=50_000_000.052_631_6,
    second_token_ns=61_000_000,
    icl_max_ns=99_000_000,
    input_tokens=1024,
    input_tokens_requested=1024,
    cached_tokens=0,
    output_tokens=20,
    output_tokens_requested=20,
    reasoning_tokens=3,
    output_tokens_source="usage",
    chunks=20,
    reads=19,
    late_tokens=0,
    bundled_tokens=2,
    ttft_upper_bound=False,
    outcome=Outcome.OK,
    http_status=200,
    finish_reason="length",
    malformed_events=0,
    timestamp_source="kernel",
    slo_good=True,
    endpoint="http://127.0.0.1:8000",
    peer="127.0.0.1:8000",
    server_request_id="chatcmpl-1",
    client_request_id="r-1",
)

BARE = RequestRecord(
    **_WHICH | {"request_id": 2, "phase": "warmup"},
    start_epoch_ns=1_772_359_201_000_000_000,
    outcome=Outcome.CONNECT_ERROR,
    error="ConnectionRefusedError",
)


def changed(record: RequestRecord, **fields: Any) -> RequestRecord:
    """Return a copy of `record` with other fields."""
    return msgspec.structs.replace(record, **fields)
