"""Texts of so many words, joined from prepared phrases: a 120,000-word text takes about a millisecond.

What makes a text unique for a prefix cache stands at its front and is drawn word by word; behind that, phrases repeat.
"""

from __future__ import annotations

import zlib

import numpy as np

from llm_locust.prompts.ruler import OPENERS

PHRASE_WORDS = 32
PHRASES = 256  # one byte of a digest names a phrase; all of them are made in about a millisecond
_HEAD_WORDS = 32


class Phrases:
    """A stock of phrases that follows from seed and vocabulary; made at its first use."""

    def __init__(self, words: tuple[str, ...], seed: int) -> None:
        self._words = words
        self._seed = seed
        self._made: list[str] = []

    def drawn(self, generator: np.random.Generator, words: int) -> str:
        """Join `words` words, at least 1: the first ones drawn singly, then whole phrases, then the rest singly."""
        phrases, singles = divmod(max(0, words - _HEAD_WORDS), PHRASE_WORDS)
        drawn = generator.integers(len(self._words), size=min(words, _HEAD_WORDS) + singles).tolist()
        parts = [self._words[i] for i in drawn]
        if phrases:
            stock = self._stock()
            parts += [stock[i] for i in generator.integers(len(stock), size=phrases).tolist()]
        return " ".join(parts)

    def named(self, names: bytes, words: int) -> str:
        """Join the phrases that the bytes name and cut after `words` words: fewer words are a prefix of more."""
        stock = self._stock()
        whole, rest = divmod(words, PHRASE_WORDS)
        parts = [stock[name] for name in names[:whole]]
        if rest:
            parts += stock[names[whole]].split(" ")[:rest]
        return " ".join(parts)

    def _stock(self) -> list[str]:
        if not self._made:
            generator = np.random.Generator(np.random.PCG64([self._seed, 2]))
            table = generator.integers(len(self._words), size=(PHRASES, PHRASE_WORDS)).tolist()
            self._made = [" ".join([self._words[i] for i in row]) for row in table]
        return self._made


def opened(text: str) -> str:
    """Put a letter in the place of the first word: equal beginnings stay equal."""
    first, blank, rest = text.partition(" ")
    return OPENERS[zlib.crc32(first.encode()) % len(OPENERS)] + blank + rest
