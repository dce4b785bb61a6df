"""The page over a real run: the suite itself, a master and two workers, the embedded server, a shape from the form."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.ports import free_port
from tests.webui.browser import ROOT, locust, needs_chromium, watched
from tests.webui.embedded import server
from tests.webui.steps import numbers_are_those_of_the_file, until_stage

pytestmark = [needs_chromium, pytest.mark.slow, pytest.mark.timeout(240)]
PACE = ("--ttft-ms", "60", "--itl-ms", "20")


def test_run_of_a_master_with_two_workers_from_the_form(browser: Browser, tmp_path: Path) -> None:
    """A wrong option is told beside the form; then a sweep runs, and its page ends as its files."""
    bound = str(free_port())
    distributed = ("--processes", "2", "--master-bind-port", bound, "--master-port", bound)
    flags = ("-f", str(ROOT / "locustfiles/llm.py"), "--llm-out", str(tmp_path), *distributed)
    with (
        server(*PACE) as host,
        locust(*flags, "--host", host) as url,
        watched(browser, url) as seen,
    ):
        page = seen.page
        page.get_by_label("Shape", exact=True).fill("concurrency-steps")
        page.get_by_label("Levels").fill("2,4,8")
        page.get_by_label("Hold").fill("many")
        page.get_by_label("Input tokens").fill("64")
        page.get_by_label("Output tokens").fill("32")
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
        seen.picture("web-llm-1280", whole=True)
        folder = (tmp_path / "latest").resolve()
        table = seen.cells("Stages")
        assert [cells[0] for cells in table] == ["users-2", "users-4", "users-8"]
        numbers_are_those_of_the_file(seen, folder)
        assert all("✓" in cells[2] or "best" in cells[2] for cells in table), "the SLO is met"
        with page.expect_download() as download:
            page.get_by_role("link", name="requests.csv").click()
        assert Path(download.value.path()).read_bytes() == (folder / "requests.csv").read_bytes()


def test_edit_of_users_in_a_hold_splits_its_stage(browser: Browser, tmp_path: Path) -> None:
    """The users before and after the edit have a row each, and the page ends as its files."""
    flags = ("-f", str(ROOT / "locustfiles/llm.py"), "--llm-out", str(tmp_path))
    with server(*PACE) as host, locust(*flags) as url, watched(browser, url) as seen:
        page = seen.page
        page.get_by_label("Number of users").fill("4")
        page.get_by_label("Host").fill(host)
        fields = {"Rate": "12", "Hold": "20s", "Input tokens": "64", "Output tokens": "16"}
        for label, text in {"Shape": "MixedLoad", **fields}.items():
            page.get_by_label(label, exact=True).fill(text)
        page.get_by_role("button", name="Start", exact=True).click()
        until_stage(seen, "mixed")
        page.get_by_role("button", name="Edit").click()
        page.get_by_label("Number of users").fill("6")
        page.get_by_role("button", name="Update").click()
        until_stage(seen, "mixed-2")
        expect(page.get_by_label("Progress")).to_have_text("finished", timeout=60_000)
        table = [cells for cells in seen.cells("Stages") if cells[0] != "from schedule"]
        assert [(cells[0], cells[2]) for cells in table] == [("mixed", "4"), ("mixed-2", "6")]
        numbers_are_those_of_the_file(seen, (tmp_path / "latest").resolve())
