"""The README's first command, headless, on a real server: what was recorded, beside what the server counted."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.real.counters import Counters, sums
from tests.real.process import LOAD_CORE, pinned

ROOT = Path(__file__).resolve().parents[2]
_LIMIT_S = 120.0

WITHOUT_WARMUP = ("--llm-warmup", "0")
"""Every request is measured: what the server counted and what the report says are of the same requests."""

Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of the server; `requests` are the measured ones, one more a user is warm-up."""

    dialect: str = "openai-chat"
    users: int = 4
    requests: int = 32
    input_tokens: int = 64
    output_tokens: int = 32
    more: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Say what it is."""
        users = "1 user" if self.users == 1 else f"{self.users} users"
        lengths = f"{self.input_tokens} tokens in, {self.output_tokens} out"
        return f"{self.dialect}, {users}, {self.requests} requests, {lengths}"


@dataclass(frozen=True, slots=True)
class Run:
    """A run that has ended: its files, and the server's counters as they stood when its load began."""

    folder: Path
    code: int
    rows: list[Row]
    summary: dict[str, Any]
    before: Counters
    output: str

    def begun_before(self, epoch_s: float) -> Run:
        """Return the run with those requests only: users who are still being started send more than was asked for."""
        return replace(self, rows=[row for row in self.rows if float(row["start_epoch_s"]) < epoch_s])

    def total(self, column: str, rows: Sequence[Row] | None = None) -> float:
        """Sum a column over all rows that have it."""
        return sum(float(row[column]) for row in (self.rows if rows is None else rows) if row[column])

    def mean(self, column: str) -> float:
        """Average a column over all rows that have it."""
        values = [float(row[column]) for row in self.rows if row[column]]
        return sum(values) / len(values) if values else 0.0

    def gap_mean_ms(self) -> float:
        """Average the time between two tokens over all tokens but the first of each request."""
        gaps = self.total("output_tokens") - len(self.rows)
        return (self.total("e2e_ms") - self.total("ttft_ms")) / gaps if gaps > 0 else 0.0

    def itl_mean_ms(self) -> float:
        """Average the ITL that the summary tells, over all phases."""
        rows = [row["metrics"] for row in (*self.summary["stages"], *self.summary["excluded"]) if row["name"] == "all"]
        told = [(row["itl_ms_mean"], row["itl_ms_count"]) for row in rows if row.get("itl_ms_count")]
        count = sum(count for _, count in told)
        return sum(mean * count for mean, count in told) / count if count else 0.0

    def outcomes(self) -> dict[str, int]:
        """Count the outcomes."""
        found: dict[str, int] = {}
        for row in self.rows:
            found[row["outcome"]] = found.get(row["outcome"], 0) + 1
        return found


def quickstart(url: str, folder: Path, load: Load, model: str = "tiny") -> Run:
    """Run the load to its end."""
    with started(url, folder, load, model) as running:
        return running.result()


class Running:
    """A load that is under way."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self.folder = folder

    def result(self) -> Run:
        """Wait for the end; read the files."""
        try:
            output, _ = self.process.communicate(timeout=_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            output, _ = self.process.communicate()
            raise AssertionError(f"the load did not end within {_LIMIT_S:.0f} s:\n{output[-4000:]}") from None
        run = (self.folder / "reports" / "latest").resolve()
        before = self.folder / "before.txt"
        summary = json.loads((run / "summary.json").read_text()) if before.exists() else {"state": "never begun"}
        if summary["state"] in ("never begun", "running"):
            raise AssertionError(f"{summary['state']} (exit code {self.process.returncode}):\n{output[-4000:]}")
        with (run / "requests.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        return Run(run, self.process.returncode, rows, summary, sums(before.read_text()), output)


@contextmanager
def started(url: str, folder: Path, load: Load, model: str = "tiny") -> Iterator[Running]:
    """Start the load; end it by its id if it still runs at the end."""
    folder.mkdir(parents=True, exist_ok=True)
    files = f"{ROOT / 'locustfiles' / 'llm.py'},{Path(__file__).with_name('before_load.py')}"
    command = [*pinned(LOAD_CORE), sys.executable, "-m", "locust", "-f", files, "--headless"]
    command += ["--host", url, "--llm-model", model, "--llm-dialect", load.dialect]
    command += ["-u", str(load.users), "-r", str(load.users), "--llm-requests", str(load.requests)]
    command += ["--llm-input-tokens", str(load.input_tokens), "--llm-output-tokens", str(load.output_tokens)]
    command += ["--llm-out", str(folder / "reports"), *load.more]
    variables = os.environ | {"COUNTERS_FILE": str(folder / "before.txt"), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        command, cwd=folder, env=variables, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        yield Running(process, folder)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
