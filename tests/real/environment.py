"""Environments of real servers: one folder each, filled once by plain pip.

Where a package comes from is pip's own configuration; `find_links` adds a folder of wheels to it.
"""

from __future__ import annotations

import hashlib
import subprocess
import venv
from collections.abc import Sequence
from pathlib import Path


def make_environment(folder: Path, steps: Sequence[Sequence[str]], find_links: Path | None = None) -> Path:
    """Make a virtual environment by `pip install` of each step's arguments; return its Python.

    A folder that was filled by the same steps is left as it is; a half-filled one is made again.
    """
    python = folder / "bin" / "python"
    stamp = folder / f".filled-{hashlib.sha256(repr(steps).encode()).hexdigest()[:16]}"
    if stamp.exists():
        return python
    venv.create(folder, with_pip=True, clear=True)
    for step in steps:
        pip(python, "install", *step, find_links=find_links)
    stamp.touch()
    return python


def pip(python: Path, command: str, *arguments: str, find_links: Path | None = None) -> None:
    """Run pip quietly; raise where it fails."""
    wheels = [] if find_links is None else ["--find-links", str(find_links)]
    subprocess.run([str(python), "-m", "pip", command, "--quiet", *wheels, *arguments], check=True)
