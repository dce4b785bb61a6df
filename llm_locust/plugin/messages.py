"""What master and workers say to each other beside Locust's own messages, and how a worker learns the master's clock.

Locust carries them in msgpack of builtins. It drops a message whose handler is not registered yet (a worker
is connected before its `init`), so a worker says hello until it is answered. Spawn messages are sent from other
greenlets and may overtake ours: whatever must be known before a request is issued is acknowledged.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import msgspec

from .library import Dataset

HELLO = "llm_hello"
WELCOME = "llm_welcome"
CLOCK = "llm_clock"
RUN = "llm_run"
READY = "llm_ready"
STAGE = "llm_stage"
STAGE_ACK = "llm_stage_ack"
TALLY = "llm_tally"
OPEN = "llm_open"
MARK = "llm_mark"
ACK = "llm_ack"
DRAIN = "llm_drain"
CUT = "llm_cut"
FINAL = "llm_final"
RESET = "llm_reset"

CLOCK_SAMPLES = 20


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """A worker introduces itself; `has_key` says whether it holds an API key, never which.

    `sources` are its user classes, each with a digest of the file that defines it ("" where there is none).
    """

    version: str
    host: str
    pid: int
    timestamp_source: str
    has_key: bool
    sources: dict[str, str]


class RunOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A run as a worker is told it.

    `raw` are the given options as typed, `found` is what the pre-flight found, None without one. `datasets` are the
    files of prompts that each process must have alike, `most_users` the users that one of so many may get,
    `slos` what each stage of the plan demands ("" nothing).
    """

    run_id: str
    part: int
    seed: int
    raw: dict[str, str | bool | list[str]]
    hosts: tuple[str, ...]
    found: dict[str, Any] | None
    datasets: tuple[Dataset, ...] = ()
    most_users: int = 0
    slos: dict[str, str] = {}


class Final(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's account at the end of its part in a run: what it booked, and how many reports carried it.

    `in_flight` are requests that even a cut could not end. `listener_errors` counts exceptions of listeners that
    Locust or `llm_events` caught in that process.
    """

    run_id: str
    part: int
    last_seq: int
    totals: dict[str, int]
    in_flight: int
    listener_errors: int


def suite_version() -> str:
    """The version of this installation."""
    return version("llm-locust")


def to_message(value: msgspec.Struct) -> dict[str, Any]:
    """Turn a value into builtins that msgpack carries."""
    message: dict[str, Any] = msgspec.to_builtins(value)
    return message


@dataclass(frozen=True, slots=True)
class ClockSample:
    """One round trip: how long it took, and what it says of master − worker, in ns."""

    round_trip_ns: int
    offset_ns: int


class ClockSync:
    """The master's monotonic clock as seen from a worker.

    Beside the master on one kernel it is the worker's own clock (`wire.clock.clock_identity`). Elsewhere it is known
    by the sample with the least round trip of the last ones: the true offset lies within half a round trip of it,
    whatever the way there and back took.
    """

    def __init__(self, identity: str) -> None:
        self._identity = identity
        self._samples: deque[ClockSample] = deque(maxlen=CLOCK_SAMPLES)
        self._shared = False

    def add(self, sent_ns: int, master_ns: int, received_ns: int, master_identity: str) -> None:
        """Take a round trip: sent and received in the worker's clock, answered at `master_ns` of the master's.

        Virtual machines woken from one image bear one name with clocks of their own: a clock is shared only while no
        round trip says otherwise.
        """
        self._samples.append(ClockSample(received_ns - sent_ns, master_ns - (sent_ns + received_ns) // 2))
        may_be = master_identity != "" and master_identity == self._identity
        self._shared = may_be and all(abs(s.offset_ns) <= (s.round_trip_ns + 1) // 2 for s in self._samples)

    @property
    def known(self) -> bool:
        """Whether a round trip has been made."""
        return bool(self._samples)

    @property
    def offset_ns(self) -> int:
        """Master's clock − worker's clock; 0 before the first round trip."""
        return self._best.offset_ns if self._samples and not self._shared else 0

    @property
    def uncertainty_ns(self) -> int | None:
        """The offset is right to within this; None before the first round trip."""
        if self._shared:
            return 0
        return (self._best.round_trip_ns + 1) // 2 if self._samples else None

    def to_worker_ns(self, master_ns: int) -> int:
        """The worker's instant of an instant of the master's clock."""
        return master_ns - self.offset_ns

    @property
    def _best(self) -> ClockSample:
        return min(self._samples, key=lambda sample: sample.round_trip_ns)
