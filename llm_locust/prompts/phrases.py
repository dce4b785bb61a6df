"""Texts of so many words, joined from prepared phrases: a 120,000-word text takes about a millisecond.

What makes a text unique for a prefix cache stands at its front and is drawn word by word; behind that, phrases repeat.
"""

from __future__ import annotations

import zlib

from llm_locust.prompts.draw import Use, octets, wholes
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

    def drawn(self, use: Use, index: int, words: int) -> str:
        """Join the `words` words of a place, at least 1: some drawn singly, then whole phrases."""
        phrases, singles = divmod(max(0, words - _HEAD_WORDS), PHRASE_WORDS)
        singly = 4 * (min(words, _HEAD_WORDS) + singles)
        names = octets(self._seed, use, index, singly + phrases)
        parts = [self._words[i] for i in wholes(names[:singly], len(self._words))]
        if phrases:
            stock = self._stock()
            parts += [stock[name] for name in names[singly:]]
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
            drawn = wholes(octets(self._seed, Use.PHRASES, 0, 4 * PHRASES * PHRASE_WORDS), len(self._words))
            words = [self._words[i] for i in drawn]
            self._made = [" ".join(words[n : n + PHRASE_WORDS]) for n in range(0, len(words), PHRASE_WORDS)]
        return self._made


def opened(text: str) -> str:
    """Put a letter in the place of the first word: equal beginnings stay equal."""
    first, blank, rest = text.partition(" ")
    return OPENERS[zlib.crc32(first.encode()) % len(OPENERS)] + blank + rest
