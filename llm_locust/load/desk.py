"""Which prompt a request gets: option given > stage > user class > default, prepared for the run and its stage."""

from __future__ import annotations

import hashlib
import inspect
from typing import Protocol, runtime_checkable

from llm_locust.load.gate_types import Ticket
from llm_locust.load.stage import WARMUP
from llm_locust.prompts.ruler import ASSUMED, Ruler
from llm_locust.prompts.source import PromptSource
from llm_locust.prompts.synthetic import synthetic
from llm_locust.protocol.types import PromptRequest

_MOST_PREPARED = 64  # sources × stages kept prepared; an hour-long stage of a soak needs one


@runtime_checkable
class Preparable(Protocol):
    """A source whose prompts follow from the run's seed and the measured lengths of words."""

    def prepared(self, seed: int, ruler: Ruler) -> PromptSource:
        """Return the source to draw from."""
        ...


class Desk:
    """Hands out prompts. One per process and run.

    ``option`` is the source that the run's options name, None where they name none. Each stage draws its own sequence
    from ``seed``, so that a prefix cache cannot answer stage 2 with the prompts of stage 1.
    """

    def __init__(self, *, seed: int, option: PromptSource | None = None, ruler: Ruler = ASSUMED) -> None:
        self._seed = seed
        self._option = option
        self._ruler = ruler
        self._default = synthetic()
        self._prepared: dict[tuple[int, str], tuple[PromptSource, PromptSource]] = {}
        self._knows_warmup: dict[type, bool] = {}

    def prompt(self, of_class: PromptSource | None, ticket: Ticket) -> tuple[PromptRequest, bool]:
        """Return the ticket's prompt, and whether an earlier request of the stage has had it."""
        sources = (self._option, ticket.prompts, of_class, self._default)
        chosen = next(source for source in sources if source is not None)
        source = self._for_stage(chosen, ticket.stage)
        size = getattr(source, "size", None)
        repeated = size is not None and ticket.index >= size
        if ticket.phase == WARMUP and self._takes_warmup(source):
            return source.prompt(ticket.index, warmup=True), repeated
        return source.prompt(ticket.index), repeated

    def _for_stage(self, source: PromptSource, stage: str) -> PromptSource:
        if not isinstance(source, Preparable):
            return source
        key = (id(source), stage)
        if key not in self._prepared:
            if len(self._prepared) >= _MOST_PREPARED:
                self._prepared.pop(next(iter(self._prepared)))
            self._prepared[key] = (source, source.prepared(stage_seed(self._seed, stage), self._ruler))
        return self._prepared[key][1]

    def _takes_warmup(self, source: PromptSource) -> bool:
        """Tell whether a source has warm-up prompts of its own; a plain `prompt(index)` is enough of a source."""
        kind = type(source)
        if kind not in self._knows_warmup:
            self._knows_warmup[kind] = "warmup" in inspect.signature(source.prompt).parameters
        return self._knows_warmup[kind]


def stage_seed(seed: int, stage: str) -> int:
    """Derive a stage's seed, the same in every process."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{stage}".encode(), digest_size=7).digest())
