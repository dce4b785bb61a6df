"""Runs the plan: which stage comes when, on the master or the local runner.

Between steps the load drains, so that each level stands alone: close the gate, wait until every worker says drained,
send the new stage, wait for every acknowledgement, change the users, wait until they are there, open the gate. Then
ramp, warm-up and the window follow without a pause. Stages that run through follow each other by marks alone.

Knows no Locust, no sockets and no clock: it speaks to the outside through a `Crew`. Instants are ns of the master's
monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from llm_locust.load.course import LEAD_NS, Course, first_phase, users_limit_ns
from llm_locust.load.crew import Applied, Crew, Errand
from llm_locust.load.deal import order_of
from llm_locust.load.logbook import Logbook
from llm_locust.load.plan import estimated_duration_s
from llm_locust.load.stage import DRAIN, RAMP, STEADY, Stage, StageOrder

MOST_FAILURES_RATIO = 0.5
"""A sweep stops climbing after a level with more failures than this, or without a success."""

INDEX_STEP = 10_000
"""A stage's request indices begin at the next multiple of this: room for what a lost worker did not report."""


class Conductor:
    """Drives the stages of a plan; `step` (or `tick`) is to be called at least once a second."""

    def __init__(
        self,
        plan: Sequence[Stage],
        crew: Crew,
        *,
        seed: int,
        drain_limit_s: float = 1800.0,
        run_time_s: float | None = None,
        before_stage: Callable[[], Errand] | None = None,
    ) -> None:
        """Begin before the first stage. ``run_time_s`` ends the run where the plan is not done before.

        ``before_stage`` begins what is to be done while nothing is in flight; the stage opens when it is over.
        """
        self._log = Logbook()
        self.finished = False
        self.stopped = False
        self.target: tuple[int, float] = (0, 1.0)
        self.doing = ""  # what the last step waits for: acknowledgements, users, or a phase
        self._plan = plan
        self._crew = crew
        self._seed = seed
        self._drain_limit_ns = int(drain_limit_s * 1e9)
        self._run_ends_ns = None if run_time_s is None else crew.now_ns() + int(run_time_s * 1e9)
        self._before_stage = before_stage
        self._next = 0
        self._number = -1
        self._first_index = 0
        self._first_prompt = 0
        self._asked = crew.asked()
        self._order: StageOrder | None = None
        self._course: Course | None = None
        self._script = self._play()

    # ---- what the plugin calls ----

    def step(self) -> None:
        """Do what is to be done now; never blocks."""
        if self.finished:
            return
        if self._run_ends_ns is not None and self._crew.now_ns() >= self._run_ends_ns:
            self._run_ends_ns = None
            self._script = self._cut_short("run time")
        self.doing = next(self._script, "")
        self.finished = not self.doing

    def tick(self) -> tuple[int, float] | None:
        """Answer Locust's shape: (users, spawn rate), None at the plan's end; after `stop` the last answer again."""
        self.step()
        return None if self.finished and not self.stopped else self.target

    def stop(self, reason: str = "stopped") -> None:
        """The test ends from outside: note it and do nothing more (the drain is the caller's)."""
        if self.finished:
            return
        self.finished = self.stopped = True
        row = self.row
        self._skip_rest(reason)
        if row is not None and row.opened_ns is not None and row.closed_ns is None:
            self._log.close(self._crew.now_ns(), reason)

    @property
    def applied(self) -> Sequence[Applied]:
        """What became of the plan so far."""
        return self._log.applied

    @property
    def row(self) -> Applied | None:
        """The row that runs, or the last one that ran."""
        return self._log.row

    @property
    def phase(self) -> str:
        """The phase that was announced last."""
        return DRAIN if self._course is None else self._course.phase

    @property
    def waiting(self) -> Sequence[Stage]:
        """The stages of the plan that are still to come."""
        return () if self.finished else self._plan[self._next :]

    def left_s(self) -> float | None:
        """Estimate the time until the plan is done, None where its end is not known.

        Before the first warm-up it is the least time; after it a request is taken to last as long as the warm-up did.
        """
        if self.finished:
            return 0.0
        request_s = self._log.request_s(self._plan)
        rest_s = estimated_duration_s(self.waiting, request_s)
        if self._course is None:
            return rest_s
        tally = self._crew.tally(self._log.running.label)
        of_row_s = self._log.left_of_row_s(self._course, tally, self._crew.now_ns(), request_s)
        return None if of_row_s is None else rest_s + of_row_s

    # ---- the script: each `yield` waits for the next step ----

    def _play(self) -> Iterator[str]:
        """Go through the plan."""
        fallen: dict[str, str] = {}
        while self._next < len(self._plan):
            stage = self._plan[self._next]
            if stage.sweep in fallen:
                self._log.skip(stage, fallen[stage.sweep])
                self._next += 1
                continue
            leg = self._leg()
            yield from self._prepare(leg)
            yield from self._serve_leg(leg)
            yield from self._drain()
            reason = self._fell(stage.label) if stage.sweep else ""
            if reason:
                fallen[stage.sweep] = reason

    def _leg(self) -> Sequence[Stage]:
        """Give the next stage and those that run through from it."""
        until = self._next + 1
        while until < len(self._plan) and self._plan[until].through:
            until += 1
        return self._plan[self._next : until]

    def _prepare(self, leg: Sequence[Stage]) -> Iterator[str]:
        """Send the stage, bring its users, open its gate."""
        stage = leg[0]
        self._number += 1
        self._order = order_of(leg, self._number, self._seed, self._first_index, self._first_prompt)
        row = self._log.begin(stage, stage.label, self._number)
        errand = None if self._before_stage is None else self._before_stage()
        while errand is not None and not errand.ready():
            yield "preparation"
        row.notes += (errand.value or ()) if errand is not None else ()
        self._crew.send_stage(self._order, stage.requests)
        while not self._crew.acked(self._number):
            yield "acknowledgements"
        self.target = (stage.users, stage.spawn_rate)
        limit_ns = self._crew.now_ns() + users_limit_ns(stage)
        while stage.users_first and not self._users_there() and self._crew.now_ns() < limit_ns:
            yield "users"
        if stage.users_first and not self._users_there():
            row.notes.append(f"opened with {self._crew.user_count()} of {stage.users} users")
        at_ns = self._crew.now_ns() + LEAD_NS
        self._course = Course(stage, first_phase(stage, users_there=self._users_there()), at_ns)
        self._crew.open(at_ns, self._course.phase)
        row.opened_ns, row.steady_ns = at_ns, self._course.steady_ns

    def _serve_leg(self, leg: Sequence[Stage]) -> Iterator[str]:
        """Run a stage, and those that run through from it, each from the instant at which the one before ended."""
        course = self._course
        assert course is not None
        boundary_ns = course.phase_ns
        for stage in leg:
            self._next += 1
            if len(leg) > 1:
                assert stage.hold_s is not None
                boundary_ns += int(stage.hold_s * 1e9)
                course.end_ns = boundary_ns
            if stage is not leg[0]:
                yield from self._follow_on(stage, course)
            yield from self._serve(course)
        row = self._log.running
        assert row.closed_ns is not None
        self._crew.mark(row.label, DRAIN, row.closed_ns)

    def _follow_on(self, stage: Stage, course: Course) -> Iterator[str]:
        """Begin the row of a stage that runs through, in the phase of the one before; users change at its instant."""
        at_ns = self._log.running.closed_ns
        assert at_ns is not None
        course.stage = stage
        row = self._log.begin(stage, stage.label, self._number)
        row.opened_ns = at_ns
        row.steady_ns = at_ns if course.phase == STEADY else None
        self._crew.mark(row.label, course.phase, at_ns)
        while self._crew.now_ns() < at_ns:
            yield course.phase
        self.target = (stage.users, stage.spawn_rate)

    def _serve(self, course: Course) -> Iterator[str]:
        """Follow the course to the end of its window."""
        while True:
            now_ns, row = self._crew.now_ns(), self._log.running
            tally = self._crew.tally(row.label)
            change = course.advance(now_ns, users_there=self._users_there(), tally=tally)
            if course.note:
                row.notes.append(course.note)
                course.note = ""
            if change is not None:
                self._crew.mark(row.label, *change)
                row.steady_ns = course.steady_ns
                row.finished_before = 0 if tally is None else tally.finished
            end = course.end(now_ns, tally)
            if end is not None:
                row.closed_ns, row.ended_by = end
                if course.stage.release_together and row.ended_by == "requests":
                    row.notes.append(_told_batch(row))
                return
            self._follow_edit(course)
            yield course.phase

    def _drain(self) -> Iterator[str]:
        """Wait until nothing is in flight, at most the drain limit; then cut what is left."""
        row = self._log.running
        yield DRAIN
        self._course = None
        limit_ns = self._crew.now_ns() + self._drain_limit_ns
        cut = False
        while not self._drained(row.label):
            if not cut and self._crew.now_ns() >= limit_ns:
                cut = True
                self._crew.cut()
                row.notes.append(f"the drain was cut after {self._drain_limit_ns / 1e9:g} s")
            yield DRAIN
        row.drained_ns = self._crew.now_ns()
        tallies = [self._crew.tally(row.label) for row in self._log.rows_of(self._number)]
        used = max((tally.index_end for tally in tallies if tally is not None), default=0)
        self._first_prompt += used
        self._first_index += ((used + INDEX_STEP // 2) // INDEX_STEP + 1) * INDEX_STEP

    def _drained(self, label: str) -> bool:
        tally = self._crew.tally(label)
        return tally is not None and tally.drained

    def _cut_short(self, reason: str) -> Iterator[str]:
        """End the run before its plan is done: close the gate, drain, skip the rest."""
        row = self.row
        self._skip_rest(reason)
        if row is None or row.opened_ns is None or row.drained_ns is not None:
            return
        if row.closed_ns is None:
            # Not before what was announced: a window or a row that begins after the drain would open the gates again.
            announced_ns = 0 if self._course is None else self._course.phase_ns
            at_ns = max(self._crew.now_ns() + LEAD_NS, row.opened_ns, announced_ns)
            row.close(at_ns, reason)
            self._crew.mark(row.label, DRAIN, at_ns)
        yield from self._drain()
        if row.closed_ns == row.opened_ns:  # it was only announced
            row.opened_ns, row.skipped = None, reason

    # ---- rows ----

    def _users_there(self) -> bool:
        return self._crew.user_count() == self.target[0]

    def _skip_rest(self, reason: str) -> None:
        self._log.skip_rest(self._plan[self._next :], reason)
        self._next = len(self._plan)

    def _fell(self, label: str) -> str:
        """Say why a sweep stops after this level, '' where it goes on."""
        tally = self._crew.tally(label)
        if tally is None or not tally.steady_ok:
            return f"no request of {label} succeeded"
        ratio = tally.steady_failed / (tally.steady_ok + tally.steady_failed)
        return f"{ratio:.0%} of the requests of {label} failed" if ratio > MOST_FAILURES_RATIO else ""

    # ---- users and rate changed by hand ----

    def _follow_edit(self, course: Course) -> None:
        """Split the row when users or rate were changed in the web form; a sweep and a ramp keep their own."""
        asked = self._crew.asked()
        if asked == self._asked:
            return
        before, self._asked = self._asked, asked
        row, stage = self._log.running, course.stage
        if stage.sweep or course.end_ns is not None:
            row.notes.append("an edit of users or rate was ignored: the shape varies them")
            return
        users = asked[0] if asked[0] is not None and asked[0] != before[0] else row.users
        rate = asked[1] if stage.open_loop and asked[1] is not None and asked[1] != before[1] else row.rate_per_s
        if (users, rate) != (row.users, row.rate_per_s):
            self._split(course, row, users, rate)

    def _split(self, course: Course, row: Applied, users: int, rate_per_s: float | None) -> None:
        """Go on under other users or another rate in a row of its own; the end of the stage stays where it was."""
        assert self._order is not None
        at_ns = max(self._crew.now_ns() + LEAD_NS, course.phase_ns)
        row.closed_ns, row.ended_by = at_ns, "edit"
        pieces = len(self._log.rows_of(self._number))
        known = {stage.label for stage in self._plan} | {row.label for row in self._log.applied}
        while f"{course.stage.label}-{pieces + 1}" in known:
            pieces += 1
        stage = msgspec.structs.replace(course.stage, users=users, rate_per_s=rate_per_s, spread_s=0.0)
        split = self._log.begin(stage, f"{course.stage.label}-{pieces + 1}", self._number)
        split.opened_ns = at_ns
        if rate_per_s != row.rate_per_s and rate_per_s is not None:
            offset_s = (at_ns - self._opened_ns()) / 1e9
            self._order = msgspec.structs.replace(self._order, profile=(*self._order.profile, (offset_s, rate_per_s)))
            self._crew.send_stage(self._order, stage.requests)
        self.target = (users, stage.spawn_rate)
        course.restart(stage, RAMP, at_ns)
        self._crew.mark(split.label, RAMP, at_ns)

    def _opened_ns(self) -> int:
        """Give the instant from which the running stage's schedule counts."""
        return next(row.opened_ns for row in self._log.rows_of(self._number) if row.opened_ns is not None)


def _told_batch(row: Applied) -> str:
    """Tell the latency of a batch: its throughputs are those of the window, which lasts as long."""
    assert row.closed_ns is not None
    assert row.steady_ns is not None
    latency_s = (row.closed_ns - row.steady_ns) / 1e9
    return f"batch of {row.users}: {latency_s:.3f} s from its release to the end of its last answer"
