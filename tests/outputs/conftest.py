"""A run of which nothing is written yet, and where it will be."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_locust.outputs import Outputs
from tests.outputs.runs import RUN_ID, Sayings, facts


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The directory of the run."""
    path = tmp_path / "reports" / RUN_ID
    path.mkdir(parents=True)
    return path


@pytest.fixture
def outputs(tmp_path: Path, directory: Path) -> Outputs:
    """A run of which nothing is written yet; `said` has what the user was told."""
    locustfile = tmp_path / "llm.py"
    locustfile.write_text("# mine\n")
    return Outputs(facts(locustfile), directory, Sayings())
