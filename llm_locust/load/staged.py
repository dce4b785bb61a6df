"""The base of the suite's load shapes: a plan of stages under the run's options, checked before any load.

Knows no sockets and no clock; the conductor that the plugin gives it does the work.
"""

from __future__ import annotations

import logging
import traceback
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec
from locust import LoadTestShape
from locust.util.timespan import parse_timespan

from llm_locust.load.conductor import Conductor
from llm_locust.load.plan import (
    FLAGS,
    Count,
    PlanSettings,
    arrival_spec,
    given_load_options,
    least_duration_s,
    slo_problems,
    spread_s,
    stage_problems,
)
from llm_locust.load.stage import Stage, Warmup

logger = logging.getLogger(__name__)

Duration = str | float
"""Seconds, or a text like 90s, 5m, 1h30m."""


class StagedShape(LoadTestShape):
    """A load shape made of stages. ``takes`` names the options (fields of the settings) that it understands."""

    abstract = True
    use_common_options = True

    takes: ClassVar[frozenset[str]] = frozenset({"warmup"})
    varies: ClassVar[str] = ""
    """What the shape varies by itself, said where an option is refused."""
    warmup: ClassVar[str | int | None] = None
    requests: ClassVar[int | Sequence[int] | None] = None
    input_tokens: ClassVar[str | int] = ""
    output_tokens: ClassVar[str | int] = ""
    """Lengths of every prompt, in the place of a user class's own. An option that is given wins."""
    usual_input_tokens: ClassVar[str | int] = ""
    usual_output_tokens: ClassVar[str | int] = ""
    """Lengths where the user class has no prompts of its own."""
    prompts: ClassVar[str] = ""
    slo: ClassVar[str] = ""
    """What is demanded of each of its stages; one may say otherwise (`stage(slo=…)`), `--llm-slo` wins over both."""
    min_requests_per_user: ClassVar[int] = 3
    max_hold: ClassVar[Duration] = "1h"

    begin: Callable[[StagedShape], Conductor]
    """Makes the conductor of a run; set by the plugin before the shape ticks."""
    conductor: Conductor | None = None

    def __init__(self) -> None:
        """Begin without a conductor."""
        super().__init__()  # type: ignore[no-untyped-call]  # Locust's has no annotations

    @abstractmethod
    def stages(self, settings: PlanSettings) -> list[Stage]:
        """Give the stages of the plan; ValueError says what is wrong."""

    def plan(self, settings: PlanSettings) -> list[Stage]:
        """Give the plan: the stages with labels of their own. Raises ValueError with every problem found."""
        problems = self.problems(settings)
        if problems:
            raise ValueError("; ".join(problems))
        return _with_unique_labels(self.stages(settings))

    def problems(self, settings: PlanSettings) -> list[str]:
        """Name everything that is wrong with the plan, before any load."""
        problems = list(self._refused(settings))
        try:
            stages = self.stages(settings)
        except ValueError as error:
            return [*problems, f"{self.name()}: {error}"]
        except Exception as error:  # a shape of one's own is anybody's code, its attributes are anything
            logger.debug("%s gives no plan", self.name(), exc_info=True)
            return [*problems, f"{self.name()}: {_told(error)}"]
        if not isinstance(stages, Sequence) or not all(isinstance(stage, Stage) for stage in stages):
            return [*problems, f"{self.name()}: `stages` gives a list of what `self.stage(…)` makes, not {stages!r}"]
        problems += [*stage_problems(stages), *slo_problems(stages)]
        least_s = least_duration_s(stages)
        if "run_time_s" not in self.takes and settings.run_time_s is not None and settings.run_time_s < least_s:
            problems.append(
                f"--run-time is {settings.run_time_s:g} s, but {self.name()} needs at least {least_s:g} s: leave it out"
            )
        return problems

    def run_limit_s(self, settings: PlanSettings) -> float | None:
        """Give the time after which the conductor ends the plan; None where the plan itself lasts the run time."""
        return None if "run_time_s" in self.takes else settings.run_time_s

    def _refused(self, settings: PlanSettings) -> Iterator[str]:
        for field in given_load_options(settings):
            if field in self.takes or field == "run_time_s":
                continue
            yield f"{FLAGS[field]} does not apply to {self.name()}" + (f": it {self.varies}" if self.varies else "")

    def tick(self) -> tuple[int, float] | None:
        """Answer Locust once a second."""
        if self.conductor is None:
            self.conductor = self.begin(self)
        return self.conductor.tick()

    @classmethod
    def name(cls) -> str:
        """Give the name by which the shape is chosen."""
        return cls.__name__

    def stage(
        self,
        settings: PlanSettings,
        label: str,
        users: int,
        *,
        hold: Duration | None = None,
        requests: int | None = None,
        rate_per_s: float | None = None,
        slo: str = "",
    ) -> Stage:
        """Make one stage under the run's options; a given number of requests ends it, else its hold."""
        hold_s = None if hold is None or requests is not None else seconds(hold)
        law = None if rate_per_s is None else arrival_spec(settings)
        return Stage(
            label=label,
            users=users,
            rate_per_s=rate_per_s,
            arrivals=law,
            hold_s=hold_s,
            requests=requests,
            warmup=warmup_of(settings, self.warmup),
            spread_s=spread_s(settings, users, hold_s) if law is None else 0.0,
            min_requests_per_user=self.min_requests_per_user,
            max_hold_s=seconds(self.max_hold),
            prompts=self.prompts,
            input_tokens=length_of(settings, "input_tokens", self.input_tokens),
            output_tokens=length_of(settings, "output_tokens", self.output_tokens),
            usual_input_tokens=str(self.usual_input_tokens),
            usual_output_tokens=str(self.usual_output_tokens),
            slo=slo or self.slo,
        )

    def requests_of(self, settings: PlanSettings, users: int, place: int, stages: int) -> int | None:
        """Give the requests of the stage at a place: one number for all, or one each; None: it ends by its hold."""
        if "hold_s" in settings.given and "hold_s" in self.takes:
            if settings.requests:
                raise ValueError("--llm-hold and --llm-requests both end a stage; give one of them")
            return None
        counts: Sequence[Count | int] = settings.requests or ()
        if not counts and self.requests is not None:
            if isinstance(self.requests, str):
                raise ValueError(f"requests '{self.requests}': they are a number, or a tuple of one a stage")
            counts = [self.requests] if isinstance(self.requests, int) else self.requests
        if not counts:
            return None
        if len(counts) not in (1, stages):
            raise ValueError(f"{len(counts)} numbers of requests for {stages} stages; give one, or one a stage")
        count = counts[place if len(counts) > 1 else 0]
        return count if isinstance(count, int) else count.total(users)


