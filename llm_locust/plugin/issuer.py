"""The part of a process that sends requests: gate, collector and health of one run, on a worker or a local runner.

Everything of a run that a user meets hangs here and is made anew for the next run. Instants are ns of this
process's monotonic clock.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import partial

from gevent.pool import Group
from numpy import int64
from numpy.typing import NDArray

from llm_locust.load.gate import Gate
from llm_locust.load.stage import DRAIN, StageOrder, Tally
from llm_locust.prompts.source import StagePrompts

from .collector import Collector

PromptsOfStage = Callable[[StageOrder], StagePrompts]

MissedByWaiting = Callable[[str, int], bool]
"""Says whether an arrival of a row that was not started has missed an objective by its wait in ns; true for every
longer one."""

CUT_WAIT_S = 5.0
"""How long killed users may take to book their partial streams."""


class Issuer:
    """Lets the requests of one run through and books them."""

    def __init__(
        self,
        collector: Collector,
        now_ns: Callable[[], int],
        user_greenlets: Group,
        stage_prompts: PromptsOfStage,
        missed_by_waiting: MissedByWaiting | None = None,
    ) -> None:
        self.run_id = collector.run_id
        self.now_ns = now_ns
        self.collector = collector
        self.gate = Gate(now_ns, on_unstarted=self._unstarted)
        self._user_greenlets = user_greenlets
        self._stage_prompts = stage_prompts
        self._missed_by_waiting = missed_by_waiting
        self._order: StageOrder | None = None
        self._label = ""
        self._closed = False
        self.phase = ""
        """The phase that was announced last."""

    @property
    def label(self) -> str:
        """The row that is announced last; "" before the first stage."""
        return self._label

    @property
    def number(self) -> int | None:
        """The number of the stage, None before the first."""
        return None if self._order is None else self._order.number

    def begin_stage(self, order: StageOrder) -> None:
        """Take a stage with its gate closed, or new shares, rates and quota of the running one."""
        if self._closed:
            return
        if self._order is None or self._order.number != order.number:
            self._label = order.label
            self.phase = ""
        self._order = order
        self.gate.begin_stage(order, self._stage_prompts(order))

    def open(self, at_ns: int, phase: str, label: str | None = None) -> None:
        """Issue from that instant on."""
        if self._closed:
            return
        self.phase = phase
        self.collector.mark(at_ns, label or self._label, phase)
        self.gate.open(at_ns, phase)

    def mark(self, label: str, phase: str, at_ns: int) -> None:
        """Begin a phase, and a row where the label is new; `drain` closes the gate."""
        if self._closed:
            return
        self._label, self.phase = label, phase
        self.collector.mark(at_ns, label, phase)
        self.gate.mark(phase, at_ns, label)

    def close(self) -> None:
        """Issue nothing more in this run, whatever was announced or is announced yet."""
        self._closed = True
        self.phase = DRAIN
        self.collector.mark(self.now_ns(), self._label, DRAIN)
        self.gate.close()

    def drain(self, limit_s: float) -> bool:
        """Issue nothing more and wait until every stream has ended; False when the limit came first."""
        self.close()
        return self.gate.wait_idle(limit_s)

    def cut(self) -> None:
        """End what is in flight at once: its users are killed, and book it as `unfinished`."""
        self._user_greenlets.kill(block=False)
        self.gate.wait_idle(CUT_WAIT_S)

    def tallies(self) -> list[Tally]:
        """The gate's counters by row; what they say of the schedule is taken into the numbers on the way."""
        told = self.gate.tallies()
        scheduled = self._order is not None and self._order.arrivals is not None
        self.collector.note_tallies(told, scheduled=scheduled)
        return told

    def tally(self, label: str) -> Tally | None:
        """The counters of one row."""
        return next((tally for tally in self.tallies() if tally.label == label), None)

    def settle(self) -> None:
        """Book everything up to now: nothing is in flight any more, or what is will not be waited for."""
        self.tallies()
        self.collector.harvest(final=True)

    def reset(self) -> None:
        """All numbers start again."""
        self.tallies()
        self.collector.reset()

    def _unstarted(self, label: str, waits_ns: NDArray[int64]) -> None:
        self.collector.unstarted(label, waits_ns, self._missed(label, waits_ns))

    def _missed(self, label: str, waits_ns: NDArray[int64]) -> int:
        """Count the waits that alone miss an objective: from the shortest one that does."""
        if self._missed_by_waiting is None:
            return 0
        missed = partial(self._missed_by_waiting, label)
        return len(waits_ns) - bisect_left(sorted(waits_ns.tolist()), True, key=missed)
