"""A user's surroundings without a plugin: an open gate, a list for the records, a transport, the options of a run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from locust.event import EventHook

from benchmarks.rig.mock_process import MockProcess
from llm_locust.load.client import LLMClient
from llm_locust.load.desk import Desk
from llm_locust.load.endpoint import Endpoints
from llm_locust.load.events import CountingHook
from llm_locust.load.gate_types import Gate, Ticket
from llm_locust.load.options import AskOptions
from llm_locust.measure.finish import RequestLimits, Samples
from llm_locust.measure.record import Outcome, RequestRecord
from llm_locust.measure.timeline import Timeline
from llm_locust.protocol import BodyOptions
from llm_locust.wire.transport import WireTransport

MODEL = BodyOptions(model="m", ignore_eos=True)
TTFT_MS, ITL_MS = 20, 5
"""Of the embedded server."""


@dataclass(eq=False)
class OpenGate:
    """Lets everything through at once, numbered from 0; notes what it is told."""

    stage: str = "load"
    phase: str = "steady"
    scheduled_ns: int | None = None
    user_wait_ns: int | None = None
    issued: int = 0
    ended: list[tuple[int, Outcome]] = field(default_factory=list)
    left: list[object] = field(default_factory=list)

    def admit(self, user: object) -> Ticket:
        self.issued += 1
        return Ticket(
            index=self.issued - 1,
            stage=self.stage,
            phase=self.phase,
            scheduled_ns=self.scheduled_ns,
            user_wait_ns=self.user_wait_ns,
        )

    def finished(self, user: object, ticket: Ticket, outcome: Outcome) -> None:
        self.ended.append((ticket.index, outcome))

    def leave(self, user: object) -> None:
        self.left.append(user)


@dataclass
class Booked:
    """Keeps every record and its samples."""

    records: list[RequestRecord] = field(default_factory=list)
    samples: list[Samples] = field(default_factory=list)
    open: list[tuple[Ticket, str]] = field(default_factory=list)
    pauses_ns: list[int] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)

    def opened(self, ticket: Ticket, name: str, timeline: Timeline, start_ns: int) -> None:
        self.open.append((ticket, name))

    def book(self, record: RequestRecord, samples: Samples) -> None:
        self.records.append(record)
        self.samples.append(samples)

    def answered(self, record: RequestRecord, raw: bytes) -> None:
        self.raw.append(raw)

    def paused(self, stage: str, name: str, pause_ns: int) -> None:
        self.pauses_ns.append(pause_ns)


class Around:
    """What `environment.llm` is in a run."""

    def __init__(self, options: AskOptions, *, gate: Gate | None = None, slo_good: RequestLimits | None = None) -> None:
        self.run_id = "run"
        self.worker = "w1"
        self.seed = 7
        self.options = options
        self.gate: Any = gate or OpenGate()
        self.collector = Booked()
        self.transport = WireTransport()
        self.desk = Desk(seed=self.seed)
        self.endpoints = Endpoints()
        self.slo_good = slo_good


@dataclass
class Seen:
    """A client, its surroundings, and what Locust's `request` event was fired with."""

    client: LLMClient
    around: Around
    user: Any
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def record(self) -> RequestRecord:
        """The one record there is."""
        (record,) = self.around.collector.records
        return record

    @property
    def samples(self) -> Samples:
        """The one record's samples."""
        (samples,) = self.around.collector.samples
        return samples


def client_for(options: AskOptions, *, dialect: str | None = None, gate: Gate | None = None) -> Seen:
    """Make a client as a user of that dialect has it."""
    around = Around(options, gate=gate)
    user = SimpleNamespace(dialect=dialect, prompts=None, name=None, host=None, context=dict)
    hook = EventHook()  # type: ignore[no-untyped-call]  # Locust's is not annotated
    seen = Seen(LLMClient(user, around, hook), around, user)
    hook.add_listener(lambda **kwargs: seen.events.append(kwargs))  # type: ignore[no-untyped-call]
    return seen


def options_for(mock: MockProcess, **changes: Any) -> AskOptions:
    """A run's usual options."""
    return replace(AskOptions(host=mock.url, body=MODEL), **changes)


def scripted(mock: MockProcess, script: str, **changes: Any) -> AskOptions:
    """Options by which the server plays a script."""
    return options_for(mock, headers=(("X-Mock-Script", script),), **changes)


@contextmanager
def listening(hook: CountingHook, listener: Any) -> Iterator[None]:
    """Listen for a while."""
    hook.add_listener(listener)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        hook.remove_listener(listener)  # type: ignore[no-untyped-call]


def close(seen: Seen) -> None:
    """Give the connection back."""
    seen.client.close()
