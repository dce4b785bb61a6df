"""The page in a real Chromium: a run from the form to its files, a second one, a reset, and what must never happen."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.webui.browser import Watched, fake_locust, needs_chromium, watched
from tests.webui.steps import (
    CHARTS,
    REFRESHED_MS,
    TILES,
    files_are_those_of_the_master,
    numbers_are_those_of_the_file,
    start,
    until_stage,
)

pytestmark = needs_chromium


def test_form_has_our_options_in_groups_without_secrets(browser: Browser, tmp_path: Path) -> None:
    """Each option stands in its group with its help and its default; no key can be typed."""
    with fake_locust(tmp_path) as url, watched(browser, url) as seen:
        page = seen.page
        for group in ("Model", "Prompts", "Load", "Verdict and report", "Limits and connections", "Begin and end"):
            expect(page.get_by_role("button", name=f"LLM: {group}")).to_be_visible()
        expect(page.get_by_label("Input tokens")).to_have_attribute(
            "placeholder", "the user class's or the shape's, else 1024"
        )
        expect(page.get_by_text("Prompt length in tokens: 1024, 512-2048")).to_be_visible()
        expect(page.get_by_label("Api key")).to_have_count(0)
        page.get_by_label("Shape", exact=True).click()
        expect(page.get_by_role("option", name="RateSteps")).to_be_visible()
        page.keyboard.press("Escape")
        seen.picture("web-form", whole=True)


def test_run_from_the_form_moves_tiles_and_charts_and_ends_as_its_files(browser: Browser, tmp_path: Path) -> None:
    """Start, watch, reload, dark, stop, download: numbers equal stages.csv to the digits shown."""
    with fake_locust(tmp_path, skip_s=30) as url, watched(browser, url) as seen:
        page = seen.page
        start(seen)
        until_stage(seen, "8 users")
        assert seen.tile("Failed") == "0"
        drawn, shown = {title: seen.drawing(title) for title in CHARTS}, {title: seen.tile(title) for title in TILES}
        until_stage(seen, "32 users")
        assert [title for title in CHARTS if seen.drawing(title) == drawn[title]] == []
        assert [title for title in TILES if seen.tile(title) == shown[title]] == []
        assert seen.tile("Measurement").startswith("✓ VALID")
        expect(page.get_by_label("Progress")).to_contain_text("stage 3 of 4: 32 users")
        with page.expect_response("**/llm/live*") as told:
            page.reload()
        until_stage(seen, "8 users")
        answer = told.value.json()
        assert answer["whole"] is True, "a page that was reloaded is told its past"
        assert len(answer["history"]["points"]) > 120, "all its seconds"
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.locator("header button svg").last.click()
        page.wait_for_function("light => getComputedStyle(document.body).backgroundColor !== light", arg=light)
        page.locator("header button svg").last.click()
        until_stage(seen, "64 users")
        expect(page.locator('section[aria-label="Measurement"]')).to_contain_text("? SUSPECT", timeout=REFRESHED_MS)
        expect(page.locator('section[aria-label="Failed"] [data-part="value"]')).not_to_have_text(
            "0", timeout=REFRESHED_MS
        )
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_label("Progress")).to_have_text("stopped", timeout=REFRESHED_MS)
        folder = (tmp_path / "latest").resolve()
        numbers_are_those_of_the_file(seen, folder)
        files_are_those_of_the_master(seen, folder)


def test_second_run_and_reset_begin_with_nothing_of_the_first(browser: Browser, tmp_path: Path) -> None:
    """A new run, and the part after a reset, show their own numbers only."""
    with fake_locust(tmp_path, skip_s=130) as url, watched(browser, url) as seen:
        page = seen.page
        start(seen)
        until_stage(seen, "32 users")
        page.get_by_role("button", name="Reset").click()
        expect(page.get_by_text("20260301-101501_deepseek-r1_ConcurrencySteps_again")).to_be_visible(
            timeout=REFRESHED_MS
        )
        page.get_by_role("button", name="Stop").click()
        page.get_by_role("button", name="New").click(timeout=REFRESHED_MS)
        form = page.get_by_role("dialog").or_(page.locator(".MuiModal-root")).last
        expect(form.get_by_role("button", name="LLM: Load")).to_be_visible()
        expect(form.get_by_label("Shape", exact=True)).to_have_value("ConcurrencySteps")
        form.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_text("20260301-101502_deepseek-r1_ConcurrencySteps", exact=True)).to_be_visible(
            timeout=REFRESHED_MS
        )
        until_stage(seen, "32 users")
        assert len([cells for cells in seen.cells("Stages") if cells[0] == "8 users"]) == 1


def test_nothing_is_cut_off_or_scrolls_sideways(browser: Browser, tmp_path: Path) -> None:
    """The page is as wide as the window; tables scroll within themselves."""
    with fake_locust(tmp_path, skip_s=238) as url:
        with watched(browser, url) as seen:
            start(seen)  # the pages below are opened in the run's first seconds: none of them is the form
        for width, dark in ((1280, False), (1280, True), (1920, False), (1920, True)):
            with watched(browser, url, width=width, dark=dark) as seen:
                until_stage(seen, "64 users")
                expect(seen.page.get_by_label("Progress")).to_have_text("finished", timeout=REFRESHED_MS)
                is_no_wider_than_its_window(seen)
                if (width, dark) == (1920, True):  # of the four looks one is kept for the documentation
                    seen.picture("web-llm-1920-dark", whole=True)
                seen.page.get_by_role("tab", name="LLM distributions").click()
                expect(seen.page.get_by_role("img", name="TTFT against input length")).to_be_visible()
                expect(seen.page.get_by_text("ok requests of the measured windows")).to_be_visible()
                is_no_wider_than_its_window(seen)
                if (width, dark) == (1280, False):
                    seen.picture("web-distributions", whole=True)


def is_no_wider_than_its_window(seen: Watched) -> None:
    """Nothing is reached by scrolling sideways."""
    assert seen.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_page_says_when_the_master_does_not_answer(browser: Browser, tmp_path: Path) -> None:
    """Old numbers are not shown as fresh ones."""
    with fake_locust(tmp_path, skip_s=40) as url, watched(browser, url) as seen:
        start(seen)
        until_stage(seen, "8 users")
        seen.page.route("**/llm/live*", lambda route: route.fulfill(status=502, body="bad gateway"))
        expect(seen.page.get_by_text("The numbers below are not fresh: the master answered 502.")).to_be_visible(
            timeout=REFRESHED_MS
        )
        seen.page.unroute("**/llm/live*")
        expect(seen.page.get_by_text("not fresh")).to_have_count(0, timeout=REFRESHED_MS)
        seen.problems.clear()
