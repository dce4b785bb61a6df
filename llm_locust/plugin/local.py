"""The team of a local runner: this process alone sends, and its collector's numbers are the run's (`team.Team`)."""

from __future__ import annotations

from typing import Any

import gevent

from llm_locust.measure.aggregate import Aggregate
from llm_locust.measure.record import RequestRecord
from llm_locust.outputs import WorkerFacts
from llm_locust.outputs.live import WorkerNow
from llm_locust.prompts.source import PromptError

from .account import asking_users
from .crew import Asked
from .health import HealthBooks, TokenSpeed, lag_p99_ms
from .issuer import Issuer
from .local_crew import LOCAL, LocalCrew
from .messages import RunOrder
from .state import LLM, hello_of


class LocalTeam:
    """One process that is master and worker at once."""

    def __init__(self, environment: Any, llm: LLM, asked: Asked) -> None:
        self._runner = environment.runner
        self._environment = environment
        self._llm = llm
        self._asked = asked
        self._closing: gevent.Greenlet | None = None
        self.health = HealthBooks()
        self._speed = TokenSpeed()
        self.users_replaced = True
        self._crew: LocalCrew | None = None

    def start(self) -> None:
        """Begin to measure this process."""
        self._llm.health.start()

    @property
    def _issuer(self) -> Issuer:
        assert self._llm.issuer is not None
        return self._llm.issuer

    @property
    def numbers(self) -> Aggregate:
        """The numbers of the run."""
        return self._issuer.collector.numbers

    @property
    def crew(self) -> LocalCrew:
        """What the conductor drives."""
        assert self._crew is not None
        return self._crew

    # ---- the run ----

    def begin(self, order: RunOrder) -> list[str]:
        """Begin the run in this process; return what keeps it from starting."""
        self._closing = None
        self.health = HealthBooks()
        self._speed = TokenSpeed()
        try:
            issuer = self._llm.begin_run(order, self._llm.settings)
        except PromptError as error:
            return [str(error)]
        self._llm.health.take()
        self._crew = LocalCrew(issuer, self._runner, self._asking_users, self._asked)
        return []

    def _asking_users(self) -> int:
        return asking_users(self._runner.user_classes_count, self._environment.user_classes)

    def reset(self, part: int) -> None:
        """All numbers start again."""
        self._issuer.reset()
        self._llm.health.take()
        self.health = HealthBooks()

    def watch(self) -> None:
        """Nobody can be lost here."""

    # ---- the drain (`drain.Drainable`) ----

    def close(self, limit_s: float) -> None:
        """Let the streams end; the gate's own watch keeps the limit."""
        self._issuer.close()
        self._closing = gevent.spawn(self._drain)

    def cut(self) -> None:
        """End what is in flight at once."""
        gevent.spawn(self._issuer.cut)

    def handed_in(self) -> bool:
        """Whether everything has ended and is booked."""
        return self._closing is not None and self._closing.ready()

    def owing(self) -> tuple[str, ...]:
        """This process, until everything has ended."""
        return () if self.handed_in() else (LOCAL,)

    def in_flight(self) -> int:
        """Open streams."""
        return self._issuer.gate.in_flight

    def _drain(self) -> None:
        self._issuer.gate.wait_idle(None)
        self._issuer.settle()
        self._llm.end_run()

    # ---- what the outputs take ----

    def settle(self) -> None:
        """Bring the numbers up to a second ago (up to now when all has ended)."""
        issuer = self._issuer
        issuer.tallies()
        issuer.collector.harvest(final=self.handed_in())
        self.health.add(issuer.label, LOCAL, self._llm.health.take())
        self._speed.note(self._llm.clock.now_ns() / 1e9, self.numbers.totals().get("window:output_tokens", 0))

    def take_rows(self, most: int | None = None) -> list[RequestRecord]:
        """The oldest records that were not taken yet, at most so many."""
        return self._issuer.collector.take_rows(most)

    def complete_before_epoch_s(self) -> int | None:
        """All seconds before this one are booked."""
        return self._issuer.collector.harvested_epoch_s

    def facts(self) -> tuple[WorkerFacts, ...]:
        """What the summary says of this process."""
        hello = hello_of(self._llm)
        return (
            WorkerFacts(
                worker=self._llm.worker,
                host=hello.host,
                pid=hello.pid,
                version=hello.version,
                timestamp_source=hello.timestamp_source,
            ),
        )

    def workers_now(self) -> tuple[WorkerNow, ...]:
        """What the page shows of this process."""
        own = self.health.latest.get(LOCAL, {})
        hello = hello_of(self._llm)
        return (
            WorkerNow(
                worker=self._llm.worker,
                host=hello.host,
                timestamp_source=hello.timestamp_source,
                users=self._runner.user_count,
                in_flight=self.in_flight(),
                output_tok_per_s=self._speed.per_s,
                loop_lag_p99_ms=lag_p99_ms(own),
                cpu_percent=own.get("cpu_percent"),
                report_age_s=0.0,
            ),
        )

    def listener_errors(self) -> int:
        """Exceptions of listeners are counted by the lead, in this process."""
        return 0

    # ---- what the verdict asks ----

    def reports_missing(self) -> int:
        """There are no reports."""
        return 0

    def lost(self) -> tuple[str, ...]:
        """Nobody."""
        return ()

    def sent_away(self) -> tuple[str, ...]:
        """Nobody."""
        return ()

    def deserted(self) -> bool:
        """This process is here."""
        return False

    def clock_uncertainty_ms(self) -> float | None:
        """One process has one clock."""
        return None

    def differences(self) -> tuple[str, ...]:
        """What could not be ended, to be asked after the drain."""
        stuck = self._issuer.collector.in_flight
        return (f"{stuck} requests could not be ended",) if stuck else ()
