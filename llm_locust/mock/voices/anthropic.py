"""Anthropic's Messages API: named events, the output count in message_delta, no [DONE]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from llm_locust.mock.pace import Sequence
from llm_locust.mock.tokens import words_of
from llm_locust.mock.voices.voice import Ask, BadRequestError, Voice, chat_prompt, message_text, whole_number

_STOP_REASONS = {"length": b"max_tokens", "stop": b"end_turn", "abort": b"abort"}


class MessagesVoice(Voice):
    """POST /v1/messages."""

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Ask:
        prefix, prompt_tokens = chat_prompt(body.get("messages"))
        system = tuple(words_of(message_text(body.get("system"))))
        limit = whole_number(body, "max_tokens")
        if limit is None:
            raise BadRequestError("max_tokens is required")
        return Ask(
            model=str(body.get("model") or "mock"),
            prefix=system + prefix,
            prompt_tokens=len(system) + prompt_tokens,
            limit_tokens=limit,
            stream=bool(body.get("stream")),
            min_tokens=whole_number(body, "min_tokens", 0) or 0,
            ignore_eos=bool(body.get("ignore_eos")),
            stop=tuple(map(str, body.get("stop_sequences") or ())),
        )

    def _usage(self, output_tokens: int) -> bytes:
        cached = self.cached_tokens
        return b'{"input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d}' % (
            self.ask.prompt_tokens - cached,
            cached,
            output_tokens,
        )

    def opening(self) -> bytes:
        message = b'{"id":"%b","type":"message","role":"assistant","content":[],"model":%b,"stop_reason":null%b}' % (
            self.id,
            self.model,
            b',"usage":' + self._usage(0) if self.with_usage else b"",
        )
        return (
            _event(b"message_start", b'"message":' + message)
            + _event(b"content_block_start", b'"index":0,"content_block":{"type":"text","text":""}')
            + _event(b"ping", b"")
        )

    def token(self, sequence: Sequence, text: bytes, now_ns: int) -> bytes:
        tail = b',"t":%d' % now_ns if self.stamp else b""
        return _event(b"content_block_delta", b'"index":0,"delta":{"type":"text_delta","text":"%b"}%b' % (text, tail))

    def choice_end(self, sequence: Sequence, finish: str) -> bytes:
        delta = b'"delta":{"stop_reason":"%b","stop_sequence":null}' % _STOP_REASONS[finish]
        if self.with_usage:
            delta += b',"usage":' + self._usage(sequence.emitted)
        return _event(b"content_block_stop", b'"index":0') + _event(b"message_delta", delta)

    def closing(self) -> bytes:
        return _event(b"message_stop", b"")

    def error(self, message: str) -> bytes:
        return _event(b"error", b'"error":{"type":"api_error","message":%b}' % msgspec.json.encode(message))

    def malformed(self) -> bytes:
        return b'event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"te\n\n'

    def ending_without_finish(self) -> bytes:
        return _event(b"content_block_stop", b'"index":0')

    def document(self, texts: list[bytes], finishes: list[str]) -> bytes:
        return (
            b'{"id":"%b","type":"message","role":"assistant","model":%b,"content":[{"type":"text","text":"%b"}],'
            b'"stop_reason":"%b","stop_sequence":null,"usage":%b}'
            % (self.id, self.model, texts[0], _STOP_REASONS[finishes[0]], self._usage(self.output_tokens))
        )


def _event(kind: bytes, fields: bytes) -> bytes:
    return b'event: %b\ndata: {"type":"%b"%b}\n\n' % (kind, kind, b"," + fields if fields else b"")
