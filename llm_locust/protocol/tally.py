"""Sum up what a server states about tokens, so that no figure is added twice.

Knows no dialect. Cumulative figures replace each other; only the figures of different choices add.
"""

from __future__ import annotations

from llm_locust.protocol.types import Usage


class Tally:
    """Keeps ``usage`` true while counts come per event, per choice or once for all."""

    __slots__ = ("_by_choice", "_dead", "_n", "_reasoning_by_choice", "_running", "_usage", "_whole", "finished")

    def __init__(self, usage: Usage, n: int) -> None:
        self._usage = usage
        self._n = n
        self.finished = 0  # choices that ended so far
        self._running: dict[int, int] = {}  # last stated count of each choice, zero included
        self._by_choice: dict[int, int] = {}
        self._reasoning_by_choice: dict[int, int] = {}
        self._whole: dict[int, int] = {}  # counts of no one choice, by `finished` when they came
        self._dead = False  # text came while the count still said 0: the count is no running count

    def input(self, input_tokens: int | None, cached_tokens: int | None) -> None:
        """Note the prompt's length and how much of it a cache answered; the last stated ones stand."""
        if input_tokens:
            self._usage.input_tokens = input_tokens
        if cached_tokens is not None:
            self._usage.cached_tokens = cached_tokens

    def output(self, place: int | None, tokens: int | None, reasoning_tokens: int | None = None) -> int | None:
        """Note a count of one choice (None: of no one choice); return the running total, if stated.

        With n > 1 a server states the sum at the end, or one figure after each choice's end
        (llama-server): figures that came after different ends are of different choices, and add.
        """
        if self._n == 1:
            place = 0
        if reasoning_tokens is not None:
            self._note_reasoning(0 if place is None else place, reasoning_tokens)
        if tokens is None or tokens < 0:
            return None
        if place is None:
            if tokens:
                self._whole.pop(0, None)
                self._whole[self.finished] = tokens
        else:
            self._running[place] = tokens
            if tokens:
                self._by_choice[place] = tokens
        total = sum(self._whole.values()) or sum(self._by_choice.values())
        if total:
            self._usage.output_tokens = total
        return total

    def beside_text(self, tokens: int | None, reasoning_tokens: int | None) -> int | None:
        """Note a count that came with text of the only choice: `grows` and `output` in one, for the hot path."""
        if tokens is not None and tokens > 0 and reasoning_tokens is None:
            self._running[0] = self._by_choice[0] = self._usage.output_tokens = tokens
            return tokens
        self.grows(0, tokens, bears_text=True, ended=False)
        return self.output(0, tokens, reasoning_tokens)

    def grows(self, place: int, tokens: int | None, *, bears_text: bool, ended: bool) -> bool:
        """Say whether a choice's count grew since its last event; call before `output`.

        A first count may be the sum of all, but a first count of 1 in an answer that goes on is its first token
        (Dynamo 1.6, SGLang 0.5: half a character). A count that stays 0 under text is not running.
        """
        before = self._running.get(place)
        if bears_text and tokens == 0:
            self._dead = True
        if before is None:
            return tokens == 1 and not ended
        return tokens is not None and tokens > before and not self._dead

    def _note_reasoning(self, place: int, tokens: int) -> None:
        """Keep the last reasoning count of each choice; a later zero does not erase one."""
        if tokens or place not in self._reasoning_by_choice:
            self._reasoning_by_choice[place] = tokens
        self._usage.reasoning_tokens = sum(self._reasoning_by_choice.values())
