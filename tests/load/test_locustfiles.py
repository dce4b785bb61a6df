"""The ready-made locustfiles run as they stand, each in under 40 lines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from llm_locust.cli import locustfiles_root
from tests.mock_process import start_mock

LINES = 40


@pytest.mark.parametrize("name", ["llm.py", "chat.py"])
def test_locustfile_runs_against_the_embedded_server(name: str, tmp_path: Path) -> None:
    """Headless, to its end, with exit code 0 and every request a success."""
    path = locustfiles_root() / name
    assert len(path.read_text().splitlines()) < LINES
    with start_mock("--profile", "fast", "--ttft-ms", "5", "--itl-ms", "1") as mock:
        done = subprocess.run(
            [
                sys.executable, "-m", "locust", "-f", str(path), "--host", mock.url, "-u", "2", "-r", "100",
                "--headless", "--llm-requests", "4", "--llm-input-tokens", "32", "--llm-output-tokens", "8",
            ],
            cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        outcomes = mock.truth()["outcomes"]
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert set(outcomes) == {"ok"}
    assert outcomes["ok"] >= 4
