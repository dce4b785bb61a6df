"""Check what a user installs: the sdist and wheel build, and install without a network.

Fills a wheelhouse, installs from it alone into an empty environment, and asks the installed
commands for what the README promises. Prints one line a check; exits 1 at the first that fails.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NATIVE = "msgspec"  # a compiled dependency: its wheel names the processor


def main() -> int:
    """Run the checks in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        run(sys.executable, "-m", "build", "--outdir", str(work / "dist"), str(ROOT))
        names = sorted(path.name for path in (work / "dist").iterdir())
        check("sdist and wheel build", len(names) == 2, names)
        check_wheelhouse(work / "wheels")
        check_installed(work)
    return 0


def check_wheelhouse(wheels: Path) -> None:
    """Both processor kinds get their wheels."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    run(sys.executable, str(ROOT / "scripts" / "wheelhouse.py"), str(wheels), "--python", version)
    for machine in ("x86_64", "aarch64"):
        check(f"wheelhouse has {machine}", any(wheels.glob(f"{NATIVE}-*{machine}*.whl")), sorted(wheels.glob("*.whl")))


def check_installed(work: Path) -> None:
    """An empty environment without an index gets everything, and the commands work there."""
    home = work / "environment"
    venv.create(home, with_pip=True)
    python = str(home / "bin" / "python")
    offline = ["--no-index", "--find-links", str(work / "wheels")]
    install = (python, "-m", "pip", "install", "--quiet", *offline, "llm-locust[tokenizers,png,xlsx]")
    run(*install, PIP_CONFIG_FILE=os.devnull, PIP_FIND_LINKS="")
    check("installs without an index", True, platform.machine())
    written = run(str(home / "bin" / "llm-locust"), "init", str(work / "files"))
    check("init copies the locustfiles", (work / "files" / "llm.py").is_file(), written)
    listed = run(str(home / "bin" / "locust"), "-f", str(work / "files" / "llm.py"), "--llm-model", "m", "--list")
    check("locust finds the plugin", "User" in listed, listed)
    shown = run(str(home / "bin" / "llm-locust"), "options")
    check("the options are told", "--llm-model" in shown, shown)


def run(*command: str, **extra: str) -> str:
    """Run a command, `extra` added to its environment; return its output, or stop with it."""
    variables = os.environ | {"PYTHONWARNINGS": "ignore"} | extra
    done = subprocess.run(command, capture_output=True, text=True, env=variables)
    if done.returncode:
        sys.exit(f"FAILED: {' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def check(what: str, holds: bool, seen: object) -> None:
    """Print the check; stop with what was seen where it fails."""
    if not holds:
        sys.exit(f"FAILED: {what}: {seen}")
    print(f"ok: {what}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
