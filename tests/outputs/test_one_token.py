"""From records over the real aggregate to the files: one token means no TPOT anywhere, and no zero for it."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from llm_locust.measure.aggregate import Aggregate
from llm_locust.measure.finish import Samples
from llm_locust.measure.record import RequestRecord
from llm_locust.measure.snapshot import RUN, StageFacts, snapshot
from llm_locust.outputs import Outputs, Picture, RunFacts, RunState, StageVerdict, TimelineRow, Validity
from llm_locust.outputs.console import Screen
from llm_locust.outputs.readers import read_requests, read_stages, read_summary
from tests.outputs.records import BARE, WHOLE, changed

MS = 1_000_000


def record(number: int, ttft_ms: int, e2e_ms: int, tokens: int) -> RequestRecord:
    """Return a clean closed-loop request; its TPOT follows from its tokens."""
    tpot_ns = (e2e_ms - ttft_ms) * MS / (tokens - 1) if tokens > 1 else None
    return changed(
        WHOLE,
        request_id=number,
        headers_ns=1 * MS,
        ttft_ns=ttft_ms * MS,
        ttfa_ns=ttft_ms * MS,
        e2e_ns=e2e_ms * MS,
        stream_end_ns=e2e_ms * MS,
        scheduled_epoch_ns=None,
        user_wait_ns=None,
        dispatch_lag_ns=None,
        ttft_scheduled_ns=None,
        e2e_scheduled_ns=None,
        tpot_ns=tpot_ns,
        second_token_ns=None,
        icl_max_ns=None,
        output_tokens=tokens,
        output_tokens_requested=tokens,
        chunks=tokens,
        bundled_tokens=0,
    )


def test_files_when_most_requests_have_one_token(tmp_path: Path) -> None:
    """Three successes; TTFT of all three, TPOT of the one that has one: 50, not 16.67 over 0, 0 and 50."""
    records = [record(1, 300, 300, 1), record(2, 280, 280, 1), record(3, 310, 510, 5), changed(BARE, phase="steady")]
    aggregate = Aggregate()
    for done in records:
        aggregate.add(done, Samples(icl_ns=np.array([]), itl_ns=np.array([]), streamed_tokens=done.output_tokens))
    picture = Picture(
        snapshot=snapshot(aggregate, 1_772_359_300 * 10**9, {"8 users": StageFacts(users=8)}),
        verdicts={RUN: StageVerdict(validity=Validity.VALID)},
    )
    run = RunFacts(
        run_id="r", started=datetime(2026, 3, 1, tzinfo=UTC), host="h", model=None, shape=None, versions={},
        settings={}, options={},
    )  # fmt: skip
    (tmp_path / "r").mkdir()
    stream = io.StringIO()
    outputs = Outputs(run, tmp_path / "r", lambda _: None)
    outputs.open()
    seconds = [TimelineRow(second=row) for row in aggregate.pop_seconds(1_772_359_300)]
    assert outputs.close(picture, records, seconds, RunState.FINISHED) == ()
    Screen(stream, width=200).end(picture, outputs.failures.most_frequent_first())

    assert read_requests(tmp_path / "r")["tpot_ms"].fillna(-1).tolist() == [-1, -1, 50, -1]
    stages = read_stages(tmp_path / "r").set_index("name").loc["chat"]
    assert (stages.requests_ok, stages.requests_failed, stages.output_tokens) == (3, 1, 7)
    assert (stages.ttft_ms_count, stages.ttft_ms_mean, stages.ttft_ms_max) == (3, 296.666666666666666, 310)
    assert (stages.tpot_ms_count, stages.tpot_ms_mean, stages.e2e_ms_count) == (1, 50, 3)
    metrics = read_summary(tmp_path / "r")["stages"][0]["metrics"]
    assert (metrics["tpot_ms_mean"], metrics["itl_ms_mean"]) == (50.0, None)
    assert "connect_error  –              1  ConnectionRefusedError" in stream.getvalue()
