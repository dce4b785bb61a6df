"""Leads a run on the master or the local runner: begins it, and looks after it until it ends (`ending`).

Locust's `test_start` begins a run; a shape begins it one tick earlier.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import gevent
import msgspec
from locust import log as locust_log

from llm_locust.load.conductor import Conductor
from llm_locust.load.crew import Errand
from llm_locust.load.flush import flush_caches
from llm_locust.load.plan import lengths_of, plain_stage
from llm_locust.load.preflight import Preflight
from llm_locust.load.stage import Stage
from llm_locust.load.staged import StagedShape
from llm_locust.outputs import Outputs, make_run_directory
from llm_locust.outputs.console import Screen
from llm_locust.prompts.source import PromptError

from . import settings
from .announce import estimate_line, plan_lines
from .checks import llm_classes, of_form
from .drain import Cause, DrainGate, limit_of
from .ending import Ending
from .facts import estimates, run_facts
from .finish import FailureWatch, ok_and_failed
from .library import Dataset
from .listener_errors import ListenerErrors
from .messages import RunOrder
from .objectives import objectives
from .prune import prune
from .run import Run
from .state import LLM, fresh_seed
from .team import Team
from .web import Board
from .writer import Writer

logger = logging.getLogger(__name__)

WATCH_EVERY_S = 0.5
FLUSH_EVERY_S = 2.0


class Lead:
    """Leads one run after another. `found` is what the pre-flight of the next run found."""

    def __init__(
        self,
        environment: Any,
        llm: LLM,
        team: Team,
        listener_errors: ListenerErrors,
        screen: Screen,
        board: Board | None,
    ) -> None:
        self._environment = environment
        self._runner = environment.runner
        self._llm = llm
        self._team = team
        self._listener_errors = listener_errors
        self.screen = screen
        self._writer = Writer(team, llm.clock, lambda: environment.runner.user_count, screen, board)
        self._greenlets: list[Any] = []
        self.found: Preflight | None = None
        self.run: Run | None = None
        self.ending = Ending(environment, team, self._writer, listener_errors, lambda: self.active)

    # ---- life ----

    def start(self) -> None:
        """Listen to Locust, and look after runs."""
        self.ending.start()  # its part of `quitting` comes first
        events = self._environment.events
        events.test_start.add_listener(self._on_test_start)
        events.spawning_complete.add_listener(self._on_spawning_complete)
        events.reset_stats.add_listener(self._on_reset)
        events.quitting.add_listener(self._on_quitting)
        self._team.start()
        self._greenlets = [gevent.spawn(self._watch), gevent.spawn(self._flush)]

    @property
    def active(self) -> Run | None:
        """The run that is on, until it is finished."""
        return None if self.run is None or self.run.finished else self.run

    def streams_left(self) -> int | None:
        """Streams that are still open while the run is ending; None where none is."""
        run = self.active
        return None if run is None or not run.gate.begun else self._team.in_flight()

    def adopt(self, shape: Any) -> None:
        """Let a shape begin runs here; None, or a plain shape of Locust, needs nothing but its runner."""
        if shape is not None:
            shape.runner = self._runner
        if isinstance(shape, StagedShape):
            shape.begin = self.begin_shape
            shape.conductor = None

    def begin_shape(self, shape: StagedShape) -> Conductor:
        """Begin a run by a shape's plan: at its first tick, before Locust's `test_start`."""
        found = self._settings_now()
        return self._begin(found, shape.plan(found), type(shape).__name__, shape.run_limit_s(found)).conductor

    def _on_test_start(self, environment: Any, **_: Any) -> None:
        try:
            self._start_test()
        except Exception:  # Locust swallows it, and its users would wait for a run that never begins
            logger.exception("llm-locust: the run could not begin")
            locust_log.unhandled_greenlet_exception = True
            self.ending.end_test()

    def _start_test(self) -> None:
        run = self.active
        if run is None or run.test_started:
            found = self._settings_now()
            spawn_rate = float(self._environment.parsed_options.spawn_rate or 1)
            shape = self._environment.shape_class
            run = self._begin(found, [plain_stage(found, spawn_rate)], type(shape).__name__ if shape else None, None)
        run.test_started = True

    def _settings_now(self) -> settings.Settings:
        """The command line's for the run that starts by itself, the form's for those after it.

        Locust writes its own defaults (1 user) over what was not given before it starts a test.
        """
        parsed = self._environment.parsed_options
        if self.run is None and (parsed.headless or parsed.autostart):
            return self._llm.settings
        found, _ = settings.read(parsed)
        return of_form(found, self._environment.shape_class)

    def _begin(
        self, found: settings.Settings, plan: Sequence[Stage], shape: str | None, run_time_s: float | None
    ) -> Run:
        """Begin a run: its folder, its order to every process, its conductor, its files."""
        self.ending.finish()
        self._llm.settings = found
        self._listener_errors.reset()
        started = datetime.now().astimezone()
        model = found.model or (self.found.model if self.found is not None else None)
        directory = make_run_directory(Path(found.out), found.name or model or "run", shape, started)
        datasets, findings, unopened = self._prompts(found, plan)
        lengths = lengths_of if unopened else self._lengths(found)
        order = RunOrder(
            run_id=directory.name,
            part=0,
            seed=fresh_seed() if found.seed is None else found.seed,
            raw=dict(found.raw),
            hosts=found.hosts,
            found=None if self.found is None else msgspec.to_builtins(self.found),
            datasets=datasets,
            slos={stage.label: stage.slo for stage in plan},
            most_users=max((stage.users for stage in plan), default=0),
        )
        refused = [*unopened, *self._team.begin(order)]
        facts = run_facts(self._environment, found, order, started, shape, self.found)
        outputs = Outputs(facts, directory, self.screen.say)
        outputs.open()
        run = self.run = Run(
            order=order,
            outputs=outputs,
            conductor=Conductor(
                plan,
                self._team.crew,
                seed=order.seed,
                drain_limit_s=limit_of(Cause.PLANNED, found.drain_s),
                run_time_s=run_time_s,
                before_stage=self._flush_cache if found.flush_cache else None,
            ),
            gate=DrainGate(self._team, self._writer.now_s, self.screen.say),
            objectives=objectives(found, llm_classes(self._environment.user_classes), order.slos),
            findings=findings,
            started_s=self._writer.now_s(),
            failure_watch=FailureWatch(found.stop_on_failures_s),
            run_time_s=run_time_s if isinstance(self._environment.shape_class, StagedShape) else found.run_time_s,
            drain_s=found.drain_s,
        )
        self.screen.plan(plan_lines(plan, found.run_time_s, lengths))
        for finding in findings:
            self.screen.say(finding)
        self._writer.begin(run)
        if refused:
            self.ending.abort(run, "; ".join(refused))
        return run

    def _prompts(
        self, found: settings.Settings, plan: Sequence[Stage]
    ) -> tuple[tuple[Dataset, ...], tuple[str, ...], list[str]]:
        """The files of the plan's prompts, what is to be said of prompts and lengths, and what could not be opened."""
        classes = llm_classes(self._environment.user_classes)
        try:
            library = self._llm.library_for(found)
            said = (*library.notes(plan, classes), *library.unused(plan, classes))
            said += estimates(self.found, library.least_tokens(plan, classes))
            return library.datasets(plan, classes), said, []
        except PromptError as error:
            return (), (), [str(error)]

    def _lengths(self, found: settings.Settings) -> Callable[[Stage], tuple[str, str]]:
        """What spells the token lengths of a stage."""
        classes = llm_classes(self._environment.user_classes)
        return partial(self._llm.library_for(found).lengths, classes=classes)

    def _flush_cache(self) -> Errand:
        """Empty the prefix cache of every server."""
        hosts = sorted({cls.host for cls in llm_classes(self._environment.user_classes) if cls.host})
        options = self._llm.options
        errand: Errand = gevent.spawn(flush_caches, options, options.host or ",".join(hosts), self._llm.transport)
        return errand

    # ---- resets ----

    def _on_reset(self, **_: Any) -> None:
        """The web page's reset: Locust fires it on the master only."""
        run = self.active
        if run is not None:
            after_s = self._writer.now_s() - run.started_s
            run.findings += (
                f"the numbers were reset after {after_s:.1f} s: requests that ended before are in none of them, "
                "and only in part in requests.csv",
            )
            run.order = msgspec.structs.replace(run.order, part=run.order.part + 1)
            self._team.reset(run.order.part)
            self._writer.begin(run)

    def _on_spawning_complete(self, user_count: int, **_: Any) -> None:
        """--reset-stats: once, when the first users are there; a worker that joins resets nothing."""
        run = self.active
        if run is not None and self._environment.reset_stats and user_count and not run.reset_at_full_load:
            run.reset_at_full_load = True
            self._on_reset()

    # ---- while it runs ----

    def _watch(self) -> None:
        while True:
            gevent.sleep(WATCH_EVERY_S)
            guarded("watching the run", self._watch_once)

    def _watch_once(self) -> None:
        run = self.active
        if run is None:
            self._team.watch()
            return
        self._team.watch()
        row = run.conductor.row
        phase = run.conductor.phase if row is not None and row.opened_ns is not None else ""
        run.around.note(self._writer.epoch_s(), row.label if row else "", phase, self._runner.user_count)
        prune(self._environment.stats, self._llm.clock.epoch_ns(self._llm.clock.now_ns()) / 1e9)
        if run.ending or not run.test_started:
            return
        if self._team.deserted() and (run.drained or not run.gate.begun):
            # Locust (2.47) has stopped the test where all workers are missing, and would wait for ever.
            self.ending.abort(run, "no worker is left")
            return
        if run.gate.begun:
            return
        if not isinstance(self._environment.shape_class, StagedShape):
            run.conductor.step()
            if run.conductor.finished and not run.conductor.stopped:
                self.ending.end(run)
        self._tell_estimate(run)
        totals = self._team.numbers.totals()
        ok, failed = ok_and_failed(totals)
        good = ok + totals.get("window:output_tokens", 0)
        if run.failure_watch.hopeless(self._writer.now_s(), failed=failed, good=good):
            said = f"{failed} failures, no success and no token: the run was ended (--llm-stop-on-failures)"
            self.ending.abort(run, said)

    def _tell_estimate(self, run: Run) -> None:
        """Say how long it takes, once, when the first warm-up is over."""
        row = run.conductor.row
        if run.told_estimate or row is None or row.steady_ns is None:
            return
        if row.steady_ns <= self._llm.clock.now_ns():
            run.told_estimate = True
            left_s = run.conductor.left_s()
            if left_s:
                self.screen.say(estimate_line(left_s))

    def _flush(self) -> None:
        while True:
            gevent.sleep(FLUSH_EVERY_S)
            guarded("writing the files of the run", self._flush_once)

    def _flush_once(self) -> None:
        run = self.active
        if run is not None and run.test_started:
            self._writer.flush(run, on_screen=bool(self._environment.parsed_options.headless))

    def _on_quitting(self, **_: Any) -> None:
        for greenlet in self._greenlets:
            greenlet.kill(block=False)


def guarded(what: str, step: Callable[[], None]) -> None:
    """Run a step of a greenlet that must live on; what it raises is logged and makes Locust's exit code 2."""
    try:
        step()
    except Exception:
        logger.exception("llm-locust: an error of ours while %s", what)
        locust_log.unhandled_greenlet_exception = True
