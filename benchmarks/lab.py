"""What the benchmarks share: the truth server, pinned processes, their CPU, and what was really sent.

All instants are CLOCK_MONOTONIC ns, which every process of a machine shares.
"""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.native import truth_server

ROOT = Path(__file__).parent.parent
SERVER_CORE, CLIENT_CORE = 0, 1
SAMPLE_S = 0.05
READY = "truth server ready on "
STOP_S = 30.0

Instants = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sent:
    """What the server says it did for one request.

    A token left between ``token_send_ns`` and ``token_took_ns`` later: usually some µs, more where the core of the
    server was taken from it meanwhile.
    """

    request_id: str
    arrival_ns: int
    token_send_ns: Instants
    token_took_ns: Instants | int = 0


@dataclass(slots=True)
class TruthServer:
    """A running server; ``sent`` is filled when it has stopped."""

    url: str
    port: int
    process: subprocess.Popen[str]
    file: Path
    sent: list[Sent] = field(default_factory=list)

    def stop(self) -> None:
        """End it and read what it sent."""
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(STOP_S)
        if not self.sent and self.file.exists():
            self.sent = read_truth(self.file)


def read_truth(file: Path) -> list[Sent]:
    """Read the lines of a truth file; the embedded server writes the same fields."""
    told = map(json.loads, file.read_text().splitlines())
    return [
        Sent(
            line["request_id"], line["arrival_ns"], np.array(line["token_send_ns"], np.int64),
            np.array(line.get("token_took_ns", [0] * len(line["token_send_ns"])), np.int64),
        )
        for line in told
    ]  # fmt: skip


@contextmanager
def serving(
    folder: Path, *, ttft_ms: float = 50.0, gap_ms: float = 20.0, certificate: tuple[Path, Path] | None = None
) -> Iterator[TruthServer]:
    """Run the truth server on its core while the block runs. Raises NotBuiltError without a C compiler."""
    file = folder / "truth.jsonl"
    command = [str(truth_server(tls=certificate is not None)), "--ttft-ms", str(ttft_ms)]
    command += ["--gap-us", str(gap_ms * 1000), "--truth", str(file)]
    if certificate is not None:
        command += ["--cert", str(certificate[0]), "--key", str(certificate[1])]
    process = subprocess.Popen(pinned(command, SERVER_CORE), stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    raise_priority(process.pid)
    port = int(process.stdout.readline().removeprefix(READY))
    scheme = "http" if certificate is None else "https"
    server = TruthServer(f"{scheme}://127.0.0.1:{port}", port, process, file)
    try:
        yield server
    finally:
        server.stop()
        process.stdout.close()


def pinned(command: Sequence[str], core: int) -> list[str]:
    """Let a command run on one core, where there are several and `taskset` is there."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return list(command)
    return ["taskset", "-c", str(cores[core % len(cores)]), *command]


def raise_priority(pid: int) -> None:
    """Put a process before others on this machine, where that is allowed: neighbours' work is not our subject.

    Linux weighs sessions against each other first, so the process must have one of its own.
    """
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, -19)
        Path(f"/proc/{pid}/autogroup").write_text("-19")


@dataclass(slots=True)
class Usage:
    """What a process used by when: rows of (instant, CPU ns, waited for a core ns, resident bytes)."""

    rows: list[tuple[int, int, int, int]] = field(default_factory=list)

    def cpu_s(self, from_ns: int, until_ns: int | None = None) -> float:
        """CPU seconds used between two instants; None: until the process's end."""
        at, used = np.array([row[:2] for row in self.rows], np.int64).T
        upto = used[-1] if until_ns is None else np.interp(until_ns, at, used)
        return float((upto - np.interp(from_ns, at, used)) / 1e9)

    def waited_s(self, from_ns: int, until_ns: int) -> float:
        """Seconds in which the process could have run but others had its core."""
        at = [row[0] for row in self.rows]
        waited = [row[2] for row in self.rows]
        return float((np.interp(until_ns, at, waited) - np.interp(from_ns, at, waited)) / 1e9)

    @property
    def peak_bytes(self) -> int:
        """The most memory that a sample saw."""
        return max(row[3] for row in self.rows)


@dataclass(frozen=True, slots=True)
class Finished:
    """A client process that has ended."""

    exit_code: int
    output: str
    errors: str
    usage: Usage


def run_client(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None, limit_s: float = 120.0
) -> Finished:
    """Run a client on its core to its end, sampling what it uses; kill it at the limit."""
    process = subprocess.Popen(
        pinned(command, CLIENT_CORE), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, **(environment or {})}, start_new_session=True,
    )  # fmt: skip
    raise_priority(process.pid)
    usage = Usage()
    sampler = threading.Thread(target=_sample, args=(process, usage))
    sampler.start()
    try:
        output, errors = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        output, errors = process.communicate()
    sampler.join()
    return Finished(process.returncode, output, errors, usage)


def _sample(process: subprocess.Popen[str], usage: Usage) -> None:
    while process.poll() is None:
        with suppress(OSError, ValueError):
            usage.rows.append(_used(process.pid))
        time.sleep(SAMPLE_S)


def _used(pid: int) -> tuple[int, int, int, int]:
    used = waited = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        ran_ns, waited_ns, _ = map(int, (task / "schedstat").read_text().split())
        used, waited = used + ran_ns, waited + waited_ns
    resident = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return time.monotonic_ns(), used, waited, resident


def spread(values_ns: Instants) -> dict[str, float]:
    """Mean, p50, p99 (nearest rank) and max of durations, in ms."""
    if not values_ns.size:
        return {}
    ordered = np.sort(values_ns)
    rank = {name: float(ordered[int(np.ceil(q * ordered.size)) - 1] / 1e6) for name, q in (("p50", 0.5), ("p99", 0.99))}
    return {"mean": float(ordered.mean() / 1e6), **rank, "max": float(ordered[-1] / 1e6)}


def machine() -> dict[str, Any]:
    """Describe this machine, without its name."""
    models = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(memory / 2**20),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "load_average": round(os.getloadavg()[0], 1),
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Make a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def save(name: str, results: Mapping[str, Any], *tables: str) -> None:
    """Print the tables; write them and the results under ``benchmarks/results``."""
    folder = ROOT / "benchmarks" / "results"
    folder.mkdir(exist_ok=True)
    text = "\n\n".join(tables)
    (folder / f"{name}.json").write_text(json.dumps({"machine": machine(), **results}, indent=1) + "\n")
    (folder / f"{name}.md").write_text(text + "\n")
    print(text, file=sys.stdout, flush=True)
