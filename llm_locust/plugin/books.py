"""What the workers of a master reported in a run: its numbers, its records, the health of its processes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection
from typing import Any

from llm_locust.load.stage import STEADY
from llm_locust.measure.aggregate import Aggregate
from llm_locust.measure.record import RequestRecord

from .account import Account, difference
from .collector import popped, unpacked
from .health import HealthBooks

UNISSUED = "unissued"


class Books:
    """The books of one run after another."""

    def __init__(self) -> None:
        self.numbers = Aggregate()
        self.health = HealthBooks()
        self._rows: deque[RequestRecord] = deque()
        self._rows_added = 0

    def reset(self) -> None:
        """Begin again, for a run or for its part after a reset."""
        self.numbers.reset()
        self.health = HealthBooks()
        self._rows.clear()
        self._rows_added = 0

    def add(self, account: Account, delta: dict[str, Any], at_s: float) -> None:
        """Add a delta that a worker reported, and note in its account what it has told by now."""
        if delta["numbers"] is not None:
            self.numbers.merge(delta["numbers"])
        rows = unpacked(delta["rows"])
        self._rows += rows
        self._rows_added += len(rows)
        account.rows += len(rows)
        if "totals" in delta:
            account.totals = Counter(delta["totals"])
            account.in_flight = delta["in_flight"]
            account.harvested_epoch_s = delta["harvested_epoch_s"]
            account.clock_offset_ns, account.clock_uncertainty_ns = delta["clock"]
            account.reported_s = at_s
            account.speed.note(at_s, account.totals["window:output_tokens"])
            self.health.add(delta["stage"], account.name, delta["health"])

    def count_unissued(self, label: str, count: int) -> None:
        """Count requests of a row that fell due at lost workers."""
        self.numbers.count(label, STEADY, UNISSUED, count)

    def take_rows(self, most: int | None = None) -> list[RequestRecord]:
        """The oldest records that were not taken yet, at most so many."""
        return popped(self._rows, most)

    def differences(self, accounts: Collection[Account]) -> tuple[str, ...]:
        """Where what the workers booked differs from what came in, and who did not hand in."""
        found = [
            f"{account.name} did not hand in"
            for account in accounts
            if account.ready and account.final is None and account.lost_s is None
        ]
        expected: Counter[str] = Counter()
        for account in accounts:
            expected.update(account.totals)
            if account.final is not None and account.final.in_flight:
                found.append(f"{account.final.in_flight} requests of {account.name} could not be ended")
            if account.final is not None and Counter(account.final.totals) != account.totals:
                found += difference(Counter(account.final.totals), account.totals, account.name, "its reports")
        mine = Counter({**self.numbers.totals(), "rows": self._rows_added})
        del mine[f"cell:{UNISSUED}"]  # the master's own figure
        return tuple(found + difference(expected, mine, "workers", "master"))
