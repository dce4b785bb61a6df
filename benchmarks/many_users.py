"""2,000 users over two workers on one machine, 64 KB of prompt each: is a connection lost, an outcome wrong?

    python -m benchmarks.many_users [--users 2000] [--prompt-kb 64] [--workers 2]

The embedded server as one process, a master and its workers by `--processes`, everything on this machine at once. Every
request must have ended well, on the connection that its user opened first, and the server must have the same account:
as many requests, as many tokens for each. The times of such a run are not the subject: more processes than cores share
one machine, and the run may say SUSPECT of itself.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # ships no types

from benchmarks.lab import save, table
from benchmarks.rig.locusts import Lab, Locust, children_of
from benchmarks.rig.mock_process import MockProcess, start_mock
from benchmarks.rig.ports import free_port

OUTPUT_TOKENS = 16
REQUESTS = 2
"""Measured ones of each user; the first one opens its connection and is not measured."""
LIMIT_S = 240.0
PROMPTS = 64
LOOK_S = 0.5
WORDS = "the load of a cluster is told by its users and its tokens, not by what one process can send in a second "


@dataclass(slots=True)
class Found:
    """What came of the run."""

    users: int
    prompt_bytes: int
    took_s: float
    rows: int
    outcomes: dict[str, int]
    connections: int
    reopened: int
    differing: int
    exit_code: int
    validity: str
    reasons: list[str]
    peak_mb: list[float]
    peak_files: list[int]

    @property
    def right(self) -> bool:
        """Whether nothing was lost and nothing told wrongly."""
        wanted = self.users * (REQUESTS + 1)
        clean = self.outcomes == {"ok": self.rows} and self.rows >= wanted and self.exit_code == 0
        return clean and not self.reopened and not self.differing and self.connections == self.users


def main() -> int:
    """Run it, print, save; 1 if anything was lost or wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--prompt-kb", type=int, default=64)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as name:
        found = run(Path(name), given.users, given.prompt_kb * 1024, given.workers)
    rows = [
        ("requests by outcome", ", ".join(f"{count:,} {outcome}" for outcome, count in found.outcomes.items())),
        ("connections, of these opened again", f"{found.connections:,}, {found.reopened:,}"),
        ("requests of which server and run tell differently", f"{found.differing:,}"),
        ("took", f"{found.took_s:.1f} s"),
        ("peak RSS: master, workers", ", ".join(f"{mb:.0f} MB" for mb in found.peak_mb)),
        ("open files: master, workers", ", ".join(map(str, found.peak_files))),
        ("run", f"{found.validity}, exit code {found.exit_code}: {'; '.join(found.reasons) or '–'}"),
    ]  # fmt: skip
    title = f"{found.users:,} users, {given.workers} workers, prompts of {found.prompt_bytes:,} bytes"
    save("many_users", asdict(found), title, table(("what", "figure"), rows))
    return 0 if found.right else 1


def run(folder: Path, users: int, prompt_bytes: int, workers: int) -> Found:
    """Run it once; compare every row with the server's own account."""
    prompts = folder / "prompts.txt"
    prompts.write_text("".join(f"{prompt(number, prompt_bytes)}\n" for number in range(PROMPTS)))
    lab = Lab(folder)
    with start_mock("--profile", "fast", "--ttft-ms", "200", "--itl-ms", "20", port=free_port()) as mock:
        try:
            began_s = time.monotonic()
            process = lab.locust(
                "--headless", *lab.binding, "--processes", str(workers), "--host", mock.url, "-u", str(users),
                "-r", str(users), "--llm-requests", f"{REQUESTS}x", "--llm-prompts", str(prompts),
                "--llm-output-tokens", str(OUTPUT_TOKENS),
            )  # fmt: skip
            peak_mb, peak_files = watched(process, workers + 1)
            took_s = time.monotonic() - began_s
            return read(lab, mock, process, users, prompt_bytes, took_s, peak_mb, peak_files)
        finally:
            lab.end()


def prompt(number: int, size: int) -> str:
    """Return a line of so many bytes that no other has."""
    text = f"{number} "
    return (text + WORDS * (size // len(WORDS) + 1))[:size]


def watched(process: Locust, most: int) -> tuple[list[float], list[int]]:
    """Wait for the end, 4 min at most; return the most memory in MB and files of the first so many processes."""
    peak_mb: dict[int, float] = {}
    peak_files: dict[int, int] = {}
    until_s = time.monotonic() + LIMIT_S
    while process.process.poll() is None and time.monotonic() < until_s:
        for pid in [process.process.pid, *children_of(process)]:
            with suppress(psutil.Error):
                one = psutil.Process(pid)
                peak_mb[pid] = max(peak_mb.get(pid, 0.0), one.memory_info().rss / 2**20)
                peak_files[pid] = max(peak_files.get(pid, 0), one.num_fds())
        time.sleep(LOOK_S)
    return list(peak_mb.values())[:most], list(peak_files.values())[:most]


def read(
    lab: Lab,
    mock: MockProcess,
    process: Locust,
    users: int,
    prompt_bytes: int,
    took_s: float,
    peak_mb: list[float],
    peak_files: list[int],
) -> Found:
    """Compare the rows with the server's lines. Raises RuntimeError where the run did not come to its end."""
    exit_code = process.process.poll()
    if exit_code is None or not lab.runs:
        raise RuntimeError(f"exit code {exit_code}: {process.output[-2000:]}")
    rows = lab.rows()
    told = {line["request_id"]: line for line in mock.lines()}
    differing = sum(not same(row, told.get(row["client_request_id"], {})) for row in rows)
    connections = sum(bool(row["connect_ms"]) for row in rows)
    verdict = lab.summary()["verdict"]
    return Found(
        users, prompt_bytes, took_s, len(rows), dict(Counter(row["outcome"] for row in rows)), connections,
        connections - users, differing, exit_code, verdict["validity"], verdict["reasons"], peak_mb, peak_files,
    )  # fmt: skip


def same(row: dict[str, str], told: dict[str, Any]) -> bool:
    """Say whether a row is what the server did."""
    done = bool(told) and told["completed"] and told["outcome"] == row["outcome"]
    return done and row["output_tokens"] == str(told["output_tokens"]) == str(len(told["token_send_ns"]))


if __name__ == "__main__":
    raise SystemExit(main())
