"""What several files of this room's tests begin with; a file may have a server of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.rig.mock_process import MockProcess, start_mock

from .around import ITL_MS, TTFT_MS
from .ensemble import Ensemble
from .stand import Stand


@pytest.fixture
def stand() -> Iterator[Stand]:
    """A gate on a fake clock."""
    stand = Stand()
    yield stand
    stand.close()


@pytest.fixture
def make() -> Iterator[Callable[..., Ensemble]]:
    """Make ensembles that end with the test."""
    made: list[Ensemble] = []

    def make_one(*args: object, **kwargs: object) -> Ensemble:
        made.append(Ensemble(*args, **kwargs))  # type: ignore[arg-type]  # passed on
        return made[-1]

    yield make_one
    for ensemble in made:
        ensemble.close()


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockProcess]:
    """A server with fixed times, and an endless script."""
    path = Path(tmp_path_factory.mktemp("scripts"), "scripts.json")
    token = 'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
    path.write_text(json.dumps({"endless": [[10, token], [20, token], [30_000, token]]}))
    options = ("--profile", "fast", "--ttft-ms", str(TTFT_MS), "--itl-ms", str(ITL_MS), "--script", str(path))
    with start_mock(*options) as process:
        yield process
