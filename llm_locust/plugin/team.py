"""The processes that send, as the lead of a run sees them: this one alone, or the workers of a master."""

from __future__ import annotations

from typing import Protocol

from llm_locust.load.crew import Crew
from llm_locust.measure.aggregate import Aggregate
from llm_locust.measure.record import RequestRecord
from llm_locust.outputs import WorkerFacts
from llm_locust.outputs.live import WorkerNow

from .health import HealthBooks
from .messages import RunOrder


class Team(Protocol):
    """Everything of a run that differs between a local runner and a master; also a `drain.Drainable`."""

    users_replaced: bool
    """Whether the users of every lost worker were started elsewhere."""

    @property
    def numbers(self) -> Aggregate:
        """The numbers of the run."""
        ...

    @property
    def health(self) -> HealthBooks:
        """How well the processes kept time."""
        ...

    @property
    def crew(self) -> Crew:
        """What the conductor drives."""
        ...

    def start(self) -> None:
        """Register for messages and events; once."""
        ...

    def begin(self, order: RunOrder) -> list[str]:
        """Begin a run on every process; return what keeps it from starting. Blocks, some seconds at most."""
        ...

    def reset(self, part: int) -> None:
        """All numbers start again."""
        ...

    def watch(self) -> None:
        """Look after the processes; called twice a second."""
        ...

    def close(self, limit_s: float) -> None:
        """Issue nothing more, and hand in."""
        ...

    def cut(self) -> None:
        """End what is in flight at once."""
        ...

    def handed_in(self) -> bool:
        """Whether every process that lives has handed in."""
        ...

    def owing(self) -> tuple[str, ...]:
        """The processes that have not handed in."""
        ...

    def in_flight(self) -> int:
        """Open streams."""
        ...

    def settle(self) -> None:
        """Bring the numbers up to date."""
        ...

    def take_rows(self, most: int | None = None) -> list[RequestRecord]:
        """The oldest records that were not taken yet, at most so many."""
        ...

    def complete_before_epoch_s(self) -> int | None:
        """All seconds before this one are known; None: nobody can say."""
        ...

    def facts(self) -> tuple[WorkerFacts, ...]:
        """What the summary says of the processes."""
        ...

    def workers_now(self) -> tuple[WorkerNow, ...]:
        """What the page shows of the processes."""
        ...

    def listener_errors(self) -> int:
        """Exceptions of listeners in other processes."""
        ...

    def reports_missing(self) -> int:
        """Reports that never came."""
        ...

    def lost(self) -> tuple[str, ...]:
        """One sentence for each lost process."""
        ...

    def sent_away(self) -> tuple[str, ...]:
        """One sentence for each process that turned out not to belong to the run."""
        ...

    def deserted(self) -> bool:
        """Whether every process that took part is lost."""
        ...

    def clock_uncertainty_ms(self) -> float | None:
        """The least certain clock offset."""
        ...

    def differences(self) -> tuple[str, ...]:
        """Where accounts disagree, after the drain."""
        ...
