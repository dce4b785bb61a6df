"""How long an answer will be, and why it ends: decided at admission, from the request and the seed alone."""

from __future__ import annotations

import random

from llm_locust.mock.options import Options
from llm_locust.mock.tokens import TEXTS, text_number
from llm_locust.mock.voices.voice import Ask, BadRequestError


def check_context(ask: Ask, options: Options) -> None:
    """Refuse what does not fit the context, as vLLM does. Raises BadRequestError."""
    wanted = ask.prompt_tokens + (ask.limit_tokens or 1)
    if wanted > options.max_model_len:
        raise BadRequestError(
            f"This model's maximum context length is {options.max_model_len} tokens. However, you requested "
            f"{wanted} tokens ({ask.prompt_tokens} in the prompt, {ask.limit_tokens or 1} in the answer)."
        )


def plan_length(ask: Ask, number: int, choice: int, options: Options) -> tuple[int, str]:
    """Return (output tokens, finish reason): the limit, the model's own end, or a stop text."""
    limit = ask.limit_tokens or options.max_model_len - ask.prompt_tokens
    if ask.ignore_eos:
        return limit, "length"
    own_end = random.Random(f"{options.seed}:length:{number}:{choice}").randint(*options.output_tokens)
    own_end = max(own_end, ask.min_tokens)
    if ask.stop:
        own_end = min(own_end, _stop_position(ask, number, choice, min(own_end, limit)))
    return (limit, "length") if own_end > limit else (own_end, "stop")


def _stop_position(ask: Ask, number: int, choice: int, limit: int) -> int:
    """The token after which a stop text is in the answer; limit + 1 where none is."""
    for position in range(max(ask.min_tokens - 1, 0), limit):
        if any(stop in TEXTS[text_number(number, choice, position)] for stop in ask.stop):
            return position + 1
    return limit + 1
