"""Starts the embedded server as a process of its own, for any test or benchmark that needs something to talk to.

with start_mock("--profile", "fast", "--ttft-ms", "5", "--itl-ms", "1") as mock:
    ...  # mock.url; mock.truth() -> counts; mock.lines() -> one dict a finished request
"""

from __future__ import annotations

import json
import select
import ssl
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

READY = "llm-locust mock ready on "
START_LIMIT_S = 20.0
STOP_LIMIT_S = 10.0


@dataclass(frozen=True, slots=True)
class MockProcess:
    """A running server."""

    url: str
    process: subprocess.Popen[str]
    truth_file: Path

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self.url.rpartition(":")[2])

    def get(self, path: str) -> bytes:
        """Fetch a path (no certificate is checked)."""
        context = ssl._create_unverified_context() if self.url.startswith("https") else None
        with urllib.request.urlopen(self.url + path, timeout=10, context=context) as response:
            body: bytes = response.read()
        return body

    def truth(self) -> dict[str, Any]:
        """The counts of everything it has done: requests, completed, client_gone, in_flight, tokens_sent, outcomes."""
        counts: dict[str, Any] = json.loads(self.get("/truth"))
        return counts

    def lines(self) -> list[dict[str, Any]]:
        """What was really sent: one entry per finished request (the fields of mock.truth.Told)."""
        if self.process.poll() is None:
            self.truth()  # makes the server write what it has
        return [json.loads(line) for line in self.truth_file.read_text().splitlines()]

    def stop(self) -> int:
        """End it with SIGTERM; return its exit code. Its truth file is complete then."""
        self.process.terminate()
        return self.process.wait(STOP_LIMIT_S)


@contextmanager
def start_mock(*arguments: str, port: int = 0) -> Iterator[MockProcess]:
    """Start the server with these options and stop it afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        truth_file = Path(folder, "truth.jsonl")
        command = [sys.executable, "-m", "llm_locust.mock", "--port", str(port), "--truth", str(truth_file), *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            yield MockProcess(_ready_url(process), process, truth_file)
        finally:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(STOP_LIMIT_S)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _ready_url(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], START_LIMIT_S)
    line = process.stdout.readline() if ready else ""
    if not line.startswith(READY):
        process.kill()
        raise RuntimeError(f"the mock server did not start: {line!r}, exit code {process.wait()}")
    return line.removeprefix(READY).strip()
