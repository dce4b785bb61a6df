"""The page of other loads: an open loop with what was dropped, and a night."""

from __future__ import annotations

import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.webui.browser import fake_locust, needs_chromium, watched
from tests.webui.steps import REFRESHED_MS, SCROLLBAR_PX, numbers_are_those_of_the_file, start, until_stage

pytestmark = needs_chromium

PAINTED = """
const look = () => {
  const drawn = [...document.querySelectorAll('[role="img"] canvas')].filter((canvas) => canvas.width > 100);
  const rows = document.querySelectorAll('table[aria-label="Stages"] tbody tr').length;
  if (drawn.length >= 8 && rows === 20) window.paintedMs = performance.now();
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""


def test_open_loop_counts_from_the_schedule_and_marks_lower_bounds(browser: Browser, tmp_path: Path) -> None:
    """Chart, lines and tile from the schedule, waits and lags; ≥ where arrivals were dropped, nowhere else.

    The widest of all stage tables, with rate, objectives, GPUs and price, fits into 1280 pixels beside a scroll bar.
    """
    with fake_locust(tmp_path, 178, plan="open") as url, watched(browser, url, width=1920) as seen:
        page = seen.page
        start(seen)
        until_stage(seen, "10 req/s")
        expect(page.get_by_label("Progress")).to_have_text("finished", timeout=REFRESHED_MS)
        for title in ("TTFT from schedule", "User wait and lags of the generator"):
            chart = page.get_by_role("img", name=title, exact=True)
            expect(chart).to_be_visible()
            blank = "canvas => document.createElement('canvas').toDataURL() === canvas.toDataURL()"
            assert not chart.locator("canvas").first.evaluate(blank)
        lines = [cells for cells in seen.cells("Stages") if cells[0] == "from schedule"]
        assert [any(cell.startswith("≥") for cell in cells) for cells in lines] == [False, False, True]
        assert seen.tile("TTFT from schedule").count("≥") == 2
        expect(page.get_by_text("the true value is higher")).to_be_visible()
        numbers_are_those_of_the_file(seen, (tmp_path / "latest").resolve())
        seen.picture("web-open-loop", whole=True)
        page.set_viewport_size({"width": 1280 - SCROLLBAR_PX, "height": 900})
        stages = page.get_by_role("table", name="Stages")
        assert {"Rate\nreq/s", "Per GPU\ntok/s", "Cost\nper M tok"} <= set(stages.locator("th").all_inner_texts())
        assert stages.evaluate("table => table.scrollWidth - table.parentElement.clientWidth") == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_page_of_a_night_is_painted_within_two_seconds(browser: Browser, tmp_path: Path) -> None:
    """12 h with 20 stages: from the address to all rows and charts, best of three on a busy machine."""
    with fake_locust(tmp_path, 12 * 3600 - 60, 5.0, plan="night") as url:
        form = urllib.parse.urlencode({"user_count": 8, "spawn_rate": 8, "host": "http://sglang:30000"}).encode()
        urllib.request.urlopen(f"{url}swarm", form, timeout=500).close()
        urllib.request.urlopen(f"{url}llm/live", timeout=500).close()
        with watched(browser, url) as seen:
            seen.page.add_init_script(PAINTED)
            painted_ms = []
            for _ in range(3):
                seen.page.reload()
                painted_ms.append(seen.page.wait_for_function("window.paintedMs", timeout=60_000).json_value())
            assert min(painted_ms) < 2000
