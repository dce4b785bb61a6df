"""How the conductor meets the outside: the workers that it drives, and its account of what it did with the plan.

Knows no Locust, no sockets and no clock; the plugin implements `Crew` for the master and for the local runner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from llm_locust.load.stage import StageOrder, Tally


class Crew(Protocol):
    """The workers, as the conductor sees them. No method blocks."""

    def now_ns(self) -> int:
        """Read the master's monotonic clock."""
        ...

    def send_stage(self, order: StageOrder, requests: int | None) -> None:
        """Send a stage to every worker, shares and quotas dealt by their users; the running number again amends it."""
        ...

    def acked(self, number: int) -> bool:
        """Tell whether every live worker has acknowledged the stage."""
        ...

    def open(self, at_ns: int, phase: str) -> None:
        """Open every gate at that instant; the stage goes out again before, with the shares as the users are now."""
        ...

    def mark(self, label: str, phase: str, at_ns: int) -> None:
        """Announce a phase, and a row where the label is new; `drain` closes the gates."""
        ...

    def cut(self) -> None:
        """End what is in flight at once: it becomes `unfinished`."""
        ...

    def user_count(self) -> int:
        """Count the users that run."""
        ...

    def asked(self) -> tuple[int | None, float | None]:
        """Give (users, rate) as the web form has them now; None: not given there."""
        ...

    def tally(self, label: str) -> Tally | None:
        """Give the row's counters merged over the workers (a lost one's as `Tally.lost`), instants in master's time.

        None until every live worker has reported the row: what all must have reached is not told by some.
        """
        ...


class Errand(Protocol):
    """Something to be done between two stages, by a greenlet of its own."""

    def ready(self) -> bool:
        """Tell whether it is over."""
        ...

    @property
    def value(self) -> Sequence[str] | None:
        """What is to be said of it beside the stage; None where it failed."""
        ...


class Applied(msgspec.Struct, kw_only=True):
    """What became of a stage of the plan: its real instants, or why it was skipped."""

    label: str
    users: int
    rate_per_s: float | None = None
    number: int | None = None
    open_loop: bool = False
    whole_requests: bool = False  # see `Stage`
    opened_ns: int | None = None
    steady_ns: int | None = None
    finished_before: int = 0  # requests that had ended when the window began
    closed_ns: int | None = None
    drained_ns: int | None = None
    ended_by: str = ""  # hold, max hold, requests, trace, edit, run time, or what `stop` was told
    skipped: str = ""
    notes: list[str] = msgspec.field(default_factory=list)

    def close(self, at_ns: int, reason: str) -> None:
        """End it before its plan is done; a window that was announced for then or later never began."""
        self.closed_ns, self.ended_by = at_ns, reason
        if self.steady_ns is not None and self.steady_ns >= at_ns:
            self.steady_ns = None

    @property
    def unmeasured(self) -> bool:
        """Whether it ran and ended before its window; one that was edited goes on in a row of its own."""
        if self.skipped or self.closed_ns is None or self.ended_by == "edit":
            return False
        return self.steady_ns is None or self.steady_ns >= self.closed_ns
