"""How a number looks on a screen: thousands separators, about three digits, `–` for absent. Files are exact."""

from __future__ import annotations

from llm_locust.measure.rows import Value

ABSENT = "–"
FEW = 100
"""A p99 of fewer samples is marked: it is the largest of them, or nearly."""


def count(value: Value) -> str:
    """Return a number of things."""
    return f"{value:,.0f}" if isinstance(value, int | float) else ABSENT


def three_digits(value: Value) -> str:
    """Return about three digits: 0.402, 5.29, 52.9, 529, 5,288; a whole number as it is."""
    if not isinstance(value, int | float):
        return ABSENT
    if isinstance(value, int):
        return f"{value:,}"
    size = abs(value)
    decimals = 0 if size >= 99.95 or value == 0 else 1 if size >= 9.995 else 2 if size >= 0.9995 else 3
    return f"{value:,.{decimals}f}"


def seconds(value_ms: Value) -> str:
    """Return a duration given in ms in seconds."""
    return three_digits(value_ms / 1000) if isinstance(value_ms, int | float) else ABSENT


def span(duration_s: float) -> str:
    """Return a duration as people say it: 45s, 3m20s, 2h05m."""
    whole = max(0, round(duration_s))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"
