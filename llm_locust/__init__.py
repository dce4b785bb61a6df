"""llm-locust: truthful streaming load tests of LLM servers, as a plugin suite of Locust.

In a locustfile `import llm_locust` (or any import from it) is all that is needed: it hooks the suite into the Locust
that is running. Importing makes no socket, hub, client, generator or tokenizer, and loads a room only when it is used;
outside Locust nothing of Locust is imported.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llm_locust.load.answer import Answer
    from llm_locust.load.conversation import ConversationUser
    from llm_locust.load.events import llm_events
    from llm_locust.load.shapes import (
        Baseline,
        ConcurrencySteps,
        FixedBatch,
        FullPlan,
        LongContext,
        MixedLoad,
        Ramp,
        RateSteps,
        Soak,
        Spike,
        TraceReplay,
    )
    from llm_locust.load.stage import Stage
    from llm_locust.load.staged import StagedShape
    from llm_locust.load.users import (
        AnthropicMessagesUser,
        LLMUser,
        OllamaUser,
        OpenAIChatUser,
        OpenAICompletionsUser,
        OpenAIResponsesUser,
        SGLangGenerateUser,
        TGIUser,
    )
    from llm_locust.measure.record import Outcome, RequestRecord
    from llm_locust.prompts import open_prompts, synthetic
    from llm_locust.protocol import Message, PromptRequest

_ROOMS = {
    "llm_locust.load.conversation": ("ConversationUser",),
    "llm_locust.load.users": (
        "AnthropicMessagesUser",
        "LLMUser",
        "OllamaUser",
        "OpenAIChatUser",
        "OpenAICompletionsUser",
        "OpenAIResponsesUser",
        "SGLangGenerateUser",
        "TGIUser",
    ),
    "llm_locust.load.shapes": (
        "Baseline",
        "ConcurrencySteps",
        "FixedBatch",
        "FullPlan",
        "LongContext",
        "MixedLoad",
        "Ramp",
        "RateSteps",
        "Soak",
        "Spike",
        "TraceReplay",
    ),
    "llm_locust.load.stage": ("Stage",),
    "llm_locust.load.staged": ("StagedShape",),
    "llm_locust.load.events": ("llm_events",),
    "llm_locust.load.answer": ("Answer",),
    "llm_locust.measure.record": ("Outcome", "RequestRecord"),
    "llm_locust.prompts": ("open_prompts", "synthetic"),
    "llm_locust.protocol": ("Message", "PromptRequest"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "Answer",
    "AnthropicMessagesUser",
    "Baseline",
    "ConcurrencySteps",
    "ConversationUser",
    "FixedBatch",
    "FullPlan",
    "LLMUser",
    "LongContext",
    "Message",
    "MixedLoad",
    "OllamaUser",
    "OpenAIChatUser",
    "OpenAICompletionsUser",
    "OpenAIResponsesUser",
    "Outcome",
    "PromptRequest",
    "Ramp",
    "RateSteps",
    "RequestRecord",
    "SGLangGenerateUser",
    "Soak",
    "Spike",
    "Stage",
    "StagedShape",
    "TGIUser",
    "TraceReplay",
    "llm_events",
    "open_prompts",
    "synthetic",
]


def __getattr__(name: str) -> Any:
    """Load a public name's room at its first use."""
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(room), name)
    _hook_into_locust()
    return value


def __dir__() -> list[str]:
    """Name what there is, loaded or not."""
    return sorted({*globals(), *_ROOM_OF})


def _add_options(parser: Any, **_: Any) -> None:
    """Add the options, and load the plugin: before `--processes` forks, and before a worker has a heart to beat.

    Loaded in `init` it held the hub of a worker that its master knew already: for 5 s on a cold disk, and it was lost.
    """
    import_module("llm_locust.plugin.listeners")
    from llm_locust.plugin.options import register

    register(parser)


def _begin(environment: Any, **_: Any) -> None:
    from llm_locust.plugin.listeners import begin

    begin(environment)


def _hook_into_locust() -> None:
    """Listen to Locust's start, once, if this is Locust's process. The plugin itself is loaded when Locust calls."""
    if "locust" not in sys.modules:
        return
    from locust import events

    for hook, listener in ((events.init_command_line_parser, _add_options), (events.init, _begin)):
        if listener not in hook._handlers:
            hook.add_listener(listener)  # type: ignore[no-untyped-call]  # Locust's is not annotated


_hook_into_locust()
