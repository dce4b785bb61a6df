"""Token lengths asked for: fixed, uniform or normal, as a value that is sampled at a place.

Spelling: `1024`, `512-2048` (uniform, both ends included), `normal:1024:128` (mean, standard
deviation; cut at 1 and at mean + 4 deviations).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import NormalDist

from llm_locust.prompts.draw import Use, fraction

LARGEST_TOKENS = 10_000_000

_FIXED = re.compile(r"(\d+)$")
_RANGE = re.compile(r"(\d+)-(\d+)$")
_NORMAL = re.compile(r"normal:(\d+(?:\.\d+)?):(\d+(?:\.\d+)?)$")


@dataclass(frozen=True, slots=True)
class Length:
    """A distribution of token counts: uniform over [low, high], or normal where `deviation` > 0."""

    low: int
    high: int
    mean: float
    deviation: float = 0.0

    def sample(self, seed: int, use: Use, index: int) -> int:
        """Draw the length in tokens of one place."""
        if self.low == self.high:
            return self.low
        share = fraction(seed, use, index)
        if self.deviation:
            drawn = round(NormalDist(self.mean, self.deviation).inv_cdf(share))
            return min(max(drawn, self.low), self.high)
        return self.low + int(share * (self.high - self.low + 1))

    def __str__(self) -> str:
        if self.deviation:
            return f"normal:{self.mean:g}:{self.deviation:g}"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


def fixed(tokens: int) -> Length:
    """Make the length that is always `tokens`."""
    return Length(tokens, tokens, float(tokens))


def parse_length(text: str | int) -> Length:
    """Read a length's spelling. Raises ValueError that says what would be right."""
    spelled = str(text).strip().replace("_", "").replace(",", "")
    if match := _FIXED.match(spelled):
        length = fixed(int(match[1]))
    elif match := _RANGE.match(spelled):
        low, high = int(match[1]), int(match[2])
        if low > high:
            raise ValueError(f"{text!r} runs backwards: write {high}-{low}")
        length = Length(low, high, (low + high) / 2)
    elif match := _NORMAL.match(spelled):
        mean, deviation = float(match[1]), float(match[2])
        length = Length(1, max(1, round(mean + 4 * deviation)), mean, deviation)
    else:
        raise ValueError(f"{text!r} is not a length: write 1024, 512-2048 or normal:1024:128")
    if length.low < 1 or length.mean < 1:
        raise ValueError(f"{text!r}: a length is at least 1 token")
    if length.high > LARGEST_TOKENS:
        raise ValueError(f"{text!r}: more than {LARGEST_TOKENS:,} tokens")
    return length
