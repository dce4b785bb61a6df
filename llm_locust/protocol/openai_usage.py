"""The ``usage`` object of OpenAI's chat and completions, typed for the hot path and untyped.

Spellings beyond OpenAI's own: SGLang's ``reasoning_tokens`` beside the counts.
"""

from __future__ import annotations

from typing import Any

import msgspec

from llm_locust.protocol.lenient import as_count, as_mapping
from llm_locust.protocol.tally import Tally


class InputDetails(msgspec.Struct, gc=False):
    """``prompt_tokens_details``."""

    cached_tokens: int | None = None


class OutputDetails(msgspec.Struct, gc=False):
    """``completion_tokens_details``."""

    reasoning_tokens: int | None = None


class UsageChunk(msgspec.Struct, gc=False):
    """``usage`` as most servers send it."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    prompt_tokens_details: InputDetails | None = None
    completion_tokens_details: OutputDetails | None = None


def state_typed(tally: Tally, usage: UsageChunk) -> int | None:
    """Note the usage beside text of the only choice; return the running total, if stated. Hot path."""
    input_details = usage.prompt_tokens_details
    tally.input(usage.prompt_tokens, None if input_details is None else input_details.cached_tokens)
    reasoning = usage.reasoning_tokens
    output_details = usage.completion_tokens_details
    if output_details is not None and output_details.reasoning_tokens is not None:
        reasoning = output_details.reasoning_tokens
    return tally.beside_text(usage.completion_tokens, reasoning)


def state_untyped(tally: Tally, usage: dict[str, Any], place: int | None) -> int | None:
    """Note a usage of one choice, or of no one choice (None); return the running total, if stated."""
    input_details = as_mapping(usage.get("prompt_tokens_details"))
    output_details = as_mapping(usage.get("completion_tokens_details"))
    tally.input(as_count(usage.get("prompt_tokens")), as_count(input_details.get("cached_tokens")))
    reasoning = as_count(output_details.get("reasoning_tokens"))
    if reasoning is None:
        reasoning = as_count(usage.get("reasoning_tokens"))
    return tally.output(place, as_count(usage.get("completion_tokens")), reasoning)
