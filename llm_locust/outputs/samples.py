"""What is kept of single requests beside requests.csv, when asked for: arrival times, and raw answers of failures.

Written by the process that sent the request, beside itself, and never sent to the master. Raw answers are the bytes of
the response's body and nothing of the request, so no key is in them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from llm_locust.measure.record import FAILURES, Outcome
from llm_locust.outputs.appendfile import AppendFile
from llm_locust.outputs.rundir import safe_name
from llm_locust.outputs.text import encodable


class ArrivalsFile:
    """`arrivals-<worker>.jsonl`: one line per request with the instant of each arrival (`--llm-save-arrivals`).

    ``arrivals_ms`` count from the request's start, to the ns; ``tokens`` has the tokens of each arrival.
    """

    def __init__(self, directory: Path, run_id: str, worker: str) -> None:
        self._run_id = run_id
        self._file = AppendFile(directory / f"arrivals-{safe_name(worker) or 'local'}.jsonl", line_end=b"\n")

    @property
    def path(self) -> Path:
        """Where the lines go."""
        return self._file.path

    def add(self, request_id: int, stage: str, arrivals_ns: Sequence[int], tokens: Sequence[int]) -> None:
        """Take one request: its arrivals in ns after its start, and how many tokens came with each."""
        line = {
            "run_id": self._run_id,
            "request_id": request_id,
            "stage": encodable(stage),
            "arrivals_ms": [at_ns / 1e6 for at_ns in arrivals_ns],
            "tokens": list(tokens),
        }
        self._file.append(msgspec.json.encode(line).decode())

    def flush(self) -> None:
        """Write what came since the last flush. Raises OSError; the lines are kept then."""
        self._file.flush()

    def close(self) -> None:
        """Flush and close. Raises OSError."""
        self._file.close()


class FailureSamples:
    """`failures/<outcome>-<worker>-<n>.bin`: the raw answers of the first N requests per outcome."""

    def __init__(self, directory: Path, worker: str, most_per_outcome: int) -> None:
        self._directory = directory / "failures"
        self._worker = safe_name(worker) or "local"
        self._most_per_outcome = most_per_outcome
        self._kept: Counter[Outcome] = Counter()

    def wanted(self, outcome: Outcome) -> bool:
        """Say whether one more sample of this outcome is to be kept."""
        return outcome in FAILURES and self._kept[outcome] < self._most_per_outcome

    def save(self, outcome: Outcome, body: bytes) -> Path | None:
        """Write one answer's raw body bytes; None where enough are kept. Raises OSError; it is not counted then."""
        if not self.wanted(outcome):
            return None
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / f"{outcome.value}-{self._worker}-{self._kept[outcome] + 1}.bin"
        with open(path, "xb") as file:
            file.write(body)
        self._kept[outcome] += 1
        return path
