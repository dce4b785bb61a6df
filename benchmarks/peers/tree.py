"""Runs a client on its core and adds up what all of its processes use: CPU, memory, wall time.

A tool may start many processes. The CPU of those that have ended stays in the sum as last seen; the total at the
end is the kernel's own account of all that were waited for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]  # ships none

from benchmarks.lab import CLIENT_CORE, pinned, raise_priority

SAMPLE_S = 0.1
MEMORY_EVERY = 5
"""Memory is asked for at every fifth sample: the kernel walks all pages for it."""


@dataclass(slots=True)
class TreeUsage:
    """What a process and its children used: rows of (instant, CPU seconds until then), and the most memory."""

    rows: list[tuple[int, float]] = field(default_factory=list)
    peak_bytes: int = 0
    total_cpu_s: float = 0.0
    wall_s: float = 0.0
    processes: int = 0

    def cpu_s(self, from_ns: int, until_ns: int) -> float:
        """CPU seconds used between two instants, evenly between samples."""
        instants, used = zip(*self.rows, strict=True)
        before, until = np.interp([from_ns, until_ns], instants, used)
        return float(until - before)


@dataclass(frozen=True, slots=True)
class Ended:
    """A client that has ended, by itself or at the limit (``late``)."""

    exit_code: int
    output: str
    usage: TreeUsage
    late: bool


def run_tree(
    command: Sequence[str], folder: Path, *, environment: Mapping[str, str], limit_s: float, pin: bool = True
) -> Ended:
    """Run a client in ``folder`` to its end, sampling it and its children; end all of them at the limit."""
    usage, used_of = TreeUsage(), dict[int, float]()
    began_s = time.monotonic()
    spent = os.times()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            pinned(command, CLIENT_CORE) if pin else command, stdout=said, stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL, cwd=folder, start_new_session=True,
            env={**os.environ, "PYTHONPATH": "", **environment},
        )  # fmt: skip
        raise_priority(process.pid)
        root = psutil.Process(process.pid)
        while process.poll() is None and time.monotonic() - began_s < limit_s:
            with suppress(psutil.Error):
                _sample(root, usage, used_of)
            time.sleep(SAMPLE_S)
        late = process.poll() is None
        _end_all(root, process)
        usage.wall_s = time.monotonic() - began_s
        now = os.times()
        waited_s = now.children_user + now.children_system - spent.children_user - spent.children_system
        usage.total_cpu_s = max(waited_s, sum(used_of.values()))
        usage.processes = len(used_of)
        said.seek(0)
        return Ended(process.returncode, said.read(), usage, late)


def _sample(root: psutil.Process, usage: TreeUsage, used_of: dict[int, float]) -> None:
    count_memory = len(usage.rows) % MEMORY_EVERY == 0
    resident = 0
    for one in [root, *root.children(recursive=True)]:
        with suppress(psutil.Error):
            times = one.cpu_times()
            used_of[one.pid] = times.user + times.system
            if count_memory:
                resident += one.memory_full_info().pss
    usage.rows.append((time.monotonic_ns(), sum(used_of.values())))
    usage.peak_bytes = max(usage.peak_bytes, resident)


def _end_all(root: psutil.Process, process: subprocess.Popen[bytes]) -> None:
    """End what the client left: its children by their ids, then itself."""
    left = []
    with suppress(psutil.Error):
        left = root.children(recursive=True)
    for one in left:
        with suppress(psutil.Error):
            one.kill()
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.wait()
