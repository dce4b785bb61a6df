"""The page over a real run: the suite itself, a master and two workers, the embedded server, a shape from the form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from benchmarks.rig.ports import free_port
from tests.webui.browser import ROOT, Watched, locust, needs_chromium, watched
from tests.webui.embedded import server
from tests.webui.steps import SCROLLBAR_PX, numbers_are_those_of_the_file, until_stage

pytestmark = [needs_chromium, pytest.mark.slow, pytest.mark.timeout(240)]
ARROWS_PX = 80
"""Of a bar of tabs that are more than it shows."""
PACE = ("--ttft-ms", "60", "--itl-ms", "20")


FILES = ("requests.csv", "stages.csv", "timeline.csv", "summary.json", "run.conf", "report.html")


@contextmanager
def page_of_a_master_with_two_workers(browser: Browser, out: Path, host: str, **view: Any) -> Iterator[Watched]:
    """Give the suite's page, with the lengths of short requests in its form."""
    bound = str(free_port())
    distributed = ("--processes", "2", "--master-bind-port", bound, "--master-port", bound)
    flags = ("-f", str(ROOT / "locustfiles/llm.py"), "--llm-out", str(out), *distributed)
    with locust(*flags, "--host", host) as url, watched(browser, url, **view) as seen:
        seen.page.get_by_label("Input tokens").fill("64")
        seen.page.get_by_label("Output tokens").fill("32")
        yield seen


def each_file_is_the_one_of_the_master(seen: Watched, folder: Path) -> None:
    """Download all of a finished run's files; the report comes some seconds after the end, without a reload."""
    expect(seen.page.get_by_role("link", name="report.html")).to_be_visible(timeout=60_000)
    for name in FILES:
        with seen.page.expect_download() as download:
            seen.page.get_by_role("link", name=re.compile(f"^{re.escape(name)}")).click()
        assert Path(download.value.path()).read_bytes() == (folder / name).read_bytes(), name


def stage_rows(seen: Watched) -> list[list[str]]:
    """Return the rows of the stages as wholes, counted from each request's own start."""
    return [cells for cells in seen.cells("Stages") if cells[0] != "from schedule"]


def test_run_of_a_master_with_two_workers_from_the_form(browser: Browser, tmp_path: Path) -> None:
    """A wrong option is told beside the form; then a sweep runs, and its page ends as its files."""
    with server(*PACE) as host, page_of_a_master_with_two_workers(browser, tmp_path, host) as seen:
        page = seen.page
        page.get_by_label("Shape", exact=True).fill("concurrency-steps")
        page.get_by_label("Levels").fill("2,4,8")
        page.get_by_label("Hold").fill("many")
        page.get_by_role("button", name="LLM: Verdict and report").click()
        page.get_by_label("SLO").fill("ttft p99 < 2s; goodput(ttft < 2s) > 50%")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_text("--llm-hold")).to_be_visible(timeout=15_000)
        page.get_by_label("Hold").fill("12s")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_role("tab", name="LLM", exact=True)).to_be_visible(timeout=60_000)
        expect(page.locator('table[aria-label="Stages"] tbody tr').first).to_contain_text("2", timeout=30_000)
        expect(page.locator('table[aria-label="LLM workers"] tbody tr')).to_have_count(2, timeout=30_000)
        expect(page.get_by_label("Progress")).to_have_text("finished", timeout=120_000)
        folder = (tmp_path / "latest").resolve()
        each_file_is_the_one_of_the_master(seen, folder)
        expect(page.get_by_role("button", name="New")).to_be_visible(timeout=15_000)
        tabs_px = page.get_by_role("tab").evaluate_all("tabs => tabs.reduce((sum, tab) => sum + tab.offsetWidth, 0)")
        assert tabs_px + ARROWS_PX <= page.locator(".MuiTabs-root").evaluate("bar => bar.clientWidth") - SCROLLBAR_PX
        seen.picture("web-llm-1280", whole=True)
        table = seen.cells("Stages")
        assert [cells[0] for cells in table] == ["users-2", "users-4", "users-8"]
        numbers_are_those_of_the_file(seen, folder)
        assert all("✓" in cells[2] or "best" in cells[2] for cells in table), "the SLO is met"
    with watched(browser, (folder / "report.html").as_uri()) as seen:
        seen.page.locator("h1").wait_for()
        seen.picture("report")


def test_edit_reset_stop_and_second_run_of_a_master_with_two_workers(browser: Browser, tmp_path: Path) -> None:
    """Users before and after an edit have a row each; a reset and a new run begin with nothing of what was before."""
    with server(*PACE) as host, page_of_a_master_with_two_workers(browser, tmp_path, host, dark=True) as seen:
        page = seen.page
        page.get_by_label("Number of users").fill("4")
        for label, text in {"Shape": "MixedLoad", "Rate": "12", "Hold": "60s"}.items():
            page.get_by_label(label, exact=True).fill(text)
        page.get_by_role("button", name="Start", exact=True).click()
        until_stage(seen, "mixed")
        page.get_by_role("button", name="Edit").click()
        page.get_by_label("Number of users").fill("6")
        page.get_by_role("button", name="Update").click()
        until_stage(seen, "mixed-2")
        assert [(cells[0], cells[2]) for cells in stage_rows(seen)] == [("mixed", "4"), ("mixed-2", "6")]
        page.get_by_role("button", name="Reset").click()
        rows = page.locator('table[aria-label="Stages"] tbody tr').filter(has_not_text="from schedule")
        expect(rows).to_have_count(1, timeout=15_000)
        expect(rows).to_contain_text("mixed-2")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_label("Progress")).to_have_text("stopped", timeout=60_000)
        first = (tmp_path / "latest").resolve()
        numbers_are_those_of_the_file(seen, first)
        each_file_is_the_one_of_the_master(seen, first)
        page.get_by_role("button", name="New").click(timeout=15_000)
        page.get_by_label("Hold", exact=True).fill("5s")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_text(first.name, exact=True)).to_have_count(0, timeout=30_000)
        expect(page.get_by_label("Progress")).to_have_text("finished", timeout=90_000)
        second = (tmp_path / "latest").resolve()
        assert second != first
        assert [cells[0] for cells in stage_rows(seen)] == ["mixed"]
        numbers_are_those_of_the_file(seen, second)
