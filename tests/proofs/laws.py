"""The laws of arrivals as mathematics: distribution functions of the gaps, and the Kolmogorov–Smirnov test.

Written apart from `llm_locust.load.arrivals`, which it judges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Gaps = NDArray[np.float64]


def exponential(mean_s: float) -> Callable[[float], float]:
    """The distribution function of a Poisson law's gaps."""
    return lambda gap_s: 1.0 - math.exp(-gap_s / mean_s)


def gamma(mean_s: float, cv: float) -> Callable[[float], float]:
    """The distribution function of gamma gaps with this coefficient of variation: P(1/cv², gap / (mean · cv²))."""
    shape = 1.0 / cv**2
    return lambda gap_s: _lower_gamma(shape, gap_s / (mean_s * cv**2))


def _lower_gamma(shape: float, x: float) -> float:
    """The regularized lower incomplete gamma function by its power series (Abramowitz and Stegun 6.5.29)."""
    if x <= 0:
        return 0.0
    term = total = 1.0 / shape
    n = shape
    while term > total * 1e-12:
        n += 1
        term *= x / n
        total += term
    return min(total * math.exp(shape * math.log(x) - x - math.lgamma(shape)), 1.0)


def ks_p_value(
    samples: Sequence[float] | Gaps, distribution: Callable[[float], float], resolution: float = 0.0
) -> tuple[float, float]:
    """Return (distance, p value) of the one-sample Kolmogorov–Smirnov test (Stephens' correction for small n).

    The functions are compared from ``resolution`` on: what is shorter is known to be shorter, not how short.
    """
    ordered = np.sort(np.asarray(samples))
    n = len(ordered)
    seen = ordered >= resolution
    expected = np.array([distribution(float(value)) for value in ordered])
    above = float(np.max((np.arange(1, n + 1) / n - expected)[seen]))
    below = float(np.max((expected - np.arange(n) / n)[seen]))
    distance = max(above, below)
    scaled = distance * (math.sqrt(n) + 0.12 + 0.11 / math.sqrt(n))
    p = 2 * sum((-1) ** (k - 1) * math.exp(-2 * (k * scaled) ** 2) for k in range(1, 101))
    return distance, min(max(p, 0.0), 1.0)


def variation(gaps: Gaps) -> float:
    """The coefficient of variation."""
    return float(gaps.std() / gaps.mean())
