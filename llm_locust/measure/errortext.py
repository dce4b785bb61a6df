"""What is kept of an error's body: its message, at most 200 characters, never an echoed input.

Validation errors repeat the prompt they complain about, so of JSON only the known message fields are
taken (the protocol knows them); of a page its title or its text; of plain text its beginning.
"""

from __future__ import annotations

import re

from llm_locust.protocol import server_message

LIMIT = 200
READ_BYTES = 65_536
"""Of a page or a plain text no more is looked at."""

_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_HIDDEN = re.compile(r"<(script|style)\b.*?(</\1>|$)|<!--.*?(-->|$)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


def body_message(body: bytes) -> str:
    """Return the message of a body that is no answer; empty where there is none that is safe to show."""
    if body.lstrip()[:1] in (b"{", b"["):
        return server_message(body)
    text = body[:READ_BYTES].decode("utf-8", "replace").strip()
    if text.startswith("<"):
        title = _TITLE.search(text)
        text = _TAG.sub(" ", title.group(1) if title else _HIDDEN.sub(" ", text))
    return one_line(text)


def one_line(text: str) -> str:
    """Return a text as one line of at most LIMIT characters."""
    return " ".join(text.split())[:LIMIT]
