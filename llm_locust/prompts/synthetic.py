"""Synthetic prompts: exact token length, unique by default, with a shared prefix where asked for.

A prompt is a function of (seed, index) alone: every worker makes the same prompt for the same
index, and no two indices share a prefix unless they are told to. Long texts are joined
from prepared phrases, so that a 120,000-token prompt takes about a millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from llm_locust.prompts.lengths import Length, fixed, parse_length
from llm_locust.prompts.ruler import ASSUMED, OPENERS, Ruler
from llm_locust.protocol.types import PromptRequest

_HEAD_WORDS = 32  # drawn word by word: the part that makes a prompt unique for a prefix cache
_PHRASE_WORDS = 32
_PHRASES = 2048


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
    _phrases: list[str] = field(default_factory=list, compare=False, repr=False)

    @property
    def mean_input_tokens(self) -> int:
        """The usual length of its prompts."""
        return round(self.input_tokens.mean)

    def prepared(self, seed: int, ruler: Ruler) -> Synthetic:
        """Return this source for a run's seed and a measured ruler."""
        return replace(self, seed=seed, ruler=ruler, _phrases=[])

    def prompt(self, index: int) -> PromptRequest:
        """Make the prompt of one request.

        Cost: about 40 µs, and 10 ns a token beyond the first 32.
        """
        generator = np.random.Generator(np.random.PCG64([self.seed, 0, index]))
        tokens = self.input_tokens.sample(generator)
        words = self.ruler.words_for(tokens)
        shared = min(words, round(words * self.shared_prefix.ratio))
        parts: list[str] = []
        if shared:
            group = int(generator.integers(self.shared_prefix.groups))
            parts.append(self._text(np.random.Generator(np.random.PCG64([self.seed, 1, group])), shared, opens=True))
        if words > shared:
            parts.append(self._text(generator, words - shared, opens=not shared))
        output = self.output_tokens.sample(generator) if self.output_tokens else None
        return PromptRequest(text=" ".join(parts), input_tokens=tokens, output_tokens=output)

    def _text(self, generator: np.random.Generator, words: int, *, opens: bool) -> str:
        """Join `words` words: the first ones drawn singly, then whole phrases; `opens`: a text begins here."""
        vocabulary = self.ruler.words
        phrases, singles = divmod(max(0, words - _HEAD_WORDS), _PHRASE_WORDS)
        drawn = generator.integers(len(vocabulary), size=min(words, _HEAD_WORDS) + singles).tolist()
        parts = [vocabulary[i] for i in drawn]
        if opens:
            parts[0] = OPENERS[drawn[0] % len(OPENERS)]
        if phrases:
            stock = self._stock()
            parts += [stock[i] for i in generator.integers(len(stock), size=phrases).tolist()]
        return " ".join(parts)

    def _stock(self) -> list[str]:
        """The prepared phrases, made at their first use from the seed."""
        if not self._phrases:
            generator = np.random.Generator(np.random.PCG64([self.seed, 2]))
            vocabulary = self.ruler.words
            table = generator.integers(len(vocabulary), size=(_PHRASES, _PHRASE_WORDS)).tolist()
            self._phrases.extend(" ".join([vocabulary[i] for i in row]) for row in table)
        return self._phrases


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
