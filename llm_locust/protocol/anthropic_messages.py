"""Anthropic's Messages API: named events, counts at the start and in ``message_delta``, no [DONE].

Source: Anthropic API reference, "Streaming Messages"; vLLM, SGLang and llama.cpp speak it too.
The output count of ``message_start`` is a seed, not a count, and is not taken. The prompt's length
is the sum of its uncached, cache-written and cache-read parts, as Anthropic bills them apart.
"""

from __future__ import annotations

from typing import Any

from llm_locust.protocol import body
from llm_locust.protocol.answer import FIRST_CHOICE, AnswerReader
from llm_locust.protocol.lenient import as_arguments, as_count, as_mapping, as_mappings, as_text
from llm_locust.protocol.types import ANSWER, NOTHING, REASONING, Arrival, BodyOptions, Framing, PromptRequest

_VERSION = "2023-06-01"


class AnthropicMessagesReader(AnswerReader):
    """Reads the events of one message; its content blocks are all of one choice."""

    __slots__ = ()

    def _read(self, event: dict[str, Any], event_type: bytes) -> tuple[Arrival, ...]:
        kind = as_text(event.get("type")) or event_type.decode("latin-1")
        if kind == "content_block_delta":
            return FIRST_CHOICE[self._take(as_mapping(event.get("delta")), event.get("index"))]
        if kind == "content_block_start":
            return FIRST_CHOICE[self._take(as_mapping(event.get("content_block")), event.get("index"))]
        if kind == "message_start":
            message = as_mapping(event.get("message"))
            self._note_id(message.get("id"))
            self._note_input(as_mapping(message.get("usage")))
        elif kind == "message_delta":
            usage = as_mapping(event.get("usage"))
            self._note_input(usage)
            self._tally.output(0, as_count(usage.get("output_tokens")))
            self._finish(0, as_mapping(event.get("delta")).get("stop_reason"))
        elif kind == "message_stop":
            self._end()
        return NOTHING

    def _read_document(self, document: dict[str, Any], place: int) -> None:
        self._note_id(document.get("id"))
        for index, block in enumerate(as_mappings(document.get("content"))):
            self._take(block, index)
        usage = as_mapping(document.get("usage"))
        self._note_input(usage)
        self._tally.output(0, as_count(usage.get("output_tokens")))
        self._finish(0, document.get("stop_reason"))

    def _take(self, block: dict[str, Any], index: object) -> int:
        """Add the text of a content block or of a delta; return its channel mask.

        Signatures and redacted thinking are encrypted: no tokens.
        """
        choice = self._choices[0]
        mask = choice.add(REASONING, as_text(block.get("thinking"))) | choice.add(ANSWER, as_text(block.get("text")))
        arguments = as_text(block.get("partial_json")) or (as_arguments(block["input"]) if block.get("input") else "")
        place = index if isinstance(index, int) else 0
        return mask | choice.add_tool(place, as_text(block.get("name")), arguments)

    def _note_input(self, usage: dict[str, Any]) -> None:
        """Note the prompt's length, where this usage states it."""
        fresh = as_count(usage.get("input_tokens"))
        if fresh is None:
            return
        read = as_count(usage.get("cache_read_input_tokens"))
        written = as_count(usage.get("cache_creation_input_tokens"))
        self._tally.input(fresh + (read or 0) + (written or 0), read)


class AnthropicMessages:
    """``/v1/messages``."""

    name = "anthropic-messages"
    path = "/v1/messages"
    document_path = path
    framing = Framing.SSE
    finish_reason_expected = True
    optional_fields: tuple[str, ...] = ()

    def body(self, prompt: PromptRequest, options: BodyOptions) -> dict[str, Any]:
        """Build the JSON body; raises ValueError without an output limit, which the API demands."""
        body.one_choice(options, self.name)
        if prompt.output_tokens is None:
            raise ValueError(f"{self.name} demands an output limit")
        turns = body.messages(prompt, self.name)
        system = "\n\n".join(turn["content"] for turn in turns if turn["role"] == "system")
        fields = {
            "model": options.model,
            "system": system or None,
            "messages": [turn for turn in turns if turn["role"] != "system"],
            "max_tokens": prompt.output_tokens,
            "temperature": options.temperature,
            "stream": options.stream,
        }
        return body.with_extra(body.present(fields), prompt, options)

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the API version and the key."""
        key = {"x-api-key": api_key} if api_key else {}
        return {"anthropic-version": _VERSION, **key}

    def reader(self, *, stream: bool, n: int = 1) -> AnthropicMessagesReader:
        """Make the reader of one answer; it reads streams and documents alike."""
        return AnthropicMessagesReader(n)
