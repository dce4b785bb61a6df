"""`llm-locust demo`: a sweep with its own server; what it says to do next can be done."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_demo_says_how_its_run_is_repeated(tmp_path: Path) -> None:
    """The server ends with the demo: the command that starts it again has the port that the run's file asks."""
    command = [sys.executable, "-m", "llm_locust.cli", "demo", "--quick"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    conf = (tmp_path / "reports" / "latest" / "run.conf").read_text()
    again = re.search(r"llm-locust mock --port (\d+) --time-scale 20$", done.stdout.rstrip())
    assert again, done.stdout
    assert f"host = http://127.0.0.1:{again[1]}\n" in conf
    assert re.search(r"^master-bind-port = (\d+)\nmaster-port = \1$", conf, re.MULTILINE)
