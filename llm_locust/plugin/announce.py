"""What is said of a plan: its rows and its end before the load, an estimate after the first warm-up. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llm_locust.load.plan import PLAN_COLUMNS, duration_text, least_duration_s, lengths_of, plan_rows
from llm_locust.load.stage import Stage


def plan_lines(
    stages: Sequence[Stage],
    run_time_s: float | None,
    lengths: Callable[[Stage], tuple[str, str]] = lengths_of,
) -> list[str]:
    """Give the plan as a table, and how long it takes at least; `run_time_s` ends it before.

    ``lengths`` spells the token lengths of a stage, in and out.
    """
    rows = [PLAN_COLUMNS, *plan_rows(stages, lengths)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(PLAN_COLUMNS))]
    table = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [*table, _end(stages, run_time_s)]


def estimate_line(left_s: float) -> str:
    """Say how long it still takes, once a warm-up has shown how long a request lasts."""
    return f"about {duration_text(left_s)} left, as long as requests take what they took in the warm-up"


def left_s(plan_s: float | None, run_time_s: float | None, elapsed_s: float) -> float | None:
    """Give the time until the run ends: its plan's, or its run time's where that comes first; None: nobody knows."""
    known = [] if plan_s is None else [plan_s]
    if run_time_s is not None:
        known.append(max(run_time_s - elapsed_s, 0.0))
    return min(known, default=None)


def _end(stages: Sequence[Stage], run_time_s: float | None) -> str:
    if any(_is_endless(stage) for stage in stages):
        return "it runs until it is stopped" if run_time_s is None else f"it ends after {duration_text(run_time_s)}"
    least = f"least duration: {duration_text(least_duration_s(stages))}; {_on_top(stages)} come on top"
    if run_time_s is None or run_time_s < least_duration_s(stages):  # a soak's rows are made of it
        return least
    return f"{least}; it ends after {duration_text(run_time_s)} at the latest"


def _on_top(stages: Sequence[Stage]) -> str:
    """Name what lasts as long as the server makes it."""
    counted = any(stage.requests is not None for stage in stages)
    return "requests, warm-ups and drains" if counted else "warm-ups by requests and drains"


def _is_endless(stage: Stage) -> bool:
    of_trace = stage.arrivals is not None and stage.rate_per_s is None
    return stage.requests is None and stage.hold_s is None and not of_trace
