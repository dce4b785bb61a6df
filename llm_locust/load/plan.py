"""What a plan is made of, checked before any load: the options that shape it, its least duration, its printed rows.

Knows no clock, no I/O and no Locust.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Protocol

from llm_locust.load.arrivals import ArrivalSpec
from llm_locust.load.stage import NO_WARMUP, Stage, Warmup
from llm_locust.measure.slo_grammar import SloError, parse_slo
from llm_locust.measure.snapshot import RUN

OPEN_LOOP_USERS = 512
"""The cap on concurrency under a rate where none is given."""

SPREAD_RATIO = 0.1
SPREAD_MOST_S = 30.0
SPREAD_USERS_PER_S = 10.0
"""A closed loop's users start spread over a tenth of the hold, at most 30 s; ten a second where there is no hold."""

FLAGS = {
    "users": "--users",
    "run_time_s": "--run-time",
    "levels": "--llm-levels",
    "rates_per_s": "--llm-rates",
    "rate_per_s": "--llm-rate",
    "hold_s": "--llm-hold",
    "requests": "--llm-requests",
    "arrivals": "--llm-arrivals",
    "spawn_rate_per_s": "--llm-spawn-rate",
    "start": "--llm-start",
    "warmup": "--llm-warmup",
}
"""The options that say what the load is like: a shape takes some, and refuses the others."""


class Law(Protocol):
    """The arrival law as the option says it."""

    @property
    def law(self) -> str: ...
    @property
    def cv(self) -> float | None: ...
    @property
    def speed(self) -> float: ...


class Count(Protocol):
    """A number of requests, a stage's or a user's."""

    def total(self, users: int) -> int:
        """Give the requests of a stage with so many users."""
        ...


class WarmupRule(Protocol):
    """The warm-up as the option says it."""

    @property
    def requests_per_user(self) -> int: ...
    @property
    def duration_s(self) -> float: ...


class PlanSettings(Protocol):
    """What a plan reads of the run's settings. None: not given; ``given`` names the fields that an option set."""

    @property
    def given(self) -> Collection[str]: ...
    @property
    def users(self) -> int | None: ...
    @property
    def run_time_s(self) -> float | None: ...
    @property
    def levels(self) -> Sequence[int] | None: ...
    @property
    def rates_per_s(self) -> Sequence[float] | None: ...
    @property
    def rate_per_s(self) -> float | None: ...
    @property
    def hold_s(self) -> float | None: ...
    @property
    def requests(self) -> Sequence[Count] | None: ...
    @property
    def arrivals(self) -> Law: ...
    @property
    def spawn_rate_per_s(self) -> float | None: ...
    @property
    def start(self) -> str: ...
    @property
    def warmup(self) -> WarmupRule: ...
    @property
    def prompts(self) -> str: ...
    @property
    def input_tokens(self) -> object | None: ...
    @property
    def output_tokens(self) -> object | None: ...


def given_load_options(settings: PlanSettings) -> list[str]:
    """Name the given options that shape the load, in the order of the table."""
    locusts = {"users": settings.users, "run_time_s": settings.run_time_s}
    return [field for field in FLAGS if field in settings.given or locusts.get(field) is not None]


def spread_s(settings: PlanSettings, users: int, hold_s: float | None) -> float:
    """Give the time over which a closed loop's users start."""
    if settings.start == "together" or users <= 1:
        return 0.0
    if settings.spawn_rate_per_s is not None:
        return users / settings.spawn_rate_per_s
    return min(users / SPREAD_USERS_PER_S if hold_s is None else hold_s * SPREAD_RATIO, SPREAD_MOST_S)


def plain_stage(settings: PlanSettings, spawn_rate: float) -> Stage:
    """Make the one stage of a run without a shape: Locust brings the users (-u, -r), it ends with the run."""
    law = arrival_spec(settings) if settings.rate_per_s is not None or settings.arrivals.law == "trace" else None
    users = settings.users or (1 if law is None else OPEN_LOOP_USERS)
    return Stage(
        label="run",
        users=users,
        rate_per_s=settings.rate_per_s,
        arrivals=law,
        requests=settings.requests[0].total(users) if settings.requests else None,
        warmup=Warmup(settings.warmup.requests_per_user, settings.warmup.duration_s),
        spawn_rate=spawn_rate,
        users_first=False,
    )


def arrival_spec(settings: PlanSettings) -> ArrivalSpec:
    """Turn the option's law into a schedule's."""
    return ArrivalSpec(settings.arrivals.law, settings.arrivals.cv or 1.0, settings.arrivals.speed)


