"""requests.csv: one line per request. Columns as in docs/files.md; a column is never renamed, only added at the end."""

from __future__ import annotations

from collections.abc import Callable

from llm_locust.measure.record import RequestRecord
from llm_locust.outputs.text import cell, epoch_cell, ms_cell, text_cell

REQUEST_COLUMNS: tuple[str, ...] = (
    "run_id",
    "worker",
    "request_id",
    "user_class",
    "name",
    "dialect",
    "stage",
    "phase",
    "start_epoch_s",
    "scheduled_epoch_s",
    "user_wait_ms",
    "dispatch_lag_ms",
    "send_lag_ms",
    "connect_ms",
    "headers_ms",
    "ttft_ms",
    "ttfa_ms",
    "e2e_ms",
    "stream_end_ms",
    "ttft_scheduled_ms",
    "e2e_scheduled_ms",
    "tpot_ms",
    "second_token_ms",
    "icl_max_ms",
    "input_tokens",
    "input_tokens_requested",
    "cached_tokens",
    "output_tokens",
    "output_tokens_requested",
    "reasoning_tokens",
    "output_tokens_source",
    "chunks",
    "reads",
    "late_tokens",
    "ttft_upper_bound",
    "outcome",
    "http_status",
    "finish_reason",
    "error",
    "malformed_events",
    "timestamp_source",
    "slo_good",
    "endpoint",
    "peer",
    "server_request_id",
    "client_request_id",
    "bundled_tokens",
    "burst",
    "clock_step",
)

REQUEST_TEXT_COLUMNS: frozenset[str] = frozenset(
    {"run_id", "worker", "user_class", "name", "dialect", "stage", "phase", "output_tokens_source", "outcome"}
    | {"finish_reason", "error", "timestamp_source", "endpoint", "peer", "server_request_id", "client_request_id"}
)

REQUESTS_HEADER = ",".join(REQUEST_COLUMNS)


def _field_and_encoder(column: str) -> tuple[str, Callable[..., str]]:
    """Name the record's field of a column, and what turns its value into a cell."""
    if column.endswith("_epoch_s"):
        return column.removesuffix("_s") + "_ns", epoch_cell
    if column.endswith("_ms"):
        return column.removesuffix("_ms") + "_ns", ms_cell
    return column, text_cell if column in REQUEST_TEXT_COLUMNS - {"outcome"} else cell


_CELLS = tuple(_field_and_encoder(column) for column in REQUEST_COLUMNS if column != "outcome")
_OUTCOME_AT = REQUEST_COLUMNS.index("outcome")


def request_line(record: RequestRecord) -> str:
    """Return the record's line without its end. About 12 µs."""
    cells = ["" if (value := getattr(record, name)) is None else encode(value) for name, encode in _CELLS]
    cells.insert(_OUTCOME_AT, record.outcome.value)
    return ",".join(cells)
