"""OpenAI chat completions, as OpenAI, vLLM, SGLang, llama.cpp, TGI, Azure and proxies speak it.

Reasoning comes as ``reasoning_content``, ``reasoning`` or a ``reasoning_details`` list; a server
that sends several of them in one event repeats the same text, so the first that has text counts.
Encrypted reasoning is no token. Source: OpenAI API reference, "Chat completion chunk object".
"""

from __future__ import annotations

from typing import Any

import msgspec

from llm_locust.protocol import body
from llm_locust.protocol.answer import FIRST_CHOICE, Choice
from llm_locust.protocol.lenient import as_arguments, as_mapping, as_mappings, as_text
from llm_locust.protocol.openai_choices import ChoicesChunk, ChoicesDialect, ChoicesReader, run_decoder
from llm_locust.protocol.openai_usage import state_typed
from llm_locust.protocol.runs import RunReader
from llm_locust.protocol.types import ANSWER, NOTHING, REASONING, REFUSAL, Arrival, PromptRequest


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: Any = None
    refusal: Any = None
    tool_calls: Any = None
    function_call: Any = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    finish_reason: str | None = None


_decode = msgspec.json.Decoder(ChoicesChunk[_Choice]).decode


class _TextDelta(msgspec.Struct, gc=False):
    """A delta that says nothing but text: with anything else it cannot be decoded."""

    content: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: None = None
    refusal: None = None
    tool_calls: None = None
    function_call: None = None


class _TextChoice(msgspec.Struct, gc=False):
    delta: _TextDelta
    finish_reason: None = None


_decode_run = run_decoder(_TextChoice)


def _plain_texts(lines: bytes) -> tuple[int, list[str]]:
    """Decode events that say nothing but text of one channel, as `RunReader` has it."""
    deltas = [chunk.choices[0].delta for chunk in _decode_run(lines)]
    answer = [delta.content for delta in deltas if delta.content]
    reasoning = [text for delta in deltas if (text := delta.reasoning_content or delta.reasoning)]
    if len(answer) == len(deltas) and not reasoning:
        return ANSWER, answer
    if len(reasoning) == len(deltas) and not answer:
        return REASONING, reasoning
    return 0, []


class OpenAIChatReader(ChoicesReader):
    """Reads chat chunks: plain text of one choice typed and at once, everything else untyped."""

    __slots__ = ("_answer", "_reasoning", "_runs")

    def __init__(self, n: int = 1) -> None:
        super().__init__(n)
        self._answer = self._choices[0].answer
        self._reasoning = self._choices[0].reasoning
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
        delta = choice.delta
        if (
            delta is None
            or choice.finish_reason is not None
            or delta.tool_calls is not None
            or delta.reasoning_details is not None
            or delta.refusal is not None
            or delta.function_call is not None
            or chunk.error is not None
        ):
            return ChoicesReader.event(self, payload)
        mask = 0
        text = delta.content
        if text:
            self._answer.append(text)
            mask = ANSWER
        text = delta.reasoning_content or delta.reasoning
        if text:
            self._reasoning.append(text)
            mask |= REASONING
        if not mask:
            return ChoicesReader.event(self, payload)
        usage = chunk.usage
        self.cumulative_tokens = None if usage is None else state_typed(self._tally, usage)
        return FIRST_CHOICE[mask]

    def run(self, events: bytes, count: int) -> tuple[Arrival, ...]:
        """Read plain events at once."""
        if self._n != 1 or self.server_request_id is None:
            return NOTHING
        channel, text = self._runs.read(events, count)
        if not channel:
            return NOTHING
        (self._answer if channel == ANSWER else self._reasoning).append(text)
        self.cumulative_tokens = None
        return FIRST_CHOICE[channel]

    def _take(self, choice: Choice, item: dict[str, Any]) -> int:
        delta = as_mapping(item.get("delta")) or as_mapping(item.get("message"))
        mask = self._take_reasoning(choice, delta)
        mask |= self._take_content(choice, delta.get("content"))
        mask |= choice.add(REFUSAL, as_text(delta.get("refusal")))
        for call in as_mappings(delta.get("tool_calls")):
            function = as_mapping(call.get("function"))
            index = call.get("index")
            name = as_text(function.get("name"))
            known = len(choice.tools)
            place = index if isinstance(index, int) else known if name else max(known - 1, 0)
            mask |= choice.add_tool(place, name, as_arguments(function.get("arguments")))
        call = as_mapping(delta.get("function_call"))  # the form before tool_calls
        return mask | choice.add_tool(0, as_text(call.get("name")), as_arguments(call.get("arguments")))

    @staticmethod
    def _take_reasoning(choice: Choice, delta: dict[str, Any]) -> int:
        text = as_text(delta.get("reasoning_content")) or as_text(delta.get("reasoning"))
        if not text:
            for detail in as_mappings(delta.get("reasoning_details")):
                text += as_text(detail.get("text")) or as_text(detail.get("summary"))
        return choice.add(REASONING, text)

    @staticmethod
    def _take_content(choice: Choice, content: object) -> int:
        """Take content, which may be a list of parts (Mistral's thinking comes as such a part)."""
        mask = choice.add(ANSWER, as_text(content))
        for part in as_mappings(content):
            if part.get("type") == "thinking":
                for thought in as_mappings(part.get("thinking")):
                    mask |= choice.add(REASONING, as_text(thought.get("text")))
            else:
                mask |= choice.add(ANSWER, as_text(part.get("text")))
        return mask


class OpenAIChat(ChoicesDialect):
    """``/v1/chat/completions``; a text prompt is one message of the user."""

    name = "openai-chat"
    path = "/v1/chat/completions"
    document_path = path

    def _prompt_field(self, prompt: PromptRequest) -> dict[str, Any]:
        return {"messages": body.messages(prompt, self.name)}

    def reader(self, *, stream: bool, n: int = 1) -> OpenAIChatReader:
        """Make the reader of one answer; it reads streams and documents alike."""
        return OpenAIChatReader(n)
