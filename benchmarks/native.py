"""Builds the C programs: the server whose times are known, and the least that a client can do.

    python -m benchmarks.native

They go to ``benchmarks/build``, which git ignores; built again only when a source is newer. The server speaks TLS
where OpenSSL's headers are. Without a C compiler there is none of them, and whoever asks is told so.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

SOURCES = Path(__file__).parent / "c"
BUILD = Path(__file__).parent / "build"
COMPILER = ("gcc", "-O2", "-std=gnu11", "-Wall", "-Wextra")
TLS = ("-DWITH_TLS", "-lssl", "-lcrypto")


class NotBuiltError(Exception):
    """A program cannot be built here; the text says why."""


def truth_server(*, tls: bool = False) -> Path:
    """Return the server's program. Raises NotBuiltError."""
    return _built("truth_server", "truth_server_tls" if tls else "truth_server", TLS if tls else ())


def limit_client() -> Path:
    """Return the client's program. Raises NotBuiltError."""
    return _built("limit_client", "limit_client", ())


def _built(source: str, name: str, extra: tuple[str, ...]) -> Path:
    if sys.platform != "linux":
        raise NotBuiltError("the C programs use Linux's epoll and receive stamps")
    if shutil.which(COMPILER[0]) is None:
        raise NotBuiltError("no gcc here")
    program = BUILD / name
    files = [SOURCES / f"{source}.c", SOURCES / "clock.h"]
    if program.exists() and program.stat().st_mtime > max(file.stat().st_mtime for file in files):
        return program
    BUILD.mkdir(exist_ok=True)
    fresh = program.with_suffix(".new")  # put in place at once: two builders do not disturb each other
    command = [*COMPILER, str(files[0]), "-o", str(fresh), *extra]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise NotBuiltError(f"gcc could not build {name}: {done.stderr.strip().splitlines()[:1]}")
    fresh.replace(program)
    return program


if __name__ == "__main__":
    for build in (truth_server, partial(truth_server, tls=True), limit_client):
        try:
            print(build())
        except NotBuiltError as why:
            print(f"not built: {why}")
