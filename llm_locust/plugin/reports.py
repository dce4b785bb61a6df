"""Reports from worker to master: numbered deltas that are sent until acknowledged, and applied once.

A delta that was taken and whose message was lost is gone with Locust's own statistics (2.47). Here it is
kept until the master has acknowledged it, sent again with each report, and applied by its number: a
duplicate is dropped, a gap is counted, another run's is refused. Pure: knows no Locust, no clock, no socket.
"""

from __future__ import annotations

from collections import deque
from typing import Any

Delta = dict[str, Any]
"""What one report adds, of builtins only: {"numbers": …, "rows": bytes, "health": …}."""

REPORT_KEY = "llm"
MOST_ROWS = 2_000  # of one delta; 2,000 rows are about 440 KB
MOST_DELTAS = 8  # of one message; what is left goes with the next


class Outbox:
    """A worker's deltas that the master has not acknowledged, numbered from 1 within (run, part).

    A reset starts a new part: what belongs to the old one is dropped on both sides.
    """

    def __init__(self, run_id: str, part: int = 0) -> None:
        self.run_id = run_id
        self.part = part
        self.last_seq = 0
        self._waiting: deque[tuple[int, Delta]] = deque()

    def __len__(self) -> int:
        """Number of deltas not acknowledged."""
        return len(self._waiting)

    def add(self, delta: Delta) -> None:
        """Number a delta and keep it until it is acknowledged."""
        self.last_seq += 1
        self._waiting.append((self.last_seq, delta))

    def message(self) -> dict[str, Any] | None:
        """What goes into the next report: the oldest deltas that are not acknowledged; None where there are none."""
        if not self._waiting:
            return None
        reports = [[seq, delta] for seq, delta in list(self._waiting)[:MOST_DELTAS]]
        return {"run": self.run_id, "part": self.part, "reports": reports}

    def acknowledge(self, run_id: str, part: int, seq: int) -> None:
        """Forget everything up to number `seq`; an answer to another run or part changes nothing."""
        if (run_id, part) != (self.run_id, self.part):
            return
        while self._waiting and self._waiting[0][0] <= seq:
            self._waiting.popleft()

    def next_part(self, part: int) -> None:
        """Start again after a reset."""
        self.part = part
        self.last_seq = 0
        self._waiting.clear()


class Inbox:
    """The master's side of one worker's reports.

    `applied` is the highest number up to which all were applied: what is acknowledged. `foreign` and
    `duplicates` count what was dropped; `missing` holds the numbers that were passed over.
    """

    def __init__(self, run_id: str, part: int = 0) -> None:
        self.run_id = run_id
        self.part = part
        self.highest = 0
        self.missing: set[int] = set()
        self.duplicates = 0
        self.foreign = 0

    @property
    def applied(self) -> int:
        """The number to acknowledge: nothing up to it is missing or outstanding."""
        return min(self.missing) - 1 if self.missing else self.highest

    @property
    def gaps(self) -> int:
        """Reports that never came."""
        return len(self.missing)

    def take(self, message: dict[str, Any]) -> list[Delta]:
        """The deltas of a message that are new, oldest first."""
        if (message["run"], message["part"]) != (self.run_id, self.part):
            self.foreign += len(message["reports"])
            return []
        fresh: list[Delta] = []
        for seq, delta in sorted(message["reports"], key=lambda report: int(report[0])):
            if seq > self.highest:
                self.missing.update(range(self.highest + 1, seq))
                self.highest = seq
            elif seq in self.missing:
                self.missing.discard(seq)
            else:
                self.duplicates += 1
                continue
            fresh.append(delta)
        return fresh

    def close(self, last_seq: int) -> None:
        """The worker says it sent `last_seq` deltas in all: those that did not come are missing."""
        self.missing.update(range(self.highest + 1, last_seq + 1))
        self.highest = max(self.highest, last_seq)

    def next_part(self, part: int) -> None:
        """Start again after a reset; what was missing before it no longer counts."""
        self.part = part
        self.highest = 0
        self.missing.clear()
