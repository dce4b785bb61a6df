"""How a run ends: its exit code, and when failures alone end it early. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from llm_locust.measure.record import FAILURES

INVALID_CODE = 4
UNHANDLED_CODE = 2
SLO_CODE = 3
LEAST_FAILURES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an exit code is made of. `slo_met` is None without an SLO; `on_error` is Locust's --exit-code-on-error.

    `ok` and `failed` count requests of all phases; `other_errors` are Locust's own: of other users, of tasks.
    `measured`: at least one request was; `whole`: every stage of the plan was. `files_whole`: everything that was
    measured is on the disk.
    """

    invalid: bool
    unhandled: bool
    slo_met: bool | None
    ok: int
    failed: int
    other_errors: bool = False
    aborted: bool = False
    measured: bool = True
    whole: bool = True
    files_whole: bool = True
    on_error: int = 1


def exit_code(result: Result) -> int:
    """Give the code: 4 INVALID > 2 as Locust has it > 3 an SLO was missed > 1 > 0.

    Never 0 without a success, without a measured request, or where an SLO was to be met by stages that did not come.
    """
    if result.invalid:
        return INVALID_CODE
    if result.unhandled:
        return UNHANDLED_CODE
    if result.slo_met is False:
        return SLO_CODE
    unproven = not result.measured or (result.slo_met is not None and not result.whole)
    if result.aborted or not result.ok or not result.files_whole or unproven:
        return result.on_error or 1
    if result.slo_met is None and (result.failed or result.other_errors):
        return result.on_error
    return 0


def ok_and_failed(totals: Mapping[str, int]) -> tuple[int, int]:
    """Count the requests that ended ok and those that failed, of all phases, in the totals of a run's numbers."""
    failed = sum(totals.get(f"cell:outcome:{outcome.value}", 0) for outcome in FAILURES)
    return totals.get("cell:outcome:ok", 0), failed


class FailureWatch:
    """Ends a run in which nothing but failures happens: so many in the time, no success and no token.

    Silence alone never does: a first token of 259 s is real.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._since_s: float | None = None
        self._failed_before = 0
        self._good_before = -1

    def hopeless(self, now_s: float, *, failed: int, good: int) -> bool:
        """Say whether the time is over; `good` grows with every success and token."""
        if not self._window_s:
            return False
        if self._since_s is None or good != self._good_before:
            self._since_s, self._failed_before, self._good_before = now_s, failed, good
        return now_s - self._since_s >= self._window_s and failed - self._failed_before >= LEAST_FAILURES
