"""What does a master of many workers cost, and how soon does its page answer?

    python -m benchmarks.master [--workers 1,10,50,200] [--window 30] [--quick]

A real `locust --master` with the suite and its web UI on one core; `benchmarks.workers` simulates its workers on
another, over real ZeroMQ. Each worker has 8 users, a request takes 4 s: 2 requests/s a worker, 6 rows a report, a
report every 3 s. One page of the web UI is open and asks what such a page asks. Figures are those of the plan's last
stage, when all the stages before it are in the tables. A run in which anything was lost fails the benchmark.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # ships no types

from benchmarks.lab import CLIENT_CORE, ROOT, SERVER_CORE, pinned, raise_priority, save, table
from benchmarks.rig.ports import free_port

USERS_A_WORKER = 8
E2E_S = 4.0
REFRESH_S = 2.0
"""How often the page asks (webui/src/live/useLive.ts), and Locust's own beside it."""
START_LIMIT_S, END_LIMIT_S = 180.0, 120.0
MOST_LINES = 20
MOST_CPU_RATIO, MOST_BYTES = 0.50, 500e6
"""What is asked for at 200 workers, 20 stages, 5 names."""


@dataclass(frozen=True, slots=True)
class Case:
    """One size of a run."""

    workers: int
    stages: int = 20
    names: int = 5
    tokens: int = 200

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second of one worker."""
        return USERS_A_WORKER * self.tokens / E2E_S


@dataclass(frozen=True, slots=True)
class Cost:
    """What a master used in the last stage, and how its page answered, in ms and bytes."""

    case: Case
    cpu_ratio: float
    resident_bytes: int
    proportional_bytes: int
    requests_per_s: float
    refresh_ms: list[float]
    refresh_bytes: int
    locust_ms: list[float]
    whole_ms: float
    whole_bytes: int
    simulator: str


def cases(workers: list[int]) -> list[Case]:
    """Vary the workers, then, at the most of them, each of the other sizes by itself."""
    most = max(workers)
    varied = [Case(most, stages=1), Case(most, names=1), Case(most, tokens=50), Case(most, tokens=1000)]
    return [*(Case(number) for number in workers), *varied]


def main() -> int:
    """Measure, print, save; 1 if what is asked for is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", default="1,10,50,200")
    parser.add_argument("--window", type=float, default=30.0, help="seconds of the last stage")
    parser.add_argument("--quick", action="store_true", help="200 workers, 20 stages, 5 names only")
    given = parser.parse_args()
    chosen = [Case(200)] if given.quick else cases([int(number) for number in given.workers.split(",")])
    found = []
    for case in chosen:
        found.append(measure(case, given.window))
        print(" | ".join(row_of(found[-1])), "|", found[-1].simulator, flush=True)
    heads = ("workers", "stages", "names", "tokens/s a worker", "requests/s", "CPU of one core", "RSS MB", "PSS MB",
             "page's refresh p50 / max ms", "KB", "Locust's p50 / max ms", "new page ms", "KB")  # fmt: skip
    if not given.quick:
        save("master", {"costs": [asdict(cost) for cost in found]}, table(heads, [row_of(cost) for cost in found]))
    return int(any(cost.cpu_ratio > MOST_CPU_RATIO or cost.resident_bytes > MOST_BYTES for cost in found))


def row_of(cost: Cost) -> tuple[str, ...]:
    """Show a cost as a line of the table."""
    case = cost.case
    return (
        str(case.workers), str(case.stages), str(case.names), f"{case.tokens_per_s:,.0f}", f"{cost.requests_per_s:.0f}",
        f"{cost.cpu_ratio:.0%}", f"{cost.resident_bytes / 1e6:.0f}", f"{cost.proportional_bytes / 1e6:.0f}",
        spread_of(cost.refresh_ms), f"{cost.refresh_bytes / 1e3:.0f}", spread_of(cost.locust_ms),
        f"{cost.whole_ms:.0f}", f"{cost.whole_bytes / 1e3:.0f}",
    )  # fmt: skip


def spread_of(values_ms: list[float]) -> str:
    """Show median and maximum."""
    return f"{statistics.median(values_ms):.0f} / {max(values_ms):.0f}"


