"""Prompts of token ids, where the API takes them: of exact length on any server, nothing to measure before the load.

Ids are drawn from the beginning of a vocabulary, behind its bytes and marks: every usual tokenizer has them, and a
server puts no chat template around ids.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from llm_locust.prompts import draw
from llm_locust.prompts.draw import Use
from llm_locust.prompts.lengths import Length
from llm_locust.prompts.ruler import Ruler
from llm_locust.prompts.synthetic import NOT_SHARED, SharedPrefix
from llm_locust.protocol.types import PromptRequest

FIRST_ID, LAST_ID = 1000, 9999


@dataclass(frozen=True)
class TokenIds:
    """A source of prompts made of ids; a function of (seed, index) alone, as `Synthetic` is."""

    input_tokens: Length
    output_tokens: Length | None
    shared_prefix: SharedPrefix = NOT_SHARED
    seed: int = 0
    size: int | None = None
    digest: str = ""
    notes: tuple[str, ...] = ()

    def prepared(self, seed: int, _ruler: Ruler) -> TokenIds:
        """Return this source for a run's seed."""
        return replace(self, seed=seed)

    def prompt(self, index: int) -> PromptRequest:
        """Make the prompt of one request. Cost: 20 µs, and 15 ns a token."""
        tokens = self.input_tokens.sample(self.seed, Use.INPUT_TOKENS, index)
        shared = min(tokens, round(tokens * self.shared_prefix.ratio))
        ids: list[int] = []
        if shared:
            group = draw.whole(self.seed, Use.GROUP, index, self.shared_prefix.groups)
            ids += self._ids(Use.SHARED_IDS, group, shared)
        ids += self._ids(Use.IDS, index, tokens - shared)
        output = self.output_tokens.sample(self.seed, Use.OUTPUT_TOKENS, index) if self.output_tokens else None
        return PromptRequest(token_ids=tuple(ids), input_tokens=tokens, output_tokens=output, exact_output=True)

    def _ids(self, use: Use, index: int, count: int) -> list[int]:
        numbers = draw.generator(self.seed, use, index)
        ids: list[int] = numbers.integers(FIRST_ID, LAST_ID, size=count, endpoint=True).tolist()
        return ids
