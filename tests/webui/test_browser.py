"""The page in a real Chromium: a run from the form to its files, a second one, a reset, and what must never happen."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.webui.browser import CHROMIUM, Watched, chromium, fake_locust, watched
from tests.webui.fake_run import HOSTILE

pytestmark = pytest.mark.skipif(not CHROMIUM.exists(), reason=f"needs a Chromium at {CHROMIUM}")

CHARTS = (
    "TTFT",
    "TPOT and ITL",
    "Tokens",
    "Requests by outcome",
    "Requests in flight and users",
    "Lags of the generator",
    "TTFT, share of requests",
    "ITL, share of tokens",
)
TILES = ("Output", "OK requests", "In flight", "TTFT", "TPOT", "Goodput")
REFRESHED_MS = 15_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests."""
    with chromium() as found:
        yield found


def start(seen: Watched) -> None:
    """Start a run from the form."""
    page = seen.page
    page.get_by_label("Number of users").fill("8")
    page.get_by_label("Host").fill("http://sglang:30000")
    page.get_by_label("Shape", exact=True).fill("ConcurrencySteps")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("tab", name="LLM", exact=True)).to_be_visible(timeout=REFRESHED_MS)


def until_stage(seen: Watched, stage: str) -> None:
    """Wait until a stage is in the table."""
    row = seen.page.locator('table[aria-label="Stages"] tbody tr', has_text=stage).first
    expect(row).to_be_visible(timeout=60_000)


def three_digits(text: str) -> str:
    """Show a number of stages.csv as the page does; written from docs, not from the page's code."""
    if not text:
        return "–"
    value = float(text)
    size = abs(value)
    decimals = 0 if size >= 99.95 or value == 0 else 1 if size >= 9.995 else 2 if size >= 0.9995 else 3
    return f"{value:,.{decimals}f}"


def test_form_has_our_options_in_groups_without_secrets(browser: Browser, tmp_path: Path) -> None:
    """Each option stands in its group with its help and its default; no key can be typed."""
    with fake_locust(tmp_path) as url, watched(browser, url) as seen:
        page = seen.page
        for group in ("Model", "Prompts", "Load", "Verdict and report", "Limits and connections", "Begin and end"):
            expect(page.get_by_role("button", name=f"LLM: {group}")).to_be_visible()
        expect(page.get_by_label("Input tokens")).to_have_attribute("placeholder", "the shape's, else 1024")
        expect(page.get_by_text("Prompt length in tokens: 1024, 512-2048")).to_be_visible()
        expect(page.get_by_label("Api key")).to_have_count(0)
        page.get_by_label("Shape", exact=True).click()
        expect(page.get_by_role("option", name="RateSteps")).to_be_visible()
        page.keyboard.press("Escape")
        seen.picture("web-form", whole=True)


def test_run_from_the_form_moves_tiles_and_charts_and_ends_as_its_files(browser: Browser, tmp_path: Path) -> None:
    """Start, watch, reload, dark, stop, download: numbers equal stages.csv to the digits shown."""
    with fake_locust(tmp_path, FAKE_SKIP_S="30") as url, watched(browser, url) as seen:
        page = seen.page
        start(seen)
        until_stage(seen, "8 users")
        drawn, shown = {title: seen.drawing(title) for title in CHARTS}, {title: seen.tile(title) for title in TILES}
        until_stage(seen, "32 users")
        assert [title for title in CHARTS if seen.drawing(title) == drawn[title]] == []
        assert [title for title in TILES if seen.tile(title) == shown[title]] == []
        assert seen.tile("Measurement").startswith("✓ VALID")
        expect(page.get_by_label("Progress")).to_contain_text("stage 3 of 4: 32 users")
        seen.picture("web-live")
        with page.expect_response("**/llm/live*") as told:
            page.reload()
        until_stage(seen, "8 users")
        answer = told.value.json()
        assert answer["whole"] is True, "a page that was reloaded is told its past"
        assert len(answer["history"]["points"]) > 120, "all its seconds"
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.locator("header button svg").last.click()
        page.wait_for_function("light => getComputedStyle(document.body).backgroundColor !== light", arg=light)
        seen.picture("web-live-dark")
        page.locator("header button svg").last.click()
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_label("Progress")).to_have_text("stopped", timeout=REFRESHED_MS)
        folder = (tmp_path / "latest").resolve()
        numbers_are_those_of_the_file(seen, folder)
        files_are_those_of_the_master(seen, folder)


