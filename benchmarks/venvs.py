"""Throw-away environments for what is compared: each made once under ``benchmarks/build``, which git ignores.

python -m benchmarks.venvs loops
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.native import BUILD

PACKAGES = {"loops": ("aiohttp==3.12.15", "httpx==0.28.1")}


class NotInstallableError(Exception):
    """An environment cannot be made here; the text says why."""


def python_of(name: str) -> Path:
    """Return the interpreter of an environment, made at the first call. Raises NotInstallableError."""
    folder = BUILD / f"venv-{name}"
    python, stamp = folder / "bin" / "python", folder / ".installed"
    wanted = "\n".join(PACKAGES[name])
    if stamp.exists() and stamp.read_text() == wanted:
        return python
    BUILD.mkdir(exist_ok=True)
    _run([sys.executable, "-m", "venv", "--clear", str(folder)])
    _run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES[name]])
    stamp.write_text(wanted)
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise NotInstallableError(f"{' '.join(command[1:4])}: {last[0] if last else 'failed'}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "name", nargs="*", default=list(PACKAGES), help=f"of: {', '.join(PACKAGES)}; all where none is given"
    )
    names = parser.parse_args().name
    if unknown := set(names) - set(PACKAGES):
        parser.error(f"no {', '.join(sorted(unknown))}; there are {', '.join(PACKAGES)}")
    for wanted in names:
        print(python_of(wanted))
