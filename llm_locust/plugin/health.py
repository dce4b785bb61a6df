"""How well this process keeps time: event-loop lag, CPU, clock steps, where the timestamps come from.

A load generator that is late itself would blame the server. What is measured here judges the
measurement (validity.py); it is taken with each report and kept by stage.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol

import gevent
import psutil  # type: ignore[import-untyped]  # ships no types

from llm_locust.measure.histogram import Histogram

TICK_NS = 10_000_000
"""The lag timer's period: 100 samples a second, 4 µs each. A hold is seen less what was left of its first period."""
CPU_OVER_NS = 1_000_000_000
"""The least time over which CPU is measured: Linux counts it in ticks of 10 ms, 143 % of a report after 7."""


class WallClock(Protocol):
    """What health reads of the process's clock."""

    source: str
    steps: int

    def now_ns(self) -> int:
        """The monotonic instant."""
        ...


class LoopLag:
    """Counts by how much a periodic timer of the hub is late; `tick` runs in the hub."""

    def __init__(self, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._due_ns = 0
        self.lags = Histogram()

    def tick(self) -> None:
        """Note one lateness. A held hub swallows ticks: each swallowed one was late too."""
        now_ns = self._now_ns()
        late_ns = max(now_ns - self._due_ns, 0) if self._due_ns else 0
        # libev keeps a repeating timer on its grid, and begins a new one where it fell behind by a period
        self._due_ns = (self._due_ns if late_ns < TICK_NS and self._due_ns else now_ns) + TICK_NS
        self.lags.add(late_ns)
        while late_ns > TICK_NS:
            late_ns -= TICK_NS
            self.lags.add(late_ns)

    def take(self) -> Histogram:
        """The lags since the last call."""
        taken, self.lags = self.lags, Histogram()
        return taken


class Health:
    """Measures this process from `start` to `stop`; `take` gives what a report carries."""

    def __init__(self, clock: WallClock) -> None:
        self._clock = clock
        self._lag = LoopLag(clock.now_ns)
        self._steps_seen = clock.steps
        self._process = psutil.Process()
        self._cpu_percent: float | None = None
        self._cpu_from_ns = clock.now_ns()
        self._timer: Any = None

    def start(self) -> None:
        """Begin to measure (in the process that issues, after a fork)."""
        self._process.cpu_percent()  # the first call only sets the origin
        self._cpu_from_ns = self._clock.now_ns()
        self._steps_seen = self._clock.steps
        self._timer = gevent.get_hub().loop.timer(TICK_NS / 1e9, TICK_NS / 1e9)
        self._timer.start(self._lag.tick)

    def stop(self) -> None:
        """End the timer."""
        if self._timer is not None:
            self._timer.stop()
            self._timer.close()
            self._timer = None

    def take(self) -> dict[str, Any]:
        """What happened since the last call, of builtins: CPU in % of one core, lags, clock steps.

        CPU is that of the last second or more, None before there was one.
        """
        now_ns = self._clock.now_ns()
        if now_ns - self._cpu_from_ns >= CPU_OVER_NS:
            self._cpu_percent, self._cpu_from_ns = self._process.cpu_percent(), now_ns
        steps, self._steps_seen = self._clock.steps - self._steps_seen, self._clock.steps
        return {
            "cpu_percent": self._cpu_percent,
            "lag": self._lag.take().encode(),
            "clock_steps": steps,
            "timestamp_source": self._clock.source,
            "rss_bytes": self._process.memory_info().rss,
            "pid": os.getpid(),
        }


class HealthBook:
    """The master's view: the worst CPU, the lags and the clock steps of one stage, over all processes."""

    def __init__(self) -> None:
        self._lags = Histogram()
        self.cpu_percent: float | None = None
        self.clock_steps = 0

    def add(self, taken: dict[str, Any]) -> None:
        """Add what one process's report said."""
        self._lags.merge_encoded(taken["lag"])
        if taken["cpu_percent"] is not None:
            self.cpu_percent = max(self.cpu_percent or 0.0, taken["cpu_percent"])
        self.clock_steps += taken["clock_steps"]

    @property
    def loop_lag_p99_ms(self) -> float | None:
        """The lag that 99 % of the ticks kept; None before the first."""
        p99_ns = self._lags.quantile(0.99)
        return None if p99_ns is None else p99_ns / 1e6


class HealthBooks:
    """The health of all processes by stage, and of single workers."""

    def __init__(self) -> None:
        self._stages: dict[str, HealthBook] = {}
        self.latest: dict[str, dict[str, Any]] = {}

    def add(self, stage: str, worker: str, taken: dict[str, Any]) -> None:
        """Add what one process said with a report of a stage."""
        self._stages.setdefault(stage, HealthBook()).add(taken)
        self.latest[worker] = taken

    def of(self, stage: str) -> HealthBook:
        """The book of a stage, an empty one where nothing was told."""
        return self._stages.get(stage) or HealthBook()

    def worst_recent_lag_ms(self) -> float | None:
        """The longest lag that any process told in its last report; None before the first."""
        longest = [taken["lag"][5] for taken in self.latest.values() if taken["lag"][2]]
        return max(longest) / 1e6 if longest else None


def lag_p99_ms(taken: dict[str, Any]) -> float | None:
    """The loop lag of one report; None where nothing was told."""
    if not taken:
        return None
    lags = Histogram()
    lags.merge_encoded(taken["lag"])
    p99_ns = lags.quantile(0.99)
    return None if p99_ns is None else p99_ns / 1e6


class TokenSpeed:
    """Tokens per second of one process between its last two reports."""

    def __init__(self) -> None:
        self._at_s: float | None = None
        self._tokens = 0
        self.per_s: float | None = None

    def note(self, at_s: float, tokens: int) -> None:
        """Take a report: `tokens` in all since the start; fewer than before (a reset) begins anew."""
        if self._at_s is not None and at_s > self._at_s and tokens >= self._tokens:
            self.per_s = (tokens - self._tokens) / (at_s - self._at_s)
        self._at_s, self._tokens = at_s, tokens
