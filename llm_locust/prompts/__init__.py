"""Prompts: datasets, synthetic texts of exact length, tokenizers. Knows no Locust and no sockets."""

from llm_locust.prompts.lengths import Length, parse_length
from llm_locust.prompts.registry import Wanted, kinds, open_prompts
from llm_locust.prompts.ruler import Ruler, RulerError, calibrate, prove
from llm_locust.prompts.source import PromptError, PromptSource, TraceSource
from llm_locust.prompts.synthetic import SharedPrefix, Synthetic, synthetic
from llm_locust.prompts.tokenizers import TokenCounter, TokenizerError, open_tokenizer

__all__ = [
    "Length",
    "PromptError",
    "PromptSource",
    "Ruler",
    "RulerError",
    "SharedPrefix",
    "Synthetic",
    "TokenCounter",
    "TokenizerError",
    "TraceSource",
    "Wanted",
    "calibrate",
    "kinds",
    "open_prompts",
    "open_tokenizer",
    "parse_length",
    "prove",
    "synthetic",
]
