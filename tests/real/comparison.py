"""Ours beside theirs: one line a figure, and whether they agree as far as they must."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One figure. `allowed` is the largest difference (0: equal to the last one); None: shown, not judged.

    `early` is how much less ours may be, where that is not the same.
    """

    figure: str
    ours: float
    theirs: float
    allowed: float | None = 0.0
    why: str = ""
    """What lies between the two, where they need not be equal."""
    early: float | None = None

    @property
    def agrees(self) -> bool:
        """Whether the two are close enough."""
        if self.allowed is None:
            return True
        early = self.allowed if self.early is None else self.early
        return -early <= self.ours - self.theirs <= self.allowed


def gap_line(figure: str, ours_ms: float, theirs_ms: float) -> Line:
    """Compare times between tokens: the ways of the first and of the last event cancel out, but for their spread."""
    return Line(f"{figure} (ms)", ours_ms, theirs_ms, max(0.3, 0.05 * theirs_ms), "spread of the events' ways")


def way_line(figure: str, ours_ms: float, theirs_ms: float, gap_ms: float) -> Line:
    """Compare times from the request on. Ours hold the ways to and from the engine, where the server's clock stands.

    A server reads requests that come together one after the other, between the steps of its engine: ours may be longer
    by a few token gaps. Never shorter: no token is here before the engine had it.
    """
    why = "HTTP before the server's clock starts, the event's way after"
    return Line(f"{figure} (ms)", ours_ms, theirs_ms, max(15.0, 4 * gap_ms), why, early=1.0)


def table(title: str, lines: Sequence[Line]) -> str:
    """Return the lines as a Markdown table under a title."""
    return "\n".join((f"**{title}**", "", *_rows(lines), ""))


def _rows(lines: Sequence[Line]) -> Iterator[str]:
    yield "| figure | ours | expected or server's | difference | allowed | agrees | between them |"
    yield "|---|--:|--:|--:|--:|---|---|"
    for line in lines:
        allowed = "–" if line.allowed is None else _number(line.allowed)
        if line.early is not None:
            allowed = f"−{_number(line.early)} … {allowed}"
        difference = _number(line.ours - line.theirs)
        verdict = "–" if line.allowed is None else "yes" if line.agrees else "**NO**"
        yield (
            f"| {line.figure} | {_number(line.ours)} | {_number(line.theirs)} | {difference} | {allowed} "
            f"| {verdict} | {line.why} |"
        )


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3f}"
