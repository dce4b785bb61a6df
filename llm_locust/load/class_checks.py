"""What the attributes of a user class must be, checked before any load; each problem is one sentence."""

from __future__ import annotations

from collections.abc import Iterator

from llm_locust.load.conversation import ConversationUser
from llm_locust.load.endpoint import endpoints_of
from llm_locust.load.users import LLMUser
from llm_locust.protocol import get_dialect


def class_problems(owner: type[LLMUser]) -> Iterator[str]:
    """Name what is wrong with a class's own attributes."""
    name = owner.__name__
    if isinstance(owner.prompts, str):
        yield f"prompts of {name}: {owner.prompts!r} is a text; open it: prompts = open_prompts({owner.prompts!r})"
    elif owner.prompts is not None and not callable(getattr(owner.prompts, "prompt", None)):
        yield f"prompts of {name}: {owner.prompts!r} has no prompt(index); synthetic(…) and open_prompts(…) make one"
    for attribute in ("dialect", "name", "slo", "host"):
        value = getattr(owner, attribute)
        if value is not None and not isinstance(value, str):
            yield f"{attribute} of {name}: {value!r} is no text"
    if isinstance(owner.dialect, str):
        yield from _told(f"dialect of {name}", get_dialect, owner.dialect)
    if isinstance(owner.host, str) and owner.host:
        yield from _told(f"host of {name}", endpoints_of, owner.host, "/")
    if issubclass(owner, ConversationUser) and not _is_range(owner.turns):
        yield f"turns of {name}: {owner.turns!r}; right is a number, or the ends of a range as (2, 6), from 1 on"


def _told(what: str, read: object, *arguments: str) -> Iterator[str]:
    """Say what a reader of a text has against it."""
    assert callable(read)
    try:
        read(*arguments)
    except ValueError as error:
        yield f"{what}: {error}"


def _is_range(turns: object) -> bool:
    """Tell whether turns are a number, or two in their order."""
    ends = turns if isinstance(turns, tuple | list) else (turns, turns)
    return len(ends) == 2 and all(type(end) is int for end in ends) and 1 <= ends[0] <= ends[1]
