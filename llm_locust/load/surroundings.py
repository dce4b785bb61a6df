"""What a user finds around itself in one process: the options of its requests, the gate, the collector, the transport.

`environment.llm` (made by the plugin) has this shape. The client reads it at each request and never changes it.
"""

from __future__ import annotations

from typing import Protocol

from llm_locust.load.desk import Desk
from llm_locust.load.endpoint import Endpoints
from llm_locust.load.gate_types import Gate, Ticket
from llm_locust.load.options import AskOptions
from llm_locust.measure.finish import RequestLimits, Samples
from llm_locust.measure.record import RequestRecord
from llm_locust.measure.timeline import Timeline
from llm_locust.wire.transport import WireTransport


class RecordSink(Protocol):
    """Where the numbers of a process are collected. All calls are cheap and never block."""

    def opened(self, ticket: Ticket, name: str, timeline: Timeline, start_ns: int) -> None:
        """A request starts; its arrivals will appear in `timeline`."""
        ...

    def book(self, record: RequestRecord, samples: Samples) -> None:
        """A request is over: called exactly once for each one opened."""
        ...

    def answered(self, record: RequestRecord, raw: bytes) -> None:
        """The raw bytes of a booked request's answer; only called where `AskOptions.keep_raw` asks for it."""
        ...

    def paused(self, stage: str, name: str, pause_ns: int) -> None:
        """A user has paused so long after a rejection, outside all latencies."""
        ...


class Surroundings(Protocol):
    """All of it."""

    @property
    def run_id(self) -> str:
        """The run's name, in each record."""
        ...

    @property
    def worker(self) -> str:
        """This process's name, in each record."""
        ...

    @property
    def seed(self) -> int:
        """The run's seed; a user's jitter follows from it."""
        ...

    @property
    def options(self) -> AskOptions:
        """What every request has in common."""
        ...

    @property
    def gate(self) -> Gate:
        """Gives leave to send."""
        ...

    @property
    def collector(self) -> RecordSink:
        """Takes the numbers."""
        ...

    @property
    def transport(self) -> WireTransport:
        """The process's sockets and TLS settings."""
        ...

    @property
    def desk(self) -> Desk:
        """Hands out prompts."""
        ...

    @property
    def endpoints(self) -> Endpoints:
        """Deals the hosts in turn."""
        ...

    @property
    def slo_good(self) -> RequestLimits | None:
        """Judges a record by the limits per request; None: there are none."""
        ...
