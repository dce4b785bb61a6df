"""The numbers of one process: streams in flight, records, windows, and what of it was not handed on yet.

The client books here (`load.surroundings.RecordSink`). On a worker `take` gives the deltas of a report; a
local runner reads `book` itself. A harvest is cut into pieces, so that the hub is never held for long.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence

import msgspec
from gevent.lock import BoundedSemaphore
from numpy import int64
from numpy.typing import NDArray

from llm_locust.load.gate_types import Ticket
from llm_locust.load.stage import STEADY, Tally
from llm_locust.measure.aggregate import STAGE_WIDE, Aggregate
from llm_locust.measure.finish import Samples
from llm_locust.measure.ledger import Ledger, Stream
from llm_locust.measure.record import RequestRecord
from llm_locust.measure.timeline import Timeline
from llm_locust.wire.turn import give_way

from .keepsakes import Keepsakes
from .reports import MOST_ROWS, Delta

_decode = msgspec.msgpack.Decoder(list[RequestRecord]).decode

HARVEST_BEHIND_NS = 1_000_000_000
"""A running harvest stays this far behind: a mark must come before the harvest that passes it."""


class Collector:
    """Books what the clients of one process say, for one run. All calls of clients are cheap and never block."""

    def __init__(
        self, run_id: str, now_ns: Callable[[], int], epoch_offset_ns: int, keepsakes: Keepsakes | None = None
    ) -> None:
        self.run_id = run_id
        self.keepsakes = keepsakes
        self.numbers = Aggregate()
        self.rows: deque[RequestRecord] = deque()
        self.rows_booked = 0
        self.foreign_records = 0
        self.epoch_offset_ns = epoch_offset_ns
        self._now_ns = now_ns
        self._ledger = Ledger(self.numbers, epoch_offset_ns)
        self._streams: dict[int, Stream] = {}
        self._counted: Counter[tuple[str, str]] = Counter()
        self._phase_of: dict[str, str] = {}
        self._harvested_ns = now_ns()
        self._harvesting = BoundedSemaphore()

    # ---- what the client calls ----

    def opened(self, ticket: Ticket, name: str, timeline: Timeline, start_ns: int) -> None:
        """A request starts; its arrivals appear in `timeline`."""
        self._streams[ticket.index] = self._ledger.open(name, start_ns, timeline)

    def book(self, record: RequestRecord, samples: Samples) -> None:
        """A request is over. One of another run, which its stop could not end, belongs nowhere here."""
        stream = self._streams.pop(record.request_id, None) if record.run_id == self.run_id else None
        if stream is None:
            self.foreign_records += 1
            return
        self._ledger.close(stream, record, samples)
        self.numbers.add(record, samples)
        self.rows.append(record)
        self.rows_booked += 1
        if self.keepsakes is not None:
            self.keepsakes.add(record, samples, stream.timeline)

    def answered(self, record: RequestRecord, raw: bytes) -> None:
        """The raw answer of a request: kept beside this process where it was asked for."""
        if self.keepsakes is not None:
            self.keepsakes.answer(record, raw)

    def paused(self, stage: str, name: str, pause_ns: int) -> None:
        """A user has paused after a rejection."""
        self.numbers.count(stage, self._phase_of.get(stage, STEADY), "backoff_ns", pause_ns)

    # ---- what the gate and the stage tell ----

    def mark(self, at_ns: int, stage: str, phase: str) -> None:
        """A phase of a stage begins at an instant of this process's clock."""
        self._ledger.mark(at_ns, stage, phase)
        self._phase_of[stage] = phase

    def unstarted(self, stage: str, waits_ns: NDArray[int64], missed: int) -> None:
        """Arrivals were dropped at the stage's stop with the waits that they had; so many missed an objective by it."""
        self.numbers.add_unstarted(stage, STEADY, [int(wait_ns) for wait_ns in waits_ns], missed)

    def note_tallies(self, tallies: Iterable[Tally], *, scheduled: bool) -> None:
        """Take the gate's counters of the window over into the numbers, each thing once."""
        if not scheduled:
            return
        for tally in tallies:
            due, started = self._fresh(tally, "steady_due"), self._fresh(tally, "steady_issued")
            if due:
                self.numbers.count(tally.label, STEADY, "arrivals_due", due)
            if started:
                self.numbers.count(tally.label, STEADY, "arrivals_started", started)
            if capped_ns := self._fresh(tally, "cap_reached_ns"):
                self.numbers.window(tally.label, STAGE_WIDE, STEADY).counts["cap_reached_ns"] += capped_ns
            if risen := self._fresh(tally, "backlog_max"):
                self.numbers.window(tally.label, STAGE_WIDE, STEADY).counts["backlog_max"] += risen

    def _fresh(self, tally: Tally, key: str) -> int:
        """What a counter of the gate has gained since the last look."""
        total: int = getattr(tally, key)
        gained = total - self._counted[tally.label, key]
        self._counted[tally.label, key] = total
        return gained

    # ---- what reports and outputs take ----

    @property
    def in_flight(self) -> int:
        """Requests under way."""
        return len(self._streams)

    @property
    def harvested_epoch_s(self) -> int:
        """Every second before this one is booked as far as it is known here."""
        return (self._harvested_ns + self.epoch_offset_ns) // 1_000_000_000

    def harvest(self, *, final: bool = False) -> None:
        """Book what happened until a second ago (`final`: until now), in pieces with a turn of the hub between."""
        with self._harvesting:
            until_ns = self._now_ns() - (0 if final else HARVEST_BEHIND_NS)
            for _ in self._ledger.harvest(until_ns):
                give_way()
            self._harvested_ns = max(self._harvested_ns, until_ns)
        if self.keepsakes is not None:
            self.keepsakes.flush()

    def take_deltas(self) -> list[Delta]:
        """Everything since the last call as deltas of bounded size; none where nothing happened."""
        numbers = self.numbers.take_delta()
        rows = self.take_rows()
        deltas: list[Delta] = []
        if any(numbers) or rows:
            deltas.append({"numbers": numbers, "rows": packed(rows[:MOST_ROWS])})
        deltas += [
            {"numbers": None, "rows": packed(rows[first : first + MOST_ROWS])}
            for first in range(MOST_ROWS, len(rows), MOST_ROWS)
        ]
        return deltas

    def take_rows(self, most: int | None = None) -> list[RequestRecord]:
        """The oldest records that were not taken yet, at most so many."""
        return popped(self.rows, most)

    def totals(self) -> dict[str, int]:
        """All that was booked since the start (or the last reset), to be compared with the master's."""
        return {**self.numbers.totals(), "rows": self.rows_booked}

    def reset(self) -> None:
        """All numbers start again; streams in flight go on, and count when they end, as Locust counts them."""
        with self._harvesting:
            for _ in self._ledger.harvest(self._now_ns()):
                pass
            self.numbers.reset()
            self._ledger.restart()
            self.rows.clear()
            self.rows_booked = 0


def popped(rows: deque[RequestRecord], most: int | None) -> list[RequestRecord]:
    """Take the first rows out, at most so many."""
    return [rows.popleft() for _ in range(len(rows) if most is None else min(most, len(rows)))]


def packed(records: Sequence[RequestRecord]) -> bytes:
    """Rows as a report carries them: Locust's own packing of the same as builtins takes six times as long."""
    return msgspec.msgpack.encode(records)


def unpacked(rows: bytes) -> list[RequestRecord]:
    """Read rows that `packed` made; raises msgspec.ValidationError for those of another version."""
    return _decode(rows)
