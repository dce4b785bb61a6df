"""The page that Locust's `--html` writes leads to ours."""

from __future__ import annotations

from pathlib import Path

from llm_locust.plugin.page_link import link_report

LOCUSTS = "<html><head><script>a='<body style=\"x\">'</script></head>\n  <body>\n<div id=root></div></body></html>"


def test_link_leads_from_wherever_the_page_is(tmp_path: Path) -> None:
    """Relative, and quoted: run ids may have any letters."""
    report = tmp_path / "reports" / "20261130_模型 <b>" / "report.html"
    report.parent.mkdir(parents=True)
    report.write_text("ours")
    page = tmp_path / "pages" / "locust.html"
    page.parent.mkdir()
    page.write_text(LOCUSTS)
    assert link_report(page, report)
    text = page.read_text()
    begin, end = LOCUSTS.split("<body>\n")
    assert text.startswith(begin + "<body><p ")
    assert text.endswith(end)
    assert 'href="../reports/20261130_%E6%A8%A1%E5%9E%8B%20%3Cb%3E/report.html"' in text


def test_nothing_is_linked_that_is_not_there(tmp_path: Path) -> None:
    """No page (Locust wrote none), no report, or a page of another make: left as they are."""
    page, report = tmp_path / "locust.html", tmp_path / "report.html"
    assert not link_report(page, report)
    page.write_text(LOCUSTS)
    assert not link_report(page, report)
    report.write_text("ours")
    page.write_text("<html>another</html>")
    assert not link_report(page, report)
    assert page.read_text() == "<html>another</html>"