def stage_problems(stages: Sequence[Stage]) -> Iterator[str]:
    """Name what no stage may be, each as one sentence with its arithmetic."""
    if not stages:
        yield "the plan has no stage"
    for stage in stages:
        name = f"stage {stage.label}"
        if not stage.label:
            yield "a stage has no label; its rows are found by it"
        if stage.label == RUN:
            yield f"{name}: the row over all stages is called so; choose another label"
        if stage.users < 1:
            yield f"{name}: {stage.users} users; at least 1 is needed"
        if stage.rate_per_s is not None and stage.rate_per_s <= 0:
            yield f"{name}: a rate of {stage.rate_per_s:g} requests a second; it must be above 0"
        if stage.requests is not None and stage.requests < 1:
            yield f"{name}: {stage.requests} requests; at least 1 is needed"
        if stage.hold_s is None:
            continue
        if stage.hold_s <= 0:
            yield f"{name}: holds {stage.hold_s:g} s; it must be longer than 0 s"
        elif stage.spread_s >= stage.hold_s:
            rate = stage.users / stage.spread_s
            yield (
                f"{name} needs {stage.spread_s:g} s to start {stage.users} users at {rate:g} a second, but holds "
                f"{stage.hold_s:g} s: lengthen --llm-hold or raise --llm-spawn-rate"
            )


def slo_problems(stages: Sequence[Stage]) -> Iterator[str]:
    """Name each text of objectives that cannot be read, once, with the stages that have it."""
    texts: dict[str, list[str]] = {}
    for stage in stages:
        texts.setdefault(stage.slo, []).append(stage.label)
    for text, labels in texts.items():
        try:
            if text:
                parse_slo(text)
        except SloError as error:
            yield f"slo of {'stage' if len(labels) == 1 else 'stages'} {', '.join(labels)}: {error}"


def least_duration_s(stages: Sequence[Stage]) -> float:
    """Add up users, their spread and holds. Warm-ups by requests, drains and counted requests come on top."""
    total_s, users = 0.0, 0
    for stage in stages:
        if not stage.through:
            total_s += abs(stage.users - users) / stage.spawn_rate + stage.spread_s + stage.warmup.duration_s
        total_s += stage.hold_s or 0.0
        users = stage.users
    return total_s


def estimated_duration_s(stages: Sequence[Stage], request_s: float) -> float:
    """Estimate what the stages take when a request lasts so long: warm-up, hold, the minimum per user, drain."""
    total_s = least_duration_s(stages)
    for stage in stages:
        if stage.through:
            continue
        total_s += request_s * (1 + stage.warmup.requests_per_user)  # the drain and the warm-up
        if stage.requests is not None:
            total_s += request_s * stage.requests / stage.users
            if stage.rate_per_s is not None:
                total_s += max(stage.requests / stage.rate_per_s - request_s * stage.requests / stage.users, 0.0)
        elif not stage.open_loop and stage.hold_s is not None:
            longer_s = min(stage.min_requests_per_user * request_s, stage.max_hold_s) - stage.hold_s
            total_s += max(longer_s, 0.0)
    return total_s


PLAN_COLUMNS = ("stage", "users", "rate /s", "ends after", "warm-up", "spread", "tokens in", "tokens out")


def lengths_of(stage: Stage) -> tuple[str, str]:
    """Spell the token lengths that a stage names, in and out."""
    into, out = stage.input_tokens or stage.usual_input_tokens, stage.output_tokens or stage.usual_output_tokens
    return into or "–", out or "–"


def plan_rows(
    stages: Sequence[Stage], lengths: Callable[[Stage], tuple[str, str]] = lengths_of
) -> list[tuple[str, ...]]:
    """Give the plan as it is printed: one row a stage, under `PLAN_COLUMNS`.

    ``lengths`` spells those of a stage's prompts and answers, where more is known of them than the stage says.
    """
    return [
        (
            stage.label,
            str(stage.users),
            _rate(stage),
            _end(stage),
            _warmup(stage),
            f"{stage.spread_s:g} s" if stage.spread_s else "–",
            *lengths(stage),
        )
        for stage in stages
    ]


def _warmup(stage: Stage) -> str:
    if stage.through or stage.warmup == NO_WARMUP:
        return "–"
    if stage.warmup.duration_s:
        return duration_text(stage.warmup.duration_s)
    return "the first requests" if stage.open_loop else f"{stage.warmup.requests_per_user} a user"


def _rate(stage: Stage) -> str:
    if stage.arrivals is None:
        return "closed loop"
    return str(stage.arrivals) if stage.rate_per_s is None else f"{stage.rate_per_s:g} {stage.arrivals}"


def _end(stage: Stage) -> str:
    if stage.requests is not None:
        return "1 request" if stage.requests == 1 else f"{stage.requests:,} requests"
    if stage.hold_s is not None:
        return duration_text(stage.hold_s)
    return "the trace" if stage.arrivals is not None and stage.rate_per_s is None else "the run"


def duration_text(seconds: float) -> str:
    """Spell a duration: 45s, 5m, 1h30m."""
    whole = round(seconds)
    hours, minutes, rest = whole // 3600, whole // 60 % 60, whole % 60
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"
