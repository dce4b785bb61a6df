"""report.html in a real Chromium: from the disk, without a network, and no text in it is ever run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from benchmarks.rig.fake_run import HOSTILE, OPEN, SWEEP, FakeRun, FakeStage
from benchmarks.rig.written_run import WrittenRun, written
from llm_locust.outputs import report
from llm_locust.outputs.report import PLACEHOLDER, TEMPLATE, report_document, write_report
from llm_locust.outputs.report_run import load_run
from llm_locust.plugin.pages import build_report
from tests.webui.browser import chromium, needs_chromium, watched

NAME = f"中文-{HOSTILE}</script>\u2028<!--"
SHEET_PX = (1047, 718)
"""A4 on its side, less its margins."""
LABEL = f"<b>8</b> 用户 </script><script>window.hacked=1</script>{HOSTILE}"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests."""
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> WrittenRun:
    """A run in which every text wants to be run."""
    stages = (FakeStage(LABEL, 8, 420, 28, failed_ratio=0.1), *SWEEP[1:])
    return written(
        tmp_path_factory.mktemp("reports"),
        FakeRun(stages, name=NAME, error=NAME),
        model=NAME,
        note=NAME,
        tags={HOSTILE: NAME, "gpus": "8"},
        settings={"extra_body": {"x": NAME}, "price_per_gpu_hour": 2.5},
        server={"model": NAME},
        repeat_command=NAME,
    )


def test_report_when_texts_are_hostile(hostile: WrittenRun) -> None:
    """Between its tags the numbers hold no tag at all, and say what they said."""
    page = write_report(hostile.directory).read_text(encoding="utf-8")
    found = re.search(r'<script id="run" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    assert not set("<>&\u2028\u2029") & set(found[1])
    assert json.loads(found[1])["now"]["run"]["model"] == NAME
    assert HOSTILE not in page


def test_template_when_it_is_looked_at() -> None:
    """The page has one place for the numbers, and names no address that it would fetch from."""
    template = TEMPLATE.read_text(encoding="utf-8")
    assert template.count(PLACEHOLDER) == 1
    head = template.partition("</head>")[0]
    assert "default-src &#39;none&#39;" in head or "default-src 'none'" in head
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", template.partition("<body>")[2])


@needs_chromium
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1920, True)])
def test_report_when_opened_from_the_disk(browser: Browser, hostile: WrittenRun, width: int, dark: bool) -> None:
    """All texts are shown as they are; nothing is run, fetched, or wider than the page."""
    path = write_report(hostile.directory)
    run = load_run(hostile.directory)
    with watched(browser, path.as_uri(), width=width, dark=dark) as seen:
        seen.page.locator("h1").wait_for()
        assert seen.page.locator("h1").inner_text().split() == report_document(run)["verdict"].split()
        assert seen.page.evaluate("window.hacked") is None
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        assert seen.page.evaluate("performance.getEntriesByType('resource').map(r => r.name)") == []
        assert LABEL in {cells[0] for cells in seen.cells("Stages")}
        assert seen.page.locator('[role="img"] svg').count() == 15
        for title in ("TTFT", "TTFT, share of requests", "TTFT by stage"):
            seen.page.get_by_role("img", name=title, exact=True).hover()
        assert seen.page.evaluate("window.hacked") is None
        assert LABEL[:8] in (seen.page.locator('[aria-label="TTFT by stage"] svg').text_content() or "")


@needs_chromium
def test_chart_of_a_report_when_it_is_saved(browser: Browser, tmp_path: Path) -> None:
    """The picture is what the button's words say: SVG."""
    run = written(tmp_path)
    with watched(browser, write_report(run.directory).as_uri()) as seen:
        chart = seen.page.get_by_role("img", name="TTFT", exact=True)
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        assert box is not None
        seen.page.mouse.move(box["x"] + box["width"] - 8, box["y"] + 6)
        assert chart.get_by_text("SVG", exact=True).count() == 1
        with seen.page.expect_download() as download:
            seen.page.mouse.click(box["x"] + box["width"] - 8, box["y"] + 6)
        assert download.value.suggested_filename == "ttft.svg"
        assert Path(download.value.path()).read_text(encoding="utf-8").startswith("<svg")


@needs_chromium
def test_report_when_its_stage_table_is_read(browser: Browser, tmp_path: Path) -> None:
    """Stages that miss are greyed, the best is marked; price and tokens per GPU have their columns."""
    run = written(tmp_path)
    with watched(browser, write_report(run.directory).as_uri()) as seen:
        table = seen.page.locator('table[aria-label="Stages"]').first
        table.wait_for()
        assert table.locator("tr[data-dimmed]").count() == 3
        assert table.locator("tr[data-marked] td").first.inner_text() == "8 users"
        first = run.picture.snapshot.row("8 users")
        assert first is not None
        tok_per_s = float(first.values["output_tok_per_s"] or 0)
        assert seen.cells("Stages")[0][-2:] == [f"{tok_per_s / 32:.1f}", f"{2.5 * 32 * 1e6 / 3600 / tok_per_s:.1f}"]


