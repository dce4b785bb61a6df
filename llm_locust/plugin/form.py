"""Our options in Locust's web form: which stand together, and what is suggested for a field.

Knows no Locust. The page groups the fields by this table; whatever is in no group stays in Locust's own list. Values
are judged at start, all together (`settings.read`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .options import BY_DEST, DIALECTS, OPTIONS, SHAPE_NONE

FORM_GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Model", ("model", "dialect", "path", "stream", "temperature", "ignore_eos")),
    (
        "Prompts",
        (
            "prompts",
            "input_tokens",
            "output_tokens",
            "shared_prefix",
            "tokenizer",
            "max_context",
            "seed",
        ),
    ),
    (
        "Load",
        (
            "shape",
            "levels",
            "rates",
            "hold",
            "requests",
            "rate",
            "arrivals",
            "warmup",
            "spawn_rate",
            "start",
            "think_time",
            "flush_cache",
        ),
    ),
    (
        "Verdict and report",
        ("slo", "name", "note", "tag", "price_per_gpu_hour", "out", "save_arrivals", "save_failures"),
    ),
    (
        "Limits and connections",
        (
            "connect_timeout",
            "first_token_timeout",
            "stall_timeout",
            "total_timeout",
            "keep_alive",
            "insecure",
            "ca_file",
            "client_cert",
        ),
    ),
    ("Begin and end", ("no_preflight", "wait_ready", "drain", "stop_on_failures", "dry_run")),
)
"""Titles of the groups with the options in them, by flag without `--llm-`."""

_SUGGESTED: dict[str, tuple[str, ...]] = {
    "llm_dialect": DIALECTS,
    "llm_arrivals": ("poisson", "constant", "gamma:0.5", "trace"),
}


def form_args(shapes: Sequence[str]) -> Mapping[str, Any]:
    """Return what the page needs to lay out the form; ``shapes`` are the names that --llm-shape takes."""
    grouped = {f"llm_{name}" for _, names in FORM_GROUPS for name in names}
    rest = [option.dest for option in OPTIONS if option.form and option.dest not in grouped]
    groups = [[title, [f"llm_{name}" for name in names]] for title, names in FORM_GROUPS]
    return {
        "groups": groups + ([["More", rest]] if rest else []),
        "options": {
            dest: {
                "flag": option.flag,
                "metavar": option.metavar or "",
                "kind": option.kind,
                "suggested": [SHAPE_NONE, *shapes] if dest == "llm_shape" else _SUGGESTED.get(dest, option.choices),
            }
            for dest, option in BY_DEST.items()
            if option.form
        },
    }
