"""A page begins without an address to ask: its form has a field for it. What is refused at start leaves nothing."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rig.ports import free_port
from tests.webui.browser import ROOT, locust
from tests.webui.embedded import server

WITHOUT_HOST = "--host: User has no address to ask; give --host http://server:30000"
FLAGS = ("-f", str(ROOT / "locustfiles/llm.py"))


def posted(url: str, **form: str) -> dict[str, Any]:
    """Send a form and return the answer."""
    with urllib.request.urlopen(url, urllib.parse.urlencode(form).encode(), timeout=30) as answer:
        told: dict[str, Any] = json.load(answer)
        return told


def waited(holds: Callable[[], bool], limit_s: float = 20.0) -> bool:
    """Wait until it holds; return whether it did."""
    until_s = time.monotonic() + limit_s
    while time.monotonic() < until_s:
        if holds():
            return True
        time.sleep(0.1)
    return holds()


def group_lives(group: int) -> bool:
    """Whether a process of the group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_page_begins_without_a_host_and_the_form_gives_it(tmp_path: Path) -> None:
    """Without one the form is refused beside the field; with one the run asks there."""
    form = {"user_count": "2", "spawn_rate": "2", "llm_input_tokens": "16", "llm_output_tokens": "4"}
    with server("--ttft-ms", "5", "--itl-ms", "1") as host, locust(*FLAGS, "--llm-out", str(tmp_path)) as url:
        refused = posted(f"{url}swarm", host="", **form)
        assert (refused["success"], refused["message"]) == (False, WITHOUT_HOST)
        lines = posted(f"{url}swarm", host="", llm_warmup="many", **form)["message"].split("\n")
        assert [line.partition(":")[0] for line in lines] == ["--llm-warmup", "--host"], "a line for each problem"
        begun = posted(f"{url}swarm", host=host, llm_requests="6", **form)
        assert begun["success"], begun
        summary = tmp_path / "latest" / "summary.json"
        assert waited(lambda: summary.is_file() and json.loads(summary.read_text())["state"] == "finished")
        with open(tmp_path / "latest" / "requests.csv", newline="", encoding="utf-8") as file:
            measured = [row["outcome"] for row in csv.DictReader(file) if row["phase"] == "steady"]
        assert (json.loads(summary.read_text())["host"], measured) == (host, ["ok"] * 6)


@contextmanager
def refused_start(*args: str) -> Iterator[subprocess.Popen[str]]:
    """Run a Locust that must end by itself; what is left of its process group is killed in the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "locust", *FLAGS, *args],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        if group_lives(process.pid):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=10)


@pytest.mark.parametrize("autostart", [("--headless",), ("--autostart", "--web-host", "127.0.0.1")], ids=lambda a: a[0])
def test_start_without_a_host_is_refused_and_leaves_no_worker(autostart: tuple[str, ...]) -> None:
    """A run that begins by itself must have an address; workers that never find their master end all the same."""
    ports = ("--master-bind-port", str(free_port()), "--master-port", str(free_port()), "--web-port", str(free_port()))
    with refused_start(*autostart, "--processes", "2", *ports) as process:
        told, _ = process.communicate(timeout=30)
        assert (process.returncode, WITHOUT_HOST in told) == (1, True), told
        assert waited(lambda: not group_lives(process.pid), 5.0), "a forked worker lives on"
