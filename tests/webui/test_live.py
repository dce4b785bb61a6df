"""What the page is told: everything once, then what changed; small after a night; nothing rounded in the table."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.rig.fake_run import NIGHT, FakeRun, facts
from llm_locust.measure.metrics import STAGE_COLUMNS
from llm_locust.measure.record import Outcome
from llm_locust.outputs.facts import RunState
from llm_locust.outputs.live import LIVE_COLUMNS, LiveHistory, best_stage, economy
from llm_locust.outputs.sample import MOST, PER_STAGE, Sample
from llm_locust.outputs.stages_csv import STAGES_COLUMNS, stage_line
from llm_locust.outputs.summary import Failure
from tests.outputs.records import WHOLE, changed


def played(run: FakeRun, live: LiveHistory, seconds: int) -> None:
    """Let seconds pass and hand them to the page."""
    run.step(seconds)
    rows, records = run.take()
    live.add(run.picture(), rows, run.crew(), records)


def test_live_columns_are_of_the_metric_table() -> None:
    """The page knows no number that stages.csv does not have."""
    assert set(LIVE_COLUMNS) <= set(STAGE_COLUMNS)


def test_answer_of_a_run_without_a_picture_yet_has_none() -> None:
    """A page that asks between the start and the first picture is told that there is nothing, then everything."""
    run, live = FakeRun(), LiveHistory(facts(), "1")
    assert json.loads(live.answer()) == {"token": "1.0.0", "whole": True, "now": None}
    played(run, live, 3)
    first = json.loads(live.answer("1.0.0"))
    assert (first["whole"], len(first["history"]["points"])) == (True, 3)


def test_answer_is_whole_then_what_changed_then_nothing() -> None:
    """A reloaded page gets its past; a page that has read it gets the rest only."""
    run, live = FakeRun(), LiveHistory(facts(), "1")
    played(run, live, 30)
    first = json.loads(live.answer())
    assert first["whole"] is True
    assert len(first["history"]["points"]) == 30
    played(run, live, 2)
    second = json.loads(live.answer(first["token"]))
    assert second["whole"] is False
    assert len(second["history"]["points"]) == 2
    assert json.loads(live.answer(second["token"])) == {"token": second["token"], "whole": False, "now": None}
    assert len(json.loads(live.answer())["history"]["points"]) == 32


@pytest.mark.parametrize("token", ["", "2.1.30", "x", "1", "1.2", "1.a.b", "1.-1.0", "1.1.1.1"])
def test_answer_is_whole_for_a_token_of_another_run(token: str) -> None:
    """After a reset or a second run nothing of the first stays on the page."""
    run, live = FakeRun(), LiveHistory(facts(), "1")
    played(run, live, 5)
    assert json.loads(live.answer(token))["whole"] is True


def test_table_equals_stages_csv() -> None:
    """Each value of the page is the one of the file, not rounded."""
    run, live = FakeRun(), LiveHistory(facts(), "1")
    while not run.over:
        played(run, live, 5)
    picture = run.picture()
    told = json.loads(live.answer())["now"]
    assert len(told["rows"]) == len(picture.snapshot.rows)
    for shown, row in zip(told["rows"], picture.snapshot.rows, strict=True):
        file = dict(zip(STAGES_COLUMNS, stage_line("r", row, picture).split(","), strict=False))
        for column, value in zip(told["columns"], shown["values"], strict=True):
            if column != "finish_reasons":  # the one cell that may hold a comma
                assert (file[column] or None) == (None if value is None else str(value)), column


def test_best_stage_is_the_one_with_most_tokens_that_meets_the_slo() -> None:
    """8 users meet it, the others do not, whatever their throughput."""
    run = FakeRun()
    run.step(240)
    assert best_stage(run.picture()) == "8 users"


def test_economy_needs_gpus_and_a_price() -> None:
    """32 GPUs at 2.5 an hour and 1000 tok/s: 80 an hour for 3.6 million tokens."""
    assert economy(facts(), 1000) == {
        "tok_per_s_per_gpu": pytest.approx(31.25),
        "cost_per_million_tokens": pytest.approx(22.2222, rel=1e-4),
    }
    assert economy(facts(tags={}), 1000) == {"tok_per_s_per_gpu": None, "cost_per_million_tokens": None}
    assert economy(facts(settings={}), 1000)["cost_per_million_tokens"] is None
    assert economy(facts(tags={"gpus": "many"}), 1000)["tok_per_s_per_gpu"] is None


def test_texts_with_lone_surrogates_are_told() -> None:
    """A server's text can hold what UTF-8 cannot."""
    run, live = FakeRun(), LiveHistory(facts(note="\ud800x"), "1")
    run.step(20)
    failure = Failure("http_error", 500, 1, "bad \udfff byte")
    live.add(run.picture(), [], run.crew(), failures=[failure], state=RunState.STOPPED)
    now = json.loads(live.answer())["now"]
    assert (now["run"]["note"], now["failures"][0]["sample"], now["state"]) == ("\ufffdx", "bad \ufffd byte", "stopped")


