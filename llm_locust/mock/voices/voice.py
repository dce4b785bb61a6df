"""What every API dialect of the server has in common: the request as asked, the answer as bytes.

A voice is made for one request. It builds bytes only; pacing, faults and sending are the stream's.
Texts are JSON string contents, already escaped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from llm_locust.mock.pace import Sequence
from llm_locust.mock.tokens import CHAT_TOKENS_PER_MESSAGE, TokenKey, words_of

SSE = b"text/event-stream; charset=utf-8"
DONE = b"data: [DONE]\n\n"


class BadRequestError(Exception):
    """The request cannot be served; ``status`` and the message go to the client."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What a request wants, in no dialect's words."""

    model: str
    prefix: tuple[TokenKey, ...]
    prompt_tokens: int
    limit_tokens: int | None
    stream: bool
    min_tokens: int = 0
    ignore_eos: bool = False
    n: int = 1
    include_usage: bool = False
    continuous_usage: bool = False
    stop: tuple[str, ...] = ()


class Voice:
    """One answer in one dialect. Subclasses say how each event looks."""

    content_type = SSE
    always_counts = True  # usage comes without being asked for

    def __init__(self, ask: Ask, answer_id: str, created_s: int, stamp: bool) -> None:
        self.ask = ask
        self.id = answer_id.encode()
        self.created = b"%d" % created_s
        self.model = msgspec.json.encode(ask.model)
        self.stamp = stamp
        self.with_usage = True  # False: the fault that leaves usage out
        self.sequences: list[Sequence] = []
        self.build()

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Ask:
        """Read a request's JSON body. Raises BadRequestError."""
        raise NotImplementedError

    def build(self) -> None:
        """Prepare what does not change from event to event."""

    def opening(self) -> bytes:
        """Events before any work is done."""
        return b""

    def token(self, sequence: Sequence, text: bytes, now_ns: int) -> bytes:
        """One event of generated text. Hot path."""
        raise NotImplementedError

    def choice_end(self, sequence: Sequence, finish: str) -> bytes:
        """The end of one choice: length, stop or abort."""
        raise NotImplementedError

    def last_token(self, sequence: Sequence, text: bytes, now_ns: int, finish: str) -> bytes:
        """The last token of a choice with its end."""
        return self.token(sequence, text, now_ns) + self.choice_end(sequence, finish)

    def closing(self) -> bytes:
        """What follows when all choices have ended."""
        return DONE

    def error(self, message: str) -> bytes:
        """An error in mid-stream, after which nothing else comes."""
        return b"data: %b\n\n" % msgspec.json.encode({"error": {"message": message, "code": 500}}) + DONE

    def malformed(self) -> bytes:
        """An event that cannot be decoded."""
        return b'data: {"choices":[{"index":0,"delta":{"content":"oops\n\n'

    def ending_without_finish(self) -> bytes:
        """The end of a stream that lost its finish reason."""
        return DONE

    def document(self, texts: list[bytes], finishes: list[str]) -> bytes:
        """The whole answer of a request that did not ask for a stream."""
        raise NotImplementedError

    def tail(self, now_ns: int) -> bytes:
        """What every event may carry at its end: running usage, send time."""
        tail = b',"usage":' + self.usage() if self.ask.continuous_usage and self.with_usage else b""
        return tail + b',"t":%d' % now_ns if self.stamp else tail

    @property
    def output_tokens(self) -> int:
        """Output tokens of all choices so far."""
        return sum(sequence.emitted for sequence in self.sequences)

    @property
    def cached_tokens(self) -> int:
        """Prompt tokens that the prefix cache held."""
        return self.sequences[0].cached_tokens

    def usage(self) -> bytes:
        """The usage object of OpenAI's dialects."""
        prompt, output = self.ask.prompt_tokens, self.output_tokens
        return (
            b'{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}'
            % (prompt, output, prompt + output, self.cached_tokens)
        )


def message_text(content: Any) -> str:
    """The text of a message: a string, or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content if isinstance(part, dict))
    if content is None:
        return ""
    raise BadRequestError("content must be a string or a list of parts")


def chat_prompt(messages: Any) -> tuple[tuple[TokenKey, ...], int]:
    """Tokens of a conversation, and their number with the template's."""
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        raise BadRequestError("messages must be a list of objects, not empty")
    words: list[TokenKey] = []
    for message in messages:
        words += words_of(message_text(message.get("content")))
    return tuple(words), len(words) + CHAT_TOKENS_PER_MESSAGE * len(messages)


def text_prompt(prompt: Any) -> tuple[tuple[TokenKey, ...], int]:
    """Tokens of a text or of a list of token ids."""
    if isinstance(prompt, str):
        words = words_of(prompt)
    elif isinstance(prompt, list) and all(isinstance(one, int) for one in prompt):
        words = list(prompt)
    else:
        raise BadRequestError("prompt must be a string or a list of token ids")
    if not words:
        raise BadRequestError("the prompt is empty")
    return tuple(words), len(words)


def whole_number(body: Mapping[str, Any], name: str, least: int = 1) -> int | None:
    """An optional integer field; BadRequestError where it is something else or too small."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise BadRequestError(f"{name} must be an integer of at least {least}, got {value!r}")
    return value


def stop_texts(body: Mapping[str, Any]) -> tuple[str, ...]:
    """The stop strings of a request."""
    stop = body.get("stop") or ()
    return (stop,) if isinstance(stop, str) else tuple(map(str, stop))
