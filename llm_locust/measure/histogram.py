"""A mergeable histogram with a stated error: logarithmic bins, relative error at most 0.25 %.

Knows no I/O and no clock. Values are integers in millionths of what is shown: nanoseconds for a
latency in ms. The bins cover 1 us to 24 h; what is below 1 us is 0, what is 24 h or more shares one
bin that is clamped to the maximum. Count, sum, minimum and maximum are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import boost_histogram as bh
import numpy as np
from numpy.typing import NDArray

LOWEST = 1_000
"""Values below it form the zero bin (1 us)."""
HIGHEST = 86_400_000_000_000
"""Values from it on form the overflow bin (24 h)."""
BINS = 5120
"""Neighbouring edges differ by 0.49 %, so a bin's middle is at most 0.246 % off: 0.12 ms of 50 ms."""
PENDING_LIMIT = 256
"""Single values are binned in batches: filling 256 costs little more than filling one."""
WAITING_LIMIT = 4096
"""The same for whole arrays of them: so many values are binned at once, in about 0.2 ms."""

GROWTH_BINS = 128
"""Bins are made in groups of so many: only the range that has samples takes memory, about 1 KB a metric."""

_AXIS = bh.axis.Regular(BINS, LOWEST, HIGHEST, transform=bh.axis.transform.log)
_EDGES: NDArray[np.float64] = _AXIS.edges
_MIDDLES: list[float] = [0.0, *((_EDGES[:-1] + _EDGES[1:]) / 2).tolist(), math.inf]
_NO_BINS: NDArray[np.int64] = np.empty(0, np.int64)

Encoded = list[Any]
"""[bins as u2 bytes, counts as u4 bytes, count, sum, minimum, maximum]: builtins for msgpack."""


class Histogram:
    """Samples of one metric. Bin 0 is that of zeros, the last one that of the overflow."""

    __slots__ = ("_bins", "_count", "_first", "_maximum", "_minimum", "_pending", "_sum", "_waiting", "_waiting_size")

    def __init__(self) -> None:
        self._bins = _NO_BINS
        self._first = 0
        self._pending: list[int] = []
        self._waiting: list[NDArray[np.int64]] = []
        self._waiting_size = 0
        self._count = 0
        self._sum = 0
        self._minimum = 0
        self._maximum = 0

    def add(self, value: float) -> None:
        """Take one value. Raises ValueError for NaN, an infinite or a negative one."""
        if not 0 <= value < math.inf:
            raise ValueError(f"not a duration: {value}")
        self._pending.append(round(value))
        if len(self._pending) >= PENDING_LIMIT:
            self._settle()

    def fill(self, values: NDArray[Any] | Sequence[float]) -> None:
        """Take many values at once: an array stays as it is from here on. Raises ValueError when one is NaN, infinite
        or negative.
        """
        given = np.asarray(values)
        if given.size == 0:
            return
        if given.dtype.kind == "f":
            if not np.isfinite(given).all():
                raise ValueError("not a duration: nan or inf")
            given = np.rint(given)
        whole = given.astype(np.int64, copy=False)
        if whole.min() < 0:
            raise ValueError(f"not a duration: {whole.min()}")
        self._waiting.append(whole)
        self._waiting_size += whole.size
        if self._waiting_size >= WAITING_LIMIT:
            self._settle()

    @property
    def count(self) -> int:
        """Number of samples."""
        self._settle()
        return self._count

    @property
    def total(self) -> int:
        """Exact sum of the samples."""
        self._settle()
        return self._sum

    @property
    def mean(self) -> float | None:
        """Exact mean; None without a sample."""
        self._settle()
        return self._sum / self._count if self._count else None

    @property
    def minimum(self) -> int | None:
        """Exact least sample; None without one."""
        self._settle()
        return self._minimum if self._count else None

    @property
    def maximum(self) -> int | None:
        """Exact greatest sample; None without one."""
        self._settle()
        return self._maximum if self._count else None

    def quantile(self, q: float) -> float | None:
        """Return the nearest-rank quantile: its bin's middle clamped to [min, max], at the last rank the max itself.

        None without a sample. (So a p99 of fewer than 100 samples is exact, and never below their mean.)
        """
        return self.quantiles((q,))[0]

    def quantiles(self, qs: Sequence[float]) -> list[float | None]:
        """Return several quantiles for the price of one walk over the bins."""
        self._settle()
        if not self._count:
            return [None] * len(qs)
        reached = self._bins.cumsum()
        ranks = [max(1, math.ceil(q * self._count)) for q in qs]
        bins = (reached.searchsorted(ranks) + self._first).tolist()
        return [
            self._maximum if rank == self._count else min(max(_MIDDLES[i], self._minimum), self._maximum)
            for i, rank in zip(bins, ranks, strict=True)
        ]

    def merge(self, other: Histogram) -> None:
        """Add the samples of another histogram."""
        other._settle()
        if not other._count:
            return
        self._settle()
        self._note(other._count, other._sum, other._minimum, other._maximum)
        self._cover(other._first, other._first + other._bins.size - 1)
        start = other._first - self._first
        self._bins[start : start + other._bins.size] += other._bins

    def encode(self) -> Encoded:
        """Return the samples as builtins; only bins that hold something."""
        self._settle()
        if not self._count:
            return [b"", b"", 0, 0, 0, 0]
        bins = np.flatnonzero(self._bins)
        counts = self._bins[bins]
        return [
            (bins + self._first).astype("<u2").tobytes(),
            counts.astype("<u4").tobytes(),
            self._count,
            self._sum,
            self._minimum,
            self._maximum,
        ]

    def merge_encoded(self, encoded: Encoded) -> None:
        """Add samples that `encode` gave."""
        bins, counts, count, total, minimum, maximum = encoded
        if not count:
            return
        self._settle()
        self._note(count, total, minimum, maximum)
        places = np.frombuffer(bins, "<u2").astype(np.int64)
        self._cover(int(places[0]), int(places[-1]))
        self._bins[places - self._first] += np.frombuffer(counts, "<u4")

    def _note(self, count: int, total: int, minimum: int, maximum: int) -> None:
        self._minimum = min(self._minimum, minimum) if self._count else minimum
        self._maximum = max(self._maximum, maximum) if self._count else maximum
        self._count += count
        self._sum += total

    def _settle(self) -> None:
        """Bin what waits."""
        if self._pending:
            self._waiting.append(np.array(self._pending, np.int64))
            self._pending.clear()
        if not self._waiting:
            return
        values = np.concatenate(self._waiting)
        self._waiting.clear()
        self._waiting_size = 0
        values[values < LOWEST] = 0
        self._note(values.size, int(values.sum()), int(values.min()), int(values.max()))
        bins = np.asarray(_AXIS.index(values), np.int64) + 1  # type: ignore[arg-type]  # its stub knows no arrays
        self._cover(int(bins.min()), int(bins.max()))
        self._bins += np.bincount(bins - self._first, minlength=self._bins.size)

    def _cover(self, least: int, most: int) -> None:
        """Make bins from `least` to `most`."""
        size = self._bins.size
        if size and self._first <= least and most < self._first + size:
            return
        first, end = least // GROWTH_BINS * GROWTH_BINS, (most // GROWTH_BINS + 1) * GROWTH_BINS
        before, before_first = self._bins, self._first
        if size:
            first, end = min(first, before_first), max(end, before_first + size)
        self._bins, self._first = np.zeros(end - first, np.int64), first
        if size:
            self._bins[before_first - first :][:size] = before
