"""The dialects by name: the suite's own, and those of other packages.

A package adds one through the entry-point group ``llm_locust.dialects``: the name is the
dialect's, the object a class (or function) that makes it without arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from llm_locust.protocol.anthropic_messages import AnthropicMessages
from llm_locust.protocol.ndjson import NDJSONDecoder
from llm_locust.protocol.ollama_chat import OllamaChat
from llm_locust.protocol.openai_chat import OpenAIChat
from llm_locust.protocol.openai_completions import OpenAICompletions
from llm_locust.protocol.openai_responses import OpenAIResponses
from llm_locust.protocol.sglang_generate import SGLangGenerate
from llm_locust.protocol.sse import EventDecoder, SSEDecoder
from llm_locust.protocol.tgi_generate import TGIGenerate
from llm_locust.protocol.types import Dialect, Framing

ENTRY_POINT_GROUP = "llm_locust.dialects"

_OWN: tuple[Callable[[], Dialect], ...] = (
    OpenAIChat,
    OpenAICompletions,
    OpenAIResponses,
    SGLangGenerate,
    AnthropicMessages,
    TGIGenerate,
    OllamaChat,
)


def dialect_names() -> tuple[str, ...]:
    """Return the names of all dialects: the suite's own in their order, then others by name."""
    own = tuple(_own())
    return own + tuple(sorted(name for name in _others() if name not in own))


@cache
def get_dialect(name: str) -> Dialect:
    """Return the one dialect of this name; raises ValueError that lists the names there are.

    A name of the suite's own cannot be taken by another package.
    """
    own = _own().get(name)
    if own is not None:
        return own
    other = _others().get(name)
    if other is None:
        raise ValueError(f"no dialect {name!r}; there are {', '.join(dialect_names())}")
    made: Dialect = other.load()()
    return made


def make_decoder(framing: Framing) -> EventDecoder:
    """Make the decoder of one streamed body."""
    return NDJSONDecoder() if framing is Framing.NDJSON else SSEDecoder()


@cache
def _own() -> dict[str, Dialect]:
    dialects = [make() for make in _OWN]
    return {dialect.name: dialect for dialect in dialects}


def _others() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
