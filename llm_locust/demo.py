"""The demo: a concurrency sweep by a master and two workers against the embedded server.

Everything is a process of its own, as in a real test; all of it stays on 127.0.0.1 and ends by
itself. The server's model runs `TIME_SCALE` times as fast as the cluster that it is modelled on.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from llm_locust.cli import locustfiles_root

TIME_SCALE = 20
_READY = "ready on "
_STOP_S = 15


def run_demo(*, quick: bool) -> int:
    """Start the server and the sweep; return Locust's exit code."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    levels, hold = ("8,16", "5s") if quick else ("8,16,32,64", "12s")
    with embedded_server() as url:
        print(f"The embedded server answers on {url}: DeepSeek-R1 on 32 H100, {TIME_SCALE} times as fast.")
        command = [sys.executable, "-m", "locust", "-f", str(locustfiles_root() / "llm.py"), "--headless"]
        port = str(free_port())  # Locust's own 5557 may be another test's
        command += ["--processes", "2", "--master-bind-port", port, "--master-port", port, "--only-summary"]
        command += ["--host", url, "--llm-shape", "ConcurrencySteps"]
        command += ["--llm-levels", levels, "--llm-hold", hold, "--llm-spawn-rate", "100"]
        command += ["--llm-input-tokens", "1024", "--llm-output-tokens", "128", "--llm-name", "demo"]
        print(f"$ {' '.join(['locust', *command[3:]])}\n", flush=True)
        sweep = subprocess.Popen(command)
        try:
            code = sweep.wait()
        finally:
            _end(sweep)
        server = f"llm-locust mock --port {urlsplit(url).port} --time-scale {TIME_SCALE}"
        print(f"Next: the embedded server ends with the demo; start it again before you repeat the run: {server}")
        return code


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
        _end(server)
        if server.stdout:
            server.stdout.close()


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on just now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def _end(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    """End a process of ours, the hard way if need be; one that has ended already is left alone."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
