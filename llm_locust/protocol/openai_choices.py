"""The frame of OpenAI's chat and completions: how both are asked, and events with ``choices`` beside ``usage``.

The two dialects differ only in how they carry a prompt and in where a choice keeps its text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from llm_locust.protocol import body
from llm_locust.protocol.answer import AnswerReader, Choice
from llm_locust.protocol.lenient import as_count, as_mapping, as_mappings
from llm_locust.protocol.openai_usage import UsageChunk, state_untyped
from llm_locust.protocol.types import NOTHING, UNSEEN, Arrival, BodyOptions, Framing, PromptRequest

C = TypeVar("C")


class ChoicesChunk(msgspec.Struct, Generic[C], gc=False):
    """One typed event; ``C`` is the dialect's own choice."""

    choices: tuple[C, ...] = ()
    usage: UsageChunk | None = None
    error: Any = None


class TextChunk(msgspec.Struct, Generic[C], gc=False):
    """One typed event that says nothing but the text of one choice: with anything else it cannot be decoded."""

    choices: tuple[C]
    usage: None = None
    error: None = None


def run_decoder(choice: type[C]) -> Callable[[bytes], list[TextChunk[C]]]:
    """Make what decodes such events, a line each; it raises ValueError where one is not."""
    return msgspec.json.Decoder(TextChunk[choice]).decode_lines  # type: ignore[valid-type]  # a type made at run time


class ChoicesReader(AnswerReader):
    """Reads untyped events with ``choices``; the typed hot path is the dialect's own."""

    __slots__ = ()

    @abstractmethod
    def _take(self, choice: Choice, item: dict[str, Any]) -> int:
        """Add the generated text of one item of ``choices``; return its channel mask."""

    def _read(self, event: dict[str, Any], event_type: bytes) -> tuple[Arrival, ...]:
        self._note_id(event.get("id"))
        usage = as_mapping(event.get("usage"))
        items = as_mappings(event.get("choices"))
        masks: dict[int, int] = {}
        for item in items:
            place = self._place(item.get("index"))
            masks[place] = masks.get(place, 0) | self._take(self._choice(place), item)
        owner = next(iter(masks)) if len(masks) == 1 else None
        if usage:
            tokens = as_count(usage.get("completion_tokens"))
            ended = any(item.get("finish_reason") for item in items)
            if owner is not None and self._tally.grows(owner, tokens, bears_text=masks[owner] != 0, ended=ended):
                masks[owner] = masks[owner] or UNSEEN
            self.cumulative_tokens = state_untyped(self._tally, usage, owner)
        for item in items:
            self._finish(self._place(item.get("index")), item.get("finish_reason"))
        return tuple((place, mask) for place, mask in masks.items() if mask) or NOTHING

    def _read_document(self, document: dict[str, Any], place: int) -> None:
        self._read(document, b"")


class ChoicesDialect(ABC):
    """What the two dialects ask alike."""

    name: str
    framing = Framing.SSE
    finish_reason_expected = True
    optional_fields: tuple[str, ...] = ("ignore_eos", "min_tokens", "stream_options", "continuous_usage_stats")

    @abstractmethod
    def _prompt_field(self, prompt: PromptRequest) -> dict[str, Any]:
        """Return the one field that carries the prompt."""

    def body(self, prompt: PromptRequest, options: BodyOptions) -> dict[str, Any]:
        """Build the JSON body; raises ValueError where the dialect cannot carry the prompt."""
        return body.with_extra({**self._prompt_field(prompt), **body.openai_fields(prompt, options)}, prompt, options)

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the authorization header."""
        return body.bearer(api_key)
