"""Texts that others send: nothing in them is ever run, and every script of the world is shown as it is."""

from __future__ import annotations

import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from benchmarks.rig.fake_run import HOSTILE
from tests.webui.browser import CHROMIUM, FLAGS, ROOT, Watched, fake_locust, locust, needs_chromium, watched
from tests.webui.steps import CHARTS, REFRESHED_MS, start, until_stage

WORST = f"</script>{HOSTILE}{{{{7*7}}}}${{7*7}} javascript:window.hacked=1"
CHINESE: dict[str, Any] = {
    "label": "八个用户",
    "name": "多轮对话",
    "error": "队列已满，请稍后再试",
    "finish": "长度上限",
    "facts": {"model": "深度求索-R1", "note": "两节点，张量并行 16", "tags": {"部署": "甲"}},
}
ONLY_LATIN = """<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><include>/etc/fonts/fonts.conf</include>
<selectfont><rejectfont><glob>*CJK*</glob></rejectfont></selectfont>
<cachedir>{cache}</cachedir></fontconfig>"""


@needs_chromium
def test_nothing_that_was_sent_is_run_by_the_page(browser: Browser, tmp_path: Path) -> None:
    """Names, labels, models, messages and finish reasons with scripts in them are shown as they are."""
    told = {"model": WORST, "note": WORST, "shape": WORST, "tags": {WORST: WORST}, "host": WORST}
    run = fake_locust(tmp_path, 120, label=WORST, name=WORST, error=WORST, finish=WORST, facts=told)
    with run as url, watched(browser, url) as seen:
        page = seen.page
        start(seen)
        expect(page.locator('table[aria-label="Failures"]')).to_contain_text(WORST, timeout=REFRESHED_MS)
        for table in ("Stages", "Outcomes"):
            expect(page.locator(f'table[aria-label="{table}"]')).to_contain_text(WORST)
        for title in CHARTS:
            chart = page.get_by_role("img", name=title, exact=True)
            chart.scroll_into_view_if_needed()
            chart.hover()
            page.wait_for_timeout(100)
        page.get_by_text("with warm-up and ramp").click()
        page.get_by_role("tab", name="LLM distributions").click()
        page.get_by_role("img", name="TTFT by stage").hover()
        page.wait_for_timeout(200)
        assert page.evaluate("window.hacked") is None
        assert page.locator("img[src=x], a[href^='javascript:'], #root script").count() == 0


@needs_chromium
def test_options_with_scripts_stay_words_in_the_form(browser: Browser, tmp_path: Path) -> None:
    """What was given on the command line is in the page's own script, and ends neither it nor a field."""
    given = ("--llm-note", WORST, "--llm-model", WORST, "--llm-tag", f"gpu={WORST}", "--llm-name", WORST)
    flags = ("-f", str(ROOT / "locustfiles/llm.py"), "--llm-out", str(tmp_path))
    with locust(*flags, *given) as url, watched(browser, url) as seen:
        page = seen.page
        page.get_by_role("button", name="LLM: Verdict and report").click()
        for label in ("Note", "Model", "Name"):
            expect(page.get_by_label(label, exact=True)).to_have_value(WORST)
        assert page.evaluate("window.hacked") is None
        assert page.locator("img[src=x]").count() == 0


def test_secrets_are_in_no_answer_of_the_master(tmp_path: Path) -> None:
    """Keys, header values and passwords of options are in none of the pages, whoever asks."""
    secret = "sk-f00dfeed"
    (tmp_path / "key").write_text(f"{secret}-file\n")
    flags = ("-f", str(ROOT / "locustfiles/llm.py"), "--llm-out", str(tmp_path / "out"), "--host", "http://127.0.0.1:9")
    given = {
        "--llm-header": f"X-Token: {secret}-header",
        "--llm-extra-body": f'{{"api_key": "{secret}-body"}}',
        "--llm-proxy": f"http://me:{secret}-proxy@127.0.0.1:9",
        "--llm-api-key-file": str(tmp_path / "key"),
    }
    options = [part for pair in given.items() for part in pair]
    with locust(*flags, *options, OPENAI_API_KEY=f"{secret}-environment") as url:
        for path in ("", "llm/live", "llm/distributions", "stats/requests", "tasks", "logs", "exceptions"):
            with urllib.request.urlopen(url + path, timeout=10) as answer:
                assert secret not in answer.read().decode(), path


@contextmanager
def without_cjk(browser: Browser, folder: Path) -> Iterator[Browser]:
    """Give a Chromium that finds no font with Chinese characters."""
    config = folder / "fonts.conf"
    config.write_text(ONLY_LATIN.format(cache=folder / "cache"))
    other = browser.browser_type.launch(
        executable_path=str(CHROMIUM), args=list(FLAGS), env={"FONTCONFIG_FILE": str(config)}
    )
    yield other
    other.close()


def has_cjk_font() -> bool:
    """Whether fontconfig knows Noto's Chinese fonts."""
    if shutil.which("fc-list") is None:
        return False
    listed = subprocess.run(["fc-list", ":lang=zh-cn", "family"], capture_output=True, text=True)
    return "Noto Sans CJK" in listed.stdout


def fonts_of(seen: Watched, selector: str) -> dict[str, int]:
    """Return which fonts draw an element, with their numbers of glyphs."""
    session = seen.page.context.new_cdp_session(seen.page)
    for domain in ("DOM", "CSS"):
        session.send(f"{domain}.enable")
    root = session.send("DOM.getDocument")["root"]["nodeId"]
    node = session.send("DOM.querySelector", {"nodeId": root, "selector": selector})["nodeId"]
    fonts = session.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
    return {font["familyName"]: font["glyphCount"] for font in fonts}


@needs_chromium
@pytest.mark.parametrize("installed", [True, False], ids=["with", "without"])
def test_chinese_is_shown_with_and_without_a_font_for_it(browser: Browser, tmp_path: Path, installed: bool) -> None:
    """Names, notes and errors are there to read or to copy; the page keeps its form where glyphs are missing."""
    if installed and not has_cjk_font():
        pytest.skip("no Noto Sans CJK here: install fonts-noto-cjk")
    out = tmp_path / "out"
    out.mkdir()
    with fake_locust(out, 120, **CHINESE) as url:
        if installed:
            chinese_is_shown(browser, url, installed)
        else:
            with without_cjk(browser, tmp_path) as other:
                chinese_is_shown(other, url, installed)


def chinese_is_shown(browser: Browser, url: str, installed: bool) -> None:
    """Look at each text, at the fonts that draw it, and at the width of the page."""
    with watched(browser, url) as seen:
        page = seen.page
        start(seen)
        until_stage(seen, "八个用户")
        for text in ("深度求索-R1 · ConcurrencySteps · 部署=甲 · 两节点，张量并行 16", "队列已满，请稍后再试"):
            expect(page.get_by_text(text, exact=True)).to_be_visible(timeout=REFRESHED_MS)
        expect(page.locator('table[aria-label="Outcomes"]')).to_contain_text("长度上限=")
        fonts = fonts_of(seen, 'table[aria-label="Stages"] tbody td')
        assert any("CJK" in family for family in fonts) == installed, fonts
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        page.get_by_role("tab", name="LLM distributions").click()
        expect(page.get_by_role("img", name="TTFT by stage")).to_be_visible()
