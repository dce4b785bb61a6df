"""Writes a run down while it goes on and at its end: files, screen, pages, each from the same picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gevent.lock import RLock

from llm_locust.measure.record import RequestRecord
from llm_locust.outputs import Picture, RunState, TimelineRow
from llm_locust.outputs.console import Screen, next_steps
from llm_locust.wire.clock import Clock
from llm_locust.wire.turn import give_way

from . import view
from .pages import build_report
from .run import Run
from .team import Team
from .web import Board

SCREEN_EVERY_S = 10.0
ROWS_PER_PIECE = 32
"""So many lines of requests.csv take about a millisecond."""
BEYOND_S = 2
"""How far beyond now the last seconds are taken: all of them."""


class Writer:
    """Writes one run after another; a flush and the end never cross."""

    def __init__(self, team: Team, clock: Clock, users: Callable[[], int], screen: Screen, board: Board | None) -> None:
        self._team = team
        self._clock = clock
        self._users = users
        self._screen = screen
        self._board = board
        self._writing = RLock()
        self._screen_s = 0.0

    def begin(self, run: Run) -> None:
        """Make the files, and show the run, or its part after a reset, to the pages."""
        self._screen_s = self.now_s()
        if self._board is not None:
            self._board.begin(run.outputs.run, run.outputs.directory)

    def flush(self, run: Run, *, on_screen: bool) -> None:
        """Write what is new; `on_screen`: the tables each 10 s, too. Never holds the hub for long."""
        with self._writing:
            if run.finished:
                return
            self._team.settle()
            give_way()
            picture = self._picture(run)
            give_way()
            complete_s = self._team.complete_before_epoch_s()
            seconds = self._take_seconds(run, max(complete_s or 0, self.epoch_s() - view.LATEST_S))
            rows = self._write_rows(run)
            run.outputs.flush(picture, (), seconds)
            self._show(run, picture, seconds, rows, RunState.RUNNING)
        if on_screen and not run.drained and self.now_s() - self._screen_s >= SCREEN_EVERY_S:
            self._screen_s = self.now_s()
            self._screen.stages(picture)
            self._screen.progress(picture)

    def close(self, run: Run) -> Picture | None:
        """Write the final files and say how it went; None where that was done before."""
        with self._writing:
            if run.finished:
                return None
            self._team.settle()
            picture = self._picture(run, final=True)
            seconds, rows = self._take_seconds(run, self.epoch_s() + BEYOND_S), self._team.take_rows()
            state = RunState.ABORTED if run.aborted else run.state
            run.not_whole = run.outputs.close(picture, rows, seconds, state)
            self._show(run, picture, seconds, rows, state)
            run.finished = True
        failures = run.outputs.failures.most_frequent_first()
        self._screen.end(picture, failures, run.not_whole)
        if run.aborted:
            self._screen.say(run.aborted)
        build_report(run.outputs.directory, self._screen.say)
        outputs = run.outputs
        self._screen.files(outputs.paths, next_steps(picture, failures, outputs.directory, outputs.run.chosen_classes))
        return picture

    def _take_seconds(self, run: Run, before_epoch_s: int) -> list[TimelineRow]:
        """Take the seconds that are complete."""
        run.outputs.run = replace(run.outputs.run, workers=self._team.facts())
        return list(view.timeline_rows(self._team.numbers, before_epoch_s, run.around, self._team))

    def _write_rows(self, run: Run) -> list[RequestRecord]:
        """Take the records that came since the last look, a piece at a time: who is ended here loses none."""
        written: list[RequestRecord] = []
        while rows := self._team.take_rows(ROWS_PER_PIECE):
            run.outputs.write_rows(rows)
            written += rows
            give_way()
        return written

    def _show(
        self, run: Run, picture: Picture, seconds: list[TimelineRow], rows: list[RequestRecord], state: RunState
    ) -> None:
        """Put the picture before the pages."""
        if self._board is not None and self._board.live is not None:
            live = self._board.live
            failures = run.outputs.failures.most_frequent_first()
            live.add(picture, seconds, self._team.workers_now(), rows, failures, state)
            self._board.picture = picture

    def _picture(self, run: Run, *, final: bool = False) -> Picture:
        progress = view.progress_of(
            run.conductor,
            users=self._users(),
            in_flight=self._team.in_flight(),
            elapsed_s=self.now_s() - run.started_s,
            run_time_s=run.run_time_s,
        )
        return view.take_picture(
            self._team,
            run.conductor,
            run.objectives,
            self._clock.now_ns(),
            self._clock.epoch_ns,
            progress,
            findings=run.findings,
            final=final,
        )

    def now_s(self) -> float:
        """The monotonic instant in seconds."""
        return self._clock.now_ns() / 1e9

    def epoch_s(self) -> int:
        """The second that it is."""
        return self._clock.epoch_ns(self._clock.now_ns()) // 1_000_000_000