def test_stage_whose_label_has_a_lone_surrogate_is_told() -> None:
    """A label is its shape's own text; the table beside it was encoded before."""
    run, live = FakeRun(), LiveHistory(facts(), "1")
    run.step(2)
    rows = [replace(row, stage="bad \udfff label") for row in run.take()[0]]
    live.add(run.picture(), rows, run.crew())
    answer = json.loads(live.answer())
    assert [band[0] for band in answer["history"]["bands"]] == ["bad \ufffd label"]
    assert answer["now"]["run"]["run_id"] == live.run.run_id


@pytest.mark.slow
def test_answer_after_a_night_is_small_and_quick() -> None:
    """12 h with 20 stages: under 300 KB for a new page, under 100 ms of the master's time, no long hold of the hub."""
    run, live = FakeRun(NIGHT), LiveHistory(facts(), "1")
    longest_s = 0.0
    while not run.over:
        run.step(60)
        rows, records = run.take()
        picture, crew = run.picture(), run.crew()
        began_s = time.perf_counter()
        live.add(picture, rows, crew, records)
        longest_s = max(longest_s, (time.perf_counter() - began_s) / 60)
    began_s = time.perf_counter()
    answer = live.answer()
    took_s = time.perf_counter() - began_s
    assert len(answer) < 300_000
    assert len(live.distributions()) < 300_000
    assert took_s < 0.1
    assert longest_s < 0.01, "of the master's time for a second of the run"


def sampled(n: int, **fields: Any) -> list[Any]:
    """Return so many ok requests."""
    return [changed(WHOLE, request_id=number, e2e_ns=number * 1_000_000, **fields) for number in range(1, n + 1)]


def test_sample_has_all_of_few_and_an_even_part_of_many() -> None:
    """Its mean is near that of all, so no part of the stage is preferred."""
    sample = Sample()
    sample.add(sampled(50, stage="few", scheduled_epoch_ns=None))
    sample.add(sampled(20_000, stage="many", scheduled_epoch_ns=None))
    few, many = sample.told()
    assert (few["seen"], many["seen"]) == (50, 20_000)
    assert sorted(request[0] for request in few["requests"]) == list(range(1, 51))  # type: ignore[attr-defined]
    kept = [request[0] for request in many["requests"]]  # type: ignore[attr-defined]
    assert len(kept) == PER_STAGE
    assert 9000 < sum(kept) / len(kept) < 11_000


def test_sample_is_bounded_with_many_stages() -> None:
    """Each stage has an equal share."""
    sample = Sample()
    for stage in range(40):
        sample.add(sampled(300, stage=str(stage)))
    told = sample.told()
    assert {len(stage["requests"]) for stage in told} == {MOST // 40}  # type: ignore[arg-type]


def test_sample_does_not_depend_on_the_order_of_reports() -> None:
    """The same requests are kept whichever worker reports first."""
    one, other = Sample(), Sample()
    records = sampled(3000)
    one.add(records)
    other.add(reversed(records))
    assert [set(stage["requests"]) for stage in one.told()] == [set(stage["requests"]) for stage in other.told()]  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "fields",
    [{"outcome": Outcome.CUT}, {"phase": "warmup"}, {"e2e_ns": None}, {"outcome": Outcome.UNFINISHED}],
    ids=["failed", "warm-up", "no token", "unfinished"],
)
def test_sample_leaves_out_what_is_no_measured_success(fields: dict[str, Any]) -> None:
    """Failed requests never enter a latency of the successes."""
    sample = Sample()
    sample.add([changed(WHOLE, **fields)])
    assert sample.told() == []


def test_sample_tells_latencies_from_the_schedule() -> None:
    """With a schedule, latency means the from-schedule value."""
    sample = Sample()
    sample.add([WHOLE])
    assert sample.told()[0]["requests"] == [(1373.457, 423.457, 50.0, 1024, 20)]
