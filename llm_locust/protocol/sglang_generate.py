"""SGLang's native ``/generate``: every event repeats the whole text, the counts are in ``meta_info``.

Source: SGLang documentation, "Native API", and its answers (0.5). A server started with
incremental streaming sends pieces instead; the first text that does not continue the one before,
in an answer that has not finished, tells so. The finish reason is an object; ``abort`` is its
word for a request that the engine gave up. Errors come as HTTP 200 with an error event.
"""

from __future__ import annotations

from typing import Any

import msgspec

from llm_locust.protocol import body
from llm_locust.protocol.answer import FIRST_CHOICE, AnswerReader
from llm_locust.protocol.lenient import as_count, as_mapping, as_text
from llm_locust.protocol.types import ANSWER, NOTHING, UNSEEN, Arrival, BodyOptions, Framing, PromptRequest


class _Meta(msgspec.Struct, gc=False):
    prompt_tokens: int
    completion_tokens: int
    finish_reason: Any = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Chunk(msgspec.Struct, gc=False):
    text: str
    meta_info: _Meta
    error: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode


class SGLangGenerateReader(AnswerReader):
    """Reads ``/generate`` events; ``_texts`` holds the text so far of each choice."""

    __slots__ = ("_incremental", "_texts")

    def __init__(self, n: int = 1) -> None:
        super().__init__(n)
        self._texts: dict[int, str] = {}
        self._incremental = False

    def event(self, payload: bytes, event_type: bytes = b"") -> tuple[Arrival, ...]:
        """Read one event's data; return its token-bearing arrivals. Never raises on input."""
        if self._n != 1 or event_type or self.server_request_id is None:
            return AnswerReader.event(self, payload, event_type)
        try:
            chunk = _decode(payload)
        except (ValueError, RecursionError):
            return AnswerReader.event(self, payload)
        meta = chunk.meta_info
        if meta.finish_reason is not None or chunk.error is not None:
            return AnswerReader.event(self, payload)
        mask = self._take(0, chunk.text, meta.completion_tokens, finished=False)
        self._tally.input(meta.prompt_tokens, meta.cached_tokens)
        self.cumulative_tokens = self._tally.output(0, meta.completion_tokens, meta.reasoning_tokens)
        return FIRST_CHOICE[mask]

    def _read(self, event: dict[str, Any], event_type: bytes) -> tuple[Arrival, ...]:
        meta = as_mapping(event.get("meta_info"))
        self._note_id(meta.get("id"))
        place = self._place(event.get("index"))
        reason = as_mapping(meta.get("finish_reason")).get("type") or meta.get("finish_reason")
        tokens = as_count(meta.get("completion_tokens"))
        mask = self._take(place, as_text(event.get("text")), tokens, finished=reason is not None)
        self._tally.input(as_count(meta.get("prompt_tokens")), as_count(meta.get("cached_tokens")))
        self.cumulative_tokens = self._tally.output(place, tokens, as_count(meta.get("reasoning_tokens")))
        self._finish(place, reason)
        return ((place, mask),) if mask else NOTHING

    def _read_document(self, document: dict[str, Any], place: int) -> None:
        self._read({"index": place, **document}, b"")

    def _take(self, place: int, text: str, tokens: int | None, *, finished: bool) -> int:
        """Take the text of one event, whole or piece; return its channel mask.

        At the end a shorter text is the same text without its stop string.
        """
        before = self._texts.get(place, "")
        if text and not finished and not self._incremental and not text.startswith(before):
            self._incremental = True
        if self._incremental:
            text = before + text
        grew = len(text) > len(before)
        if text:
            self._texts[place] = text
            self._choice(place).answer[:] = (text,)
        counted = self._tally.grows(place, tokens, bears_text=grew, ended=finished)
        return ANSWER if grew else UNSEEN if counted else 0


class SGLangGenerate:
    """``/generate``. It knows no model name and no messages."""

    name = "sglang-generate"
    path = "/generate"
    document_path = path
    framing = Framing.SSE
    finish_reason_expected = True
    optional_fields: tuple[str, ...] = ("ignore_eos",)

    def body(self, prompt: PromptRequest, options: BodyOptions) -> dict[str, Any]:
        """Build the JSON body; raises ValueError for a conversation.

        ``ignore_eos`` alone fixes the length here: ``min_new_tokens`` would add a mask over the
        vocabulary to each decode step, which is not what is to be measured.
        """
        tokens = body.text_or_ids(prompt, self.name)
        sampling = body.present(
            {
                "max_new_tokens": prompt.output_tokens,
                "temperature": options.temperature,
                "ignore_eos": True if options.ignore_eos else None,
                "n": options.n if options.n != 1 else None,
            },
            options.refused,
        )
        fields = {
            ("text" if isinstance(tokens, str) else "input_ids"): tokens,
            "sampling_params": sampling,
            "stream": options.stream,
        }
        return body.with_extra(fields, prompt, options)

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the authorization header."""
        return body.bearer(api_key)

    def reader(self, *, stream: bool, n: int = 1) -> SGLangGenerateReader:
        """Make the reader of one answer; it reads streams and documents alike."""
        return SGLangGenerateReader(n)
