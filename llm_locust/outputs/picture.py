"""What an output is given at one instant: the numbers, what is thought of them, and how far the run is.

Knows no Locust. The numbers are the snapshot's; verdicts and progress come from the plugin.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from llm_locust.measure.slo import Verdict
from llm_locust.measure.snapshot import Snapshot


class Validity(enum.Enum):
    """Whether a measurement can be trusted."""

    VALID = "VALID"
    SUSPECT = "SUSPECT"
    INVALID = "INVALID"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageVerdict:
    """What is thought of a stage. ``reasons`` speak of the measurement, ``findings`` of the server (SATURATED, …).

    ``finished``: nothing of the stage can change any more, so its lines may be written.
    """

    validity: Validity
    reasons: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    finished: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the run is. ``left_s`` is the time left, as estimated; None where nobody knows."""

    stage: str | None
    phase: str
    stage_number: int
    stages: int
    users: int
    in_flight: int
    elapsed_s: float
    left_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedStage:
    """What became of a stage of the plan: when it really opened, was measured, closed and drained, or why it was
    skipped. Instants are ns since the epoch, None where the stage did not come so far.
    """

    stage: str
    users: int
    rate_per_s: float | None
    opened_epoch_ns: int | None
    steady_epoch_ns: int | None
    closed_epoch_ns: int | None
    drained_epoch_ns: int | None
    ended_by: str
    skipped: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """One instant of a run.

    ``verdicts`` by stage, `RUN` for the whole; ``slo``: stage → what became of each clause; ``skipped``: stage → why it
    was not run; ``applied``: the plan as it was really carried out.
    """

    snapshot: Snapshot
    verdicts: Mapping[str, StageVerdict]
    slo: Mapping[str, tuple[Verdict, ...]] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    applied: tuple[AppliedStage, ...] = ()
    progress: Progress | None = None
