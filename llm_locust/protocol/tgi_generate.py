"""TGI's native ``/generate_stream``: one event a token, the last one repeats the whole text.

Source: text-generation-inference, OpenAPI document, "StreamResponse". Each event is one token by
definition, so the running count is the number of token events, and a special token (the end of the
text) is a token without text. There is no [DONE]: the event with ``generated_text`` is the end. A
document without ``details`` has no finish reason, so none is expected.
"""

from __future__ import annotations

from typing import Any

from llm_locust.protocol import body
from llm_locust.protocol.answer import FIRST_CHOICE, AnswerReader
from llm_locust.protocol.lenient import as_count, as_mapping, as_text
from llm_locust.protocol.types import ANSWER, NOTHING, UNSEEN, Arrival, BodyOptions, Framing, PromptRequest


class TGIGenerateReader(AnswerReader):
    """Reads the token events of one answer."""

    __slots__ = ("_tokens",)

    def __init__(self, n: int = 1) -> None:
        super().__init__(n)
        self._tokens = 0

    def _read(self, event: dict[str, Any], event_type: bytes) -> tuple[Arrival, ...]:
        token = event.get("token")
        mask = 0
        if isinstance(token, dict):
            text = "" if token.get("special") is True else as_text(token.get("text"))
            mask = self._choices[0].add(ANSWER, text) or UNSEEN
            self._tokens += 1
            self.cumulative_tokens = self._tokens
        self._close(event)
        return FIRST_CHOICE[mask] if mask else NOTHING

    def _read_document(self, document: dict[str, Any], place: int) -> None:
        self._close(document)

    def _close(self, event: dict[str, Any]) -> None:
        """Read the end, where this event is it; its text is without special tokens, so it stands."""
        details = as_mapping(event.get("details"))
        self._tally.input(as_count(details.get("input_length")), None)
        self._tally.output(0, as_count(details.get("generated_tokens")))
        self._finish(0, details.get("finish_reason"))
        text = event.get("generated_text")
        if isinstance(text, str):
            self._choices[0].answer[:] = (text,)
            self._end()


class TGIGenerate:
    """``/generate_stream``; a document is asked for at ``/generate``."""

    name = "tgi-generate"
    path = "/generate_stream"
    document_path = "/generate"
    framing = Framing.SSE
    finish_reason_expected = False
    optional_fields: tuple[str, ...] = ()

    def body(self, prompt: PromptRequest, options: BodyOptions) -> dict[str, Any]:
        """Build the JSON body; raises ValueError for a conversation or token ids.

        TGI refuses temperature 0; greedy decoding is what it does without sampling.
        """
        body.one_choice(options, self.name)
        parameters = {
            "max_new_tokens": prompt.output_tokens,
            "temperature": options.temperature or None,
            "do_sample": None if options.temperature is None else options.temperature > 0,
            "details": True,
        }
        fields = {"inputs": body.text(prompt, self.name), "parameters": body.present(parameters)}
        return body.with_extra(fields, prompt, options)

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the authorization header."""
        return body.bearer(api_key)

    def reader(self, *, stream: bool, n: int = 1) -> TGIGenerateReader:
        """Make the reader of one answer; it reads streams and documents alike."""
        return TGIGenerateReader(n)
