"""The exit code of a run, and the end that failures alone bring."""

from __future__ import annotations

from typing import Any

import pytest

from llm_locust.measure.record import FAILURES
from llm_locust.plugin.finish import FailureWatch, Result, exit_code, ok_and_failed

FINE: dict[str, Any] = {"invalid": False, "unhandled": False, "slo_met": None, "ok": 30, "failed": 0}
CASES = {
    "all well": ({}, 0),
    "one failure of thirty": ({"failed": 1}, 1),
    "one failure, within the SLO": ({"failed": 1, "slo_met": True}, 0),
    "SLO missed": ({"slo_met": False}, 3),
    "SLO met, but no success": ({"slo_met": True, "ok": 0}, 1),
    "no success, no failure": ({"ok": 0}, 1),
    "no success, exit code on error 0": ({"ok": 0, "on_error": 0}, 1),
    "a failure, exit code on error 0": ({"failed": 1, "on_error": 0}, 0),
    "an exception in a listener": ({"unhandled": True}, 2),
    "a task's own exception": ({"other_errors": True}, 1),
    "a task's own exception, SLO met": ({"other_errors": True, "slo_met": True}, 0),
    "files that lack something": ({"files_whole": False, "slo_met": True, "on_error": 0}, 1),
    "nothing was measured": ({"measured": False, "on_error": 0}, 1),
    "a stage that did not come, without an SLO": ({"whole": False}, 0),
    "a stage that did not come, SLO met by the others": ({"whole": False, "slo_met": True}, 1),
    "a stage that did not come, SLO missed": ({"whole": False, "slo_met": False}, 3),
    "aborted": ({"aborted": True, "slo_met": True}, 1),
    "INVALID before everything": ({"invalid": True, "unhandled": True, "slo_met": False, "failed": 9}, 4),
    "unhandled before the SLO": ({"unhandled": True, "slo_met": False, "failed": 9}, 2),
    "SLO before failures": ({"slo_met": False, "failed": 9, "ok": 0}, 3),
}


@pytest.mark.parametrize(("changes", "code"), CASES.values(), ids=CASES.keys())
def test_exit_code_is_the_first_that_applies(changes: dict[str, Any], code: int) -> None:
    """4 INVALID > 2 as Locust has it > 3 SLO > 1 > 0; zero successes never exit 0."""
    assert exit_code(Result(**{**FINE, **changes})) == code


def test_every_kind_of_failure_is_counted_and_nothing_else_is() -> None:
    """A request that was cut by the end of the run is neither ok nor failed."""
    totals = {"cell:outcome:ok": 3, "cell:outcome:unfinished": 7, "window:output_tokens": 900}
    assert ok_and_failed(totals) == (3, 0)
    assert ok_and_failed({**totals, **{f"cell:outcome:{kind.value}": 2 for kind in FAILURES}}) == (3, 2 * len(FAILURES))


def test_watch_ends_a_run_of_failures_only() -> None:
    """60 s with 20 failures, no success and no token: hopeless."""
    watch = FailureWatch(60.0)
    assert [watch.hopeless(float(t), failed=t, good=0) for t in (0, 30, 59, 60)] == [False, False, False, True]


def test_watch_waits_when_a_token_came() -> None:
    """Any success or token begins the time anew."""
    watch = FailureWatch(60.0)
    told = [watch.hopeless(t, failed=int(t), good=good) for t, good in ((0.0, 0), (59.0, 1), (100.0, 1), (119.0, 1))]
    assert told == [False, False, False, True]


def test_watch_never_ends_silence() -> None:
    """No failures, no tokens, for an hour: the first token may still come."""
    watch = FailureWatch(60.0)
    assert not any(watch.hopeless(float(t), failed=19, good=0) for t in range(0, 3600, 10))


def test_watch_is_off_at_zero() -> None:
    """--llm-stop-on-failures 0."""
    watch = FailureWatch(0.0)
    assert not any(watch.hopeless(float(t), failed=t, good=0) for t in range(0, 3600, 10))