@needs_chromium
def test_report_when_the_load_was_open(browser: Browser, tmp_path: Path) -> None:
    """Latencies from the schedule have their chart and their lines."""
    run = written(tmp_path, FakeRun(OPEN))
    with watched(browser, write_report(run.directory).as_uri()) as seen:
        seen.page.locator('[aria-label="TTFT from schedule"]').wait_for()
        assert [cells[0] for cells in seen.cells("Stages")][:2] == ["2 req/s", "from schedule"]


@needs_chromium
def test_units_of_a_report_when_its_distributions_are_read(browser: Browser, tmp_path: Path) -> None:
    """TTFT and TPOT are in ms and E2E is in s, as in the table."""
    run = written(tmp_path, FakeRun(OPEN))
    units = {
        "TTFT by stage": "ms (log)",
        "TPOT by stage": "ms (log)",
        "E2E latency by stage": "s (log)",
        "TTFT against input length": "ms",
        "E2E latency against output length": "s",
    }
    with watched(browser, write_report(run.directory).as_uri()) as seen:
        for title, unit in units.items():
            expect(seen.page.get_by_role("img", name=title).get_by_text(unit, exact=True)).to_be_visible()


@needs_chromium
def test_report_when_printed(browser: Browser, tmp_path: Path) -> None:
    """On paper it is light, A4 on its side, and a few sheets; its charts are drawn for the sheet before."""
    run = written(tmp_path)
    with watched(browser, write_report(run.directory).as_uri(), dark=True) as seen:
        seen.page.locator("h1").wait_for()
        seen.page.evaluate(
            "addEventListener('beforeprint', () => { window.drawn = document.documentElement.className })"
        )
        paper = seen.page.pdf(prefer_css_page_size=True)
        assert seen.page.evaluate("[window.drawn, document.documentElement.className]") == ["on-paper", ""]
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", paper)
    assert {(round(float(w)), round(float(h))) for w, h in boxes} in ({(842, 595)}, {(842, 596)}, {(841, 595)})
    assert 5 <= len(re.findall(rb"/Type /Page\b", paper)) <= 20


SCALES = """() => [...document.querySelectorAll('[role="img"] svg')].map(
  svg => [svg.getBoundingClientRect().width / svg.viewBox.baseVal.width, svg.parentElement.offsetWidth])"""
BREAKS = """() => [...document.querySelectorAll('.MuiTableContainer-root')].map(
  table => [table.querySelectorAll('tr').length, getComputedStyle(table).breakInside])"""


@needs_chromium
@pytest.mark.parametrize("width", [800, 1280, 1920])
def test_charts_of_a_report_when_printed(browser: Browser, tmp_path: Path, width: int) -> None:
    """Words are of one size in all charts, whatever the window; every stage has its line in one key; afterwards all
    is as before.
    """
    stages = tuple(FakeStage(f"{n} users", n, 400 + 20 * n, 28, seconds=20) for n in range(1, 25))
    run = written(tmp_path, FakeRun(stages))
    with watched(browser, write_report(run.directory).as_uri(), width=width) as seen:
        page, key = seen.page, seen.page.locator(".key")
        page.locator("h1").wait_for()
        before = page.evaluate(SCALES)
        assert not key.is_visible()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.set_viewport_size({"width": SHEET_PX[0], "height": SHEET_PX[1]})
        page.emulate_media(media="print")
        assert {round(scale, 1) for scale, _ in page.evaluate(SCALES)} == {0.8}
        assert key.locator("span").all_inner_texts() == [stage.label for stage in stages]
        assert page.evaluate("document.documentElement.scrollWidth") <= SHEET_PX[0]
        assert all(rows > 24 or kept == "avoid" for rows, kept in page.evaluate(BREAKS))
        page.emulate_media(media="screen")
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert not key.is_visible()
        assert page.evaluate(SCALES) == before


@needs_chromium
def test_names_of_points_when_they_are_close(browser: Browser, tmp_path: Path) -> None:
    """A name that would lie on another one is left out."""
    stages = tuple(FakeStage(f"{n} users", n, 400 + 20 * n, 28, seconds=20) for n in range(1, 25))
    run = written(tmp_path, FakeRun(stages))
    with watched(browser, write_report(run.directory).as_uri()) as seen:
        texts = seen.page.locator('[aria-label="TTFT against throughput"] svg text', has_text=" users")
        texts.first.wait_for()
        boxes = [box for text in texts.all() if (box := text.bounding_box()) is not None]
    assert len(boxes) > 1
    for n, one in enumerate(boxes):
        for other in boxes[:n]:
            beside = abs(one["x"] - other["x"]) >= min(one["width"], other["width"]) - 1
            assert beside or abs(one["y"] - other["y"]) >= min(one["height"], other["height"]) - 4


def test_write_report_when_the_disk_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One sentence, never OSError; a page that was there stays."""
    run = written(tmp_path)
    write_report(run.directory)
    before = (run.directory / "report.html").read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "replace_file", full)
    with pytest.raises(ValueError, match="No space left on device"):
        write_report(run.directory)
    assert (run.directory / "report.html").read_bytes() == before
    with pytest.raises(ValueError, match="no run there"):
        write_report(tmp_path)


def test_build_report_when_there_is_no_run(tmp_path: Path) -> None:
    """The end of a run goes on; one sentence says what to do."""
    said: list[str] = []
    build_report(tmp_path, said.append)
    (sentence,) = said
    assert sentence.startswith("report.html was not written (")
    assert sentence.endswith(f"build it by: llm-locust report {tmp_path}")
