"""The directory of a run: its name, its making, and `latest`, which points to the newest.

Knows no clock: the caller gives the local time.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path

DEFAULT_PARENT = Path("reports")
_MOST_NAME_BYTES = 120  # file systems allow 255 for the whole name
_UNSAFE = re.compile(r"[^\w.+]+")


def safe_name(text: str) -> str:
    """Return `text` as a part of a file name: letters of any script, digits, `.`, `_`, `+`; the rest becomes `-`."""
    text = _UNSAFE.sub("-", text).strip("-")
    return text.encode()[:_MOST_NAME_BYTES].decode("utf-8", "ignore").rstrip("-")


def make_run_directory(parent: Path, name: str, shape: str | None, now: datetime) -> Path:
    """Make `parent`/YYYYMMDD-HHMMSS_<name>_<shape> and return it; its last part is the run id.

    Never takes a directory that is there already (then -2, -3 …). ``now`` is local time. Raises OSError.
    """
    parent.mkdir(parents=True, exist_ok=True)
    run_id = f"{now:%Y%m%d-%H%M%S}_{safe_name(name) or 'run'}_{safe_name(shape or '') or 'users'}"
    directory = parent / run_id
    number = 1
    while True:
        try:
            directory.mkdir()
            return directory
        except FileExistsError:
            number += 1
            directory = parent / f"{run_id}-{number}"


def point_latest(directory: Path) -> None:
    """Let `latest` beside `directory` point to it: a symbolic link, or a file with the name where links fail.

    Raises OSError where neither can be made, or where `latest` is a directory of somebody's own.
    """
    latest = directory.parent / "latest"
    if latest.is_dir() and not latest.is_symlink():
        raise FileExistsError(17, "is a directory, not a link; left as it is", str(latest))
    waiting = directory.parent / f".latest.{os.getpid()}.tmp"
    waiting.unlink(missing_ok=True)
    try:
        waiting.symlink_to(directory.name, target_is_directory=True)
    except (OSError, NotImplementedError):
        waiting.write_text(directory.name + "\n", encoding="utf-8")
    os.replace(waiting, latest)


def find_run_directory(path: Path) -> Path:
    """Return the run's directory for what a user names: the directory, `latest`, or a file in it.

    Raises FileNotFoundError where there is no run.
    """
    if path.is_file() and path.name == "latest":
        path = path.parent / path.read_text(encoding="utf-8").strip()
    directory = path.parent if path.is_file() else path
    if not (directory / "summary.json").is_file():
        raise FileNotFoundError(2, "no run there (no summary.json)", str(path))
    return directory.resolve()
