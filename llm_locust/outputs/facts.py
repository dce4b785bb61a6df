"""What a run is, apart from its numbers: the caller's answers to "what was tested, with what, and how again".

Knows no Locust. Whatever is secret is masked before it comes here.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from llm_locust.outputs.runconf import OptionValue


class RunState(enum.Enum):
    """Where the run stands; `state` of summary.json. RUNNING in a file nobody writes any more: it was killed."""

    RUNNING = "running"
    FINISHED = "finished"  # came to its planned end
    STOPPED = "stopped"  # a person or a signal ended it
    ABORTED = "aborted"  # the suite ended it: too many failures, lost workers


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts:
    """One process that sent requests. The clock offset is worker − master; None where there is one process only."""

    worker: str
    host: str
    pid: int
    version: str
    timestamp_source: str  # kernel, user
    clock_offset_ms: float | None = None
    clock_uncertainty_ms: float | None = None
    lost: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """One run. ``started`` has a zone. ``options`` and ``left_out`` are those of run.conf, see `runconf.run_conf`."""

    run_id: str
    started: datetime
    host: str  # the URL or URLs under test, passwords masked
    model: str | None
    shape: str | None
    versions: Mapping[str, str]  # python, locust, gevent, llm-locust, kernel, …
    settings: Mapping[str, object]  # every setting of the run, masked
    options: Mapping[str, OptionValue]
    left_out: Mapping[str, str] = field(default_factory=dict)
    seeds: Mapping[str, int] = field(default_factory=dict)
    repeat_command: str = ""
    chosen_classes: tuple[str, ...] = ()  # the user classes that run, where not all of the locustfile do
    server: Mapping[str, object] = field(default_factory=dict)  # what pre-flight learned
    lengths: tuple[Mapping[str, object], ...] = ()  # how prompts got their lengths: source, overhead, words
    tags: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    locustfiles: tuple[Path, ...] = ()
    workers: tuple[WorkerFacts, ...] = ()
