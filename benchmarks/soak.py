"""Do master and workers stay as they are over a night? Memory and CPU by the hour of the model's time.

    python -m benchmarks.soak [--hours 3] [--scale 60] [--rate 60] [--warm-up 1]

The embedded server runs at a time scale: at 60, an hour of its time takes a minute. `--hours 10` takes ten minutes. A
master and two workers, an open loop of so many requests a second of real time (at 60 per s an hour of model time has
3,600 requests and 60 seconds of timeline). Growth is counted from the end of the warm-up; 1 if it is 5 MB or more.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # ships no types

from benchmarks.lab import save, table
from benchmarks.rig.locusts import children_of
from benchmarks.rig.stand import sleep_until, stand

MOST_GROWTH_MB = 5.0
WORKERS = 2
USERS = 64
ENDS_BEFORE_S = 5.0
"""The last look comes so long before the end, when the final files are made."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the master and its workers (in this order) had at an instant: resident memory, CPU used so far."""

    at_s: float
    resident_mb: tuple[float, ...]
    cpu_s: tuple[float, ...]

    def growth_mb(self, before: Look) -> tuple[float, ...]:
        """Return what each process has gained."""
        return tuple(now - then for now, then in zip(self.resident_mb, before.resident_mb, strict=True))

    def cpu_ratio(self, before: Look) -> tuple[float, ...]:
        """Return each process's share of a core between two looks."""
        took_s = self.at_s - before.at_s
        return tuple((now - then) / took_s for now, then in zip(self.cpu_s, before.cpu_s, strict=True))


@dataclass(frozen=True, slots=True)
class Soaked:
    """A soak that has ended and lost nothing; `looks` from its start on, each at its due time."""

    looks: list[Look]
    requests: int
    ended_by: tuple[str, ...]

    def growth_mb(self, settled_s: float) -> tuple[float, ...]:
        """Return the most that each process had over what it had at the first look from `settled_s` on."""
        settled = next(look for look in self.looks if look.at_s >= settled_s)
        later = [look.growth_mb(settled) for look in self.looks if look.at_s > settled.at_s]
        return tuple(max(gained) for gained in zip(*later, strict=True))


def soak(
    folder: Path,
    *,
    seconds: int,
    every_s: float,
    load: Sequence[str],
    scale: float = 60.0,
    told: Callable[[Look], None] = lambda _: None,
) -> Soaked:
    """Soak for so many seconds of real time; look each `every_s`. Raises AssertionError where anything was lost."""
    with stand(folder, "--time-scale", str(scale)) as run:
        process = run.run("--llm-shape", "soak", "--run-time", str(seconds), *load, workers=WORKERS)
        process.wait_for("All users spawned", 40)
        pids = [process.process.pid, *children_of(process)]
        began_s = time.monotonic()
        looks = []
        for number in range(round((seconds - ENDS_BEFORE_S) / every_s) + 1):
            due_s = min(number * every_s, seconds - ENDS_BEFORE_S)
            sleep_until(began_s + due_s)
            looks.append(look_at(pids, due_s))
            told(looks[-1])
        assert process.wait(120) in (0, 1, 4), process.output[-2000:]
        run.assert_nothing_lost()
        applied = [stage for stage in run.summary()["applied"] if not stage["skipped"]]
        return Soaked(looks, len(run.rows()), tuple(stage["ended_by"] for stage in applied))


def look_at(pids: Sequence[int], at_s: float) -> Look:
    """Read what processes have."""
    processes = [psutil.Process(pid) for pid in pids]
    times = [process.cpu_times() for process in processes]
    return Look(
        at_s,
        tuple(process.memory_info().rss / 2**20 for process in processes),
        tuple(one.user + one.system for one in times),
    )


def main() -> int:
    """Soak, print, save; 1 if the memory grew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=3.0, help="of model time")
    parser.add_argument("--scale", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=60.0, help="requests per second of real time")
    parser.add_argument("--warm-up", type=float, default=1.0, help="hours of model time")
    given = parser.parse_args()
    hour_s = 3600 / given.scale
    load = ["--llm-rate", f"{given.rate:g}", "-u", str(USERS), "--llm-input-tokens", "128",
            "--llm-output-tokens", "64"]  # fmt: skip
    seconds = round(given.hours * hour_s + ENDS_BEFORE_S)
    with tempfile.TemporaryDirectory() as folder:
        found = soak(Path(folder), seconds=seconds, every_s=hour_s, load=load, scale=given.scale, told=tell(hour_s))
    growth_mb = found.growth_mb(given.warm_up * hour_s)
    rows = [
        (f"{now.at_s / hour_s:.0f}", shown(now.resident_mb, ".1f"), shown(now.cpu_ratio(before), ".0%"))
        for before, now in zip(found.looks, found.looks[1:], strict=False)
    ]
    summary = (
        f"{found.requests:,} requests, none lost; most growth after {given.warm_up:g} h: {shown(growth_mb, '+.1f')} MB"
    )
    heads = ("hour of model time", "RSS MB: master, workers", "CPU of a core in that hour")
    save("soak", {**asdict(found), "growth_mb": growth_mb, "given": vars(given)}, table(heads, rows), summary)
    return int(max(growth_mb) >= MOST_GROWTH_MB)


def tell(hour_s: float) -> Callable[[Look], None]:
    """Return what prints a look."""
    return lambda look: print(f"{look.at_s / hour_s:5.1f} h  {shown(look.resident_mb, '.1f')} MB", flush=True)


def shown(values: Sequence[float], style: str) -> str:
    """Show the master's value, then the workers'."""
    return ", ".join(format(value, style) for value in values)


if __name__ == "__main__":
    raise SystemExit(main())
