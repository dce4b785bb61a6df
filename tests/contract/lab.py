"""What the contract's tests know of their users, which are fake, and what they read of a run."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

FAKE = Path(__file__).parent / "fake_llm.py"
STREAMING = "fake stream begins\n"
"""What a fake user prints."""


def most_at_once(rows: list[dict[str, str]]) -> int:
    """How many requests were in flight at the same time, at most."""
    changes = []
    for row in rows:
        start_s = float(row["start_epoch_s"])
        changes += [(start_s, 1), (start_s + float(row["stream_end_ms"]) / 1000, -1)]
    counts = itertools.accumulate(change for _, change in sorted(changes))
    return max(counts, default=0)


def locusts_requests(output: str) -> int:
    """Requests of Locust's own last Aggregated row of its statistics."""
    rows = re.findall(r"^\s+Aggregated\s+(\d+)\s+\d+\(", output, re.MULTILINE)
    return int(rows[-1])
