"""What is demanded of a run: by `--llm-slo` of all of it, else by a stage of itself, else by each user class.

A user class with an `slo` is judged by the rows of its `name`; without a name only where it is the one class there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from llm_locust.load.row_name import row_name
from llm_locust.load.users import LLMUser
from llm_locust.measure.record import RequestRecord
from llm_locust.measure.slo import Slo, Verdict
from llm_locust.measure.slo_grammar import SloError, parse_slo
from llm_locust.measure.snapshot import ALL, StageRow

from .settings import Settings

NO_STAGES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class OfClass:
    """The objectives of one user class; `row` is the name of the rows that they are judged by."""

    slo: Slo
    row: str


@dataclass(frozen=True, slots=True)
class Objectives:
    """The objectives of a run. `of_stage` has every stage of the plan where one has its own, None for the others."""

    of_run: Slo | None = None
    of_stage: Mapping[str, Slo | None] = field(default_factory=dict)
    of_class: Mapping[str, OfClass] = field(default_factory=dict)

    @property
    def judge_requests(self) -> bool:
        """Whether anything is asked of single requests."""
        of_classes = [own.slo for own in self.of_class.values()]
        return any(
            slo is not None and slo.request_limits for slo in (self.of_run, *self.of_stage.values(), *of_classes)
        )

    def of_row(self, label: str) -> Slo | None:
        """Give what run or stage demand in a row; one that an edit split off (`mixed-2`) belongs to its stage."""
        if self.of_run is not None:
            return self.of_run
        stage = label if label in self.of_stage else label.rpartition("-")[0]
        return self.of_stage.get(stage)

    def request_good(self, record: RequestRecord) -> bool | None:
        """Judge one request by run or stage, else by its class; None where it is not judged."""
        above = self.of_row(record.stage)
        if above is not None:
            return above.request_good(record)
        own = self.of_class.get(record.user_class)
        return None if own is None else own.slo.request_good(record)

    def missed_by_waiting(self, label: str, wait_ns: int) -> bool:
        """Say whether an arrival missed a limit by its wait alone: one of run or stage, else one of each class."""
        above = self.of_row(label)
        judges = [own.slo for own in self.of_class.values()] if above is None else [above]
        return bool(judges) and all(slo.missed_by_waiting(wait_ns) for slo in judges)

    def verdicts(self, rows: Iterable[StageRow]) -> dict[str, tuple[Verdict, ...]]:
        """Judge every stage of which something is demanded; a class without a request in it has missed its own."""
        by_stage: dict[str, dict[str, StageRow]] = {}
        for row in rows:
            by_stage.setdefault(row.stage, {})[row.name] = row
        judged = {stage: tuple(self._judged(stage, named)) for stage, named in by_stage.items() if ALL in named}
        return {stage: verdicts for stage, verdicts in judged.items() if verdicts}

    def _judged(self, stage: str, named: Mapping[str, StageRow]) -> Iterator[Verdict]:
        values = named[ALL].values
        above = self.of_row(stage)
        if above is not None:
            yield from above.verdicts(values)
            return
        nothing = {**dict.fromkeys(values), "load": values["load"]}
        for name, own in self.of_class.items():
            of_row = named[own.row].values if own.row in named else nothing
            for verdict in own.slo.verdicts(of_row):
                yield replace(verdict, clause=f"{name}: {verdict.clause}")


def objectives(
    settings: Settings, classes: Sequence[type[LLMUser]], of_stages: Mapping[str, str] = NO_STAGES
) -> Objectives | None:
    """Read what is demanded; None where nothing is. `of_stages`: what each stage of the plan says, "" nothing.

    Raises SloError with a pointer to the wrong place.
    """
    if settings.slo:
        return Objectives(parse_slo(settings.slo))
    by_class = {owner.__name__: _of_class(owner, alone=len(classes) == 1) for owner in classes if owner.slo}
    by_stage = {label: parse_slo(text) if text else None for label, text in of_stages.items()}
    if not any(by_stage.values()):
        by_stage = {}
    return Objectives(of_stage=by_stage, of_class=by_class) if by_stage or by_class else None


def _of_class(owner: type[LLMUser], *, alone: bool) -> OfClass:
    assert owner.slo is not None
    if owner.name is None and not alone:
        raise SloError(f"{owner.__name__} has no `name`, so its requests have no rows of their own", owner.slo, 0)
    return OfClass(parse_slo(owner.slo), row_name(owner.name) if owner.name else ALL)
