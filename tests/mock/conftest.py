"""A server for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.rig.mock_process import MockProcess, start_mock
from tests.mock.client import FAST


@pytest.fixture(scope="module")
def mock() -> Iterator[MockProcess]:
    with start_mock(*FAST, "--stamp") as process:
        yield process