def numbers_are_those_of_the_file(seen: Watched, folder: Path) -> None:
    """Compare the stage table with stages.csv, digit by digit."""
    with open(folder / "stages.csv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["phase"] == "steady" and row["name"] == "all"]
    stages = [row for row in rows if row["stage"] != "run"]
    table = seen.cells("Stages")
    assert [cells[0] for cells in table] == [row["stage"] for row in stages]
    for cells, row in zip(table, stages, strict=True):
        columns = (
            "ttft_ms_mean",
            "ttft_ms_p50",
            "ttft_ms_p99",
            "tpot_ms_mean",
            "tpot_ms_p50",
            "tpot_ms_p99",
            "itl_ms_p99",
        )
        assert [cell.rstrip("*") for cell in cells[8:15]] == [three_digits(row[column]) for column in columns]
        assert cells[5:8] == [f"{int(row[c]):,}" for c in ("requests_ok", "requests_failed", "short_outputs")]
        rates = ("request_throughput_per_s", "output_tok_per_s", "input_tok_per_s", "concurrency_mean", "goodput_per_s")
        assert cells[17:22] == [three_digits(row[column]) for column in rates]
        assert cells[1].split()[1] == row["validity"]
    last = stages[-1]
    assert seen.tile("Output") == three_digits(last["output_tok_per_s"])
    assert seen.tile("TTFT") == f"{three_digits(last['ttft_ms_p50'])} / {three_digits(last['ttft_ms_p99'])}"


def files_are_those_of_the_master(seen: Watched, folder: Path) -> None:
    """Download each file from the LLM tab and from Locust's own download tab."""
    page = seen.page
    for name in ("requests.csv", "stages.csv", "timeline.csv", "summary.json", "run.conf"):
        with page.expect_download() as download:
            page.get_by_role("link", name=re.compile(f"^{re.escape(name)}")).click()
        assert Path(download.value.path()).read_bytes() == (folder / name).read_bytes(), name
    page.get_by_role("tab", name="Download Data").click()
    link = page.get_by_role("link", name="LLM: stages.csv")
    with page.expect_download() as download:
        link.click()
    assert Path(download.value.path()).read_bytes() == (folder / "stages.csv").read_bytes()


def test_second_run_and_reset_begin_with_nothing_of_the_first(browser: Browser, tmp_path: Path) -> None:
    """A new run, and the part after a reset, show their own numbers only."""
    with fake_locust(tmp_path, FAKE_SKIP_S="130") as url, watched(browser, url) as seen:
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
        form.get_by_role("button", name="Start", exact=True).click()
        expect(page.get_by_text("20260301-101502_deepseek-r1_ConcurrencySteps", exact=True)).to_be_visible(
            timeout=REFRESHED_MS
        )
        until_stage(seen, "32 users")
        assert len([cells for cells in seen.cells("Stages") if cells[0] == "8 users"]) == 1


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (1920, False), (1920, True)])
def test_nothing_is_cut_off_or_scrolls_sideways(browser: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    """The page is as wide as the window; tables scroll within themselves."""
    with fake_locust(tmp_path, FAKE_SKIP_S="238") as url, watched(browser, url, width=width, dark=dark) as seen:
        start(seen)
        until_stage(seen, "64 users")
        expect(seen.page.get_by_label("Progress")).to_have_text("finished", timeout=REFRESHED_MS)
        assert seen.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        # Of the four looks two are kept for the documentation.
        look = {(1280, False): "1280", (1920, True): "1920-dark"}.get((width, dark))
        if look:
            seen.picture(f"web-llm-{look}", whole=True)
        seen.page.get_by_role("tab", name="LLM distributions").click()
        expect(seen.page.get_by_role("img", name="TTFT against input length")).to_be_visible()
        expect(seen.page.get_by_text("ok requests of the measured windows")).to_be_visible()
        assert seen.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        if look:
            seen.picture(f"web-distributions-{look}", whole=True)


def test_nothing_that_was_sent_is_run_by_the_page(browser: Browser, tmp_path: Path) -> None:
    """Names, labels, models and messages with scripts in them are shown as they are."""
    hostile = {
        "FAKE_STAGE": HOSTILE,
        "FAKE_MODEL": HOSTILE,
        "FAKE_NAMES": f"error={HOSTILE};name={HOSTILE}".replace("=", "=", 1),
    }
    with fake_locust(tmp_path, FAKE_SKIP_S="120", **hostile) as url, watched(browser, url) as seen:
        page = seen.page
        start(seen)
        expect(page.locator('table[aria-label="Failures"]')).to_contain_text(
            "<script>window.hacked=1</script>", timeout=REFRESHED_MS
        )
        for title in ("TTFT", "TTFT, share of requests"):
            chart = page.get_by_role("img", name=title, exact=True)
            chart.scroll_into_view_if_needed()
            chart.hover()
            page.wait_for_timeout(200)
        page.get_by_role("tab", name="LLM distributions").click()
        page.get_by_role("img", name="TTFT by stage").hover()
        page.wait_for_timeout(200)
        assert page.evaluate("window.hacked") is None
        assert page.locator("img[src=x]").count() == 0


def test_page_says_when_the_master_does_not_answer(browser: Browser, tmp_path: Path) -> None:
    """Old numbers are not shown as fresh ones."""
    with fake_locust(tmp_path, FAKE_SKIP_S="40") as url, watched(browser, url) as seen:
        start(seen)
        until_stage(seen, "8 users")
        seen.page.route("**/llm/live*", lambda route: route.fulfill(status=502, body="bad gateway"))
        expect(seen.page.get_by_text("The numbers below are not fresh: the master answered 502.")).to_be_visible(
            timeout=REFRESHED_MS
        )
        seen.page.unroute("**/llm/live*")
        expect(seen.page.get_by_text("not fresh")).to_have_count(0, timeout=REFRESHED_MS)
        seen.problems.clear()
