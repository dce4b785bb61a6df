"""Counters, extremes and distributions of one cell, mergeable in any order.

Knows no I/O and no clock. Counters add, lows take the lesser, highs the greater, histograms merge:
merging is associative and commutative, so it does not matter in which pieces reports arrive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from llm_locust.measure.histogram import Histogram
from llm_locust.measure.timeline import Gaps

Encoded = list[Any]
"""Counters, lows, highs, histograms; each as [names, values]: builtins for msgpack."""


class Tally:
    """What was counted in one cell. An absent counter is 0."""

    __slots__ = ("counts", "highs", "histograms", "lows")

    def __init__(self) -> None:
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.lows: dict[str, int] = {}
        self.highs: dict[str, int] = {}
        self.histograms: dict[str, Histogram] = {}

    def __bool__(self) -> bool:
        """Say whether anything was counted."""
        return bool(self.lows or self.highs or self.histograms or any(self.counts.values()))

    def low(self, key: str, value: int) -> None:
        """Keep the lesser."""
        self.lows[key] = min(value, self.lows.get(key, value))

    def high(self, key: str, value: int) -> None:
        """Keep the greater."""
        self.highs[key] = max(value, self.highs.get(key, value))

    def sample(self, key: str, value: float | None) -> None:
        """Add one sample; None is absent and adds nothing."""
        if value is not None:
            self.histogram(key).add(value)

    def samples(self, key: str, values: Gaps) -> None:
        """Add many samples."""
        if len(values):
            self.histogram(key).fill(values)

    def histogram(self, key: str) -> Histogram:
        """Return the distribution of this name, a new one where there was none."""
        found = self.histograms.get(key)
        if found is None:
            found = self.histograms[key] = Histogram()
        return found

    def merge(self, other: Tally) -> None:
        """Add what another cell counted."""
        self._merge_numbers(other.counts.items(), other.lows.items(), other.highs.items())
        for key, histogram in other.histograms.items():
            self.histogram(key).merge(histogram)

    def encode(self) -> Encoded:
        """Return everything as builtins, in one order for equal contents."""
        counts = sorted((key, n) for key, n in self.counts.items() if n)
        histograms = sorted((key, found.encode()) for key, found in self.histograms.items())
        return [_columns(part) for part in (counts, sorted(self.lows.items()), sorted(self.highs.items()), histograms)]

    def merge_encoded(self, encoded: Encoded) -> None:
        """Add what `encode` gave."""
        counts, lows, highs, histograms = (zip(*part, strict=True) for part in encoded)
        self._merge_numbers(counts, lows, highs)
        for key, samples in histograms:
            self.histogram(key).merge_encoded(samples)

    def _merge_numbers(
        self,
        counts: Iterable[tuple[str, int]],
        lows: Iterable[tuple[str, int]],
        highs: Iterable[tuple[str, int]],
    ) -> None:
        for key, n in counts:
            self.counts[key] += n
        for key, value in lows:
            self.low(key, value)
        for key, value in highs:
            self.high(key, value)


def _columns(pairs: list[tuple[str, Any]]) -> list[list[Any]]:
    return [[key for key, _ in pairs], [value for _, value in pairs]]
