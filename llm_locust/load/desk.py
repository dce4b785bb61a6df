"""Which prompt a request gets: of the source that its stage has for its user class, prepared for run and stage."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from llm_locust.load.gate_types import Ticket
from llm_locust.prompts.ruler import ASSUMED, Ruler
from llm_locust.prompts.source import PromptSource
from llm_locust.prompts.synthetic import synthetic
from llm_locust.protocol.types import PromptRequest

_MOST_PREPARED = 64  # sources × stages kept prepared; an hour-long stage of a soak needs one

Spoken = tuple[str, str]
"""(dialect, host of the user class; "" where the run's options name the hosts): the same text counts alike there."""


@runtime_checkable
class Preparable(Protocol):
    """A source whose prompts follow from the run's seed and the measured lengths of words."""

    def prepared(self, seed: int, ruler: Ruler) -> PromptSource:
        """Return the source to draw from."""
        ...


class Desk:
    """Hands out prompts. One per process and run.

    The ticket has the prompts of its stage, which say what a user class asks. Each stage draws its own sequence from
    ``seed``, so that a prefix cache cannot answer stage 2 with the prompts of stage 1; the rows of a file go on where
    the stage before left off.
    """

    def __init__(
        self,
        *,
        seed: int,
        rulers: Mapping[Spoken, Ruler] | None = None,
    ) -> None:
        self._seed = seed
        self._rulers = rulers or {}
        self._default = synthetic()
        self._prepared: dict[tuple[int, str, Spoken], tuple[PromptSource, PromptSource]] = {}

    def prompt(self, of_class: PromptSource | None, ticket: Ticket, spoken: Spoken) -> tuple[PromptRequest, bool]:
        """Return the ticket's prompt, and whether an earlier request of the run has had it."""
        chosen = (of_class or self._default) if ticket.prompts is None else ticket.prompts.of_class(of_class)
        source = self._for_stage(chosen, ticket, spoken)
        place = ticket.index if ticket.place is None else ticket.place
        size = getattr(source, "size", None)
        return source.prompt(place), size is not None and place >= size

    def _for_stage(self, source: PromptSource, ticket: Ticket, spoken: Spoken) -> PromptSource:
        key = (id(source), ticket.stage, spoken)
        if key not in self._prepared:
            if len(self._prepared) >= _MOST_PREPARED:
                self._prepared.pop(next(iter(self._prepared)))
            prepared = source
            if isinstance(source, Preparable):
                prepared = source.prepared(stage_seed(self._seed, ticket.stage), self._rulers.get(spoken, ASSUMED))
            self._prepared[key] = (source, prepared)
        return self._prepared[key][1]


def stage_seed(seed: int, stage: str) -> int:
    """Derive a stage's seed, the same in every process."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{stage}".encode(), digest_size=7).digest())
