"""How a value becomes a cell of a CSV file or a string of a JSON file, and back.

Knows no files. Three rules hold for every text: one record is one line (control characters are drawn, not written),
the file is always valid UTF-8 (a lone surrogate becomes U+FFFD), and no cell is run as a formula by a spreadsheet
(OWASP, "CSV Injection").
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

_FORMULA_STARTS = frozenset("=+-@＝＋－＠'")
"""First characters that get an apostrophe before them; the apostrophe itself, so that reading back is exact."""

_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
_DRAWN = {
    **{code: chr(0x2400 + code) for code in range(0x20)},  # the Control Pictures of Unicode: ␀ … ␊ ␍ …
    0x7F: "␡",
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
    0x2028: "␤",
    0x2029: "␤",
    **_SURROGATES,
}


def drawn(text: str) -> str:
    """Return `text` on one line: control characters as their pictures, what cannot be encoded as U+FFFD."""
    return text if text.isascii() and text.isprintable() else text.translate(_DRAWN)


def encodable(text: str) -> str:
    """Return `text` with each lone surrogate replaced by U+FFFD; JSON escapes all else itself."""
    return text if text.isascii() else text.translate(_SURROGATES)


def text_cell(text: str) -> str:
    """Return the CSV cell of a text: on one line, harmless in a spreadsheet, quoted where RFC 4180 asks for it."""
    text = drawn(text)
    if text[:1] in _FORMULA_STARTS and text:
        text = "'" + text
    if '"' in text or "," in text:
        return '"' + text.replace('"', '""') + '"'
    return text


def unescaped(cell: str) -> str:
    """Take off the apostrophe that `text_cell` put before a text."""
    return cell[1:] if cell[:1] == "'" and cell[1:2] in _FORMULA_STARTS and len(cell) > 1 else cell


def ms_cell(duration_ns: float) -> str:
    """Return a duration in ms with all its ns; exact up to 2**52 ns (52 days)."""
    return f"{duration_ns / 1e6:.6f}" if math.isfinite(duration_ns) else ""


def epoch_cell(epoch_ns: int) -> str:
    """Return an instant in epoch seconds with all its ns (a float would lose the last 200 ns)."""
    return f"{epoch_ns // 1_000_000_000}.{epoch_ns % 1_000_000_000:09d}"


def cell(value: object) -> str:
    """Return the CSV cell of a value that needs no conversion of unit; None and what is not finite are empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return text_cell(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else ""
    return str(value)


def json_bytes(value: object) -> bytes:
    """Encode dataclasses, Structs, builtins and JSON as it is (Raw) as JSON; what is not finite becomes null."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # a lone surrogate somewhere; looking for it costs ten times as much
        return msgspec.json.encode(_encodable(msgspec.to_builtins(value, str_keys=True, enc_hook=msgspec.json.decode)))


def json_document(value: object) -> bytes:
    """Encode as `json_bytes`, indented."""
    return msgspec.json.format(json_bytes(value), indent=2) + b"\n"


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return encodable(value)
    if isinstance(value, dict):
        return {encodable(str(key)): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(item) for item in value]
    return value
