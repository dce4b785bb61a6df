"""Links report.html from the page that Locust's own `--html` writes."""

from __future__ import annotations

import html
import logging
import os
import re
from pathlib import Path
from urllib.parse import quote

logger = logging.getLogger(__name__)

_BODY = re.compile(r"</head>\s*<body>")
_LINK = "report.html: first tokens, tokens, goodput and the verdict of this run"


def link_report(page: Path, report: Path) -> bool:
    """Put a link to `report` at the head of the page that Locust wrote; return whether it is there now. Never raises.

    Locust (2.47) writes its page before it says that it quits, and has no place in it for others.
    """
    try:
        return _linked(page, report)
    except OSError as error:
        logger.warning("llm-locust: %s has no link to report.html: %s", page, error)
        return False


def _linked(page: Path, report: Path) -> bool:
    if not page.is_file() or not report.is_file():
        return False
    text = page.read_text(encoding="utf-8")
    body = _BODY.search(text)
    if body is None:
        return False
    address = html.escape(quote(Path(os.path.relpath(report, page.parent)).as_posix()))
    link = f'<p style="margin:0;padding:12px 24px;font-family:sans-serif"><a style="color:inherit" href="{address}">'
    page.write_text(f"{text[: body.end()]}{link}{_LINK}</a></p>{text[body.end() :]}", encoding="utf-8")
    return True
