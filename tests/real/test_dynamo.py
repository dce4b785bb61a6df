"""The headless quickstart against a production front end: our counts and times beside its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.rig.ports import free_port
from tests.real.comparison import table
from tests.real.dynamo import SUBJECT

ENVIRONMENT = Path(__file__).resolve().parents[2] / ".venv-dynamo"


@pytest.mark.network
@pytest.mark.timeout(300)
def test_quickstart_counts_what_dynamo_counts_and_times_what_it_times(tmp_path: Path) -> None:
    """Requests and tokens are equal to the last one; mean TTFT and token gap differ by the network's part only."""
    SUBJECT.install(ENVIRONMENT, None)
    with SUBJECT.serving(ENVIRONMENT, tmp_path, free_port()) as served:
        for title, lines in SUBJECT.exams(served, tmp_path):
            assert all(line.agrees for line in lines), "\n" + table(title, lines)
