"""What the outputs are shown: the picture of a run at one instant, and the seconds of its timeline.

Numbers come from the aggregate; what is thought of them from validity and SLO; where the run stands from the
conductor. Knows no Locust.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from llm_locust.load.conductor import Conductor
from llm_locust.load.crew import Applied
from llm_locust.measure.aggregate import Aggregate
from llm_locust.measure.snapshot import ALL, RUN, Snapshot, StageFacts, snapshot
from llm_locust.outputs import Picture, Progress, StageVerdict, TimelineRow, Validity
from llm_locust.outputs.picture import AppliedStage

from .announce import left_s
from .health import HealthBooks
from .objectives import Objectives
from .team import Team
from .validity import NOTHING_MEASURED, Circumstances, judge, worst_of

LATEST_S = 10
"""A second is written when every live worker has reported past it, at the latest after this time."""
REMEMBERED_S = 600
OPENING = "opening"
"""What a stage does until its gate opens: it is sent, and users come or go. Not a phase of any number."""


class Surroundings:
    """Which stage, phase and how many users each second had; bounded."""

    def __init__(self) -> None:
        self._seconds: dict[int, tuple[str, str, int]] = {}

    def note(self, epoch_s: int, stage: str, phase: str, users: int) -> None:
        """Remember the second."""
        self._seconds[epoch_s] = (stage, phase, users)
        for second in [second for second in self._seconds if second < epoch_s - REMEMBERED_S]:
            del self._seconds[second]

    def of(self, epoch_s: int) -> tuple[str | None, str | None, int | None]:
        """Stage, phase and users of a second, None where nobody looked."""
        return self._seconds.get(epoch_s, (None, None, None))


def stage_facts(conductor: Conductor | None) -> dict[str, StageFacts]:
    """What the plan says of the stages that ran, in their order."""
    applied = [] if conductor is None else conductor.applied
    return {
        row.label: StageFacts(users=row.users, rate_per_s=row.rate_per_s, open_loop=row.open_loop)
        for row in applied
        if not row.skipped
    }


def take_picture(
    team: Team,
    conductor: Conductor | None,
    objectives: Objectives | None,
    now_ns: int,
    epoch_ns: Callable[[int], int],
    progress: Progress | None,
    *,
    findings: Sequence[str] = (),
    final: bool = False,
) -> Picture:
    """Make the picture at an instant of the clock that `epoch_ns` turns into epoch time.

    `findings` are the run's own, `final`: all has been handed in, so totals can be compared.
    """
    shown = snapshot(team.numbers, epoch_ns(now_ns), stage_facts(conductor))
    applied = [] if conductor is None else conductor.applied
    rows = {row.label: row for row in applied}
    drained = {row.label for row in applied if row.drained_ns is not None}
    verdicts = {}
    for row in shown.rows:
        if row.name == ALL:
            ended = final or row.stage in drained
            around = _circumstances(team, team.health, row.stage, rows.get(row.stage), ended=ended)
            verdicts[row.stage] = replace(judge(row.values, around), finished=ended)
    verdicts |= {row.label: _without_window(row) for row in applied if row.label not in verdicts and row.unmeasured}
    verdicts[RUN] = _run_verdict(team, verdicts, findings, final)
    judged = {} if objectives is None else objectives.verdicts(shown.rows)
    skipped = {row.label: row.skipped for row in applied if row.skipped}
    carried_out = tuple(_applied(row, epoch_ns) for row in applied)
    return Picture(
        snapshot=shown, verdicts=verdicts, slo=judged, skipped=skipped, applied=carried_out, progress=progress
    )


def _applied(row: Applied, epoch_ns: Callable[[int], int]) -> AppliedStage:
    """Turn the conductor's account of a stage into epoch time."""
    instants = [
        None if at_ns is None else epoch_ns(at_ns)
        for at_ns in (row.opened_ns, row.steady_ns, row.closed_ns, row.drained_ns)
    ]
    return AppliedStage(
        stage=row.label,
        users=row.users,
        rate_per_s=row.rate_per_s,
        opened_epoch_ns=instants[0],
        steady_epoch_ns=instants[1],
        closed_epoch_ns=instants[2],
        drained_epoch_ns=instants[3],
        ended_by=row.ended_by,
        skipped=row.skipped,
        notes=tuple(row.notes),
    )


