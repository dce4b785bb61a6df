"""The part of a run's settings that a plan reads, as the options would give it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, fields

from llm_locust.load.stage import Warmup

FIRST_REQUEST = Warmup()


@dataclass(frozen=True)
class Law:
    """An arrival law as the option says it."""

    law: str = "poisson"
    cv: float | None = 1.0
    speed: float = 1.0


@dataclass(frozen=True)
class Count:
    """A number of requests as the option says it."""

    count: int
    per_user: bool = False

    def total(self, users: int) -> int:
        return self.count * users if self.per_user else self.count


@dataclass(frozen=True, kw_only=True)
class Options:
    """Settings; `given` are those that were passed."""

    users: int | None = None
    run_time_s: float | None = None
    levels: Sequence[int] | None = None
    rates_per_s: Sequence[float] | None = None
    rate_per_s: float | None = None
    hold_s: float | None = None
    requests: Sequence[Count] | None = None
    arrivals: Law = Law()
    spawn_rate_per_s: float | None = None
    start: str = "spread"
    warmup: Warmup = FIRST_REQUEST
    prompts: str = "synthetic"
    input_tokens: object | None = None
    output_tokens: object | None = None
    given: Collection[str] = field(default_factory=frozenset)


def options(**given: object) -> Options:
    """Make settings in which exactly these options were given."""
    assert set(given) <= {known.name for known in fields(Options)}
    return Options(**given, given=frozenset(given))  # type: ignore[arg-type]  # checked by the dataclass's users
