"""OpenAI Responses: typed events with deltas; ``*.done`` events repeat what came.

Source: OpenAI API reference, "Responses: streaming events"; vLLM, SGLang, llama.cpp, Dynamo and
transformers serve speak it, the last without ``event:`` lines, and Dynamo with a [DONE] after the
end. The API has no finish reason: why a response is incomplete stands for it, else its status.
``max_output_tokens`` is told as ``length``, the word of every other dialect (vLLM calls a response
``completed`` also where the limit cut it).
"""

from __future__ import annotations

from typing import Any

from llm_locust.protocol import body
from llm_locust.protocol.answer import FIRST_CHOICE, AnswerReader
from llm_locust.protocol.lenient import as_arguments, as_count, as_mapping, as_mappings, as_text, stated_error
from llm_locust.protocol.types import (
    ANSWER,
    NOTHING,
    REASONING,
    REFUSAL,
    TOOL,
    Arrival,
    BodyOptions,
    Framing,
    PromptRequest,
)

_DELTAS = {
    "response.output_text.delta": ANSWER,
    "response.reasoning_text.delta": REASONING,
    "response.reasoning_summary_text.delta": REASONING,
    "response.refusal.delta": REFUSAL,
    "response.function_call_arguments.delta": TOOL,
    "response.custom_tool_call_input.delta": TOOL,
    "response.mcp_call_arguments.delta": TOOL,
    "response.code_interpreter_call_code.delta": TOOL,
}
_PARTS = {"output_text": ANSWER, "reasoning_text": REASONING, "summary_text": REASONING, "refusal": REFUSAL}
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_LIMIT = "max_output_tokens"


class OpenAIResponsesReader(AnswerReader):
    """Reads the events of one response."""

    __slots__ = ()

    def _read(self, event: dict[str, Any], event_type: bytes) -> tuple[Arrival, ...]:
        kind = as_text(event.get("type")) or event_type.decode("latin-1")
        channel = _DELTAS.get(kind, 0)
        if channel:
            return FIRST_CHOICE[self._take(channel, event)]
        if kind == "response.output_item.added":
            item = as_mapping(event.get("item"))
            return FIRST_CHOICE[self._take_call(event, as_text(item.get("name")), "")]
        response = as_mapping(event.get("response"))
        self._note_id(response.get("id"))
        if kind in _ENDS:
            self._close(response, kind.removeprefix("response."))
        return NOTHING

    def _read_document(self, document: dict[str, Any], place: int) -> None:
        self._note_id(document.get("id"))
        choice = self._choices[0]
        for index, item in enumerate(as_mappings(document.get("output"))):
            for part in as_mappings(item.get("content")) + as_mappings(item.get("summary")):
                channel = _PARTS.get(as_text(part.get("type")), 0)
                choice.add(channel, as_text(part.get("text")) or as_text(part.get("refusal"))) if channel else None
            arguments = as_arguments(item.get("arguments")) or as_text(item.get("input"))
            choice.add_tool(index, as_text(item.get("name")), arguments)
        self._close(document, as_text(document.get("status")))

    def _take(self, channel: int, event: dict[str, Any]) -> int:
        """Add one delta; return its channel, or 0 for an empty one."""
        delta = as_text(event.get("delta"))
        if channel == TOOL:
            return self._take_call(event, "", delta)
        return self._choices[0].add(channel, delta)

    def _take_call(self, event: dict[str, Any], name: str, arguments: str) -> int:
        index = event.get("output_index")
        return self._choices[0].add_tool(index if isinstance(index, int) else 0, name, arguments)

    def _close(self, response: dict[str, Any], fallback: str) -> None:
        """Read the final state of the response."""
        usage = as_mapping(response.get("usage"))
        input_details = as_mapping(usage.get("input_tokens_details"))
        output_details = as_mapping(usage.get("output_tokens_details"))
        self._tally.input(as_count(usage.get("input_tokens")), as_count(input_details.get("cached_tokens")))
        reasoning = as_count(output_details.get("reasoning_tokens"))
        self._tally.output(0, as_count(usage.get("output_tokens")), reasoning)
        status = as_text(response.get("status")) or fallback
        if status == "failed":
            self._note_error(stated_error({"type": "error", **response}))
        self.aborted = self.aborted or status == "cancelled"
        reason = as_mapping(response.get("incomplete_details")).get("reason")
        self._finish(0, "length" if reason == _LIMIT else as_text(reason) or status)
        self._end()


class OpenAIResponses:
    """``/v1/responses``."""

    name = "openai-responses"
    path = "/v1/responses"
    document_path = path
    framing = Framing.SSE
    finish_reason_expected = True
    optional_fields: tuple[str, ...] = ()

    def body(self, prompt: PromptRequest, options: BodyOptions) -> dict[str, Any]:
        """Build the JSON body; raises ValueError for token ids."""
        body.one_choice(options, self.name)
        fields = {
            "model": options.model,
            "input": prompt.text if prompt.text is not None else body.messages(prompt, self.name),
            "max_output_tokens": prompt.output_tokens,
            "temperature": options.temperature,
            "stream": options.stream,
        }
        return body.with_extra(body.present(fields), prompt, options)

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the authorization header."""
        return body.bearer(api_key)

    def reader(self, *, stream: bool, n: int = 1) -> OpenAIResponsesReader:
        """Make the reader of one answer; it reads streams and documents alike."""
        return OpenAIResponsesReader(n)
