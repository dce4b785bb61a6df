"""The first line of a report: one sentence, doubts first."""

from __future__ import annotations

from typing import Any

import pytest

from llm_locust.measure.slo import Verdict
from llm_locust.measure.snapshot import RUN, StageRow
from llm_locust.outputs import Picture, RunState, StageVerdict, Validity
from llm_locust.outputs.report_verdict import knee_stage, ladder, verdict_sentence
from tests.outputs.pictures import closed, picture, stage_row

VALID = StageVerdict(validity=Validity.VALID)
FIGURES: dict[str, Any] = {"ttft_ms_p50": 400.0, "ttft_ms_p99": 1200.0, "tpot_ms_p50": 30.0, "tpot_ms_p99": 41.5}


def step(users: int, tok_per_s: float, e2e_ms: float = 1000.0) -> StageRow:
    """A closed-loop stage with the same latencies as the others."""
    return closed(f"{users} users", users, 500, 30, output_tok_per_s=tok_per_s, e2e_ms_mean=e2e_ms, **FIGURES)


def clause(*, passed: bool, got: float | None = 2219.0) -> tuple[Verdict, ...]:
    """What became of one objective."""
    return (Verdict("ttft p99 < 2s", "ttft_ms_p99", "ms", "< 2s", got, 120, passed),)


EIGHT, SIXTEEN, THIRTY_TWO = step(8, 600, 1000), step(16, 1100, 1200), step(32, 1300, 2600)
OF_EIGHT = "TTFT p50 400 ms, p99 1.20 s, TPOT p50 30.0 ms, p99 41.5 ms, 600 output tok/s"
OF_SIXTEEN = OF_EIGHT.replace("600", "1,100")
OF_THIRTY_TWO = OF_EIGHT.replace("600", "1,300")


def judged(*passed: bool, **other: object) -> Picture:
    """The three stages with their objective met or missed."""
    stages = (EIGHT, SIXTEEN, THIRTY_TWO)
    slo = {row.stage: clause(passed=met) for row, met in zip(stages, passed, strict=True)}
    return picture(*stages, slo=slo, **other)  # type: ignore[arg-type]


_SCHEDULED: dict[str, Any] = {
    "load": "open loop",
    "rate_requested_per_s": 5.0,
    "requests_ok": 9,
    "output_tok_per_s": 600.0,
    "ttft_scheduled_ms_p50": 400.0,
    "ttft_scheduled_ms_p99": 1200.0,
    "scheduled_lower_bounds": 1,
    "tpot_ms_p50": 30.0,
    "tpot_ms_p99": 41.5,
}
OPEN = stage_row("5 req/s", _SCHEDULED)

CASES = {
    "the first meets it, the next misses": (
        judged(True, False, False),
        f"8 users: the highest load that meets the SLO, with {OF_EIGHT}; "
        "next, 16 users missed it: ttft p99 < 2s (got 2.22 s).",
    ),
    "all meet it": (
        judged(True, True, True),
        f"32 users: the highest load that meets the SLO, with {OF_THIRTY_TWO}; no higher load was measured, so the "
        "limit may lie beyond.",
    ),
    "all meet it and one was skipped": (
        judged(True, True, True, skipped={"64 users": "no success before it"}),
        f"32 users: the highest load that meets the SLO, with {OF_THIRTY_TWO}; no higher load was measured, so the "
        "limit may lie beyond; not run: 64 users.",
    ),
    "none meets it": (
        judged(False, False, False),
        "No stage meets the SLO; already 8 users missed it: ttft p99 < 2s (got 2.22 s).",
    ),
    "a lower one misses": (
        judged(False, True, False),
        f"16 users: the highest load that meets the SLO, with {OF_SIXTEEN} (but 8 users below it did not); "
        "next, 32 users missed it: ttft p99 < 2s (got 2.22 s).",
    ),
    "no sample": (
        picture(EIGHT, slo={"8 users": clause(passed=False, got=None)}),
        "No stage meets the SLO; already 8 users missed it: ttft p99 < 2s (got no sample).",
    ),
    "the best is invalid": (
        judged(
            True,
            True,
            False,
            verdicts={
                "8 users": VALID,
                "16 users": StageVerdict(validity=Validity.INVALID),
                "32 users": VALID,
                RUN: StageVerdict(validity=Validity.INVALID, reasons=("16 users: 3 reports are missing", "more")),
            },
        ),
        "INVALID measurement (16 users: 3 reports are missing and 1 more). 8 users: the highest load that meets the "
        f"SLO, with {OF_EIGHT}; next, 16 users missed it: its measurement is INVALID.",
    ),
    "no SLO, with a knee": (
        picture(EIGHT, SIXTEEN, THIRTY_TWO),
        f"No SLO was given. Most output: 32 users, with {OF_THIRTY_TWO}; the knee (most throughput for its latency) is "
        f"16 users, with {OF_SIXTEEN}.",
    ),
    "no SLO, two stages": (picture(EIGHT, SIXTEEN), f"No SLO was given. Most output: 16 users, with {OF_SIXTEEN}."),
    "from a schedule with lower bounds": (
        picture(OPEN),
        "No SLO was given. Most output: 5 req/s, with TTFT p50 ≥400 ms, p99 ≥1.20 s from schedule, TPOT p50 30.0 ms, "
        "p99 41.5 ms, 600 output tok/s.",
    ),
    "nothing was measured": (
        picture(),
        "Nothing was measured: no request that started in a measured window has ended.",
    ),
}


@pytest.mark.parametrize(("shown", "sentence"), CASES.values(), ids=CASES.keys())
def test_verdict_when_the_run_has_finished(shown: Picture, sentence: str) -> None:
    """The sentence says what counts, in words and figures."""
    assert verdict_sentence(shown, RunState.FINISHED) == sentence


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (RunState.RUNNING, "The run had not ended when these files were written. "),
        (RunState.STOPPED, "The run was stopped before its end. "),
        (RunState.ABORTED, "The run was aborted. "),
        (RunState.FINISHED, ""),
    ],
)
def test_verdict_when_the_run_ended_otherwise(state: RunState, said: str) -> None:
    """How it ended comes before everything else."""
    assert verdict_sentence(picture(EIGHT), state) == f"{said}No SLO was given. Most output: 8 users, with {OF_EIGHT}."


def test_ladder_when_stages_ran_in_another_order() -> None:
    """Stages stand by their load; where loads repeat, in the order of the run."""
    assert ladder([THIRTY_TWO, EIGHT, SIXTEEN]) == [EIGHT, SIXTEEN, THIRTY_TWO]
    again = step(8, 700)
    assert ladder([THIRTY_TWO, EIGHT, again]) == [THIRTY_TWO, EIGHT, again]


def test_knee_when_throughput_never_grows() -> None:
    """A curve that only falls has no knee."""
    assert knee_stage([step(8, 600), step(16, 500), step(32, 400)]) is None
