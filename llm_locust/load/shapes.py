"""The suite's load shapes, which a user sets by class attributes or by options, and runs by name.

    class Sweep(ConcurrencySteps):
        levels = (8, 16, 32, 64)
        hold = "5m"

Every shape here is abstract: importing one never runs it. An option that is given wins over the class attribute; one
that contradicts what the shape varies is refused. An own shape derives from `StagedShape` and says its `stages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from llm_locust.load.arrivals import ArrivalSpec
from llm_locust.load.plan import OPEN_LOOP_USERS, PlanSettings
from llm_locust.load.stage import NO_WARMUP, Stage
from llm_locust.load.staged import (
    Duration,
    StagedShape,
    hold_of,
    length_of,
    owner_of,
    require_levels,
    require_rates,
    running_through,
    seconds,
)
from llm_locust.prompts.registry import MADE

SOAK_LONG_S = 3 * 3600.0
"""From this length on a soak has a row an hour, below it one every ten minutes."""


class Baseline(StagedShape):
    """One user, no rate: what a request costs on an idle server."""

    abstract = True
    takes = frozenset({"warmup", "requests"})
    varies = "is one user without a rate"
    requests = 10
    usual_input_tokens = 512
    usual_output_tokens = 1024

    def stages(self, settings: PlanSettings) -> list[Stage]:
        """Give the one stage."""
        return [self.stage(settings, "baseline", 1, requests=self.requests_of(settings, 1, 0, 1))]


class ConcurrencySteps(StagedShape):
    """Rising numbers of users, no rate: a closed loop at each level, drained in between."""

    abstract = True
    takes = frozenset({"warmup", "requests", "levels", "hold_s", "spawn_rate_per_s", "start"})
    varies = "varies the users of a closed loop (--llm-levels)"
    levels: ClassVar[Sequence[int]] = (8, 16, 32, 64)
    hold: ClassVar[Duration] = "5m"
    usual_input_tokens = 1024
    usual_output_tokens = 2048

    def stages(self, settings: PlanSettings) -> list[Stage]:
        """Give a stage a level."""
        levels = settings.levels or self.levels
        require_levels(levels)
        return [
            msgspec.structs.replace(
                self.stage(
                    settings,
                    f"users-{users}",
                    users,
                    hold=hold_of(settings, self.hold),
                    requests=self.requests_of(settings, users, place, len(levels)),
                ),
                sweep="users",
            )
            for place, users in enumerate(levels)
        ]


class RateSteps(StagedShape):
    """Rising request rates under a cap on users: an open loop at each rate, drained in between."""

    abstract = True
    takes = frozenset({"warmup", "requests", "rates_per_s", "hold_s", "users", "arrivals"})
    varies = "varies the rate of an open loop (--llm-rates)"
    rates: ClassVar[Sequence[float]] = (2, 5, 10, 20)
    users: ClassVar[int] = OPEN_LOOP_USERS
    hold: ClassVar[Duration] = "5m"
    usual_input_tokens = 1024
    usual_output_tokens = 2048

    def stages(self, settings: PlanSettings) -> list[Stage]:
        """Give a stage a rate."""
        rates, users = settings.rates_per_s or self.rates, settings.users or self.users
        require_rates(settings, rates)
        return [
            msgspec.structs.replace(
                self.stage(
                    settings,
                    f"rate-{rate:g}",
                    users,
                    hold=hold_of(settings, self.hold),
                    requests=self.requests_of(settings, users, place, len(rates)),
                    rate_per_s=rate,
                ),
                sweep="rates",
            )
            for place, rate in enumerate(rates)
        ]


class MixedLoad(StagedShape):
    """One rate, prompts and answers of many lengths."""

    abstract = True
    takes = frozenset({"warmup", "requests", "rate_per_s", "hold_s", "users", "arrivals"})
    varies = "holds one rate of an open loop (--llm-rate)"
    rate: ClassVar[float] = 10
    users: ClassVar[int] = 64
    hold: ClassVar[Duration] = "10m"
    usual_input_tokens = "512-2048"
    usual_output_tokens = "512-4096"

    def stages(self, settings: PlanSettings) -> list[Stage]:
        """Give the one stage."""
        rate, users = settings.rate_per_s or self.rate, settings.users or self.users
        require_rates(settings, (rate,))
        hold, requests = hold_of(settings, self.hold), self.requests_of(settings, users, 0, 1)
        return [self.stage(settings, "mixed", users, hold=hold, requests=requests, rate_per_s=rate)]


class _PublishedRates(RateSteps):
    """The rate steps as the published plan has them."""

    abstract = True
    users = 32


class FullPlan(StagedShape):
    """Baseline, concurrency steps, rate steps, mixed load: one after the other, one table.

    What a subclass sets (levels, rates, hold, lengths, …) holds for the parts of the suite that know it.
    """

    abstract = True
    takes = frozenset({"warmup", "levels", "rates_per_s", "hold_s", "spawn_rate_per_s", "start", "arrivals"})
    varies = "is a sequence of shapes, each with its own"
    parts: ClassVar[Sequence[type[StagedShape]]] = (Baseline, ConcurrencySteps, _PublishedRates, MixedLoad)

    def stages(self, settings: PlanSettings) -> list[Stage]:
        """Give the stages of all parts."""
        return [stage for part in self.parts for stage in self._with_own(part).stages(settings)]

    def _with_own(self, part: type[StagedShape]) -> StagedShape:
        """Make a part that has this plan's own attributes; those of a part that is no suite's stay."""
        classes = type(self).__mro__
        own = {name for cls in classes[: classes.index(FullPlan)] for name in vars(cls)} - _OF_THE_PLAN
        suites = {*SHAPES, _PublishedRates, StagedShape}
        taken = {name: getattr(self, name) for name in own if owner_of(part, name) in suites}
        made: type[StagedShape] = type(part.__name__, (part,), taken)
        return made()


class Soak(StagedShape):
    """One rate for long: a row an hour (ten minutes below three hours), without a pause between rows."""

    abstract = True
    takes = frozenset({"warmup", "rate_per_s", "hold_s", "users", "arrivals", "run_time_s"})
    varies = "holds one rate of an open loop (--llm-rate) for a time (--run-time)"
    rate: ClassVar[float] = 8
    users: ClassVar[int] = OPEN_LOOP_USERS
    hold: ClassVar[Duration] = "1h"
    row: ClassVar[Duration | None] = None
    usual_input_tokens = 1024
    usual_output_tokens = 1024

    def stages(self, settings: PlanSettings) -> list[Stage]:
        """Give the rows; the last one takes what is left."""
        rate, users = settings.rate_per_s or self.rate, settings.users or self.users
        require_rates(settings, (rate,))
        total_s = settings.run_time_s or seconds(hold_of(settings, self.hold))
        row_s = seconds(self.row) if self.row is not None else (3600.0 if total_s >= SOAK_LONG_S else 600.0)
        if row_s <= 0:
            raise ValueError(f"row {self.row}: it must be longer than 0 s")
        count = max(int(total_s // row_s), 1)
        width = len(str(count))
        holds_s = [row_s] * (count - 1) + [total_s - row_s * (count - 1)]
        rows = [
            self.stage(settings, f"soak-{place + 1:0{width}}", users, hold=hold_s, rate_per_s=rate)
            for place, hold_s in enumerate(holds_s)
        ]
        return running_through(rows) if count > 1 else [msgspec.structs.replace(rows[0], label="soak")]


class FixedBatch(StagedShape):
    """A batch of requests released at one instant, after a warm-up batch; (size, input, output tokens) each."""

    abstract = True
    takes = frozenset({"warmup", "levels"})
    varies = "releases batches of fixed sizes (--llm-levels) at one instant"
    batches: ClassVar[Sequence[tuple[int, int, int]]] = ((1, 128, 128), (10, 1280, 1280))

    def stages(self, settings: PlanSettings) -> list[Stage]:
        """Give a stage a batch; a size without a row in ``batches`` has the last row's lengths."""
        lengths = {size: (given, wanted) for size, given, wanted in self.batches}
        _, *last = self.batches[-1]
        stages = []
        for size in settings.levels or [size for size, _, _ in self.batches]:
            given, wanted = lengths.get(size, tuple(last))
            stage = self.stage(settings, f"batch-{size}", size, requests=size)
            stages.append(
                msgspec.structs.replace(
                    stage,
                    spread_s=0.0,
                    release_together=True,
                    input_tokens=length_of(settings, "input_tokens", self.input_tokens or given),
                    output_tokens=length_of(settings, "output_tokens", self.output_tokens or wanted),
                )
            )
        return stages


