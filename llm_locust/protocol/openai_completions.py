"""OpenAI completions: the prompt as text or token ids, the answer as ``choices[].text``.

Source: OpenAI API reference, "Completion object"; vLLM, SGLang and llama.cpp speak it. vLLM and
SGLang send an event with empty text for a token that ends inside a character.
"""

from __future__ import annotations

from typing import Any

import msgspec

from llm_locust.protocol import body
from llm_locust.protocol.answer import FIRST_CHOICE, Choice
from llm_locust.protocol.lenient import as_text
from llm_locust.protocol.openai_choices import ChoicesChunk, ChoicesDialect, ChoicesReader, run_decoder
from llm_locust.protocol.openai_usage import state_typed
from llm_locust.protocol.runs import RunReader
from llm_locust.protocol.types import ANSWER, NOTHING, Arrival, PromptRequest


class _Choice(msgspec.Struct, gc=False):
    text: str | None = None
    finish_reason: str | None = None


class _TextChoice(msgspec.Struct, gc=False):
    """A choice that says nothing but text: with anything else it cannot be decoded."""

    text: str
    finish_reason: None = None


_decode = msgspec.json.Decoder(ChoicesChunk[_Choice]).decode
_decode_run = run_decoder(_TextChoice)


def _plain_texts(lines: bytes) -> tuple[int, list[str]]:
    """Decode events that say nothing but text, as `RunReader` has it."""
    texts = [chunk.choices[0].text for chunk in _decode_run(lines)]
    return (ANSWER, texts) if all(texts) else (0, [])


class OpenAICompletionsReader(ChoicesReader):
    """Reads completion chunks: plain text of one choice typed and at once, everything else untyped."""

    __slots__ = ("_answer", "_runs")

    def __init__(self, n: int = 1) -> None:
        super().__init__(n)
        self._answer = self._choices[0].answer.append
        self._runs = RunReader(_plain_texts)

    def event(self, payload: bytes, event_type: bytes = b"") -> tuple[Arrival, ...]:
        """Read one event's data; return its token-bearing arrivals. Never raises on input."""
        if self._n != 1 or event_type or self.server_request_id is None:
            return ChoicesReader.event(self, payload, event_type)
        try:
            chunk = _decode(payload)
            (choice,) = chunk.choices
        except (ValueError, RecursionError):
            return ChoicesReader.event(self, payload)
        text = choice.text
        if not text or choice.finish_reason is not None or chunk.error is not None:
            return ChoicesReader.event(self, payload)
        self._answer(text)
        usage = chunk.usage
        self.cumulative_tokens = None if usage is None else state_typed(self._tally, usage)
        return FIRST_CHOICE[ANSWER]

    def run(self, events: bytes, count: int) -> tuple[Arrival, ...]:
        """Read plain events at once."""
        if self._n != 1 or self.server_request_id is None:
            return NOTHING
        channel, text = self._runs.read(events, count)
        if not channel:
            return NOTHING
        self._answer(text)
        self.cumulative_tokens = None
        return FIRST_CHOICE[ANSWER]

    def _take(self, choice: Choice, item: dict[str, Any]) -> int:
        return choice.add(ANSWER, as_text(item.get("text")))


class OpenAICompletions(ChoicesDialect):
    """``/v1/completions``; a conversation has no place in it."""

    name = "openai-completions"
    path = "/v1/completions"
    document_path = path

    def _prompt_field(self, prompt: PromptRequest) -> dict[str, Any]:
        return {"prompt": body.text_or_ids(prompt, self.name)}

    def reader(self, *, stream: bool, n: int = 1) -> OpenAICompletionsReader:
        """Make the reader of one answer; it reads streams and documents alike."""
        return OpenAICompletionsReader(n)
