"""Synthetic prompts: exact token length, unique by default, with a shared prefix where asked for.

A prompt is a function of (seed, index) alone: every worker makes the same prompt for the same
index, and no two indices share a prefix unless they are told to.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from llm_locust.prompts import draw
from llm_locust.prompts.draw import Use
from llm_locust.prompts.lengths import Length, fixed, parse_length
from llm_locust.prompts.phrases import Phrases, opened
from llm_locust.prompts.ruler import ASSUMED, Ruler
from llm_locust.protocol.types import PromptRequest


@dataclass(frozen=True, slots=True)
class SharedPrefix:
    """The part of each prompt that others begin with: a ratio of its length, by `groups` of prompts."""

    ratio: float = 0.0
    groups: int = 1

    @classmethod
    def parse(cls, text: str) -> SharedPrefix:
        """Read `0.5` or `0.5:16` (ratio, number of different prefixes). Raises ValueError."""
        ratio, _, groups = text.partition(":")
        try:
            shared = cls(float(ratio), int(groups or 1))
        except ValueError:
            raise ValueError(f"{text!r} is not a shared prefix: write 0.5, or 0.5:16 for 16 groups") from None
        if not 0 <= shared.ratio <= 1 or shared.groups < 1:
            raise ValueError(f"{text!r}: the ratio lies between 0 and 1, and there is at least 1 group")
        return shared


NOT_SHARED = SharedPrefix()


@dataclass(frozen=True)
class Synthetic:
    """A source of synthetic prompts; `prepared(seed, ruler)` gives the one to draw from."""

    input_tokens: Length
    output_tokens: Length | None
    shared_prefix: SharedPrefix = NOT_SHARED
    seed: int = 0
    ruler: Ruler = ASSUMED
    size: int | None = None
    digest: str = ""
    notes: tuple[str, ...] = ()
    _phrases: Phrases = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_phrases", Phrases(self.ruler.words, self.seed))

    @property
    def mean_input_tokens(self) -> int:
        """The usual length of its prompts."""
        return round(self.input_tokens.mean)

    @property
    def least_input_tokens(self) -> int:
        """The shortest length that may be asked for."""
        return self.input_tokens.low

    def prepared(self, seed: int, ruler: Ruler) -> Synthetic:
        """Return this source for a run's seed and a measured ruler."""
        return replace(self, seed=seed, ruler=ruler)

    def prompt(self, index: int) -> PromptRequest:
        """Make the prompt of one request.

        Cost: 7 µs, and 6 ns a token.
        """
        tokens = max(self.input_tokens.sample(self.seed, Use.INPUT_TOKENS, index), self.ruler.shortest_tokens)
        words = self.ruler.words_for(tokens)
        shared = min(words, round(words * self.shared_prefix.ratio))
        parts: list[str] = []
        if shared:
            group = draw.whole(self.seed, Use.GROUP, index, self.shared_prefix.groups)
            parts.append(self._phrases.drawn(Use.SHARED_TEXT, group, shared))
        if words > shared:
            parts.append(self._phrases.drawn(Use.TEXT, index, words - shared))
        output = self.output_tokens.sample(self.seed, Use.OUTPUT_TOKENS, index) if self.output_tokens else None
        return PromptRequest(text=opened(" ".join(parts)), input_tokens=tokens, output_tokens=output, exact_output=True)


def synthetic(
    input_tokens: int | str = 1024,
    output_tokens: int | str | None = 2048,
    *,
    shared_prefix: float = 0.0,
    groups: int = 1,
) -> Synthetic:
    """Describe synthetic prompts: lengths in tokens as numbers or spellings (`512-2048`).

    Raises ValueError for a length or ratio that makes no sense.
    """
    output = None if output_tokens is None else parse_length(output_tokens)
    prefix = SharedPrefix.parse(f"{shared_prefix}:{groups}")
    length = fixed(input_tokens) if isinstance(input_tokens, int) and input_tokens > 0 else parse_length(input_tokens)
    return Synthetic(length, output, prefix)
