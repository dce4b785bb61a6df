"""A master's account of one worker: who it is, what it was told, what it reported, what it owes."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from locust.exception import RPCError
from locust.runners import STATE_MISSING

from llm_locust.load.stage import Tally
from llm_locust.outputs import WorkerFacts
from llm_locust.outputs.live import WorkerNow

from . import messages
from .checks import llm_classes
from .health import TokenSpeed, lag_p99_ms
from .messages import Final, Hello, RunOrder
from .reports import Inbox
from .secrets import Secrets

logger = logging.getLogger(__name__)

ANSWER_S = 20.0
"""A worker that owes an answer for longer does not answer: it is not waited for. Handing in takes 15 s at most."""
RUN_AGAIN_S = 5.0


def asking_users(counts: Mapping[str, int], user_classes: Iterable[type[Any]]) -> int:
    """Count the users that ask a model, out of the numbers of users of each class."""
    return sum(counts.get(found.__name__, 0) for found in llm_classes(user_classes))


@dataclass(slots=True)
class Account:
    """One worker: `name` is what its records carry, `client_id` Locust's name for it."""

    name: str
    client_id: str
    hello: Hello
    runner: Any
    now_s: Callable[[], float]
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
    left_s: float | None = None
    lost_how: str = ""
    absences: list[str] = field(default_factory=list)
    rows: int = 0
    """Records that came from it in this run."""
    heard_s: float = 0.0
    owed: dict[str, float] = field(default_factory=dict)
    """What it was told and has not answered, with the instant since when that takes."""
    sent_version: int = 0

    @property
    def users(self) -> int:
        """Users that run there and ask a model: the others get no share of what is to be issued."""
        node = self.runner.clients.get(self.client_id)
        return 0 if node is None else asking_users(node.user_classes_count, self.runner.environment.user_classes)

    @property
    def all_users(self) -> int:
        """Users that run there, of whatever kind."""
        node = self.runner.clients.get(self.client_id)
        return 0 if node is None else int(node.user_count)

    @property
    def answered(self) -> bool:
        """Whether it takes part, has said why not, or is gone."""
        return self.ready or bool(self.problem) or self.gone

    @property
    def hung(self) -> bool:
        """Whether it sends heartbeats, and says nothing of what it was told."""
        longest_s = min(self.heard_s, *self.owed.values()) if self.owed else self.heard_s
        return self.ready and self.now_s() - longest_s > ANSWER_S

    @property
    def gone(self) -> bool:
        """Whether Locust has lost it, or it has left."""
        node = self.runner.clients.get(self.client_id)
        return node is None or node.state == STATE_MISSING

    def send(self, message: str, data: Any) -> None:
        """Send it a message; one that cannot be sent is logged (a dead connection is found by heartbeats)."""
        if message in (messages.RUN, messages.STAGE, messages.DRAIN, messages.CUT):
            self.owed.setdefault(message, self.now_s())
        if message == messages.STAGE:
            self.sent_version = data["version"]
        try:
            self.runner.send_message(message, data, self.client_id)
        except RPCError as error:
            logger.warning("llm-locust: %s could not be sent to %s: %s", message, self.name, error)

    def begin_run(self, run_id: str, part: int) -> None:
        """Start the account of another run."""
        self.inbox = Inbox(run_id, part)
        self.ready, self.problem = False, ""
        self.heard_s = self.now_s()
        self.owed = {}
        self.acked_version = self.marks_seen = self.in_flight = self.harvested_epoch_s = 0
        self.tallies = {}
        self.totals = Counter()
        self.speed = TokenSpeed()
        self.final = None
        self.reported_s = self.lost_s = self.left_s = None
        self.absences = []
        self.rows = 0

    def offer_run(self, order: RunOrder) -> None:
        """Tell it of the run, and again while it does not answer: it may have been out of sight."""
        told_s = self.owed.get(messages.RUN)
        if not self.answered and (told_s is None or self.now_s() - told_s >= RUN_AGAIN_S):
            self.owed.pop(messages.RUN, None)
            self.send(messages.RUN, messages.to_message(order))

    def acknowledged(self, version: int) -> None:
        """It has the stage in this version."""
        self.acked_version = max(self.acked_version, version)
        if self.acked_version >= self.sent_version:
            self.owed.pop(messages.STAGE, None)

    def streams(self, in_flight: int) -> None:
        """It tells how many streams are open: while they may end by themselves, it owes nothing yet."""
        self.in_flight = in_flight
        if not in_flight:
            self.owed.pop(messages.CUT, None)
        elif messages.DRAIN in self.owed and messages.CUT not in self.owed:
            self.owed[messages.DRAIN] = self.now_s()

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
            users=self.all_users,
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
        return f"worker {self.name} {self.lost_how}: {told}, at least {self.unaccounted} streams not accounted for"

    def left_sentence(self, started_s: float) -> str:
        """What is to be said of a worker that was ended in mid-run, and handed in before it went."""
        assert self.left_s is not None
        return f"worker {self.name} was ended at {self.left_s - started_s:.1f} s and handed in; others took over"

    @property
    def unaccounted(self) -> int:
        """Requests that it issued, as far as it told, and of which no record came: they were open, or not reported."""
        issued = sum(tally.issued for tally in self.tallies.values())
        return max(issued - self.rows, self.in_flight)


def refusal_of(hello: Hello, secrets: Secrets, sources: Mapping[str, str]) -> str:
    """Say why a worker cannot take part in runs of the user classes of `sources`; "" where it can."""
    mine = messages.suite_version()
    if hello.version != mine:
        return f"it runs llm-locust {hello.version}, the master {mine}; install the same version on both"
    if secrets.api_key is not None and not hello.has_key:
        return (
            f"it has no API key, the master has one (from {secrets.source}); set LOCUST_LLM_API_KEY or OPENAI_API_KEY, "
            "or give --llm-api-key-file there too: keys are not sent over the network"
        )
    if missing := sorted(sources.keys() - hello.sources.keys()):
        return f"it runs another locustfile, without {', '.join(missing)}"
    if other := sorted(name for name, digest in sources.items() if digest and digest != hello.sources[name]):
        return f"its locustfile differs: the file of {', '.join(other)} is not the master's; copy it, or use -f - there"
    return ""


def difference(expected: Counter[str], found: Counter[str], whose: str, where: str) -> list[str]:
    """Name what two accounts disagree about, the first few."""
    keys = sorted(key for key in expected.keys() | found.keys() if expected[key] != found[key])
    told = [f"{key} {expected[key]} at {whose}, {found[key]} at {where}" for key in keys[:3]]
    return [*told, f"{len(keys) - 3} more"] if len(keys) > 3 else told
