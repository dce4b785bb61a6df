"""Locust's statistics stay flat over a night (12 h with a clock of our own)."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from locust import stats as locust_stats

from llm_locust.plugin.prune import HISTORY_MOST, KEEP_S, prune


def size_of(stats: locust_stats.RequestStats) -> int:
    """Bytes and keys that grow with time, roughly."""
    entries = [stats.total, *stats.entries.values()]
    return sum(sys.getsizeof(entry.num_reqs_per_sec) + 90 * len(entry.num_reqs_per_sec) for entry in entries)


def test_statistics_stay_flat_over_twelve_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """8 rows, a report each 3 s: after 12 h no bigger than after the first hour; current rates are untouched."""
    now: list[float] = [1_700_000_000.0]
    monkeypatch.setattr("locust.stats.time.time", lambda: now[0])
    master = locust_stats.RequestStats()
    after_one_hour = 0
    for report in range(12 * 1200):
        worker: Any = locust_stats.RequestStats()
        for _ in range(3):
            for row in range(8):
                worker.log_request("SSE", f"row-{row}", 1000.0, 100)
            now[0] += 1.0
        for entry in worker.entries.values():
            master.get(entry.name, entry.method).extend(entry)
        master.total.extend(worker.total)
        master.history.append({"n": report})
        prune(master, now[0])
        if report == 1200:
            after_one_hour = size_of(master)
    assert size_of(master) <= after_one_hour
    assert all(len(entry.num_reqs_per_sec) <= KEEP_S + 1 for entry in master.entries.values())
    assert master.total.current_rps == pytest.approx(8.0, rel=0.2)
    assert len(master.history) <= HISTORY_MOST
    assert master.history[-1] == {"n": 12 * 1200 - 1}
    assert master.total.num_requests == 12 * 1200 * 3 * 8
