"""A locustfile whose runs are made up (fake_run): the page's own tests need neither a server nor a clock.

A second of the fake run passes every FAKE_TICK_S; FAKE_SKIP_S of them are there at the start. FAKE_RUN is JSON: the
`plan` (sweep, open, night), the `facts` and the other values of FakeRun that differ from the usual, and the `label` of
one long stage in place of a plan.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import gevent
from locust import User, constant, events, task

import llm_locust
from benchmarks.rig.fake_run import PLANS, FakeRun, FakeStage, facts
from llm_locust.outputs import Outputs, RunState
from llm_locust.outputs.summary import FailureBook
from llm_locust.plugin import web

TICK_S = float(os.environ.get("FAKE_TICK_S", "0.1"))
SKIP_S = int(os.environ.get("FAKE_SKIP_S", "0"))
RUN = json.loads(os.environ.get("FAKE_RUN", "{}"))
FACTS = RUN.pop("facts", {})
PLAN = PLANS[RUN.pop("plan", "sweep")]
LABEL = RUN.pop("label", None)
BOARD = web.Board()


class Idle(User):
    """Something for Locust to run."""

    wait_time = constant(1)

    @task
    def nothing(self) -> None:
        """Do nothing."""


class Play:
    """Plays fake runs: one per test start, again from the beginning after a reset."""

    def __init__(self) -> None:
        self.runs = 0
        self.greenlet: gevent.Greenlet | None = None

    def start(self, **_: Any) -> None:
        """Begin the next run."""
        self.runs += 1
        self.begin(f"20260301-10150{self.runs}_deepseek-r1_ConcurrencySteps")

    def begin(self, run_id: str) -> None:
        """Play one run until it is over or stopped."""
        self.stop_playing()
        long = FakeStage(LABEL, 8, 420, 28, seconds=900, failed_ratio=0.2)
        self.run = FakeRun((long,) if LABEL else PLAN, **RUN)
        self.facts = facts(run_id, **FACTS)
        directory = Path(os.environ["FAKE_OUT"]) / run_id
        directory.mkdir()
        self.outputs = Outputs(self.facts, directory, print)
        self.outputs.open()
        self.failures = FailureBook()
        self.live = BOARD.begin(self.facts, directory)
        self.run.step(SKIP_S)
        self.greenlet = gevent.spawn(self.play)

    def play(self) -> None:
        """Let the seconds pass."""
        while not self.run.over:
            self.run.step()
            self.show(RunState.RUNNING)
            gevent.sleep(TICK_S)
        self.show(RunState.FINISHED)

    def show(self, state: RunState) -> None:
        """Hand the page what is new."""
        picture = self.run.picture()
        rows, records = self.run.take()
        for record in records:
            self.failures.add(record)
        BOARD.picture = picture
        self.live.add(picture, rows, self.run.crew(), records, self.failures.most_frequent_first(), state)
        if state is RunState.RUNNING:
            self.outputs.flush(picture, records, rows)
        else:
            self.outputs.close(picture, records, rows, state)

    def stop(self, **_: Any) -> None:
        """End the run as a person does."""
        if self.greenlet is not None and not self.greenlet.ready():
            self.stop_playing()
            self.show(RunState.STOPPED)

    def stop_playing(self) -> None:
        """End the greenlet."""
        if self.greenlet is not None:
            self.greenlet.kill()

    def reset(self, **_: Any) -> None:
        """Begin again."""
        if self.greenlet is not None and not self.greenlet.ready():
            self.begin(f"{self.facts.run_id}_again")


PLAY = Play()


# The options of the form are the suite's; its run is not wanted here.
events.init.remove_listener(llm_locust._begin)  # type: ignore[no-untyped-call]  # Locust's is not annotated


def begin(environment: Any, **_: Any) -> None:
    """Our pages."""
    if environment.web_ui is None:
        return
    web.register(environment, BOARD, ["ConcurrencySteps", "RateSteps", "Soak"])
    for event, listener in (
        (environment.events.test_start, PLAY.start),
        (environment.events.test_stop, PLAY.stop),
        (environment.events.reset_stats, PLAY.reset),
    ):
        event.add_listener(listener)


events.init.add_listener(begin)  # type: ignore[no-untyped-call]
