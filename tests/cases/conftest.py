"""A lab for each test of real processes; masters and workers of this room meet on ports 22200-22299."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.lab import Lab

_ports = itertools.cycle(range(22200 + os.getpid() % 50, 22300))


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A folder, a port, and the processes of one test; whatever it started is ended."""
    made = Lab(tmp_path)
    made.port = next(_ports)
    yield made
    made.end()
