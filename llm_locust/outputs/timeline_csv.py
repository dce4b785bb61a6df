"""timeline.csv: one line per second of the run, written when every live worker has reported past it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from llm_locust.outputs.text import cell


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineRow:
    """One second. Counts are of that second; latencies are of the ten seconds that end with it; None is absent."""

    epoch_s: int
    stage: str | None = None
    phase: str | None = None
    users: int | None = None
    in_flight: int | None = None
    requests_started: int = 0
    requests_ok: int = 0
    requests_failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    ttft_ms_p50: float | None = None
    ttft_ms_p99: float | None = None
    itl_ms_p50: float | None = None
    itl_ms_p99: float | None = None
    tpot_ms_p50: float | None = None
    tpot_ms_p99: float | None = None
    user_wait_ms_p99: float | None = None
    dispatch_lag_ms_p99: float | None = None
    loop_lag_ms_max: float | None = None


TIMELINE_COLUMNS: tuple[str, ...] = ("run_id", *(field.name for field in fields(TimelineRow)))
TIMELINE_TEXT_COLUMNS: frozenset[str] = frozenset({"run_id", "stage", "phase"})
TIMELINE_HEADER = ",".join(TIMELINE_COLUMNS)


def timeline_line(run_id: str, row: TimelineRow) -> str:
    """Return the second's line without its end."""
    return ",".join(cell(value) for value in (run_id, *(getattr(row, name) for name in TIMELINE_COLUMNS[1:])))
