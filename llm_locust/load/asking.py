"""What a task may hand to `client.chat` and `client.complete`, as a `PromptRequest`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from llm_locust.protocol.types import Message, PromptRequest

Turn = Message | Mapping[str, str]
"""One turn of a conversation: a `Message`, or {"role": …, "content": …}."""


def chat_prompt(
    asked: str | Sequence[Turn] | PromptRequest, output_tokens: int | None, extra: Mapping[str, Any] | None
) -> PromptRequest:
    """Make a prompt of a text or a conversation. Raises TypeError for anything else."""
    if isinstance(asked, str):
        return _adapted(PromptRequest(text=asked), output_tokens, extra)
    if isinstance(asked, PromptRequest):
        return _adapted(asked, output_tokens, extra)
    return _adapted(PromptRequest(messages=_messages(asked)), output_tokens, extra)


def completion_prompt(
    asked: str | Sequence[int] | PromptRequest, output_tokens: int | None, extra: Mapping[str, Any] | None
) -> PromptRequest:
    """Make a prompt of a text or of token ids."""
    if isinstance(asked, str):
        return _adapted(PromptRequest(text=asked), output_tokens, extra)
    if isinstance(asked, PromptRequest):
        return _adapted(asked, output_tokens, extra)
    ids = tuple(asked)
    return _adapted(PromptRequest(token_ids=ids, input_tokens=len(ids)), output_tokens, extra)


def _messages(turns: Iterable[Turn]) -> tuple[Message, ...]:
    messages = tuple(turn if isinstance(turn, Message) else msgspec.convert(turn, Message) for turn in turns)
    if not messages:
        raise TypeError("a conversation needs at least one message")
    return messages


def _adapted(prompt: PromptRequest, output_tokens: int | None, extra: Mapping[str, Any] | None) -> PromptRequest:
    if output_tokens is None and not extra:
        return prompt
    wanted = prompt.output_tokens if output_tokens is None else output_tokens
    return msgspec.structs.replace(prompt, output_tokens=wanted, extra={**prompt.extra, **(extra or {})})
