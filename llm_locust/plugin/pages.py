"""Builds report.html when a run's files are final: in a process of its own, so that neither the hub nor the memory of a
master, whose web page and workers may go on, has a part in it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from gevent import subprocess

MOST_S = 300.0
"""A night of a million requests takes half a minute."""


def build_report(directory: Path, say: Callable[[str], None]) -> None:
    """Wait for report.html; say one sentence where there is none. Never raises: the run has its files without it."""
    command = [sys.executable, "-m", "llm_locust.outputs.report", str(directory)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_S, start_new_session=True)
    except (OSError, subprocess.TimeoutExpired, KeyboardInterrupt) as error:
        reason = "stopped again" if isinstance(error, KeyboardInterrupt) else str(error)
    else:
        if done.returncode == 0:
            return
        reason = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
    say(f"report.html was not written ({reason}); build it by: llm-locust report {directory}")
