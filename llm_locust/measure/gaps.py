"""Mean and coefficient of variation of the gaps between consecutive starts, in constant memory.

Knows no I/O and no clock. Starts come second by second, those of all workers together, in any order
within the second.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np


@dataclass(slots=True)
class GapStatistics:
    """Sums over the gaps so far; exact integers in microseconds."""

    last_us: int | None = None
    count: int = 0
    sum_us: int = 0
    sum_of_squares: int = 0

    def add_second(self, epoch_s: int, offsets_us: Sequence[int]) -> None:
        """Add the starts of the next second that has any."""
        if not offsets_us:
            return
        at_us = np.sort(np.asarray(offsets_us, np.int64)) + epoch_s * 1_000_000
        gaps = np.diff(at_us) if self.last_us is None else np.diff(at_us, prepend=self.last_us)
        # A start that came after its second was folded gives no gap of its own.
        gaps = np.maximum(gaps, 0)
        self.last_us = max(int(at_us[-1]), self.last_us or 0)
        self.count += gaps.size
        self.sum_us += int(gaps.sum())
        self.sum_of_squares += sum(gap * gap for gap in gaps.tolist())

    @property
    def mean_ms(self) -> float | None:
        """Mean gap; None without one."""
        return self.sum_us / self.count / 1e3 if self.count else None

    @property
    def variation(self) -> float | None:
        """Standard deviation / mean; None with fewer than two gaps."""
        if self.count < 2 or not self.sum_us:
            return None
        variance = (self.count * self.sum_of_squares - self.sum_us**2) / (self.count * (self.count - 1))
        return math.sqrt(variance) / (self.sum_us / self.count)

    def copy(self) -> GapStatistics:
        """Return an independent copy."""
        return replace(self)
