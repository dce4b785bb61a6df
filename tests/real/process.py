"""Processes of real servers: pinned, logged, waited for, and ended by their own id."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

SERVER_CORE, LOAD_CORE = 0, 1
"""A server that shares its core with the load tool makes both late: each has one of its own."""
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
_END_S = 30.0

Process = subprocess.Popen[bytes]


def pinned(core: int) -> list[str]:
    """Return the words before a command that keep it on one core; none where that cannot be."""
    possible = shutil.which("taskset") is not None and (os.cpu_count() or 1) > 1
    return ["taskset", "-c", str(core)] if possible else []


@contextmanager
def running(
    command: Sequence[str], log: Path, *, folder: Path, variables: Mapping[str, str] | None = None
) -> Iterator[Process]:
    """Run a server in a session of its own; end it, and what it started, by id."""
    environment = {**os.environ, **OFFLINE, **(variables or {})}
    with log.open("ab") as file:
        process = subprocess.Popen(
            [*pinned(SERVER_CORE), *command],
            env=environment, cwd=folder, stdout=file, stderr=file, start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        end(process)


def end(process: Process) -> None:
    """Ask the process to stop, then stop whatever is left of its session."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def kill_named(process: Process, name: str) -> None:
    """Kill the one process of a server's session whose command has this name in it."""
    command = ["ps", "-o", "pid=,args=", "-s", str(process.pid)]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    (pid,) = (int(line.split()[0]) for line in listed if name in line)
    os.kill(pid, signal.SIGKILL)


def wait_until_ready(process: Process, url: str, log: Path, limit_s: float, within: bytes = b"") -> None:
    """Wait until the address answers 200 with these bytes within; raise with the log's end if it does not."""
    limit = time.monotonic() + limit_s
    while time.monotonic() < limit and process.poll() is None:
        with suppress(OSError, urllib.error.HTTPError), urllib.request.urlopen(url, timeout=5) as answer:
            if within in answer.read():
                return
        time.sleep(0.25)
    how = f"ended with {process.returncode}" if process.poll() is not None else f"is not ready after {limit_s:.0f} s"
    raise AssertionError(f"{log.stem} {how}:\n{log.read_text(errors='replace')[-4000:]}")
