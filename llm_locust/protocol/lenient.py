"""Read JSON that servers really send: odd types, lone surrogates, bytes that are no UTF-8.

Never raises on a value of a wrong type: what is not of the wanted type is absent. The hot path
does not come here.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

MAX_TEXT = 200
"""Characters kept of a server's message, finish reason or id."""

_ECHO = re.compile(r"""[,\s]*(?:['"]input['"]\s*:|\binput_value=).*""", re.DOTALL)
"""Where a validation message begins to repeat the request (pydantic's two spellings)."""

_UNNAMED_ERROR = "the server named no reason"


def decode_json(payload: bytes) -> Any:
    """Decode one JSON value; raises ValueError where there is none.

    Lone surrogate escapes and, as WHATWG has it, bytes that are no UTF-8 are not errors.
    """
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    try:
        return json.loads(payload.decode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def encodable(text: str) -> str:
    """Join surrogate pairs that two events shared, and replace lone halves by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def as_text(value: object) -> str:
    """Return a string as it is, anything else as the empty string."""
    return value if isinstance(value, str) else ""


def as_label(value: object) -> str | None:
    """Return a short printable string (an id, a finish reason); None where there is none."""
    return encodable(value[:MAX_TEXT]) if isinstance(value, str) and value else None


def as_mapping(value: object) -> dict[str, Any]:
    """Return a JSON object, anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def as_mappings(value: object) -> list[dict[str, Any]]:
    """Return the objects of a JSON array."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def as_count(value: object) -> int | None:
    """Return a token count that may have come as a number or as digits; None where it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and 0 <= value < 2**63 else None


def as_arguments(value: object) -> str:
    """Return a tool call's arguments as JSON text; some servers send them as an object."""
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else as_text(value)


def server_message(body: bytes) -> str:
    """Return the message of an error body, at most 200 characters, without any echoed input.

    Empty where the body is not JSON or holds no message: pages and plain text are not kept.
    """
    try:
        value = decode_json(body)
    except ValueError:
        return ""
    value = as_mapping(value)
    return _message(value) or _clean(as_text(value.get("message")))


def stated_error(event: dict[str, Any], event_type: bytes = b"") -> str | None:
    """Return the message of an event that is an error, else None. ``"error": null`` is none."""
    if event.get("error"):
        return _message(event) or _UNNAMED_ERROR
    if event_type == b"error" or event.get("object") == "error" or event.get("type") == "error":
        return _clean(as_text(event.get("message"))) or _message(event) or _UNNAMED_ERROR
    return None


def _message(value: dict[str, Any]) -> str:
    """Find the message in the shapes that servers give an error."""
    error = value.get("error")
    if isinstance(error, str):
        return _clean(error)
    nested = as_mapping(error)
    for key in ("message", "detail", "error"):
        if isinstance(nested.get(key), str):
            return _clean(nested[key])
    detail = value.get("detail")
    if isinstance(detail, str):
        return _clean(detail)
    return _clean("; ".join(as_text(item.get("msg")) for item in as_mappings(detail)))


def _clean(text: str) -> str:
    """Cut a message before an echo of the request, to one line and to its limit."""
    return encodable(" ".join(_ECHO.sub("", text).split())[:MAX_TEXT])
