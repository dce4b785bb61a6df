"""How samples are counted for a heat map: logarithmic bins, about twelve a decade, each a whole number of those of the
histogram.

Knows no I/O, no clock and no Locust.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from llm_locust.measure.histogram import BINS, HIGHEST, LOWEST, Histogram

_GROUP = 40
HEAT_BINS = BINS // _GROUP
HEAT_LOWEST_MS = LOWEST / 1e6
HEAT_RATIO = (HIGHEST / LOWEST) ** (1 / HEAT_BINS)
"""Upper edge of a heat bin / lower edge."""


def heat_of(histogram: Histogram | None) -> list[int] | None:
    """Return [first bin that has a sample, its count, the next one's, …]; None without a sample.

    What is below 1 µs is in the lowest bin.
    """
    if histogram is None or not histogram.count:
        return None
    bins, counts, *_ = histogram.encode()
    groups = np.clip((np.frombuffer(bins, "<u2").astype(np.int64) - 1) // _GROUP, 0, HEAT_BINS - 1)
    return told(np.bincount(groups, np.frombuffer(counts, "<u4")))


def heat_bins_ms(values_ms: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the heat bin of each value in ms."""
    ratios: NDArray[np.float64] = np.maximum(values_ms, HEAT_LOWEST_MS) / HEAT_LOWEST_MS
    bins: NDArray[np.int64] = (np.log(ratios) / np.log(HEAT_RATIO)).astype(np.int64)
    return bins.clip(max=HEAT_BINS - 1)


def told(counts: NDArray[np.generic]) -> list[int] | None:
    """Return the counts of all bins from the first that has one; None where none has."""
    used = np.flatnonzero(counts)
    return [int(used[0]), *(int(n) for n in counts[used[0] : used[-1] + 1])] if used.size else None


def heat_cell(histogram: Histogram | None) -> str | None:
    """Return `heat_of` as one cell of a CSV file: numbers with spaces between them."""
    heat = heat_of(histogram)
    return None if heat is None else " ".join(map(str, heat))


def read_heat(cell: str) -> NDArray[np.int64]:
    """Return the counts of all bins from a cell that `heat_cell` made; zeros for an empty one."""
    counts = np.zeros(HEAT_BINS, np.int64)
    if cell:
        first, *numbers = map(int, cell.split(" "))
        counts[first : first + len(numbers)] = numbers[: HEAT_BINS - first]
    return counts