class LongContext(StagedShape):
    """One user, prompts of rising length: how speed falls with the context."""

    abstract = True
    takes = frozenset({"warmup", "requests"})
    varies = "is one user whose prompts grow (--llm-input-tokens for one length of your own)"
    lengths: ClassVar[Sequence[int]] = (1, 6144, 14336, 30720)
    requests = 2
    output_tokens = 2048

    def stages(self, settings: PlanSettings) -> list[Stage]:
        """Give a stage a length."""
        if settings.prompts not in MADE:
            raise ValueError(f"--llm-prompts {settings.prompts}: its prompts have lengths of their own, no stage's")
        own = length_of(settings, "input_tokens", self.input_tokens)
        lengths = [own] if own else [str(length) for length in self.lengths]
        stages = []
        for place, length in enumerate(lengths):
            requests = self.requests_of(settings, 1, place, len(lengths))
            stage = self.stage(settings, f"context-{length}", 1, requests=requests)
            stages.append(msgspec.structs.replace(stage, input_tokens=length))
        return stages


class Spike(StagedShape):
    """A rate that jumps up and back without a pause: how the server takes it, and how long it needs after it."""

    abstract = True
    takes = frozenset({"warmup", "rates_per_s", "hold_s", "users", "arrivals"})
    varies = "varies the rate of an open loop (--llm-rates)"
    rates: ClassVar[Sequence[float]] = (5, 20, 5)
    holds: ClassVar[Sequence[Duration]] = ("5m", "1m", "5m")
    users: ClassVar[int] = OPEN_LOOP_USERS
    usual_input_tokens = 1024
    usual_output_tokens = 1024

    def stages(self, settings: PlanSettings) -> list[Stage]:
        """Give a row a rate; more rates than holds: the last hold goes on."""
        rates, users = settings.rates_per_s or self.rates, settings.users or self.users
        require_rates(settings, rates)
        holds = [hold_of(settings, self.holds[min(place, len(self.holds) - 1)]) for place in range(len(rates))]
        rows = [
            self.stage(settings, f"rate-{rate:g}", users, hold=hold, rate_per_s=rate)
            for rate, hold in zip(rates, holds, strict=True)
        ]
        return running_through(rows)


