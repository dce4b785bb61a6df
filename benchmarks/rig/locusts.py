"""Starts real `locust` masters, workers and local runners, and reads what they leave behind.

Every process has a session of its own and is ended by its id. Each lab has a port of its own.
"""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.rig.ports import free_port

ROOT = Path(__file__).parents[2]
LLM_FILE = ROOT / "locustfiles" / "llm.py"
SPAWNED = "All users spawned|Spawning is complete"
"""What Locust prints when its users are there; the second where a worker was slow to say so."""


class Locust:
    """One `locust` process."""

    def __init__(self, folder: Path, *args: str, env: dict[str, str] | None = None, file: Path = LLM_FILE) -> None:
        self.log = folder / f"locust-{len(list(folder.glob('locust-*.log')))}.log"
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("LOCUST_", "OPENAI_"))}
        environ = {**clean, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", "COLUMNS": "200", **(env or {})}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "locust", "-f", str(file), *args],
                cwd=folder,
                env=environ,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        """What it has printed so far."""
        return self.log.read_text(errors="replace")

    def signal(self, number: int) -> None:
        """Send a signal to this process alone."""
        self.process.send_signal(number)

    def interrupt(self) -> None:
        """Press Ctrl-C: the terminal sends it to forked workers, too."""
        os.killpg(self.process.pid, signal.SIGINT)

    def wait(self, timeout_s: float = 90.0) -> int:
        """Wait for its end; return its exit code."""
        return self.process.wait(timeout_s)

    def wait_for(self, pattern: str, timeout_s: float = 60.0) -> str:
        """Wait until it has printed something; return the match."""
        found: list[str] = []

        def seen() -> bool:
            match = re.search(pattern, self.output)
            if match:
                found.append(match[0])
            return bool(match) or self.process.poll() is not None

        until(seen, timeout_s, lambda: f"{pattern!r} in:\n{self.output}")
        assert found, f"ended without {pattern!r}:\n{self.output}"
        return found[0]

    def end(self) -> None:
        """Kill what is left of its session."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


class Lab:
    """A folder with processes and their runs; `file` is the locustfile where a process names none."""

    def __init__(self, folder: Path, file: Path = LLM_FILE) -> None:
        self.folder = folder
        self.file = file
        self.port = free_port()
        self.started: list[Locust] = []

    def locust(self, *args: str, env: dict[str, str] | None = None, file: Path | None = None) -> Locust:
        """Start a process; its runs go into this folder."""
        out = ("--llm-out", str(self.folder / "reports"))
        process = Locust(self.folder, *out, *args, env=env, file=file or self.file)
        self.started.append(process)
        return process

    def local(self, *args: str, **options: Any) -> Locust:
        """Start a headless local runner, without a pre-flight."""
        return self.locust("--headless", "--llm-no-preflight", *args, **options)

    def forked(self, *args: str, workers: int = 2, **options: Any) -> Locust:
        """Start a headless master with workers by --processes."""
        return self.local(*self.binding, "--processes", str(workers), *args, **options)

    def master(self, *args: str, workers: int = 2, **options: Any) -> Locust:
        """Start a headless master that waits for workers."""
        binding = ("--master-bind-host", "127.0.0.1", "--master-bind-port", str(self.port))
        return self.local("--master", *binding, "--expect-workers", str(workers), *args, **options)

    def worker(self, *args: str, **options: Any) -> Locust:
        """Start a worker."""
        where = ("--master-host", "127.0.0.1", "--master-port", str(self.port))
        return self.locust("--worker", *where, *args, **options)

    @property
    def binding(self) -> tuple[str, ...]:
        """Where master and workers of this lab meet."""
        port = str(self.port)
        return "--master-bind-host", "127.0.0.1", "--master-bind-port", port, "--master-port", port

    @property
    def runs(self) -> list[Path]:
        """The folders of the runs, the oldest first."""
        reports = self.folder / "reports"
        found = [path for path in reports.glob("*") if path.is_dir() and not path.is_symlink()]
        return sorted(found, key=lambda path: path.stat().st_ctime_ns)

    def summary(self, run: int = -1) -> dict[str, Any]:
        """The summary of a run."""
        found: dict[str, Any] = json.loads((self.runs[run] / "summary.json").read_text())
        return found

    def state(self) -> str:
        """How the newest run stands; "" before its summary is there."""
        try:
            return str(self.summary()["state"])
        except (IndexError, FileNotFoundError):
            return ""

    def rows(self, run: int = -1) -> list[dict[str, str]]:
        """The lines of requests.csv of a run."""
        with open(self.runs[run] / "requests.csv", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def outcomes(self, run: int = -1) -> dict[str, int]:
        """How many requests of a run had which outcome."""
        counts: dict[str, int] = {}
        for row in self.rows(run):
            counts[row["outcome"]] = counts.get(row["outcome"], 0) + 1
        return counts

    def end(self) -> None:
        """Kill everything that was started."""
        for process in self.started:
            process.end()


def until(condition: Callable[[], bool], timeout_s: float, what: Callable[[], str]) -> None:
    """Wait for a condition."""
    ends = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > ends:
            raise AssertionError(f"not within {timeout_s} s: {what()}")
        time.sleep(0.05)


def children_of(process: Locust) -> Iterator[int]:
    """Ids of the processes that it forked."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.process.pid)], capture_output=True, text=True)
    yield from (int(pid) for pid in listed.stdout.split())


def lives(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
