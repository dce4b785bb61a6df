"""The sample run in the repository: whole, readable, and of no machine in particular."""

from __future__ import annotations

import re
from pathlib import Path

from llm_locust.outputs.report import report_html
from llm_locust.outputs.report_run import load_run

SAMPLE = Path(__file__).parent.parent.parent / "reports" / "sample"
RELEASE = re.compile(rb"\d+\.\d+\.\d+-[\w.-]*\d")
"""A kernel's, as 6.1.0-13."""


def test_sample_run_when_its_report_is_built() -> None:
    """The files are those that today's code writes and reads."""
    run = load_run(SAMPLE)
    assert [row.stage for row in run.stages] == ["users-2", "users-4", "users-8"]
    assert run.state.value == "finished"
    assert b"users-8" in report_html(run)


def test_sample_run_when_one_looks_for_its_machine() -> None:
    """It names no kernel, no host and no path of the one that made it."""
    run = load_run(SAMPLE)
    assert {worker.host for worker in run.facts.workers} == {"loadgen"}
    assert (run.facts.versions["kernel"], run.facts.versions["platform"]) == ("Linux", "Linux-x86_64")
    for path in SAMPLE.iterdir():
        content = path.read_bytes()
        assert RELEASE.findall(content) == [], path.name
        assert re.findall(rb"/(?:home|root|tmp|work|Users)/\S*", content) == [], path.name
