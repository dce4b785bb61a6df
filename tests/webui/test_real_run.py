"""The page over a real run: the suite itself, a master and two workers, the embedded server, a shape from the form."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.webui.browser import CHROMIUM, ROOT, chromium, free_port, locust, watched
from tests.webui.embedded import server
from tests.webui.test_browser import three_digits

pytestmark = [
    pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs a Chromium at {CHROMIUM}"),
    pytest.mark.slow,
    pytest.mark.timeout(180),
]


PACE = ("--ttft-ms", "60", "--itl-ms", "8")


def test_run_of_a_master_with_two_workers_from_the_form(tmp_path: Path) -> None:
    """A wrong option is told beside the form; then a sweep runs, and its page ends as its files."""
    bound = str(free_port())
    distributed = ("--processes", "2", "--master-bind-port", bound, "--master-port", bound)
    flags = ("-f", str(ROOT / "locustfiles/llm.py"), "--llm-out", str(tmp_path), *distributed)
    with (
        server(*PACE) as host,
        locust(*flags, "--host", host) as url,
        chromium() as browser,
        watched(browser, url) as seen,
    ):
        page = seen.page
        page.get_by_label("Shape", exact=True).fill("concurrency-steps")
        page.get_by_label("Levels").fill("2,4")
        page.get_by_label("Hold").fill("many")
        page.get_by_label("Input tokens").fill("64")
        page.get_by_label("Output tokens").fill("32")
        page.get_by_role("button", name="LLM: Verdict and report").click()
        page.get_by_label("SLO").fill("ttft p99 < 2s")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_text("--llm-hold")).to_be_visible(timeout=15_000)
        seen.picture("web-form-problem")
        page.get_by_label("Hold").fill("12s")
        page.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_role("tab", name="LLM", exact=True)).to_be_visible(timeout=30_000)
        expect(page.locator('table[aria-label="Stages"] tbody tr').first).to_contain_text("2", timeout=30_000)
        expect(page.locator('table[aria-label="LLM workers"] tbody tr')).to_have_count(2, timeout=30_000)
        expect(page.get_by_label("Progress")).to_have_text("finished", timeout=90_000)
        seen.picture("web-real-run", whole=True)
        folder = (tmp_path / "latest").resolve()
        with open(folder / "stages.csv", newline="", encoding="utf-8") as file:
            rows = [
                r for r in csv.DictReader(file) if (r["phase"], r["name"]) == ("steady", "all") and r["stage"] != "run"
            ]
        table = seen.cells("Stages")
        assert [cells[0] for cells in table] == [row["stage"] for row in rows]
        for cells, row in zip(table, rows, strict=True):
            shown = {cell.rstrip("*") for cell in cells}
            assert {three_digits(row[column]) for column in ("ttft_ms_p50", "tpot_ms_p50", "output_tok_per_s")} <= shown
        assert all("✓" in cells[2] or "best" in cells[2] for cells in table), "the SLO is met"
        with page.expect_download() as download:
            page.get_by_role("link", name="requests.csv").click()
        assert Path(download.value.path()).read_bytes() == (folder / "requests.csv").read_bytes()
