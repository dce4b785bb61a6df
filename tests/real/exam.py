"""The command of each real server's script: install, serve, load, compare.

    python -m tests.real.SERVER --install FOLDER [--wheels FOLDER] [--run] [--port N] [--keep FOLDER]

Exit code 0: every judged figure agrees; 1: one does not.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.rig.ports import free_port
from tests.real.comparison import Line, table
from tests.real.counters import Counters, growth, read_text, sums
from tests.real.process import Process
from tests.real.quickstart import Load, Run, quickstart, started

T = TypeVar("T")

_SETTLING_S = 10.0
_STARTING_S = 120.0


@dataclass(frozen=True, slots=True)
class Served:
    """A server that is ready."""

    url: str
    process: Process
    model: str = "tiny"


Exam = tuple[str, Sequence[Line]]
Judge = Callable[[Run, Counters], Sequence[Line]]
"""Compares a run with the growth of the server's counters."""


@dataclass(frozen=True, slots=True)
class Subject:
    """One server: how it is installed, started and examined."""

    name: str
    install: Callable[[Path, Path | None], None]
    serving: Callable[[Path, Path, int], AbstractContextManager[Served]]
    exams: Callable[[Served, Path], Iterator[Exam]]


def main(subject: Subject) -> int:
    """Do what the command line asks."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.real.{subject.name}")
    parser.add_argument("--install", type=Path, required=True, metavar="FOLDER", help="where the server is, or goes")
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="more wheels for pip (torch, where needed)")
    parser.add_argument("--run", action="store_true", help="serve, load and compare")
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep logs and runs here")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # so that servers are ended too
    folder = given.install.resolve()
    subject.install(folder, given.wheels and given.wheels.resolve())
    if not given.run:
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(given.keep or scratch).resolve()
        work.mkdir(parents=True, exist_ok=True)
        return _run(subject, folder, work, given.port or free_port())


def _run(subject: Subject, folder: Path, work: Path, port: int) -> int:
    begun = time.monotonic()
    agree = True
    with subject.serving(folder, work, port) as served:
        print(f"{subject.name}: ready after {time.monotonic() - begun:.1f} s\n", flush=True)
        for title, lines in subject.exams(served, work):
            print(table(f"{subject.name}: {title}", lines), flush=True)
            agree = agree and all(line.agrees for line in lines)
    return 0 if agree else 1


def compared(served: Served, work: Path, load: Load, judge: Judge) -> Sequence[Line]:
    """Run a load to its end and compare it with what the server counted meanwhile."""
    place = work / f"{load.dialect}-{load.users}"
    run = quickstart(served.url, place, load, served.model)
    after = settled(served.url, place / "after.txt")
    return (
        Line("exit code", run.code, 0),
        Line("requests that are not ok", len(run.rows) - run.outcomes().get("ok", 0), 0),
        *judge(run, growth(run.before, after)),
    )


def struck(served: Served, work: Path, load: Load, gauge: str, strike: Callable[[], T]) -> tuple[Run, T]:
    """Run a load and strike while all its streams are open; return the requests begun before, and what it gave."""
    with started(served.url, work, load, served.model) as load_tool:
        _wait_for_streams(served.url, gauge, load.users)
        struck_s = time.time()
        done = strike()
        return load_tool.result().begun_before(struck_s), done


def all_failed(run: Run, load: Load, outcome: str) -> tuple[Line, ...]:
    """Compare with a run in which every stream ended so, and none is a success."""
    return (
        Line("exit code", run.code, 1),
        Line(outcome, run.outcomes().get(outcome, 0), load.users),
        Line("ok", run.outcomes().get("ok", 0), 0),
    )


def _wait_for_streams(url: str, gauge: str, streams: int) -> None:
    """Wait until the server says that so many requests run."""
    limit = time.monotonic() + _STARTING_S
    while sums(read_text(url)).get(gauge, 0.0) < streams:
        if time.monotonic() > limit:
            raise AssertionError(f"{gauge} did not reach {streams}")
        time.sleep(0.1)


def settled(url: str, file: Path) -> Counters:
    """Return the server's counters once they stand still, and keep them: some are booked after the answer's end."""
    limit = time.monotonic() + _SETTLING_S
    last: Counters = {}
    while time.monotonic() < limit:
        text = read_text(url)
        now = sums(text)
        if _steady(now) == _steady(last):
            break
        last = now
        time.sleep(0.5)
    file.write_text(text)
    return now


def _steady(counters: Counters) -> Counters:
    """Leave out what grows by the asking itself."""
    return {name: value for name, value in counters.items() if name.endswith(("_count", "tokens_total"))}


def mean_ms(counters: Counters, histogram: str) -> float:
    """Return the mean of a histogram in seconds as ms; 0 where it has no samples."""
    count = counters.get(f"{histogram}_count", 0.0)
    return 1000 * counters[f"{histogram}_sum"] / count if count else 0.0
