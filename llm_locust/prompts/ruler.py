"""Texts of an exact token length, without counting each of them.

A ruler knows words of one token each, and that their counts add up: so n words are n tokens, at
no cost per prompt (a 120,000-token text is joined in about a millisecond). Where a counter is at
hand (a local tokenizer, or the server's own), the words are proved with it once; where only
`usage.prompt_tokens` tells, slope and overhead are measured by a few short requests.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llm_locust.prompts.words import WORDS

Count = Callable[[str], int]

OPENERS = tuple(string.ascii_uppercase)
"""What a text opens with: a word without a blank before it may be several tokens, a lone letter is one everywhere."""

_GROUP = 32
_FEWEST_WORDS = 64
_TOLERANCE = 0.02
_MOST_REQUESTS = 8
_MOST_WORDS_PER_TOKEN = 4  # no vocabulary joins more words than that into a token


class RulerError(ValueError):
    """Lengths that cannot be made exact; the text says why and what to give."""


@dataclass(frozen=True, slots=True)
class Ruler:
    """How many words make how many tokens.

    `tokens_per_word` is 1.0 where the words were proved; `overhead_tokens` is what a chat template
    (and a begin token) adds to each request, taken off the wanted length. `source` says how it was found.
    """

    words: tuple[str, ...]
    tokens_per_word: float = 1.0
    overhead_tokens: int = 0
    source: str = "assumed"

    @property
    def shortest_tokens(self) -> int:
        """The length of a prompt of one word: a chat template cannot be left out."""
        return self.overhead_tokens + max(1, round(self.tokens_per_word))

    def words_for(self, tokens: int) -> int:
        """Return the number of words of a prompt that the server will count as `tokens`; at least 1."""
        return max(1, round((tokens - self.overhead_tokens) / self.tokens_per_word))


ASSUMED = Ruler(WORDS)


def prove(count: Count, source: str, *, overhead_tokens: int = 0) -> Ruler:
    """Keep the words that are one token each after a blank, and prove that counts add up.

    `count` gives the tokens of a text, its own constant part (a begin token) included. It is asked
    about once per 32 words and once per bad word: under 200 times. Raises RulerError where fewer
    than 64 words are left or the counts do not add up.
    """
    constant = _constant(count)
    good: list[str] = []
    groups = [WORDS[i : i + _GROUP] for i in range(0, len(WORDS), _GROUP)]
    while groups:
        group = groups.pop()
        if count(_joined(group)) - constant == len(group):
            good.extend(group)
        elif len(group) > 1:
            middle = len(group) // 2
            groups += [group[:middle], group[middle:]]
    if len(good) < _FEWEST_WORDS:
        raise RulerError(
            f"{source}: only {len(good)} common words are one token each; exact lengths need {_FEWEST_WORDS}"
        )
    words = tuple(sorted(good))
    scrambled = OPENERS[-1] + _joined([words[(i * 37) % len(words)] for i in range(4 * len(words))])
    if count(scrambled) - constant != 1 + 4 * len(words):
        raise RulerError(f"{source}: the tokens of words do not add up, so no exact length can be made")
    return Ruler(words, 1.0, overhead_tokens + constant, source)


def _constant(count: Count) -> int:
    """Tokens that the counter adds to every text (a begin-of-sequence token)."""
    one, two = count(_joined(["the"])), count(_joined(["the", "the"]))
    return max(0, one - (two - one))


def _joined(words: Sequence[str]) -> str:
    return " " + " ".join(words)


def calibrate(ask: Count, wanted_tokens: int, *, words: tuple[str, ...] = WORDS) -> tuple[Ruler, int]:
    """Measure slope and overhead from `usage.prompt_tokens`; return the ruler and the requests used.

    `ask(text)` sends a prompt with an output of one token and returns the prompt tokens that the
    server counted. Ends when a prompt came within 2 % (or one token) of `wanted_tokens`, after at
    most 8 requests; else raises RulerError with what was reached.
    """
    short, long = 16, 144
    tokens_short = ask(calibration_text(words, short, 0))
    tokens_long = ask(calibration_text(words, long, 1))
    slope = (tokens_long - tokens_short) / (long - short)
    if slope <= 0:
        raise RulerError(
            f"{long} words count as {tokens_long} tokens and {short} as {tokens_short}: usage is not to be used"
        )
    overhead = max(0, round(tokens_short - short * slope))
    reached = tokens_long
    for request in range(3, _MOST_REQUESTS + 1):
        ruler = Ruler(words, slope, overhead, "usage")
        size = min(ruler.words_for(wanted_tokens), _MOST_WORDS_PER_TOKEN * wanted_tokens)
        reached = ask(calibration_text(words, size, request))
        if abs(reached - wanted_tokens) <= max(1.0, _TOLERANCE * wanted_tokens) or wanted_tokens <= overhead:
            return ruler, request
        if size > short:
            slope = (reached - overhead) / size
    raise RulerError(
        f"after {_MOST_REQUESTS} requests a prompt of {wanted_tokens} tokens still counts as {reached}: "
        "give --llm-tokenizer, or a server with /tokenize"
    )


def calibration_text(words: tuple[str, ...], size: int, turn: int) -> str:
    """Make the text of one calibration request: `size` words, another order for each turn."""
    following = [words[(i * 31 + turn * 7) % len(words)] for i in range(size - 1)]
    return " ".join([OPENERS[turn % len(OPENERS)], *following])
