"""The first line of a report: what a run says about the server, in one sentence.

Knows no files. Words and figures come from the picture; nothing is judged here that SLO and validity have not judged,
but for the knee: the stage of the greatest throughput / latency (Kleinrock's power, 1979), a usual place for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from llm_locust.measure.rows import Value
from llm_locust.measure.slo import Verdict
from llm_locust.measure.snapshot import ALL, RUN, StageRow
from llm_locust.outputs import numbers
from llm_locust.outputs.facts import RunState
from llm_locust.outputs.live import meets_slo
from llm_locust.outputs.picture import Picture, StageVerdict, Validity


def verdict_sentence(picture: Picture, state: RunState) -> str:
    """Return the verdict: doubts about the measurement first, then the stage that counts, then what was beyond it."""
    stages = [row for row in picture.snapshot.rows if row.name == ALL]
    doubts = [_unfinished(state), _validity(picture.verdicts.get(RUN))]
    if not any(_number(row, "requests_ok") or _number(row, "requests_failed") for row in stages):
        said = "Nothing was measured: no request that started in a measured window has ended."
    elif picture.slo:
        said = _by_slo(picture, stages)
    else:
        said = _by_throughput(picture, stages)
    return " ".join(part for part in (*doubts, said) if part)


def ladder(stages: Sequence[StageRow]) -> list[StageRow]:
    """Return the stages by load, the lightest first; in the order of the run where they are no steps of one load."""
    for column in ("rate_requested_per_s", "users"):
        loads = [_number(row, column) for row in stages]
        if all(load is not None for load in loads) and len(set(loads)) == len(loads):
            return sorted(stages, key=lambda row: _number(row, column) or 0.0)
    return list(stages)


def _unfinished(state: RunState) -> str:
    return {
        RunState.RUNNING: "The run had not ended when these files were written.",
        RunState.STOPPED: "The run was stopped before its end.",
        RunState.ABORTED: "The run was aborted.",
    }.get(state, "")


def _validity(verdict: StageVerdict | None) -> str:
    if verdict is None or verdict.validity is Validity.VALID:
        return ""
    why = verdict.reasons[0] if verdict.reasons else "see below"
    more = f" and {len(verdict.reasons) - 1} more" if len(verdict.reasons) > 1 else ""
    return f"{verdict.validity.value} measurement ({why}{more})."


def _by_slo(picture: Picture, stages: Sequence[StageRow]) -> str:
    steps = ladder(stages)
    met = [row for row in steps if meets_slo(picture, row.stage) and _trusted(picture, row.stage)]
    if not met:
        best = steps[0]
        return f"No stage meets the SLO; already {best.stage} missed it: {_missed(picture, best.stage)}."
    best = met[-1]
    place = steps.index(best)
    below = [row.stage for row in steps[:place] if row not in met]
    beyond = steps[place + 1 :]
    said = f"{best.stage}: the highest load that meets the SLO, with {_figures(best)}"
    if below:
        said += f" (but {', '.join(below)} below it did not)"
    if beyond:
        return f"{said}; next, {beyond[0].stage} missed it: {_missed(picture, beyond[0].stage)}."
    skipped = f"; not run: {', '.join(picture.skipped)}" if picture.skipped else ""
    return f"{said}; no higher load was measured, so the limit may lie beyond{skipped}."


def _by_throughput(picture: Picture, stages: Sequence[StageRow]) -> str:
    steps = ladder([row for row in stages if _trusted(picture, row.stage)] or list(stages))
    best = max(steps, key=lambda row: _number(row, "output_tok_per_s") or 0.0)
    said = f"No SLO was given. Most output: {best.stage}, with {_figures(best)}"
    knee = knee_stage(steps)
    if knee is None or knee is best:
        return f"{said}."
    return f"{said}; the knee (most throughput for its latency) is {knee.stage}, with {_figures(knee)}."


def knee_stage(steps: Sequence[StageRow]) -> StageRow | None:
    """Return the stage of the greatest output tok/s / E2E mean; None where there are fewer than three steps.

    ``steps`` by load. None also where throughput does not grow at all on the way: then there is no curve.
    """
    powers = [
        (tokens / e2e_ms, row)
        for row in steps
        if (tokens := _number(row, "output_tok_per_s")) and (e2e_ms := _number(row, _latency(row, "e2e_ms_mean")))
    ]
    throughputs = [_number(row, "output_tok_per_s") or 0.0 for _, row in powers]
    if len(powers) < 3 or not any(later > earlier for earlier, later in pairwise(throughputs)):
        return None
    return max(powers, key=lambda power: power[0])[1]


def _figures(row: StageRow) -> str:
    ttft = f"TTFT p50 {_ms(row, 'ttft_ms_p50')}, p99 {_ms(row, 'ttft_ms_p99')}"
    tpot = f"TPOT p50 {_ms(row, 'tpot_ms_p50')}, p99 {_ms(row, 'tpot_ms_p99')}"
    schedule = " from schedule" if row.values["load"] == "open loop" else ""
    return f"{ttft}{schedule}, {tpot}, {numbers.three_digits(row.values['output_tok_per_s'])} output tok/s"


def _ms(row: StageRow, column: str) -> str:
    value = row.values[_latency(row, column)]
    bound = "≥" if "_scheduled_" in _latency(row, column) and row.values["scheduled_lower_bounds"] else ""
    return bound + duration(value)


def duration(value_ms: Value) -> str:
    """Return a latency in the unit in which one says it: 85.0 ms, 1.20 s."""
    if isinstance(value_ms, int | float) and value_ms >= 1000:
        return f"{numbers.seconds(value_ms)} s"
    return f"{numbers.three_digits(value_ms)} ms" if value_ms is not None else "unknown"


def _latency(row: StageRow, column: str) -> str:
    """Latencies count from the schedule where there is one."""
    if row.values["load"] != "open loop":
        return column
    return column.replace("ttft_ms_", "ttft_scheduled_ms_").replace("e2e_ms_", "e2e_scheduled_ms_")


def _missed(picture: Picture, stage: str) -> str:
    missed = [clause for clause in picture.slo.get(stage, ()) if not clause.passed]
    if missed:
        return ", ".join(f"{clause.clause} (got {got(clause)})" for clause in missed)
    return "its measurement is INVALID" if not _trusted(picture, stage) else "it has no verdict"


def got(clause: Verdict) -> str:
    """Return what an objective found, with its unit."""
    if clause.got is None:
        return "no sample"
    if clause.unit == "ms":
        return duration(clause.got)
    if clause.unit == "ratio":
        return f"{numbers.three_digits(clause.got * 100)} %"
    return f"{numbers.three_digits(clause.got)} {clause.unit}".rstrip()


def _trusted(picture: Picture, stage: str) -> bool:
    verdict = picture.verdicts.get(stage)
    return verdict is None or verdict.validity is not Validity.INVALID


def _number(row: StageRow, column: str) -> float | None:
    value = row.values[column]
    return float(value) if isinstance(value, int | float) else None
