"""The demo: a concurrency sweep by a master and two workers against the embedded server.

Everything is a process of its own, as in a real test; all of it stays on 127.0.0.1 and ends by
itself. The server's model runs `TIME_SCALE` times as fast as the cluster that it is modelled on.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from llm_locust.cli import locustfiles_root

TIME_SCALE = 20
_READY = "ready on "
_STOP_S = 15


def run_demo(*, quick: bool) -> int:
    """Start the server and the sweep; return Locust's exit code."""
    levels, hold = ("2,4,8", "5s") if quick else ("4,8,16,32", "20s")
    with embedded_server() as url:
        print(f"The embedded server answers on {url}: DeepSeek-R1 on 32 H100, {TIME_SCALE} times as fast.")
        command = [sys.executable, "-m", "locust", "-f", str(locustfiles_root() / "llm.py"), "--headless"]
        command += ["--processes", "2", "--only-summary", "--host", url, "--llm-shape", "ConcurrencySteps"]
        command += ["--llm-levels", levels, "--llm-hold", hold, "--llm-spawn-rate", "100"]
        command += ["--llm-input-tokens", "1024", "--llm-output-tokens", "128", "--llm-name", "demo"]
        print(f"$ {' '.join(['locust', *command[3:]])}\n", flush=True)
        return subprocess.call(command)


@contextmanager
def embedded_server() -> Iterator[str]:
    """Run `llm-locust mock` on a free port and give its URL; end it at the end."""
    command = [sys.executable, "-m", "llm_locust.mock", "--port", "0", "--time-scale", str(TIME_SCALE)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline() if server.stdout else ""
        if _READY not in line:
            raise SystemExit(f"llm-locust demo: the embedded server did not start: {line.strip() or 'it said nothing'}")
        yield line.rsplit(_READY, 1)[1].strip()
    finally:
        server.terminate()
        try:
            server.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            server.kill()
        if server.stdout:
            server.stdout.close()
