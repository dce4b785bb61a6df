"""The account of what was made of a plan: its rows in their order, those skipped, and what they tell of the time left.

Knows no clock, no crew and no Locust.
"""

from __future__ import annotations

from collections.abc import Iterable

from llm_locust.load.course import Course
from llm_locust.load.crew import Applied
from llm_locust.load.plan import estimated_duration_s, least_duration_s
from llm_locust.load.stage import Stage, Tally


class Logbook:
    """The rows of one run."""

    def __init__(self) -> None:
        """Begin without a row."""
        self.applied: list[Applied] = []

    @property
    def row(self) -> Applied | None:
        """The row that runs, or the last one that ran."""
        return next((row for row in reversed(self.applied) if not row.skipped), None)

    @property
    def running(self) -> Applied:
        """The row that runs."""
        row = self.row
        assert row is not None
        return row

    def rows_of(self, number: int) -> list[Applied]:
        """Give the rows of the stage with this number: one, or one a label where it ran through or was split."""
        return [row for row in self.applied if row.number == number]

    def begin(self, stage: Stage, label: str, number: int) -> Applied:
        """Begin a row."""
        row = Applied(
            label=label,
            number=number,
            users=stage.users,
            rate_per_s=stage.rate_per_s,
            open_loop=stage.open_loop,
            whole_requests=stage.whole_requests,
        )
        self.applied.append(row)
        return row

    def skip(self, stage: Stage, reason: str) -> None:
        """Note a stage that does not come."""
        self.applied.append(Applied(label=stage.label, users=stage.users, rate_per_s=stage.rate_per_s, skipped=reason))

    def skip_rest(self, stages: Iterable[Stage], reason: str) -> None:
        """Note the stages that do not come any more, and a row that never opened."""
        known = {row.label for row in self.applied}
        for row in self.applied:
            if row.opened_ns is None:
                row.skipped = row.skipped or reason
        for stage in stages:
            if stage.label not in known:
                self.skip(stage, reason)

    def close(self, at_ns: int, reason: str) -> None:
        """End the row that runs before its plan is done; one that was only announced never began."""
        row = self.running
        assert row.opened_ns is not None
        if row.opened_ns >= at_ns:
            row.opened_ns, row.steady_ns, row.skipped = None, None, reason
        before = self.row
        if before is not None and (before.closed_ns is None or before.closed_ns > at_ns):
            before.close(at_ns, reason)

    # ---- how long it may take ----

    def request_s(self, plan: Iterable[Stage]) -> float:
        """Give how long the requests of the last warm-up took, 0 before the first.

        Its end is seen once a second: where users finished several requests meanwhile, their number tells more.
        """
        stages = {stage.label: stage for stage in plan}
        for row in reversed(self.applied):
            if row.opened_ns is not None and row.steady_ns is not None and row.steady_ns > row.opened_ns:
                stage = stages.get(row.label)
                if stage is not None and stage.warmup.requests_per_user:
                    warm_s = (row.steady_ns - row.opened_ns) / 1e9 - stage.spread_s
                    longest_s = max(warm_s, 0.0) / stage.warmup.requests_per_user
                    if stage.open_loop or not row.finished_before:
                        return longest_s
                    of_users_s = row.users * (warm_s + stage.spread_s / 2)
                    return min(longest_s, of_users_s / row.finished_before)
        return 0.0

    def left_of_row_s(self, course: Course, tally: Tally | None, now_ns: int, request_s: float) -> float | None:
        """Estimate what is left of the row that runs, None where its end is not known."""
        stage = course.stage
        if stage.requests is not None:
            issued = 0 if tally is None else tally.steady_issued
            return max(stage.requests - issued, 0) / self.running.users * request_s
        end_ns = course.least_end_ns()
        if end_ns is None:
            return None
        beyond_s = estimated_duration_s([stage], request_s) - least_duration_s([stage])
        beyond_s -= request_s * stage.warmup.requests_per_user
        return beyond_s + max(end_ns - now_ns, 0) / 1e9