def owner_of(shape: type[StagedShape], name: str) -> type | None:
    """Find the class from which a shape has an attribute."""
    return next((cls for cls in shape.__mro__ if name in vars(cls)), None)


def seconds(value: Duration) -> float:
    """Read a duration of a class attribute; ValueError where it is none."""
    if not isinstance(value, str):
        return float(value)
    try:
        return float(parse_timespan(value))
    except ValueError:
        raise ValueError(f"'{value}' is not a duration; right are 90s, 5m, 1h30m") from None


def warmup_of(settings: PlanSettings, own: str | int | None) -> Warmup:
    """Choose the warm-up: the option's where given, else the shape's: 1 (requests a user), 30s, 0."""
    if own is None or "warmup" in settings.given:
        return Warmup(settings.warmup.requests_per_user, settings.warmup.duration_s)
    if isinstance(own, int) or own.isdecimal():
        return Warmup(int(own))
    return Warmup(0, seconds(own))


def hold_of(settings: PlanSettings, hold: Duration) -> Duration:
    """Choose the hold: the option's where given."""
    return hold if settings.hold_s is None else settings.hold_s


def length_of(settings: PlanSettings, field: str, own: str | int) -> str:
    """Spell a token length: the option's where given, else the shape's."""
    given = getattr(settings, field)
    return str(given) if field in settings.given and given is not None else str(own)


def require_levels(levels: Sequence[int]) -> None:
    """Refuse levels that are no users, or stand there twice."""
    if isinstance(levels, str) or not isinstance(levels, Sequence):
        raise ValueError(f"levels {levels!r}: they are a tuple of users, as (8, 16, 32)")
    wrong = [level for level in levels if not isinstance(level, int) or level < 1]
    if wrong or not levels:
        raise ValueError(f"levels {tuple(levels)}: each must be a whole number of users, at least 1")
    if len(set(levels)) < len(levels):
        raise ValueError(f"levels {tuple(levels)}: a level stands there twice")


def require_rates(settings: PlanSettings, rates: Sequence[float]) -> None:
    """Refuse rates that are none, and the law that knows no rate."""
    if isinstance(rates, str) or not isinstance(rates, Sequence):
        raise ValueError(f"rates {rates!r}: they are a tuple of requests a second, as (2, 5, 10)")
    if not rates or any(rate <= 0 for rate in rates):
        raise ValueError(f"rates {tuple(rates)}: each must be above 0")
    if settings.arrivals.law == "trace":
        raise ValueError("--llm-arrivals trace: a trace has its own instants; use TraceReplay")


def running_through(rows: Sequence[Stage]) -> list[Stage]:
    """Let the rows follow each other without a pause."""
    first, *rest = rows
    return [first, *(msgspec.structs.replace(row, through=True, spread_s=0.0) for row in rest)]


def _told(error: Exception) -> str:
    """Say what a shape raised, and where in its file."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"


def _with_unique_labels(stages: Iterable[Stage]) -> list[Stage]:
    """Number labels that come again: rate-5, rate-20, rate-5-2."""
    seen: dict[str, int] = {}
    result = []
    for stage in stages:
        seen[stage.label] = seen.get(stage.label, 0) + 1
        again = seen[stage.label]
        label = stage.label if again == 1 else f"{stage.label}-{again}"
        result.append(msgspec.structs.replace(stage, label=label))
    return result