def measure(case: Case, window_s: float) -> Cost:
    """Run one case to its end. Raises RuntimeError where anything of it went wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with started(case, window_s, folder) as (master, simulator, url):
            wait_for_last_stage(case, url, master, folder)
            cost = observe(case, window_s, url, master)
            master.wait(END_LIMIT_S)
            simulator.wait(END_LIMIT_S)
        summary = json.loads((folder / "reports" / "latest" / "summary.json").read_text())
        if master.returncode != 0 or summary["verdict"]["validity"] == "INVALID":
            raise RuntimeError(f"{case}: exit code {master.returncode}, {summary['verdict']}: {words(folder)}")
        return cost_with(cost, summary, (folder / "workers.log").read_text().splitlines()[-1])


@contextmanager
def started(
    case: Case, window_s: float, folder: Path
) -> Iterator[tuple[subprocess.Popen[bytes], subprocess.Popen[bytes], str]]:
    """Start a master and its simulated workers; whatever is left of them at the end is ended."""
    port, web_port = free_port(), free_port()
    command = [
        str(Path(sys.executable).with_name("locust")), "-f", "benchmarks/master_plan.py", "--master",
        "--master-bind-host", "127.0.0.1", "--master-bind-port", str(port), "--expect-workers", str(case.workers),
        "--web-host", "127.0.0.1", "--web-port", str(web_port), "--autostart", "--autoquit", "1",
        "--host", "http://127.0.0.1:9", "--llm-no-preflight", "--llm-out", str(folder / "reports"),
    ]  # fmt: skip
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith("LOCUST_")},
        "LLM_BENCH_STAGES": str(case.stages), "LLM_BENCH_USERS": str(case.workers * USERS_A_WORKER),
        "LLM_BENCH_WINDOW_S": str(window_s + 5.0),
    }  # fmt: skip
    simulation = [sys.executable, "-m", "benchmarks.workers", "--port", str(port), "--workers", str(case.workers),
                  "--names", str(case.names), "--tokens", str(case.tokens), "--e2e-s", str(E2E_S)]  # fmt: skip
    with (folder / "master.log").open("wb") as log, (folder / "workers.log").open("wb") as workers_log:
        master = subprocess.Popen(
            pinned(command, CLIENT_CORE), cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        raise_priority(master.pid)
        simulator = subprocess.Popen(
            pinned(simulation, SERVER_CORE),
            cwd=ROOT,
            env=environment,
            stdout=workers_log,
            stderr=workers_log,
            start_new_session=True,
        )
        raise_priority(simulator.pid)
        try:
            yield master, simulator, f"http://127.0.0.1:{web_port}"
        finally:
            for process in (master, simulator):
                if process.poll() is None:
                    process.send_signal(signal.SIGKILL)
                    process.wait()


def asked(url: str) -> tuple[float, bytes]:
    """Fetch a page; return the milliseconds that took, and the answer."""
    began_ns = time.monotonic_ns()
    with urllib.request.urlopen(url, timeout=30) as response:
        answer: bytes = response.read()
    return (time.monotonic_ns() - began_ns) / 1e6, answer


def wait_for_last_stage(case: Case, url: str, master: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait until the plan's last stage is measured. Raises RuntimeError where it does not come."""
    until_s = time.monotonic() + START_LIMIT_S
    last = f"level-{case.stages:02}"
    while time.monotonic() < until_s and master.poll() is None:
        with suppress(OSError):
            now = json.loads(asked(f"{url}/llm/live")[1])["now"]
            if now and now["progress"] and (now["progress"]["stage"], now["progress"]["phase"]) == (last, "steady"):
                return
        time.sleep(0.5)
    raise RuntimeError(f"{case}: the last stage did not come, exit code {master.poll()}: {words(folder)}")


def words(folder: Path) -> str:
    """Return what master and workers logged beside their tables: how it began to go wrong, and how it ended."""
    lines = [line for name in ("master", "workers") for line in (folder / f"{name}.log").read_text().splitlines()]
    told = [line for line in lines if any(word in line for word in ("WARNING", "ERROR", "missing", "llm-locust"))]
    return "\n".join([*told[:MOST_LINES], *told[MOST_LINES:][-MOST_LINES:]])


def observe(case: Case, window_s: float, url: str, master: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Ask as an open page does for the window; return what the master used meanwhile."""
    time.sleep(1.0)
    refresh_ms: list[float] = []
    locust_ms: list[float] = []
    token = json.loads(asked(f"{url}/llm/live")[1])["token"]
    size = 0
    process = psutil.Process(master.pid)
    before_s, used_s = time.monotonic(), cpu_s(process)
    for number in itertools.count(1):
        time.sleep(max(before_s + number * REFRESH_S - time.monotonic(), 0.0))
        took_ms, answer = asked(f"{url}/llm/live?token={token}")
        refresh_ms.append(took_ms)
        size = max(size, len(answer))
        token = json.loads(answer)["token"]
        locust_ms.append(asked(f"{url}/stats/requests")[0])
        if time.monotonic() - before_s >= window_s:
            break
    cpu_ratio = (cpu_s(process) - used_s) / (time.monotonic() - before_s)
    memory = process.memory_full_info()
    whole_ms, whole = asked(f"{url}/llm/live")
    return {
        "case": case, "cpu_ratio": cpu_ratio, "resident_bytes": memory.rss, "proportional_bytes": memory.pss,
        "refresh_ms": refresh_ms, "refresh_bytes": size,
        "locust_ms": locust_ms, "whole_ms": whole_ms, "whole_bytes": len(whole),
    }  # fmt: skip


def cpu_s(process: psutil.Process) -> float:
    """Return the CPU seconds that a process has used, all its threads."""
    times = process.cpu_times()
    return float(times.user + times.system)


def cost_with(observed: dict[str, Any], summary: dict[str, Any], simulator: str) -> Cost:
    """Join what was observed with what the run's own summary says of its last stage."""
    rows = [row for row in summary["stages"] if row["name"] == "all"]
    return Cost(**observed, requests_per_s=rows[-1]["metrics"]["request_throughput_per_s"], simulator=simulator)


if __name__ == "__main__":
    raise SystemExit(main())
