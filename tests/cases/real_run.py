"""A real `locust` run against the embedded server, and every account that it left of its requests.

The accounts: the lines of requests.csv, the counts in stages.csv, Locust's own statistics and error table as printed,
and the exit code. The server keeps one of its own (`MockProcess.lines`).
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.rig.locusts import ROOT, Lab
from llm_locust.measure.snapshot import RUN

LLM = ROOT / "locustfiles" / "llm.py"
SHORT = ("--llm-input-tokens", "16", "--llm-output-tokens", "8")


@dataclass(frozen=True, slots=True)
class LocustStats:
    """What Locust itself printed at the end: its Aggregated row and its error table."""

    requests: int
    failures: int
    median_ms: float
    errors: dict[str, int]

    @staticmethod
    def of(output: str) -> LocustStats:
        """Read the last tables."""
        rows = re.findall(
            r"^\s+Aggregated\s+(\d+)\s+(\d+)\([\d.]+%\)[\s|]+\S+\s+\S+\s+\S+\s+(\S+)", output, re.MULTILINE
        )
        requests, failures, median_ms = rows[-1] if rows else ("0", "0", "0")
        table = output.rpartition("Error report")[2] if "Error report" in output else ""
        errors = {text: int(number) for number, text in re.findall(r"^(\d+) +\S+ \S+: (\S+)", table, re.MULTILINE)}
        return LocustStats(int(requests), int(failures), float(median_ms), errors)


@dataclass(frozen=True, slots=True)
class RealRun:
    """A run that has ended."""

    code: int
    output: str
    rows: list[dict[str, str]]
    stages: list[dict[str, str]]
    summary: dict[str, Any]
    locust: LocustStats

    @property
    def outcomes(self) -> Counter[str]:
        """Requests of requests.csv by outcome."""
        return Counter(row["outcome"] for row in self.rows)

    @property
    def stage_outcomes(self) -> Counter[str]:
        """The same by stages.csv: the rows `all` of every stage and phase added up."""
        return self._counted([row for row in self.stages if row["name"] == "all" and row["stage"] != RUN])

    @property
    def name_outcomes(self) -> Counter[str]:
        """The same by the rows of the single names."""
        return self._counted([row for row in self.stages if row["name"] != "all"])

    @staticmethod
    def _counted(rows: list[dict[str, str]]) -> Counter[str]:
        counts: Counter[str] = Counter()
        for row in rows:
            for column, value in row.items():
                if column.startswith("outcome_") and int(value):
                    counts[column.removeprefix("outcome_")] += int(value)
        return counts


def end_of(lab: Lab, code: int, output: str) -> RealRun:
    """Read what the newest run of a lab has left."""
    folder = lab.runs[-1]
    return RealRun(
        code, output, lab.rows(), table(folder / "stages.csv"), lab.summary(), LocustStats.of(output)
    )  # fmt: skip


def table(path: Path) -> list[dict[str, str]]:
    """The lines of a CSV file."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run(
    lab: Lab, host: str, *args: str, file: Path = LLM, lengths: tuple[str, ...] = SHORT, forked: bool = False
) -> RealRun:
    """Run headless to the end, without a pre-flight; on a master with two workers where asked."""
    binding = (*lab.binding, "--processes", "2") if forked else ()
    process = lab.local("--host", host, "--llm-model", "m", *lengths, *binding, *args, file=file)
    code = process.wait(45)
    assert lab.runs, process.output
    return end_of(lab, code, process.output)


def assert_booked_once(ended: RealRun) -> None:
    """Every request has one line, one count, one place in Locust's own numbers; `unfinished` has none there."""
    outcomes = ended.outcomes
    assert len({row["request_id"] for row in ended.rows}) == len(ended.rows)
    assert ended.stage_outcomes == outcomes == ended.name_outcomes
    failed = {name: count for name, count in outcomes.items() if name not in ("ok", "unfinished")}
    assert ended.locust.requests == outcomes["ok"] + sum(failed.values()), ended.output
    assert ended.locust.failures == sum(failed.values()), ended.output
    assert ended.locust.errors == failed, ended.output
