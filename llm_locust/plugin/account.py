"""A master's account of one worker: who it is, what it was told, what it reported, what it owes."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from locust.exception import RPCError
from locust.runners import STATE_MISSING

from llm_locust.load.stage import Tally
from llm_locust.outputs import WorkerFacts
from llm_locust.outputs.live import WorkerNow

from . import messages
from .health import TokenSpeed, lag_p99_ms
from .messages import Final, Hello
from .reports import Inbox
from .secrets import Secrets

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Account:
    """One worker: `name` is what its records carry, `client_id` Locust's name for it."""

    name: str
    client_id: str
    hello: Hello
    runner: Any
    inbox: Inbox = field(default_factory=lambda: Inbox(""))
    ready: bool = False
    problem: str = ""
    acked_version: int = 0
    marks_seen: int = 0
    tallies: dict[str, Tally] = field(default_factory=dict)
    told_ns: int = 0
    in_flight: int = 0
    reported_s: float | None = None
    harvested_epoch_s: int = 0
    totals: Counter[str] = field(default_factory=Counter)
    speed: TokenSpeed = field(default_factory=TokenSpeed)
    clock_offset_ns: int = 0
    clock_uncertainty_ns: int | None = None
    final: Final | None = None
    lost_s: float | None = None
    absences: list[str] = field(default_factory=list)
    rows: int = 0
    """Records that came from it in this run."""

    @property
    def users(self) -> int:
        """Users that run there, as Locust knows them."""
        node = self.runner.clients.get(self.client_id)
        return 0 if node is None else int(node.user_count)

    @property
    def answered(self) -> bool:
        """Whether it takes part, has said why not, or is gone."""
        return self.ready or bool(self.problem) or self.gone

    @property
    def gone(self) -> bool:
        """Whether Locust has lost it, or it has left."""
        node = self.runner.clients.get(self.client_id)
        return node is None or node.state == STATE_MISSING

    def send(self, message: str, data: Any) -> None:
        """Send it a message; one that cannot be sent is logged (a dead connection is found by heartbeats)."""
        try:
            self.runner.send_message(message, data, self.client_id)
        except RPCError as error:
            logger.warning("llm-locust: %s could not be sent to %s: %s", message, self.name, error)

    def begin_run(self, run_id: str, part: int) -> None:
        """Start the account of another run."""
        self.inbox = Inbox(run_id, part)
        self.ready, self.problem = False, ""
        self.acked_version = self.marks_seen = self.in_flight = self.harvested_epoch_s = 0
        self.tallies = {}
        self.totals = Counter()
        self.speed = TokenSpeed()
        self.final = None
        self.reported_s = self.lost_s = None
        self.absences = []
        self.rows = 0

    def facts(self) -> WorkerFacts:
        """What the summary says of it."""
        uncertainty = self.clock_uncertainty_ns
        return WorkerFacts(
            worker=self.name,
            host=self.hello.host,
            pid=self.hello.pid,
            version=self.hello.version,
            timestamp_source=self.hello.timestamp_source,
            clock_offset_ms=None if uncertainty is None else self.clock_offset_ns / 1e6,
            clock_uncertainty_ms=None if uncertainty is None else uncertainty / 1e6,
            lost=self.lost_s is not None,
        )

    def now(self, at_s: float, taken: dict[str, Any]) -> WorkerNow:
        """What the page shows of it; `taken` is its health as told last."""
        return WorkerNow(
            worker=self.name,
            host=self.hello.host,
            timestamp_source=self.hello.timestamp_source,
            users=self.users,
            in_flight=self.in_flight,
            output_tok_per_s=None if self.gone else self.speed.per_s,
            loop_lag_p99_ms=lag_p99_ms(taken),
            cpu_percent=taken.get("cpu_percent"),
            report_age_s=None if self.reported_s is None else at_s - self.reported_s,
            clock_offset_ms=self.facts().clock_offset_ms,
            lost=self.lost_s is not None,
        )

    def came_back(self, at_s: float, started_s: float) -> None:
        """Locust hears its heartbeats again at `at_s` of the run that began at `started_s`: it was never lost."""
        assert self.lost_s is not None
        from_s = self.lost_s - started_s
        self.absences.append(f"worker {self.name} was out of sight from {from_s:.1f} s to {at_s:.1f} s and came back")
        self.lost_s = None

    def lost_sentence(self, started_s: float) -> str:
        """What is to be said of a lost worker of a run that began at `started_s`."""
        told = "it never reported"
        if self.reported_s is not None:
            told = f"last report at {self.reported_s - started_s:.1f} s"
        return f"worker {self.name} lost: {told}, {self.unaccounted} streams not accounted for"

    @property
    def unaccounted(self) -> int:
        """Requests that it issued, as far as it told, and of which no record came: they were open, or not reported."""
        issued = sum(tally.issued for tally in self.tallies.values())
        return max(issued - self.rows, self.in_flight)


def refusal_of(hello: Hello, secrets: Secrets) -> str:
    """Say why a worker cannot take part; "" where it can."""
    mine = messages.suite_version()
    if hello.version != mine:
        return f"it runs llm-locust {hello.version}, the master {mine}; install the same version on both"
    if secrets.api_key is not None and not hello.has_key:
        return (
            f"it has no API key, the master has one (from {secrets.source}); set LOCUST_LLM_API_KEY or OPENAI_API_KEY, "
            "or give --llm-api-key-file there too: keys are not sent over the network"
        )
    return ""


def difference(expected: Counter[str], found: Counter[str], whose: str, where: str) -> list[str]:
    """Name what two accounts disagree about, the first few."""
    keys = sorted(key for key in expected.keys() | found.keys() if expected[key] != found[key])
    told = [f"{key} {expected[key]} at {whose}, {found[key]} at {where}" for key in keys[:3]]
    return [*told, f"{len(keys) - 3} more"] if len(keys) > 3 else told
