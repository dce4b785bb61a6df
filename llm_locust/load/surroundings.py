"""What a user finds around itself in one process: the options of its requests, the gate, the collector, the transport.

`environment.llm` (made by the plugin) has this shape. The client reads it at each request and never changes it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from llm_locust.load.desk import Desk
from llm_locust.load.endpoint import Endpoints
from llm_locust.load.gate_types import Gate, Ticket
from llm_locust.measure.finish import RequestLimits, Samples
from llm_locust.measure.record import RequestRecord
from llm_locust.measure.timeline import Timeline
from llm_locust.prompts.tokenizers import TokenCounter
from llm_locust.protocol.types import BodyOptions
from llm_locust.wire.transport import WireTransport
from llm_locust.wire.types import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions:
    """What every request of a process has in common; the pre-flight's findings are in it already.

    None means "the user class decides" (``host``, ``dialect``, ``think_time_s``) or the dialect (``path``). Neither
    ``api_key`` nor ``headers`` show in a repr. ``eos_ignored`` is False where the pre-flight saw the server end early
    although `ignore_eos` was sent: then lengths are free.
    """

    host: str | None = None
    dialect: str | None = None
    path: str | None = None
    body: BodyOptions = field(default_factory=BodyOptions)
    limits: Limits = field(default_factory=Limits)
    api_key: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    think_time_s: tuple[float, float] | None = None
    eos_ignored: bool = True
    tokenizer: TokenCounter | None = None
    drain_s: float = 1800.0
    """How long `User.stop` waits for a request in flight."""


class RecordSink(Protocol):
    """Where the numbers of a process are collected. All calls are cheap and never block."""

    def opened(self, ticket: Ticket, name: str, timeline: Timeline, start_ns: int) -> None:
        """A request starts; its arrivals will appear in `timeline`."""
        ...

    def book(self, record: RequestRecord, samples: Samples) -> None:
        """A request is over: called exactly once for each one opened."""
        ...

    def paused(self, stage: str, name: str, pause_ns: int) -> None:
        """A user has paused so long after a rejection, outside all latencies."""
        ...


class Surroundings(Protocol):
    """All of it. `slo_good` judges a record by the limits per request (None: there are none)."""

    run_id: str
    worker: str
    seed: int
    options: AskOptions
    gate: Gate
    collector: RecordSink
    transport: WireTransport
    desk: Desk
    endpoints: Endpoints
    slo_good: RequestLimits | None
