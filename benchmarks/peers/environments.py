"""Each peer's environment: made once with pip from the index that pip is set up for, or a reason why not.

A reason is kept beside the environments, so that a later table can show it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path

from benchmarks.native import BUILD
from benchmarks.peers.peer import Peer
from benchmarks.venvs import NotInstallableError

FOLDER = BUILD / "peers"
LIMIT_S = 1800


def add_install_option(parser: ArgumentParser) -> None:
    """Let the environments be elsewhere: they are big."""
    parser.add_argument(
        "--install", type=Path, default=FOLDER, metavar="DIR",
        help="where the tools' environments are or are made, some 14 GB (%(default)s)",
    )  # fmt: skip


def install_all(folder: Path, peers: Iterable[Peer]) -> dict[str, str]:
    """Install what is not there; return the reasons of those that cannot be, by name."""
    missing = {}
    for peer in peers:
        if not peer.environment:
            continue
        try:
            print(f"{peer.name}: {install(folder, peer)}", flush=True)
        except NotInstallableError as why:
            print(f"{peer.name}: left out: {why}", flush=True)
            missing[peer.name] = str(why)
    return missing


def bin_of(folder: Path, peer: Peer) -> Path:
    """Return the folder of a peer's programs. Raises NotInstallableError with the reason."""
    home = folder / peer.environment
    if (home / ".installed").exists():
        return home / "bin"
    reason = home.with_suffix(".reason")
    raise NotInstallableError(reason.read_text().strip() if reason.exists() else "not installed")


def install(folder: Path, peer: Peer) -> Path:
    """Make a peer's environment, unless it is there as wanted; return its programs. Raises NotInstallableError."""
    home = folder / peer.environment
    stamp, wanted = home / ".installed", repr((peer.steps, peer.removed))
    if stamp.exists() and stamp.read_text() == wanted:
        return home / "bin"
    shutil.rmtree(home, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    reason = home.with_suffix(".reason")
    try:
        _run([sys.executable, "-m", "venv", str(home)])
        pip = [str(home / "bin" / "python"), "-m", "pip"]
        for step in peer.steps:
            _run([*pip, "install", "--quiet", "--disable-pip-version-check", *step])
        if peer.removed:
            _run([*pip, "uninstall", "--quiet", "--yes", *peer.removed])
    except NotInstallableError as why:
        reason.write_text(f"{why}\n")
        raise
    reason.unlink(missing_ok=True)
    stamp.write_text(wanted)
    return home / "bin"


def version_of(programs: Path, package: str) -> str:
    """Return the installed version of a package."""
    told = subprocess.run(
        [str(programs / "python"), "-c", f"from importlib.metadata import version; print(version({package!r}))"],
        capture_output=True, text=True,
    )  # fmt: skip
    return told.stdout.strip()


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired as late:
        raise NotInstallableError(f"pip took more than {LIMIT_S} s") from late
    if done.returncode:
        told = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")] or done.stderr.splitlines()
        raise NotInstallableError(f"pip: {told[-1].removeprefix('ERROR: ') if told else 'failed'}")
