"""What `benchmarks.verdict` calls off, and what it calls marked: known answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.lab import Sent
from benchmarks.verdict import Judged, compared

MS = 1_000_000
START_NS = 5_000 * MS
SENT_NS = np.array([START_NS + 50 * MS + number * 20 * MS for number in range(4)], np.int64)


def request(
    errors_ms: tuple[float, float, float, float], *, late_tokens: int = 0, upper_bound: bool = False
) -> tuple[dict[str, str], dict[str, Any], Sent]:
    """Make a request whose tokens arrived so much after they were sent."""
    arrivals = SENT_NS + np.rint(np.array(errors_ms) * MS).astype(np.int64)
    row = {
        "ttft_ms": str((arrivals[0] - START_NS) / MS),
        "late_tokens": str(late_tokens),
        "ttft_upper_bound": "true" if upper_bound else "false",
    }
    return row, {"start_ns": START_NS, "arrivals_ns": arrivals.tolist()}, Sent("id", START_NS, SENT_NS)


def judged(*requests: tuple[dict[str, str], dict[str, Any], Sent], share: float = 3.0, failed: int = 0) -> Judged:
    """Judge them as a run that says SUSPECT."""
    return compared(share, 100, requests, failed, {"validity": "SUSPECT", "reasons": ["late"]})


@pytest.mark.parametrize(
    ("one", "figures"),
    [
        (request((0.01, 0.01, 0.02, 0.01)), (0, 0, 0, 0)),
        (request((1.5, 1.5, 1.5, 1.5)), (1, 0, 0, 0)),
        (request((1.5, 0.0, 0.0, 0.0), late_tokens=2, upper_bound=True), (1, 1, 1, 1)),
        (request((0.0, 20.0, 0.0, 0.0)), (0, 0, 1, 0)),
        (request((0.0, 20.0, 0.0, 0.0), late_tokens=2), (0, 0, 1, 1)),
        (request((0.0, 0.9, 0.0, 0.9)), (0, 0, 0, 0)),
    ],
    ids=["right", "first token", "first token, told", "a gap", "a gap, told", "within a ms"],
)
def test_a_request_that_is_off_must_say_so(
    one: tuple[dict[str, str], dict[str, Any], Sent], figures: tuple[int, int, int, int]
) -> None:
    """TTFT by its upper bound, gaps by late tokens."""
    found = judged(one)
    assert (found.ttft_off, found.ttft_off_marked, found.gaps_off, found.gaps_off_marked) == figures
    assert found.unmarked == figures[0] - figures[1] + figures[2] - figures[3]
    assert found.right is not bool(found.unmarked)


@pytest.mark.parametrize(
    ("errors_ms", "took_ms", "off"),
    [
        ((0.0, 1.7, 0.0, 0.0), (0.01, 1.69, 0.01, 0.01), 0),
        ((0.0, 3.7, 0.0, 0.0), (0.01, 1.69, 0.01, 0.01), 1),
        ((0.0, 1.7, 0.0, 0.0), (0.01, 0.01, 0.01, 1.69), 1),
        ((1.7, 1.7, 1.7, 1.7), (1.69, 0.01, 0.01, 0.01), 0),
    ],
    ids=["within the send", "beyond it", "another token's", "the first token's"],
)
def test_a_token_left_while_the_server_sent_it(
    errors_ms: tuple[float, float, float, float], took_ms: tuple[float, ...], off: int
) -> None:
    """The server's core may be taken from it between its look at the clock and the send's return."""
    row, arrived, sent = request(errors_ms)
    took_ns = np.rint(np.array(took_ms) * MS).astype(np.int64)
    found = judged((row, arrived, replace(sent, token_took_ns=took_ns)))
    assert found.ttft_off + found.gaps_off == off


def test_the_worst_of_what_is_not_told_is_kept() -> None:
    """A large error that is told counts for nothing there."""
    found = judged(request((0.0, 35.0, 0.0, 0.0), late_tokens=1), request((0.0, 12.5, 0.0, 0.0)))
    assert found.worst_unmarked_ms == pytest.approx(12.5)
    assert (found.requests, found.marked) == (2, 1)


def test_a_run_below_what_is_carried_must_be_valid_and_one_with_failures_is_never_right() -> None:
    """SUSPECT at 80 % is wrong, however true its times."""
    right = request((0.01, 0.01, 0.01, 0.01))
    assert not judged(right, share=0.8).right
    assert not judged(right, failed=1).right
    assert compared(0.8, 100, [right], 0, {"validity": "VALID", "reasons": []}).right
