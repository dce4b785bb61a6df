"""Every field of a record that is not an arrival's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llm_locust.measure.finish import is_broken
from llm_locust.measure.judge import AskFacts
from llm_locust.measure.record import Outcome, RequestRecord
from llm_locust.protocol.types import Usage
from llm_locust.wire.types import End
from tests.measure.given import EPOCH_OFFSET_NS, IDENTITY, MS, START_NS, WHICH, exchange_of, finished, record_of


def test_whole_record_when_everything_is_known() -> None:
    """All fields at once."""
    exchange = exchange_of(
        end_ms=141,
        headers_ms=12,
        sent_ns=START_NS + 9 * MS,
        connect_ns=7 * MS,
        reads=4,
        stamped_reads=3,
        peer="127.0.0.1:80",
    )
    identity = replace(
        IDENTITY,
        scheduled_ns=START_NS - 30 * MS,
        user_wait_ns=28 * MS,
        endpoint="http://h/v1",
        client_request_id="c1",
    )
    asked = AskFacts(input_tokens=8, output_tokens=5)
    usage = Usage(input_tokens=9, output_tokens=4, reasoning_tokens=0, cached_tokens=3)
    record, _ = finished(
        [100, 120, 140, 140], usage, exchange=exchange, asked=asked, identity=identity, server_request_id="s1"
    )
    assert record == RequestRecord(
        **WHICH,
        start_epoch_ns=EPOCH_OFFSET_NS + START_NS,
        scheduled_epoch_ns=EPOCH_OFFSET_NS + START_NS - 30 * MS,
        user_wait_ns=28 * MS,
        dispatch_lag_ns=2 * MS,
        send_lag_ns=2 * MS,
        connect_ns=7 * MS,
        headers_ns=12 * MS,
        ttft_ns=100 * MS,
        ttfa_ns=100 * MS,
        e2e_ns=140 * MS,
        stream_end_ns=141 * MS,
        ttft_scheduled_ns=130 * MS,
        e2e_scheduled_ns=170 * MS,
        tpot_ns=40 * MS / 3,
        second_token_ns=20 * MS,
        icl_max_ns=20 * MS,
        input_tokens=9,
        input_tokens_requested=8,
        cached_tokens=3,
        output_tokens=4,
        output_tokens_requested=5,
        reasoning_tokens=0,
        output_tokens_source="usage",
        chunks=4,
        reads=4,
        outcome=Outcome.OK,
        http_status=200,
        finish_reason="stop",
        timestamp_source="mixed",
        endpoint="http://h/v1",
        peer="127.0.0.1:80",
        server_request_id="s1",
        client_request_id="c1",
    )
    assert not is_broken(record)


@pytest.mark.parametrize(
    ("usage", "counted", "chunks", "tokens", "source"),
    [
        pytest.param(Usage(output_tokens=2), 3, 3, 2, "usage", id="B05 usage wins"),
        pytest.param(Usage(output_tokens=12), 1, 12, 12, "usage", id="B05 merged newlines"),
        pytest.param(Usage(), 2, 3, 2, "tokenizer", id="B05 whole text"),
        pytest.param(Usage(output_tokens=0), None, 3, 3, "chunks", id="zero is no count"),
        pytest.param(Usage(), None, 0, None, None, id="nothing"),
    ],
)
def test_token_source(usage: Usage, counted: int | None, chunks: int, tokens: int | None, source: str | None) -> None:
    """B05: usage, else the tokenizer's count, else chunks; each says so."""
    record, _ = finished([10 + i for i in range(chunks)], usage, counted_tokens=counted)
    assert (record.output_tokens, record.output_tokens_source, record.chunks) == (tokens, source, chunks)


def test_a_whole_document_has_e2e_but_no_ttft() -> None:
    """Without a stream all tokens come at the end."""
    exchange = exchange_of(end_ms=90, headers=[(b"content-type", b"application/json")])
    record, _ = finished([], Usage(output_tokens=7), exchange=exchange, asked=AskFacts(stream=False))
    assert (record.outcome, record.ttft_ns, record.e2e_ns, record.tpot_ns) == (Outcome.OK, None, 90 * MS, None)
    assert not record.burst


def test_partial_tokens_are_kept_when_the_stop_came_first() -> None:
    """Unfinished: neither success nor failure."""
    exchange = exchange_of(end_ms=500, end=End.STOPPED)
    record, _ = finished([100, 200], exchange=exchange, terminal=False, finish_reason=None)
    assert (record.outcome, record.output_tokens, record.ttft_ns) == (Outcome.UNFINISHED, 2, 100 * MS)


def test_record_when_nothing_was_reached() -> None:
    """A refused connection has its time until it failed, and nothing else."""
    exchange = exchange_of(
        end_ms=3, sent_ns=None, headers_ns=None, status=None, headers=[], reads=0, stamped_reads=0,
        end=End.CONNECT_ERROR, error="refused",
    )  # fmt: skip
    record, _ = finished([], exchange=exchange, finish_reason=None, terminal=False)
    assert (record.outcome, record.error, record.stream_end_ns) == (Outcome.CONNECT_ERROR, "refused", 3 * MS)
    assert (record.headers_ns, record.send_lag_ns, record.timestamp_source, record.output_tokens) == (None,) * 4


def test_dispatch_lag_is_absent_without_a_schedule() -> None:
    """Closed loop: no schedule, no lag, no from-schedule values."""
    record, _ = finished([10])
    assert (record.dispatch_lag_ns, record.user_wait_ns, record.ttft_scheduled_ns) == (None, None, None)


@pytest.mark.parametrize(
    ("stamped", "source"), [(3, "kernel"), (0, "user"), (2, "mixed")], ids=["kernel", "user", "mixed"]
)
def test_timestamp_source(stamped: int, source: str) -> None:
    """Where the times of a request come from."""
    record, _ = finished([10], exchange=exchange_of(stamped_reads=stamped))
    assert record.timestamp_source == source


@pytest.mark.parametrize(
    ("times", "broken"),
    [
        pytest.param({"headers_ms": 1, "ttft_ms": 1, "e2e_ms": 1, "stream_end_ms": 1}, False, id="all equal"),
        pytest.param({}, False, id="all absent"),
        pytest.param({"headers_ms": -1}, True, id="headers before the start"),
        pytest.param({"headers_ms": 5, "ttft_ms": 4}, True, id="first token before the headers"),
        pytest.param({"ttft_ms": 5, "e2e_ms": 4}, True, id="last before first token"),
        pytest.param({"headers_ms": 5, "stream_end_ms": 4}, True, id="end before the headers"),
        pytest.param({"send_lag_ms": -1}, True, id="a negative duration"),
    ],
)
def test_broken_record(times: dict[str, float], broken: bool) -> None:
    """A record that violates the order makes the measurement invalid."""
    assert is_broken(record_of(**times)) is broken  # type: ignore[arg-type]


def test_clock_noise_under_a_millisecond_is_no_broken_record() -> None:
    """Kernel stamps follow a wall clock that is slewed: 0.4 ms is settled, 1.4 ms is broken."""
    settled, _ = finished([100], exchange=exchange_of(end_ms=99.6, headers_ms=100.4))
    assert (settled.headers_ns, settled.stream_end_ns) == (100 * MS, 100 * MS)
    late_headers, _ = finished([100], exchange=exchange_of(headers_ms=101.4))
    early_end, _ = finished([100], exchange=exchange_of(end_ms=98.6))
    assert is_broken(late_headers)
    assert is_broken(early_end)
