"""OpenAI's Responses API: named events; the last one repeats the whole answer with its usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from llm_locust.mock.pace import Sequence
from llm_locust.mock.tokens import words_of
from llm_locust.mock.voices.voice import Ask, Voice, chat_prompt, text_prompt, whole_number

_STATUS = {"length": b"incomplete", "stop": b"completed", "abort": b"cancelled"}


class ResponsesVoice(Voice):
    """POST /v1/responses."""

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Ask:
        given = body.get("input")
        prefix, prompt_tokens = text_prompt(given) if isinstance(given, str) else chat_prompt(given)
        instructions = tuple(words_of(str(body.get("instructions") or "")))
        return Ask(
            model=str(body.get("model") or "mock"),
            prefix=instructions + prefix,
            prompt_tokens=len(instructions) + prompt_tokens,
            limit_tokens=whole_number(body, "max_output_tokens"),
            stream=bool(body.get("stream")),
            min_tokens=whole_number(body, "min_tokens", 0) or 0,
            ignore_eos=bool(body.get("ignore_eos")),
        )

    def build(self) -> None:
        self._text = b""
        self._number = 0

    def _event(self, kind: bytes, fields: bytes) -> bytes:
        number, self._number = self._number, self._number + 1
        return b'event: %b\ndata: {"type":"%b",%b,"sequence_number":%d}\n\n' % (kind, kind, fields, number)

    def _part(self) -> bytes:
        return b'{"type":"output_text","text":"%b","annotations":[]}' % self._text

    def _response(self, status: bytes, rest: bytes) -> bytes:
        return b'{"id":"%b","object":"response","created_at":%b,"model":%b,"status":"%b"%b}' % (
            self.id,
            self.created,
            self.model,
            status,
            rest,
        )

    def opening(self) -> bytes:
        response = b'"response":' + self._response(b"in_progress", b',"output":[],"usage":null')
        item = b'"output_index":0,"item":{"id":"msg","type":"message","role":"assistant","content":[]}'
        part = b'"item_id":"msg","output_index":0,"content_index":0,"part":' + self._part()
        return (
            self._event(b"response.created", response)
            + self._event(b"response.in_progress", response)
            + self._event(b"response.output_item.added", item)
            + self._event(b"response.content_part.added", part)
        )

    def token(self, sequence: Sequence, text: bytes, now_ns: int) -> bytes:
        self._text += text
        fields = b'"item_id":"msg","output_index":0,"content_index":0,"delta":"%b"' % text
        return self._event(b"response.output_text.delta", fields + b',"t":%d' % now_ns if self.stamp else fields)

    def choice_end(self, sequence: Sequence, finish: str) -> bytes:
        place = b'"item_id":"msg","output_index":0,"content_index":0,'
        status = _STATUS[finish]
        return (
            self._event(b"response.output_text.done", place + b'"text":"%b"' % self._text)
            + self._event(b"response.content_part.done", place + b'"part":' + self._part())
            + self._event(b"response.output_item.done", b'"output_index":0,"item":' + self._item())
            + self._event(b"response." + status, b'"response":' + self._final(finish))
        )

    def _item(self) -> bytes:
        return b'{"id":"msg","type":"message","role":"assistant","status":"completed","content":[%b]}' % self._part()

    def _final(self, finish: str) -> bytes:
        why = b'{"reason":"max_output_tokens"}' if finish == "length" else b"null"
        rest = b',"output":[%b],"error":null,"incomplete_details":%b' % (self._item(), why)
        if self.with_usage:
            prompt, output = self.ask.prompt_tokens, self.output_tokens
            rest += (
                b',"usage":{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,'
                b'"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}'
                % (prompt, self.cached_tokens, output, prompt + output)
            )
        return self._response(_STATUS[finish], rest)

    def closing(self) -> bytes:
        return b""

    def error(self, message: str) -> bytes:
        error = b',"error":{"code":"server_error","message":%b}' % msgspec.json.encode(message)
        return self._event(b"response.failed", b'"response":' + self._response(b"failed", error))

    def malformed(self) -> bytes:
        return b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","del\n\n'

    def ending_without_finish(self) -> bytes:
        return b""

    def document(self, texts: list[bytes], finishes: list[str]) -> bytes:
        self._text = texts[0]
        return self._final(finishes[0])
