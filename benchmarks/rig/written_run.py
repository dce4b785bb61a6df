"""Directories of runs that never were, written by the real outputs: what a report is made of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.rig.fake_run import FakeRun, facts
from llm_locust.measure.record import RequestRecord
from llm_locust.outputs import Outputs, RunFacts, RunState, TimelineRow, WorkerFacts
from llm_locust.outputs.live import LiveHistory


class WrittenRun:
    """A fake run that went through the files and, beside them, through the live page: both must tell the same."""

    def __init__(self, parent: Path, run: FakeRun, run_facts: RunFacts, state: RunState = RunState.FINISHED) -> None:
        self.directory = parent / run_facts.run_id
        self.directory.mkdir(parents=True)
        self.live = LiveHistory(run_facts, "k")
        self.rows: list[TimelineRow] = []
        self.records: list[RequestRecord] = []
        outputs = Outputs(run_facts, self.directory, print)
        outputs.open()
        while not run.over:
            run.step(30)
            rows, records = run.take()
            self.rows += rows
            self.records += records
            outputs.flush(run.picture(), records, rows)
        self.picture = run.picture()
        if state is not RunState.RUNNING:
            outputs.close(self.picture, [], [], state)
        workers = [replace(worker, users=None, in_flight=None, output_tok_per_s=None) for worker in run.crew()]
        failures = outputs.failures.most_frequent_first()
        self.live.add(self.picture, self.rows, workers, self.records, failures, state)


def written(
    parent: Path, run: FakeRun | None = None, *, state: RunState = RunState.FINISHED, **other: object
) -> WrittenRun:
    """Write a run to a directory under `parent`; ``other`` are fields of its facts."""
    workers = tuple(
        WorkerFacts(worker=f"w{n}", host=f"node{n}", pid=n, version="0.1.0", timestamp_source="kernel") for n in (1, 2)
    )
    run_facts = facts(**{"workers": workers, "repeat_command": "locust -f llm.py --headless", **other})  # type: ignore[arg-type]
    return WrittenRun(parent, run or FakeRun(), run_facts, state)
