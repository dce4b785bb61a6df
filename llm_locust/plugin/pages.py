"""Builds report.html when a run's files are final: in a process of its own, so that neither the hub nor the memory of a
master, whose web page and workers may go on, has a part in it. And links it from what Locust's `--html` writes.
"""

from __future__ import annotations

import html
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from gevent import subprocess

MOST_S = 300.0
"""A night of a million requests takes half a minute."""
_BODY = re.compile(r"</head>\s*<body>")
_LINK = "report.html: first tokens, tokens, goodput and the verdict of this run"


def build_report(directory: Path, say: Callable[[str], None]) -> None:
    """Wait for report.html; say one sentence where there is none. Never raises: the run has its files without it."""
    command = [sys.executable, "-m", "llm_locust.outputs.report", str(directory)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_S, start_new_session=True)
    except (OSError, subprocess.TimeoutExpired, KeyboardInterrupt) as error:
        reason = "stopped again" if isinstance(error, KeyboardInterrupt) else str(error)
    else:
        if done.returncode == 0:
            return
        reason = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
    say(f"report.html was not written ({reason}); build it by: llm-locust report {directory}")


def link_report(page: Path, report: Path) -> bool:
    """Put a link to `report` at the head of the page that Locust wrote; return whether it is there now.

    Locust (2.47) writes its page before it says that it quits, and has no place in it for others. Raises OSError.
    """
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
