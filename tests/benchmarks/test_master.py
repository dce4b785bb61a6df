"""The master benchmark, small: simulated workers over real ZeroMQ, and a run that lost nothing."""

from __future__ import annotations

import pytest

from benchmarks.master import USERS_A_WORKER, Case, measure


@pytest.mark.linux
@pytest.mark.timeout(120)
def test_a_master_of_simulated_workers_books_all_that_they_report() -> None:
    """Three workers, two stages, two names: `measure` raises where totals of workers and master differ."""
    cost = measure(Case(3, stages=2, names=2, tokens=20), 4.0)
    assert 0.5 * 3 * USERS_A_WORKER / 4 < cost.requests_per_s < 1.5 * 3 * USERS_A_WORKER / 4
    assert 0.0 < cost.cpu_ratio < 1.0
    assert 20e6 < cost.proportional_bytes <= cost.resident_bytes
    assert 0 < cost.refresh_bytes <= cost.whole_bytes
    assert len(cost.refresh_ms) == len(cost.locust_ms) == 2
