"""TGI's native API: ``data:`` without a blank, one event a token, the end inside the last one, no [DONE]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_locust.mock.pace import Sequence
from llm_locust.mock.voices.voice import Ask, BadRequestError, Voice, text_prompt, whole_number

_FINISHES = {"length": b"length", "stop": b"eos_token", "abort": b"abort"}


class TGIVoice(Voice):
    """POST /generate_stream; its ``stream`` is the path, not a field."""

    stream = True

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Ask:
        parameters = body.get("parameters") or {}
        if not isinstance(parameters, dict):
            raise BadRequestError("parameters must be an object", 422)
        prefix, prompt_tokens = text_prompt(body.get("inputs"))
        return Ask(
            model="mock",
            prefix=prefix,
            prompt_tokens=prompt_tokens,
            limit_tokens=whole_number(parameters, "max_new_tokens") or 100,
            stream=cls.stream,
            ignore_eos=bool(body.get("ignore_eos")),
            stop=tuple(map(str, parameters.get("stop") or ())),
        )

    def build(self) -> None:
        self._text = b""

    def token(self, sequence: Sequence, text: bytes, now_ns: int) -> bytes:
        self._text += text
        return self._event(sequence, self._token(text), b'null,"details":null', now_ns)

    def last_token(self, sequence: Sequence, text: bytes, now_ns: int, finish: str) -> bytes:
        self._text += text
        return self._event(sequence, self._token(text), self._end(sequence, finish), now_ns)

    @staticmethod
    def _token(text: bytes) -> bytes:
        return b'{"id":7,"text":"%b","logprob":-0.5,"special":false}' % text

    def _end(self, sequence: Sequence, finish: str) -> bytes:
        counts = b'"generated_tokens":%d,"input_length":%d,' % (sequence.emitted, self.ask.prompt_tokens)
        return b'"%b","details":{"finish_reason":"%b",%b"seed":null}' % (
            self._text,
            _FINISHES[finish],
            counts if self.with_usage else b"",
        )

    def _event(self, sequence: Sequence, token: bytes, end: bytes, now_ns: int) -> bytes:
        return b'data:{"index":%d,"token":%b,"generated_text":%b%b}\n\n' % (
            sequence.emitted,
            token,
            end,
            b',"t":%d' % now_ns if self.stamp else b"",
        )

    def choice_end(self, sequence: Sequence, finish: str) -> bytes:
        return b'data:{"index":%d,"token":null,"generated_text":%b}\n\n' % (
            sequence.emitted,
            self._end(sequence, finish),
        )

    def closing(self) -> bytes:
        return b""

    def error(self, message: str) -> bytes:
        return b'data:{"error":"%b","error_type":"generation"}\n\n' % message.encode()

    def malformed(self) -> bytes:
        return b'data:{"index":1,"token":{"id":7,"te\n\n'

    def ending_without_finish(self) -> bytes:
        return b""

    def document(self, texts: list[bytes], finishes: list[str]) -> bytes:
        self._text = texts[0]
        return b'{"generated_text":%b}' % self._end(self.sequences[0], finishes[0])


class TGIDocumentVoice(TGIVoice):
    """POST /generate with TGI's ``inputs``."""

    stream = False
