"""A lab for each test of real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.rig.locusts import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A folder, a port, and the processes of one test; whatever it started is ended."""
    made = Lab(tmp_path)
    yield made
    made.end()
