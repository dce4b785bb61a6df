"""Collect every wheel that `pip install --no-index --find-links DIR llm-locust` needs.

One folder serves both processor kinds and every Python that is given: pip picks what fits.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

# The oldest glibc wanted (2.28: Debian 10, RHEL 8) and those before it, which it runs as well.
GLIBC = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_26", "manylinux_2_24", "manylinux_2_17", "manylinux2014")


EXTRAS = "tokenizers,png,xlsx"


def main() -> int:
    """Build the project's wheel and download its dependencies' for each target; return pip's exit code."""
    options = _parser().parse_args()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    root = Path(__file__).resolve().parent.parent
    run = subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, root])
    if run.returncode:
        return run.returncode
    wheel = max(folder.glob("llm_locust-*.whl"), key=lambda path: path.stat().st_mtime)
    for machine in options.machine:
        for version in options.python:
            print(f"wheels for Python {version} on {machine}", flush=True)
            done = subprocess.run(_download(folder, wheel, machine, version))
            if done.returncode:
                return done.returncode
    print(f"{len(list(folder.glob('*.whl')))} wheels in {folder}/. On the machine without a network:")
    print(f"  pip install --no-index --find-links {folder} 'llm-locust[{EXTRAS}]'")
    return 0


def _download(folder: Path, wheel: Path, machine: str, version: str) -> list[str]:
    platforms = [part for tag in GLIBC for part in ("--platform", f"{tag}_{machine}")]
    target = ["--only-binary=:all:", "--python-version", version, "--implementation", "cp", *platforms]
    quiet = ["--quiet", "--disable-pip-version-check", "--find-links", str(folder)]
    return [sys.executable, "-m", "pip", "download", *quiet, "--dest", str(folder), *target, f"{wheel}[{EXTRAS}]"]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the wheels go")
    parser.add_argument("--machine", nargs="+", default=["x86_64", "aarch64"], help="processor kinds")
    parser.add_argument("--python", nargs="+", default=["3.11", "3.12", "3.13"], help="Python versions")
    return parser


if __name__ == "__main__":
    sys.exit(main())
