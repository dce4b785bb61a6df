"""What is demanded of a run: by `--llm-slo` of all of it, else by each user class of its own requests.

A user class with an `slo` is judged by the rows of its `name`; without a name only where it is the one class there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from llm_locust.load.users import LLMUser
from llm_locust.measure.record import RequestRecord
from llm_locust.measure.slo import Slo, Verdict
from llm_locust.measure.slo_grammar import SloError, parse_slo
from llm_locust.measure.snapshot import ALL, StageRow

from .settings import Settings


@dataclass(frozen=True, slots=True)
class OfClass:
    """The objectives of one user class; `row` is the name of the rows that they are judged by."""

    slo: Slo
    row: str


@dataclass(frozen=True, slots=True)
class Objectives:
    """The objectives of a run."""

    of_run: Slo | None = None
    of_class: Mapping[str, OfClass] = field(default_factory=dict)

    @property
    def judge_requests(self) -> bool:
        """Whether anything is asked of single requests."""
        return any(slo.request_limits for slo in self._all())

    def request_good(self, record: RequestRecord) -> bool | None:
        """Judge one request by the run's limits, else by those of its class; None where it is not judged."""
        if self.of_run is not None:
            return self.of_run.request_good(record)
        own = self.of_class.get(record.user_class)
        return None if own is None else own.slo.request_good(record)

    def missed_by_waiting(self, wait_ns: int) -> bool:
        """Say whether an arrival missed a limit by its wait alone: one of the run's, else one of each class."""
        return all(slo.missed_by_waiting(wait_ns) for slo in self._all())

    def verdicts(self, rows: Iterable[StageRow]) -> dict[str, tuple[Verdict, ...]]:
        """Judge every stage. A class without a request in a stage has missed what is demanded of it."""
        by_stage: dict[str, dict[str, StageRow]] = {}
        for row in rows:
            by_stage.setdefault(row.stage, {})[row.name] = row
        return {stage: tuple(self._of_stage(named)) for stage, named in by_stage.items() if ALL in named}

    def _of_stage(self, named: Mapping[str, StageRow]) -> Iterator[Verdict]:
        values = named[ALL].values
        if self.of_run is not None:
            yield from self.of_run.verdicts(values)
            return
        nothing = {**dict.fromkeys(values), "load": values["load"]}
        for name, own in self.of_class.items():
            of_row = named[own.row].values if own.row in named else nothing
            for verdict in own.slo.verdicts(of_row):
                yield replace(verdict, clause=f"{name}: {verdict.clause}")

    def _all(self) -> Sequence[Slo]:
        own = [of_class.slo for of_class in self.of_class.values()]
        return own if self.of_run is None else [self.of_run]


def objectives(settings: Settings, classes: Sequence[type[LLMUser]]) -> Objectives | None:
    """Read what is demanded; None where nothing is. Raises SloError with a pointer to the wrong place."""
    if settings.slo:
        return Objectives(parse_slo(settings.slo))
    found = {owner.__name__: _of_class(owner, alone=len(classes) == 1) for owner in classes if owner.slo}
    return Objectives(of_class=found) if found else None


def _of_class(owner: type[LLMUser], *, alone: bool) -> OfClass:
    assert owner.slo is not None
    if owner.name is None and not alone:
        raise SloError(f"{owner.__name__} has no `name`, so its requests have no rows of their own", owner.slo, 0)
    return OfClass(parse_slo(owner.slo), owner.name or ALL)
