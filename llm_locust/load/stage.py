"""What a stage is: a row of the plan (`Stage`), the order that a worker gets (`StageOrder`), what it reports (`Tally`).

Values only: they cross the wire between master and workers as builtins. Knows no clock, no I/O and no Locust.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from llm_locust.load.arrivals import ArrivalSpec, Profile, Shares, Weights

RAMP = "ramp"
WARMUP = "warmup"
STEADY = "steady"
DRAIN = "drain"

PHASES = (RAMP, WARMUP, STEADY, DRAIN)
"""The phases of a stage in their order; STEADY is the measured window, DRAIN issues nothing."""


class Warmup(msgspec.Struct, frozen=True):
    """What comes before the window: until every user has finished so many requests, or for so long; both 0: nothing."""

    requests_per_user: int = 1
    duration_s: float = 0.0

    def __str__(self) -> str:
        """Spell the rule as the option does."""
        return f"{self.duration_s:g}s" if self.duration_s else str(self.requests_per_user)


NO_WARMUP = Warmup(requests_per_user=0)


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """One step of the load, as the plan has it. It ends by ``hold_s`` or by ``requests`` (measured ones, all workers).

    Neither: it ends with the run (or with its trace). ``through`` continues the stage before it: no drain, no new
    schedule, only a new label, users and rate. Empty texts and None mean "as the run has it".
    """

    label: str
    users: int
    rate_per_s: float | None = None  # None: closed loop (or a trace)
    arrivals: ArrivalSpec | None = None  # None: closed loop
    hold_s: float | None = None
    requests: int | None = None
    warmup: Warmup = Warmup()
    spread_s: float = 0.0  # a closed loop's users start evenly over this time
    spawn_rate: float = 100.0
    through: bool = False
    release_together: bool = False  # after the warm-up all wait, and the window's first requests start at one instant
    users_first: bool = True  # the gate opens when all users are there; False: at once, the users' own ramp is the ramp
    min_requests_per_user: int = 3
    max_hold_s: float = 3600.0
    sweep: str = ""  # the levels of one sweep: it stops climbing after one that failed
    prompts: str = ""
    input_tokens: str = ""  # of every prompt, whoever's it is
    output_tokens: str = ""
    usual_input_tokens: str = ""  # of those that no user class brings
    usual_output_tokens: str = ""
    slo: str = ""  # what is demanded of it

    @property
    def open_loop(self) -> bool:
        """Tell whether a schedule says when requests are due."""
        return self.arrivals is not None

    @property
    def whole_requests(self) -> bool:
        """Tell whether the window is made of its requests: a batch, or one user that asks so many, one by one."""
        return self.release_together or (self.users == 1 and self.requests is not None)


class StageOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One stage as one worker is told it. Sent again with the same number it amends profile, shares and quota.

    ``quota`` is the number of steady requests that this worker may issue in the stage, all told; None: no limit.
    ``shares`` holds the users of every worker; under a closed loop new shares hold at once, and their first index lies
    beyond every index in use (see ``reshare_index``).
    """

    number: int
    label: str
    worker: str
    users: int
    shares: Shares
    seed: int
    first_index: int = 0  # what the stage's indices count from: unique over the run
    first_prompt: int = 0  # what its places in a source of prompts count from: those that the stages before have used
    arrivals: ArrivalSpec | None = None
    profile: Profile = ()
    quota: int | None = None
    warmup_requests_per_user: int = 0
    spread_s: float = 0.0
    release_together: bool = False
    min_requests_per_user: int = 0
    prompts: str = ""
    input_tokens: str = ""
    output_tokens: str = ""
    usual_input_tokens: str = ""
    usual_output_tokens: str = ""

    @property
    def weights(self) -> Weights:
        """The newest shares."""
        return self.shares[-1][1] if self.shares else ()

    @property
    def own_users(self) -> int:
        """The users of this worker under the newest shares."""
        return dict(self.weights).get(self.worker, 0)

    def to_message(self) -> dict[str, Any]:
        """Turn into builtins for a message."""
        message: dict[str, Any] = msgspec.to_builtins(self)
        return message

    @staticmethod
    def from_message(message: Mapping[str, Any]) -> StageOrder:
        """Read a message; raises msgspec.ValidationError on another version's."""
        return msgspec.convert(message, StageOrder)


class Tally(msgspec.Struct, kw_only=True):
    """What one worker's gate counted in one row (a stage, or one label of a stage that runs through).

    Sent to the master with the reports; ``merged`` adds workers up. ``steady_*`` count requests that were issued in
    the window; ``issued`` are the arrivals started. ``warm``: nothing here keeps the stage in its warm-up.
    ``users_short``: users with fewer finished steady requests than the minimum. ``last_steady_end_ns`` is an instant
    of the reporting process's clock: the receiver converts it to its own before merging.
    """

    number: int
    label: str
    phase: str = DRAIN
    users: int = 0
    users_short: int = 0
    warm: bool = False
    drained: bool = False  # closed, nothing of the stage in flight, its backlog given up: these counters are final
    issued: int = 0
    finished: int = 0
    in_flight: int = 0
    steady_issued: int = 0
    steady_finished: int = 0
    steady_ok: int = 0
    steady_failed: int = 0
    last_steady_end_ns: int | None = None
    index_end: int = 0  # one beyond the highest index issued, counted from the order's first_index
    arrivals_due: int = 0
    arrivals_unstarted: int = 0
    steady_due: int = 0
    unstarted_wait_ns: int = 0
    unstarted_wait_max_ns: int = 0
    backlog: int = 0
    backlog_max: int = 0
    cap_reached_ns: int = 0
    window_ns: int = 0
    exhausted: bool = False  # quota used up, or the trace is at its end

    @staticmethod
    def from_message(message: Mapping[str, Any]) -> Tally:
        """Read what ``msgspec.to_builtins`` made of one."""
        return msgspec.convert(message, Tally)

    def lost(self) -> Tally:
        """Give what remains of a worker that was lost: its counts, and nothing that others would wait for."""
        return msgspec.structs.replace(
            self, users=0, users_short=0, in_flight=0, backlog=0, warm=True, drained=True, exhausted=True
        )

    @staticmethod
    def merged(tallies: Iterable[Tally]) -> Tally | None:
        """Add up the workers' tallies of one row; None without any. ``backlog_max`` adds up to an upper bound."""
        total: Tally | None = None
        for tally in tallies:
            total = msgspec.structs.replace(tally) if total is None else total._plus(tally)
        return total

    def _plus(self, other: Tally) -> Tally:
        """Add one other worker's."""
        ends = [end for end in (self.last_steady_end_ns, other.last_steady_end_ns) if end is not None]
        sums = {name: getattr(self, name) + getattr(other, name) for name in _SUMS}
        return msgspec.structs.replace(
            self,
            warm=self.warm and other.warm,
            drained=self.drained and other.drained,
            exhausted=self.exhausted and other.exhausted,
            last_steady_end_ns=max(ends, default=None),
            index_end=max(self.index_end, other.index_end),
            unstarted_wait_max_ns=max(self.unstarted_wait_max_ns, other.unstarted_wait_max_ns),
            **sums,
        )


_SUMS = tuple(
    name
    for name in Tally.__struct_fields__
    if name not in ("number", "label", "phase", "warm", "drained", "exhausted", "last_steady_end_ns", "index_end")
    and name != "unstarted_wait_max_ns"
)
