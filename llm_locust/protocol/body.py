"""Build request bodies: the parts that several dialects share.

Pure: a prompt and options in, a dict out. What a dialect cannot carry is a ValueError at start,
never a silently different request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_locust.protocol.types import BodyOptions, Message, PromptRequest


def messages(prompt: PromptRequest, dialect: str) -> list[dict[str, str]]:
    """Return the prompt as chat messages; a text is one message of the user."""
    if prompt.messages is not None:
        return [_message(message) for message in prompt.messages]
    if prompt.text is not None:
        return [{"role": "user", "content": prompt.text}]
    raise ValueError(f"{dialect} takes text or messages, not token ids")


def text_or_ids(prompt: PromptRequest, dialect: str) -> str | list[int]:
    """Return the prompt as one text or as token ids.

    One message is its content; several would need the model's own chat template.
    """
    if prompt.token_ids is not None:
        return list(prompt.token_ids)
    return text(prompt, dialect)


def text(prompt: PromptRequest, dialect: str) -> str:
    """Return the prompt as one text; see `text_or_ids`."""
    if prompt.text is not None:
        return prompt.text
    if prompt.messages is not None and len(prompt.messages) == 1:
        return prompt.messages[0].content
    if prompt.messages is not None:
        raise ValueError(f"{dialect} takes one text, not a conversation of {len(prompt.messages)} messages")
    raise ValueError(f"{dialect} takes text, not token ids")


def one_choice(options: BodyOptions, dialect: str) -> None:
    """Refuse n > 1 where the API has no such field."""
    if options.n != 1:
        raise ValueError(f"{dialect} answers with one choice, not {options.n}")


def openai_fields(prompt: PromptRequest, options: BodyOptions) -> dict[str, Any]:
    """Return the fields that OpenAI's chat and completions bodies share, without refused ones."""
    fields: dict[str, Any] = {"model": options.model, "stream": options.stream, "temperature": options.temperature}
    if prompt.output_tokens is not None:
        fields["max_completion_tokens" if options.max_completion_tokens else "max_tokens"] = prompt.output_tokens
    if options.n != 1:
        fields["n"] = options.n
    if options.ignore_eos:
        fields["ignore_eos"] = True
        fields["min_tokens"] = prompt.output_tokens
    if options.stream and options.include_usage:
        stream_options = {"include_usage": True}
        if options.continuous_usage and "continuous_usage_stats" not in options.refused:
            stream_options["continuous_usage_stats"] = True
        fields["stream_options"] = stream_options
    return present(fields, options.refused)


def present(fields: Mapping[str, Any], refused: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the fields that have a value and that the server does not refuse."""
    return {name: value for name, value in fields.items() if value is not None and name not in refused}


def with_extra(body: dict[str, Any], prompt: PromptRequest, options: BodyOptions) -> dict[str, Any]:
    """Merge the run's extra body, then the prompt's own, into a body; the later one wins."""
    return _merged(_merged(body, options.extra_body), prompt.extra)


def bearer(api_key: str | None) -> dict[str, str]:
    """Return the authorization header, none without a key."""
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def _merged(base: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return base with extra's fields; objects under the same name merge, all else is replaced."""
    merged = dict(base)
    for name, value in extra.items():
        here = merged.get(name)
        merged[name] = _merged(here, value) if isinstance(here, Mapping) and isinstance(value, Mapping) else value
    return merged


def _message(message: Message) -> dict[str, str]:
    return {"role": message.role, "content": message.content}
