"""What is kept of a server's error body: its message, at most 200 characters, never an echoed input.

Validation errors repeat the prompt they complain about, so of JSON only the known message fields are
taken; of a page its title or its text; of plain text its beginning.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

LIMIT = 200
READ_BYTES = 65_536
"""Of a page or a plain text no more is looked at."""

_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_HIDDEN = re.compile(r"<(script|style)\b.*?(</\1>|$)|<!--.*?(-->|$)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


def server_message(body: bytes) -> str:
    """Return the message of an error body; empty where there is none that is safe to show."""
    if body.lstrip()[:1] in (b"{", b"["):
        return _shorten(_of_json(body))
    text = body[:READ_BYTES].decode("utf-8", "replace").strip()
    if text.startswith("<"):
        title = _TITLE.search(text)
        text = _TAG.sub(" ", title.group(1) if title else _HIDDEN.sub(" ", text))
    return _shorten(text)


def _of_json(body: bytes) -> str:
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    if not isinstance(value, dict):
        return ""
    for key in ("error", "detail", "message"):
        message = _message(value.get(key))
        if message:
            return message
    return ""


def _message(value: Any) -> str:
    """Read a message field: a text, {"message": text}, or FastAPI's list of {"msg": text}."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return next((value[key] for key in ("message", "msg") if isinstance(value.get(key), str)), "")
    if isinstance(value, list):
        return "; ".join(filter(None, map(_message, (item for item in value if isinstance(item, dict)))))
    return ""


def _shorten(text: str) -> str:
    return " ".join(text.split())[:LIMIT]
