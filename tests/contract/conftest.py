"""A lab for each test; whatever it started is ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.rig.locusts import Lab

from .lab import FAKE


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A folder, a port, and the processes of one test."""
    made = Lab(tmp_path, FAKE)
    yield made
    made.end()
