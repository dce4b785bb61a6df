"""What a level says, which level comes next, how many workers a load needs: known answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from llm_locust.calibrate.command import advice
from llm_locust.calibrate.verdict import PRECISION, Level, best_of, limit_of, next_streams, workers_for


def level(
    streams: int,
    *,
    error_p99_ms: float = 0.02,
    late_tokens_ratio: float = 0.0,
    cpu_ratio: float = 0.5,
    stolen_ratio: float = 0.0,
    server_late_p99_ms: float = 0.3,
    failed_requests: int = 0,
    source: str = "kernel",
) -> Level:
    """Make a level that is carried unless something says otherwise; a stream brings 50 tokens/s."""
    return Level(
        streams=streams, tokens_per_s=streams * 50.0, error_p50_ms=0.005, error_p99_ms=error_p99_ms,
        late_tokens_ratio=late_tokens_ratio, cpu_ratio=cpu_ratio, stolen_ratio=stolen_ratio,
        server_late_p99_ms=server_late_p99_ms, failed_requests=failed_requests, source=source,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "faults"),
    [
        (level(100), ()),
        (level(100, error_p99_ms=0.999), ()),
        (level(100, error_p99_ms=1.0), ("error p99 1.00 ms",)),
        (level(100, late_tokens_ratio=0.01), ()),
        (level(100, late_tokens_ratio=0.011), ("1.1% of the tokens in late reads",)),
        (level(100, failed_requests=2, error_p99_ms=3), ("2 requests failed", "error p99 3.00 ms")),
        (level(100, cpu_ratio=0.9), ()),
        (level(100, cpu_ratio=0.91), ("a core busy to more than 90%",)),
    ],
    ids=["carried", "just below", "error", "late at the limit", "late", "failures first", "busy", "without rest"],
)
def test_a_level_is_carried_without_faults(given: Level, faults: tuple[str, ...]) -> None:
    """Error p99 below 1 ms, at most 1 % late, nothing failed, and a core as busy as a valid run allows."""
    assert given.faults == faults
    assert given.carried is not bool(faults)


def climbed(capacity: int, first: int = 200, most: int = 3200) -> list[Level]:
    """Climb with a worker whose CPU is full at its capacity; return the levels tried."""
    levels: list[Level] = []
    while (streams := next_streams(levels, first, most)) is not None:
        cpu_ratio = min(0.9 * streams / max(capacity, 1), 1.0)
        levels.append(level(streams, error_p99_ms=0.02 if streams <= capacity else 5.0, cpu_ratio=cpu_ratio))
        assert len(levels) < 20
    return levels


@pytest.mark.parametrize(
    ("capacity", "tried"),
    [(700, [200, 620, 780, 700]), (210, [200, 250, 220]), (60, [200, 100, 50, 71, 60, 65]), (0, [200, 100, 50]),
     (99999, [200, 800, 3200])],
)  # fmt: skip
def test_levels_rise_by_the_cpu_and_then_halve_the_gap(capacity: int, tried: list[int]) -> None:
    """The CPU says how far the next step may go; never beyond the most."""
    assert [one.streams for one in climbed(capacity)] == tried


@pytest.mark.parametrize("capacity", [60, 120, 333, 700, 1000, 1234, 1777, 2900])
def test_the_answer_is_within_its_precision_of_what_is_carried(capacity: int) -> None:
    """Whatever the worker carries: two calibrations of it differ by less than 15 %, and none takes over 8 levels."""
    levels = climbed(capacity)
    best = best_of(levels)
    assert best is not None
    assert best.streams <= capacity < best.streams * PRECISION
    assert len(levels) <= 8


def test_a_level_above_one_that_failed_is_no_proof() -> None:
    """The best level lies below the first that was not carried."""
    levels = [level(100), level(400), level(200, error_p99_ms=2.0)]
    assert best_of(levels) == level(100)
    assert best_of([level(100, failed_requests=1)]) is None


@pytest.mark.parametrize(
    ("failed", "said"),
    [
        (level(800, error_p99_ms=9, cpu_ratio=0.97), "the CPU: 97% of one core at 800 streams"),
        (level(800, error_p99_ms=9, source="user", cpu_ratio=0.97), "the receive times"),
        (level(800, error_p99_ms=9, stolen_ratio=0.4), "other processes"),
        (level(800, error_p99_ms=9, server_late_p99_ms=4.2), "the calibration's own server, 4.2 ms late"),
        (level(800, error_p99_ms=9), "error p99 9.00 ms"),
    ],
    ids=["cpu", "user times", "neighbours", "server", "unexplained"],
)
def test_the_limit_is_named(failed: Level, said: str) -> None:
    """The first cause that applies, at the lowest level that was not carried."""
    assert limit_of([level(400), failed]).startswith(said)
    assert "lower bound" in limit_of([level(400)])


@pytest.mark.parametrize(
    ("tokens_per_s", "streams", "workers"),
    [(None, None, 1), (16_000.0, None, 1), (16_001.0, None, 2), (None, 320, 1), (None, 321, 2), (100_000.0, 5000, 16)],
)
def test_workers_are_planned_with_headroom(tokens_per_s: float | None, streams: int | None, workers: int) -> None:
    """Each at 80 % of what one carried (20,000 tokens/s on 400 streams); the larger need counts."""
    assert workers_for(level(400), tokens_per_s, streams) == workers


def said(levels: Sequence[Level], **want: float) -> str:
    """Return the advice as one text."""
    return "\n".join(advice(levels, want.get("tokens"), int(want["streams"]) if "streams" in want else None))


def test_the_advice_answers_what_was_asked() -> None:
    """Capacity, limit, and workers only for a wanted load."""
    levels = [level(400), level(800, error_p99_ms=9, cpu_ratio=0.97)]
    assert said(levels).splitlines() == [
        "One worker carries 20,000 tokens/s on 400 streams (times: kernel).",
        "Limited by the CPU: 97% of one core at 800 streams.",
    ]
    assert "40,000 tokens/s and 100 streams: 3 workers, each at 80% of that." in said(
        levels, tokens=40_000, streams=100
    )
    assert said([level(100, error_p99_ms=3)]).startswith("One worker does not carry even 100 streams here.")