def _without_window(row: Applied) -> StageVerdict:
    """The verdict of a stage that ended while users came or warmed up."""
    reason = f"it ended before its window ({row.ended_by}): nothing was measured"
    return StageVerdict(validity=Validity.SUSPECT, reasons=(reason,), findings=tuple(row.notes), finished=True)


def _circumstances(team: Team, health: HealthBooks, stage: str, row: Applied | None, *, ended: bool) -> Circumstances:
    book = health.of(stage)
    return Circumstances(
        loop_lag_p99_ms=book.loop_lag_p99_ms,
        cpu_percent=book.cpu_percent,
        clock_steps=book.clock_steps,
        clock_uncertainty_ms=team.clock_uncertainty_ms(),
        notes=() if row is None else tuple(row.notes),
        whole_requests=row is not None and row.whole_requests,
        ended=ended,
    )


def _run_verdict(team: Team, verdicts: dict[str, StageVerdict], findings: Sequence[str], final: bool) -> StageVerdict:
    """The run's: its worst stage's, and what concerns no single stage."""
    around = Circumstances(
        reports_missing=team.reports_missing(),
        totals_that_differ=team.differences() if final else (),
        workers_lost=team.lost(),
        users_replaced=team.users_replaced,
    )
    at_large = judge({}, around)
    verdict = worst_of(verdicts, at_large.reasons)
    if final and not verdicts and verdict.validity is Validity.VALID:
        verdict = replace(verdict, validity=Validity.SUSPECT, reasons=(NOTHING_MEASURED,))
    verdict = replace(verdict, finished=final, findings=(*findings, *team.sent_away(), *verdict.findings))
    if around.users_replaced:
        verdict = replace(verdict, findings=(*around.workers_lost, *verdict.findings))
    return verdict


def progress_of(
    conductor: Conductor, *, users: int, in_flight: int, elapsed_s: float, run_time_s: float | None
) -> Progress:
    """Where the run stands, with the time that is left as far as that is known."""
    row = conductor.row
    begun = {applied.label for applied in conductor.applied}
    waiting = sum(stage.label not in begun for stage in conductor.waiting)
    ran = sum(not applied.skipped for applied in conductor.applied)
    return Progress(
        stage=None if row is None else row.label,
        phase="" if row is None else conductor.phase if row.opened_ns is not None else OPENING,
        stage_number=ran,
        stages=ran + waiting,
        users=users,
        in_flight=in_flight,
        elapsed_s=elapsed_s,
        left_s=left_s(conductor.left_s(), run_time_s, elapsed_s),
    )


def timeline_rows(numbers: Aggregate, before_epoch_s: int, around: Surroundings, team: Team) -> Iterable[TimelineRow]:
    """Take the seconds that are complete out of the numbers."""
    lag_ms = team.health.worst_recent_lag_ms()
    for second in numbers.pop_seconds(before_epoch_s):
        stage, phase, users = around.of(second.epoch_s)
        yield TimelineRow(second=second, stage=stage, phase=phase, users=users, loop_lag_ms_max=lag_ms)


def is_invalid(picture: Picture) -> bool:
    """Whether the measurement as a whole cannot be trusted."""
    return picture.verdicts[RUN].validity is Validity.INVALID


def slo_met(picture: Picture) -> bool | None:
    """Whether every stage met every objective; None without an SLO. Nothing measured is not met."""
    if not picture.slo:
        return None
    return all(verdict.passed for verdicts in picture.slo.values() for verdict in verdicts)


def measured(picture: Picture) -> bool:
    """Whether any request was measured."""
    values = picture.snapshot.run.values
    return any(values[f"requests_{end}"] for end in ("ok", "failed", "unfinished"))


def whole(picture: Picture) -> bool:
    """Whether every stage of the plan was measured."""
    return not picture.skipped and not any(map(_ended_unmeasured, picture.applied))


def _ended_unmeasured(stage: AppliedStage) -> bool:
    if stage.skipped or stage.closed_epoch_ns is None or stage.ended_by == "edit":
        return False
    return stage.steady_epoch_ns is None or stage.steady_epoch_ns >= stage.closed_epoch_ns


def empty(shown: Snapshot) -> bool:
    """Whether nothing has been measured or excluded yet."""
    return not shown.rows and not shown.excluded
