"""Ends a run on the master or the local runner: its drain, its final files, its exit code.

Locust's events and what happens in them: `test_stopping` is the drain gate, `test_stop` only lets a run of the web
page be finished soon, `quitting` stops a test that still runs, finishes, and sets the exit code. Every step happens
once, however often it is fired.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent
from locust import log as locust_log
from locust.runners import STATE_RUNNING, STATE_SPAWNING, MasterRunner

from llm_locust.load.staged import StagedShape
from llm_locust.outputs import REPORT, Picture, RunState

from . import view
from .drain import cause_of_stop, limit_of
from .finish import Result, exit_code, ok_and_failed
from .listener_errors import ListenerErrors
from .page_link import link_report
from .run import Run
from .team import Team
from .writer import Writer

logger = logging.getLogger(__name__)


class Ending:
    """Ends one run after another; `active` gives the run that is on, until it is finished."""

    def __init__(
        self,
        environment: Any,
        team: Team,
        writer: Writer,
        listener_errors: ListenerErrors,
        active: Callable[[], Run | None],
    ) -> None:
        self._environment = environment
        self._runner = environment.runner
        self._team = team
        self._writer = writer
        self._listener_errors = listener_errors
        self._active = active
        self._terminating = False
        self._report: Path | None = None
        self._code: int | None = None
        self.over = False
        """All files are final and Locust ends within a second; an interrupt would only leave a traceback."""

    def start(self) -> None:
        """Listen to Locust."""
        events = self._environment.events
        events.test_stopping.add_listener(self._on_test_stopping)
        events.test_stop.add_listener(self._on_test_stop)
        events.quitting.add_listener(self._on_quitting)

    # ---- what ends a run early ----

    def abort(self, run: Run, reason: str) -> None:
        """End a run that has no sense any more, and say why."""
        run.aborted = reason
        logger.error("llm-locust: %s", reason)
        self.end(run)

    def end(self, run: Run) -> None:
        """End a run, once: a second stop would cut the drain of the first."""
        run.ending = True
        self.end_test()

    def end_test(self) -> None:
        """Have Locust end its test, and itself where it has no page to wait at."""
        gevent.spawn(self._runner.quit if self._headless else self._runner.stop)

    # ---- Locust's events ----

    def _on_test_stopping(self, environment: Any, **_: Any) -> None:
        run = self._active()
        if run is None:
            return
        cause = cause_of_stop(self._terminating)
        if not run.conductor.finished and not run.aborted and not self._run_time_over(run):
            run.state = RunState.STOPPED
        ended_by = "aborted" if run.aborted else "run time" if self._run_time_over(run) else cause.value
        run.conductor.stop(ended_by)
        run.gate.drain(cause, limit_of(cause, run.drain_s))
        run.drained = True

    def _run_time_over(self, run: Run) -> bool:
        limit_s = run.run_time_s
        return limit_s is not None and self._writer.now_s() - run.started_s >= limit_s - 1.0

    def _on_test_stop(self, environment: Any, **_: Any) -> None:
        """Everything has been handed in; headless, `quitting` follows and finishes."""
        shape = self._environment.shape_class
        if isinstance(shape, StagedShape):
            shape.conductor = None
        if not self._headless:
            gevent.spawn(self.finish)

    def _on_quitting(self, environment: Any, **_: Any) -> None:
        self._terminating = True
        if self._runner.state in (STATE_RUNNING, STATE_SPAWNING):
            try:
                self._stop_test()
            except KeyboardInterrupt:
                logger.warning("llm-locust: stopped again; writing what is there")
        self.finish()
        page = environment.parsed_options.html_file
        if page and self._report is not None:
            link_report(Path(page), self._report)
        if self._code is not None:
            environment.process_exit_code = self._code
        self.over = True

    def _stop_test(self) -> None:
        if isinstance(self._runner, MasterRunner):
            self._runner.stop(send_stop_to_client=False)  # `quit` follows, for them too
        else:
            self._runner.stop()

    # ---- files and exit code ----

    def finish(self) -> None:
        """Write the final files and find the exit code; once per run."""
        run = self._active()
        if run is not None:
            self._report = run.outputs.directory / REPORT
            picture = self._writer.close(run)
            if picture is not None:
                self._code = self._exit_code(run, picture)

    def _exit_code(self, run: Run, picture: Picture) -> int:
        ok, failed = ok_and_failed(self._team.numbers.totals())
        return exit_code(
            Result(
                invalid=view.is_invalid(picture),
                unhandled=bool(locust_log.unhandled_greenlet_exception)
                or self._listener_errors.count + self._team.listener_errors() > 0,
                slo_met=bool(view.slo_met(picture)) if run.objectives is not None else None,
                ok=ok,
                failed=failed,
                other_errors=bool(self._runner.exceptions) or bool(self._runner.errors),
                aborted=bool(run.aborted),
                measured=view.measured(picture),
                whole=view.whole(picture),
                files_whole=not run.not_whole,
                on_error=self._environment.parsed_options.exit_code_on_error,
            )
        )

    @property
    def _headless(self) -> bool:
        return bool(self._environment.parsed_options.headless)
