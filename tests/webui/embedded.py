"""The embedded server as a process of its own, for the tests of real runs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.rig.ports import free_port
from tests.webui.browser import ROOT


@contextmanager
def server(*flags: str) -> Iterator[str]:
    """Run the embedded server and give its address."""
    port = free_port()
    command = [sys.executable, "-m", "llm_locust.mock", "--port", str(port), "--profile", "fast", *flags]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline(), "the server says where it listens"
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=10)
