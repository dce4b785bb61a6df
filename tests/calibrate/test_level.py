"""One level, played for real with few streams: the pacer's truth and the worker's files fit each other."""

from __future__ import annotations

import pytest

from llm_locust.calibrate.level import GAP_MS, REQUESTS, TOKENS, play


@pytest.mark.linux
def test_a_small_level_is_played_and_measured() -> None:
    """Ten streams: every request succeeds, times come from the kernel, the rate is that of the schedule.

    The error itself is not judged: other work on the machine may hold the core.
    """
    level = play(10)
    assert (level.streams, level.failed_requests, level.source) == (10, 0, "kernel")
    request_s = 0.05 + (TOKENS - 1) * GAP_MS / 1000
    assert 0.5 * 10 * TOKENS / request_s < level.tokens_per_s < 1.2 * 10 * TOKENS / request_s, REQUESTS
    assert 0.0 < level.error_p50_ms < 5.0
    assert 0.0 < level.cpu_ratio < 1.0
