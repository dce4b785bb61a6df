"""One run, as its lead and its writer know it."""

from __future__ import annotations

from dataclasses import dataclass, field

from llm_locust.load.conductor import Conductor
from llm_locust.outputs import Outputs, RunState

from . import view
from .drain import DrainGate
from .finish import FailureWatch
from .messages import RunOrder
from .objectives import Objectives


@dataclass(slots=True)
class Run:
    """One run. `order.part` counts resets; `aborted` says why the suite ended it, `not_whole` what
    is missing on the disk; `run_time_s` ends it before its plan; `drain_s` is the user's limit of a drain.

    The flags follow its life: `test_started`, `told_estimate`, `ending` (asked to end by us), `drained`, `finished`
    (files are final).
    """

    order: RunOrder
    outputs: Outputs
    conductor: Conductor
    gate: DrainGate
    objectives: Objectives | None
    started_s: float
    failure_watch: FailureWatch
    run_time_s: float | None = None
    drain_s: float | None = None
    told_estimate: bool = False
    findings: tuple[str, ...] = ()
    around: view.Surroundings = field(default_factory=view.Surroundings)
    test_started: bool = False
    reset_at_full_load: bool = False
    ending: bool = False
    drained: bool = False
    finished: bool = False
    state: RunState = RunState.FINISHED
    aborted: str = ""
    not_whole: tuple[str, ...] = ()
