"""A stand for proofs: an embedded server as a process of its own, and `locust` as users start it, against it.

The server's truth file says what was sent when; a run is compared with that, never with the nominal schedule:
on a busy machine the server itself is late.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.rig.locusts import Lab, Locust
from benchmarks.rig.mock_process import MockProcess, start_mock
from benchmarks.rig.ports import free_port


class Stand(Lab):
    """A folder, its processes and runs, and the server that they ask."""

    def __init__(self, folder: Path, mock: MockProcess) -> None:
        super().__init__(folder)
        self.mock = mock

    def run(self, *args: str, workers: int = 0, file: Path | None = None, env: dict[str, str] | None = None) -> Locust:
        """Start a headless run: a local runner, or a master with so many workers by --processes."""
        where = (*self.binding, "--processes", str(workers)) if workers else ()
        return self.locust("--headless", "--host", self.mock.url, *where, *args, file=file, env=env)

    def steady(self, stage: str) -> list[dict[str, str]]:
        """The measured requests of a stage."""
        return [row for row in self.rows() if row["stage"] == stage and row["phase"] == "steady"]

    def metrics(self, stage: str) -> dict[str, Any]:
        """The metrics of a stage's row over all names."""
        found = next(row for row in self.summary()["stages"] if row["stage"] == stage and row["name"] == "all")
        metrics: dict[str, Any] = found["metrics"]
        return metrics

    def assert_nothing_lost(self) -> None:
        """Every request that the server ended or saw cut off is one row, and every row is one of those."""
        assert self.runs, self.started[0].output
        told = {line["request_id"]: line for line in self.generations()}
        rows = {row["client_request_id"]: row for row in self.rows()}
        assert len(rows) == len(self.rows()) == len({row["request_id"] for row in self.rows()})
        assert rows.keys() == told.keys()
        for key, row in rows.items():
            line = told[key]
            assert line["completed"] or (line["client_gone"] and row["outcome"] == "unfinished"), (row, line)
            if row["outcome"] == "ok":
                assert int(row["output_tokens"]) == line["output_tokens"] == len(line["token_send_ns"])

    def generations(self) -> list[dict[str, Any]]:
        """What the server did for the run: the pre-flight's requests come before it."""
        known = {row["client_request_id"] for row in self.rows()}
        first = next((n for n, line in enumerate(self.mock.lines()) if line["request_id"] in known), 0)
        before = {line["request_id"] for line in self.mock.lines()[:first]}
        return [line for line in self.mock.lines() if line["request_id"] not in before]


@contextmanager
def stand(folder: Path, *mock_options: str) -> Iterator[Stand]:
    """A stand with a fresh server; whatever was started is ended."""
    with start_mock(*mock_options, port=free_port()) as mock:
        made = Stand(folder, mock)
        try:
            yield made
        finally:
            made.end()


def sleep_until(at_s: float) -> None:
    """Sleep until an instant of the monotonic clock."""
    time.sleep(max(at_s - time.monotonic(), 0))
