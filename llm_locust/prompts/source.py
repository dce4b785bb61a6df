"""What a source of prompts is, and the errors it raises before any load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from llm_locust.protocol.types import PromptRequest


class PromptError(ValueError):
    """A dataset that cannot be used; the text names file, line and what would be right."""


class PromptSource(Protocol):
    """Gives the prompt of each request by its index, the same on every worker.

    `size` is the number of different prompts, None where they never repeat. `digest` identifies
    the file's content ('' where there is none). `notes` says what was skipped, and why.
    """

    @property
    def size(self) -> int | None: ...

    @property
    def digest(self) -> str: ...

    @property
    def notes(self) -> tuple[str, ...]: ...

    def prompt(self, index: int) -> PromptRequest:
        """Return the prompt of one request. No index comes twice in a run, the warm-up's included."""
        ...


class StagePrompts(Protocol):
    """The prompts of a stage: an option's, the stage's, or each user class's own."""

    @property
    def named(self) -> PromptSource | None:
        """What option or stage name, for every class; None: each has its own."""
        ...

    def of_class(self, own: PromptSource | None) -> PromptSource:
        """Return what a class with these prompts asks (None: it has none); for the same ones the same object."""
        ...


class TraceSource(PromptSource, Protocol):
    """A source whose requests also have instants: seconds from the first, ascending."""

    @property
    def arrivals_s(self) -> npt.NDArray[np.float64]: ...


class Skipped:
    """The rows of a file that were left out: how many for which reason, and where the first of them are."""

    TOLD = 3

    def __init__(self, path: Path, place: str = "line") -> None:
        self._path, self._place = path, place
        self._counts: Counter[str] = Counter()
        self._places: dict[str, list[int]] = {}

    def add(self, reason: str, place: int) -> None:
        """Count one, at a line (or what else the file consists of)."""
        self._counts[reason] += 1
        places = self._places.setdefault(reason, [])
        if len(places) < self.TOLD:
            places.append(place)

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence a reason."""
        return tuple(
            f"{self._path.name}: {number} row{'s' if number > 1 else ''} skipped: {reason} ({self._where(reason)})"
            for reason, number in sorted(self._counts.items())
        )

    def require(self, rows: Sequence[object] | npt.NDArray[np.int64]) -> None:
        """Refuse a file without a usable row, with the reasons of those that were skipped."""
        if not len(rows):
            often = self._counts.most_common(self.TOLD)
            reasons = "; ".join(f"{number} × {reason}" for reason, number in often) or "it is empty"
            raise PromptError(f"{self._path}: no usable prompt in it ({reasons})")

    def _where(self, reason: str) -> str:
        places = self._places[reason]
        more = ", …" if self._counts[reason] > len(places) else ""
        return f"{self._place}{'s' if len(places) > 1 else ''} {', '.join(map(str, places))}{more}"
