"""Ours beside theirs: one line a figure, and whether they agree as far as they must."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One figure. `allowed` is the largest difference (0: equal to the last one); None: shown, not judged."""

    figure: str
    ours: float
    theirs: float
    allowed: float | None = 0.0
    why: str = ""
    """What lies between the two, where they need not be equal."""

    @property
    def agrees(self) -> bool:
        """Whether the two are close enough."""
        return self.allowed is None or abs(self.ours - self.theirs) <= self.allowed


def time_line(figure: str, ours_ms: float, theirs_ms: float, *, least_ms: float, share: float, why: str) -> Line:
    """Compare two times: they may differ by `share` of theirs, and always by `least_ms`."""
    return Line(f"{figure} (ms)", ours_ms, theirs_ms, max(least_ms, share * theirs_ms), why)


def table(title: str, lines: Sequence[Line]) -> str:
    """Return the lines as a Markdown table under a title."""
    return "\n".join((f"**{title}**", "", *_rows(lines), ""))


def _rows(lines: Sequence[Line]) -> Iterator[str]:
    yield "| figure | ours | server's | difference | allowed | agrees | between them |"
    yield "|---|--:|--:|--:|--:|---|---|"
    for line in lines:
        allowed = "–" if line.allowed is None else _number(line.allowed)
        difference = _number(line.ours - line.theirs)
        verdict = "–" if line.allowed is None else "yes" if line.agrees else "**NO**"
        yield (
            f"| {line.figure} | {_number(line.ours)} | {_number(line.theirs)} | {difference} | {allowed} "
            f"| {verdict} | {line.why} |"
        )


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"
