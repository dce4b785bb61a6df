"""OpenAI chat completions and completions, as SGLang and vLLM serve them.

The role event goes out before any work is done; the finish reason, the usage event (``choices`` empty) and
``[DONE]`` follow the last token.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from llm_locust.mock.pace import Sequence
from llm_locust.mock.tokens import TokenKey
from llm_locust.mock.voices.voice import (
    DONE,
    Ask,
    BadRequestError,
    Voice,
    chat_prompt,
    stop_texts,
    text_prompt,
    whole_number,
)


def _ask(body: Mapping[str, Any], prompt: tuple[tuple[TokenKey, ...], int], limit: int | None) -> Ask:
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise BadRequestError("stream_options must be an object")
    return Ask(
        model=str(body.get("model") or "mock"),
        prefix=prompt[0],
        prompt_tokens=prompt[1],
        limit_tokens=limit,
        stream=bool(body.get("stream")),
        min_tokens=whole_number(body, "min_tokens", 0) or 0,
        ignore_eos=bool(body.get("ignore_eos")),
        n=whole_number(body, "n") or 1,
        include_usage=bool(options.get("include_usage")),
        continuous_usage=bool(options.get("continuous_usage_stats")),
        stop=stop_texts(body),
    )


class _OpenAIVoice(Voice):
    """What both dialects share: the envelope, the usage event, the document."""

    always_counts = False
    chunk_object: ClassVar[bytes]
    document_object: ClassVar[bytes]

    def build(self) -> None:
        self.envelope = b'data: {"id":"%b","object":"%b","created":%b,"model":%b,"choices":[' % (
            self.id,
            self.chunk_object,
            self.created,
            self.model,
        )

    def closing(self) -> bytes:
        if not (self.ask.include_usage and self.with_usage):
            return DONE
        return self.envelope + b'],"usage":' + self.usage() + b"}\n\n" + DONE

    def document(self, texts: list[bytes], finishes: list[str]) -> bytes:
        choices = b",".join(
            self.document_choice(index, text, finish.encode())
            for index, (text, finish) in enumerate(zip(texts, finishes, strict=True))
        )
        return b'{"id":"%b","object":"%b","created":%b,"model":%b,"choices":[%b]%b}' % (
            self.id,
            self.document_object,
            self.created,
            self.model,
            choices,
            b',"usage":' + self.usage() if self.with_usage else b"",
        )

    def document_choice(self, index: int, text: bytes, finish: bytes) -> bytes:
        raise NotImplementedError


class ChatVoice(_OpenAIVoice):
    """POST /v1/chat/completions."""

    chunk_object = b"chat.completion.chunk"
    document_object = b"chat.completion"

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Ask:
        limit = whole_number(body, "max_completion_tokens") or whole_number(body, "max_tokens")
        return _ask(body, chat_prompt(body.get("messages")), limit)

    def build(self) -> None:
        super().build()
        self._before = [self.envelope + b'{"index":%d,"delta":{"content":"' % choice for choice in range(self.ask.n)]

    def opening(self) -> bytes:
        role = b'{"index":%d,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}\n\n'
        return b"".join(self.envelope + role % choice for choice in range(self.ask.n))

    def token(self, sequence: Sequence, text: bytes, now_ns: int) -> bytes:
        tail = self.tail(now_ns)
        return self._before[sequence.choice] + text + b'"},"logprobs":null,"finish_reason":null}]' + tail + b"}\n\n"

    def choice_end(self, sequence: Sequence, finish: str) -> bytes:
        return self.envelope + b'{"index":%d,"delta":{},"logprobs":null,"finish_reason":"%b"}]}\n\n' % (
            sequence.choice,
            finish.encode(),
        )

    def document_choice(self, index: int, text: bytes, finish: bytes) -> bytes:
        message = b'{"role":"assistant","content":"%b"}' % text
        return b'{"index":%d,"message":%b,"logprobs":null,"finish_reason":"%b"}' % (index, message, finish)


class CompletionsVoice(_OpenAIVoice):
    """POST /v1/completions."""

    chunk_object = b"text_completion"
    document_object = b"text_completion"

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Ask:
        # 16 is the limit that the API's own documentation gives to requests that name none.
        return _ask(body, text_prompt(body.get("prompt")), whole_number(body, "max_tokens") or 16)

    def build(self) -> None:
        super().build()
        self._before = [self.envelope + b'{"index":%d,"text":"' % choice for choice in range(self.ask.n)]

    def token(self, sequence: Sequence, text: bytes, now_ns: int) -> bytes:
        tail = self.tail(now_ns)
        return self._before[sequence.choice] + text + b'","logprobs":null,"finish_reason":null}]' + tail + b"}\n\n"

    def choice_end(self, sequence: Sequence, finish: str) -> bytes:
        return self._before[sequence.choice] + b'","logprobs":null,"finish_reason":"%b"}]}\n\n' % finish.encode()

    def document_choice(self, index: int, text: bytes, finish: bytes) -> bytes:
        return b'{"index":%d,"text":"%b","logprobs":null,"finish_reason":"%b"}' % (index, text, finish)
