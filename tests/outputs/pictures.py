"""Hand-made pictures of a run that the tests of the outputs share."""

from __future__ import annotations

from collections.abc import Mapping

from llm_locust.measure.metrics import STAGE_COLUMNS
from llm_locust.measure.rows import Value
from llm_locust.measure.slo import Verdict
from llm_locust.measure.snapshot import ALL, RUN, Snapshot, StageRow
from llm_locust.outputs.picture import Picture, Progress, StageVerdict, Validity

AT_EPOCH_NS = 1_772_359_500_250_000_000


def stage_row(stage: str, values: Mapping[str, Value], *, name: str = ALL, phase: str = "steady") -> StageRow:
    """Return a row in which everything that is not given is absent."""
    whole: dict[str, Value] = dict.fromkeys(STAGE_COLUMNS)
    assert values.keys() <= whole.keys()
    return StageRow(stage, name, phase, {**whole, **values})


def closed(stage: str, users: int, ttft_ms: float, tpot_ms: float, samples: int = 120, **values: Value) -> StageRow:
    """Return a closed-loop row whose other numbers follow from three."""
    figures: dict[str, Value] = {
        "load": "closed loop",
        "users": users,
        "requests_started": samples,
        "requests_ok": samples,
        "requests_failed": 0,
        "requests_unfinished": 0,
        "short_outputs": 0,
        "ttft_ms_count": samples,
        "ttft_ms_mean": ttft_ms,
        "ttft_ms_p50": ttft_ms * 0.98,
        "ttft_ms_p99": ttft_ms * 1.3,
        "tpot_ms_count": samples,
        "tpot_ms_mean": tpot_ms,
        "tpot_ms_p99": tpot_ms * 1.1,
        "e2e_ms_count": samples,
        "e2e_ms_mean": ttft_ms + 2047 * tpot_ms,
        "input_tok_per_s": 324.79,
        "output_tok_per_s": 185.08,
        "total_tok_per_s": 509.87,
        "concurrency_mean": users * 0.99,
        "saturated": 0,
    }
    return stage_row(stage, figures | values)


FIRST = closed("8 users", 8, 1200.0, 85.0, samples=24)
SECOND = closed("64 users", 64, 5288.0, 210.0, samples=1234, requests_failed=6, short_outputs=2)
WARMUP = stage_row("8 users", {"requests_started": 8, "requests_ok": 8, "requests_failed": 0}, phase="warmup")
WHOLE_RUN = stage_row(
    RUN, {"requests_started": 1264, "requests_ok": 1258, "requests_failed": 6, "requests_unfinished": 0}
)


def picture(
    *rows: StageRow,
    excluded: tuple[StageRow, ...] = (WARMUP,),
    verdicts: Mapping[str, StageVerdict] | None = None,
    slo: Mapping[str, tuple[Verdict, ...]] | None = None,
    skipped: Mapping[str, str] | None = None,
    progress: Progress | None = None,
) -> Picture:
    """Return a picture of these measured rows."""
    valid = StageVerdict(validity=Validity.VALID, finished=True)
    return Picture(
        snapshot=Snapshot(AT_EPOCH_NS, rows, excluded, WHOLE_RUN),
        verdicts=verdicts or {row.stage: valid for row in rows} | {RUN: valid},
        slo=slo or {},
        skipped=skipped or {},
        progress=progress,
    )
