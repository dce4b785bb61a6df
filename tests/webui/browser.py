"""A Chromium that looks at a Locust of made-up runs: what the browser tests share.

Pictures for the documentation are taken where LLM_LOCUST_PICTURES names a folder.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.rig.ports import free_port

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
needs_chromium = pytest.mark.skipif(
    not CHROMIUM.exists() and os.environ.get("CI") != "true",
    reason=f"no Chromium at {CHROMIUM}: install one, or name it by CHROMIUM=PATH; with CI=true this fails",
)
"""Where CI lacks a Chromium its tests fail, as nobody reads there what was skipped."""
ROOT = Path(__file__).parent.parent.parent
START_S = 30.0
PATIENCE_MS = 15_000


@contextmanager
def locust(*args: str, **environ: str) -> Iterator[str]:
    """Run Locust with its page and give the page's address."""
    port = free_port()
    command = [sys.executable, "-m", "locust", "--web-host", "127.0.0.1", "--web-port", str(port), *args]
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environ}
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=env,
        text=True,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    url = f"http://127.0.0.1:{port}/"
    try:
        _wait_for(url, process)
        yield url
    finally:
        process.terminate()
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:  # a worker that never found its master holds the pipe
            os.killpg(process.pid, signal.SIGKILL)
            raise


def _wait_for(url: str, process: subprocess.Popen[str]) -> None:
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s:
        if process.poll() is not None:
            raise AssertionError(f"locust ended: {process.communicate()[0]}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise AssertionError(f"{url} does not answer")


@contextmanager
def fake_locust(out: Path, skip_s: int = 0, tick_s: float = 0.1, **run: object) -> Iterator[str]:
    """Run Locust with made-up runs (fake_locustfile), whose files go into ``out``."""
    environ = {"FAKE_OUT": str(out), "FAKE_SKIP_S": str(skip_s), "FAKE_TICK_S": str(tick_s)}
    with locust("-f", str(ROOT / "tests/webui/fake_locustfile.py"), **environ, FAKE_RUN=json.dumps(run)) as url:
        yield url


@contextmanager
def chromium() -> Iterator[Browser]:
    """Give a Chromium that asks nobody but us."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        yield browser
        browser.close()


@dataclass
class Watched:
    """A page and everything that went wrong on it."""

    page: Page
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda message: self._note(message.type == "error", f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self._note(True, f"error: {error.stack or error}"))
        self.page.on("response", lambda answer: self._note(answer.status >= 400, f"{answer.status} {answer.url}"))

    def _note(self, bad: bool, what: str) -> None:
        if bad:
            self.problems.append(what)

    def tile(self, title: str, part: str = "value") -> str:
        """Return what a tile shows."""
        return self.page.locator(f'section[aria-label="{title}"] [data-part="{part}"]').inner_text()

    def cells(self, table: str) -> list[list[str]]:
        """Return the texts of a table's body."""
        rows = self.page.locator(f'table[aria-label="{table}"] tbody tr').all()
        return [row.locator("td").all_inner_texts() for row in rows]

    def drawing(self, title: str) -> str:
        """Return what a chart has drawn, as an image in text."""
        canvas = self.page.locator(f'[role="img"][aria-label="{title}"] canvas').first
        drawn: str = canvas.evaluate("canvas => canvas.toDataURL()")
        return drawn

    def picture(self, name: str, *, whole: bool = False) -> None:
        """Keep a picture for the documentation, where one is asked for."""
        folder = os.environ.get("LLM_LOCUST_PICTURES")
        if folder:
            self.page.wait_for_timeout(400)
            self.page.screenshot(path=Path(folder) / f"{name}.png", full_page=whole)


@contextmanager
def watched(
    browser: Browser, url: str, *, width: int = 1280, dark: bool = False, height: int = 900
) -> Iterator[Watched]:
    """Open an address; whatever went wrong on the page by the end fails the test."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", accept_downloads=True
    )
    seen = Watched(context.new_page())
    seen.page.set_default_timeout(PATIENCE_MS)
    seen.page.goto(url)
    try:
        yield seen
    except Exception as error:
        error.add_note("\n".join(["What the page complained of:", *seen.problems]))
        raise
    finally:
        context.close()
    assert seen.problems == []
