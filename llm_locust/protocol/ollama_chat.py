"""Ollama's ``/api/chat``: one JSON object a line; the last one is ``"done": true`` with the counts.

Source: Ollama, docs/api.md. Lines of ``/api/generate`` (``response`` in place of ``message``) are
read as well. Older servers and SGLang's imitation give no ``done_reason``: ``done`` alone is the end.
"""

from __future__ import annotations

from typing import Any

from llm_locust.protocol import body
from llm_locust.protocol.answer import FIRST_CHOICE, AnswerReader
from llm_locust.protocol.lenient import as_arguments, as_count, as_mapping, as_mappings, as_text
from llm_locust.protocol.types import ANSWER, REASONING, Arrival, BodyOptions, Framing, PromptRequest


class OllamaChatReader(AnswerReader):
    """Reads the lines of one answer."""

    __slots__ = ()

    def _read(self, event: dict[str, Any], event_type: bytes) -> tuple[Arrival, ...]:
        message = as_mapping(event.get("message"))
        choice = self._choices[0]
        thinking = as_text(message.get("thinking")) or as_text(event.get("thinking"))
        answer = as_text(message.get("content")) or as_text(event.get("response"))
        mask = choice.add(REASONING, thinking) | choice.add(ANSWER, answer)
        for call in as_mappings(message.get("tool_calls")):
            function = as_mapping(call.get("function"))
            arguments = as_arguments(function.get("arguments"))
            mask |= choice.add_tool(len(choice.tools), as_text(function.get("name")), arguments)
        if event.get("done") is True:
            self._tally.input(as_count(event.get("prompt_eval_count")), None)
            self._tally.output(0, as_count(event.get("eval_count")))
            self._finish(0, event.get("done_reason"))
            self._end()
        return FIRST_CHOICE[mask]

    def _read_document(self, document: dict[str, Any], place: int) -> None:
        self._read(document, b"")


class OllamaChat:
    """``/api/chat``."""

    name = "ollama-chat"
    path = "/api/chat"
    document_path = path
    framing = Framing.NDJSON
    finish_reason_expected = False
    optional_fields: tuple[str, ...] = ()

    def body(self, prompt: PromptRequest, options: BodyOptions) -> dict[str, Any]:
        """Build the JSON body; raises ValueError for token ids."""
        body.one_choice(options, self.name)
        limits = body.present({"num_predict": prompt.output_tokens, "temperature": options.temperature})
        fields = {
            "model": options.model,
            "messages": body.messages(prompt, self.name),
            "options": limits or None,
            "stream": options.stream,
        }
        return body.with_extra(body.present(fields), prompt, options)

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the authorization header (for a proxy before Ollama, which itself has no keys)."""
        return body.bearer(api_key)

    def reader(self, *, stream: bool, n: int = 1) -> OllamaChatReader:
        """Make the reader of one answer; it reads streams and documents alike."""
        return OllamaChatReader(n)