class Ramp(StagedShape):
    """Users that rise in stairs without a pause; a row a stair."""

    abstract = True
    takes = frozenset({"warmup", "levels", "hold_s", "spawn_rate_per_s", "start"})
    varies = "varies the users of a closed loop (--llm-levels)"
    levels: ClassVar[Sequence[int]] = (8, 16, 24, 32, 40, 48, 56, 64)
    hold: ClassVar[Duration] = "1m"
    usual_input_tokens = 1024
    usual_output_tokens = 1024

    def stages(self, settings: PlanSettings) -> list[Stage]:
        """Give a row a level."""
        levels = settings.levels or self.levels
        require_levels(levels)
        hold = hold_of(settings, self.hold)
        return running_through([self.stage(settings, f"users-{users}", users, hold=hold) for users in levels])


class TraceReplay(StagedShape):
    """Requests at the instants of a trace (--llm-prompts names it), until it ends or for the hold."""

    abstract = True
    takes = frozenset({"hold_s", "users", "arrivals"})
    varies = "plays a trace at its own instants"
    users: ClassVar[int] = OPEN_LOOP_USERS
    hold: ClassVar[Duration | None] = None
    speed: ClassVar[float] = 1.0

    def stages(self, settings: PlanSettings) -> list[Stage]:
        """Give the one stage; a trace has no warm-up of its own."""
        if "arrivals" in settings.given and settings.arrivals.law != "trace":
            raise ValueError(f"--llm-arrivals {settings.arrivals.law}: the trace has its own instants")
        if self.speed <= 0:
            raise ValueError(f"speed {self.speed:g}: it must be above 0")
        hold = settings.hold_s or self.hold
        stage = self.stage(settings, "trace", settings.users or self.users, hold=hold)
        speed = settings.arrivals.speed if "arrivals" in settings.given else self.speed
        law = ArrivalSpec("trace", speed=speed)
        return [msgspec.structs.replace(stage, arrivals=law, warmup=NO_WARMUP, spread_s=0.0)]


_OF_THE_PLAN = {"parts", "takes", "varies", "stages", "abstract"}


SHAPES: tuple[type[StagedShape], ...] = (
    Baseline,
    ConcurrencySteps,
    RateSteps,
    MixedLoad,
    FullPlan,
    Soak,
    FixedBatch,
    LongContext,
    Spike,
    Ramp,
    TraceReplay,
)
