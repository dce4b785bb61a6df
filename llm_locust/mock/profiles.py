"""Profiles of known deployments: the numbers of the engine model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The engine's numbers, before the time scale.

    A step with ``batch`` sequences takes ``step_base_ms + step_per_sequence_ms * batch`` and, beyond
    ``knee_sequences``, ``step_beyond_knee_ms`` more for each; its prefill chunks add their tokens at
    ``prefill_tokens_per_s``. One prompt advances by a token each
    ``prompt_base_ms + prompt_per_sequence_ms * batch`` (at most ``prompt_most_ms``): the scheduler gives prefill a
    smaller share the more sequences it serves. All chunks together take at most ``prefill_share`` of a step.
    """

    step_base_ms: float
    step_per_sequence_ms: float
    knee_sequences: float
    step_beyond_knee_ms: float
    prefill_tokens_per_s: float
    prompt_base_ms: float
    prompt_per_sequence_ms: float
    prompt_most_ms: float
    prefill_share: float
    max_batch: int
    kv_tokens: int
    block_tokens: int


PROFILES: dict[str, Profile] = {
    # DeepSeek-R1 671B on 4 nodes of 8 H100, 1024 prompt tokens: TTFT 1200, 1850, 3200, 5288 ms and TPOT 85, 92, 115,
    # 210 ms at 8, 16, 32, 64 users. The published points lie on no straight line in the batch (7, 23, 95 ms apart),
    # hence the knee. TTFT there grows with the users and not with the output length, hence the share.
    "deepseek-r1-32xh100": Profile(
        step_base_ms=78.0,
        step_per_sequence_ms=0.83,
        knee_sequences=27.7,
        step_beyond_knee_ms=2.18,
        prefill_tokens_per_s=40_000.0,
        prompt_base_ms=0.4,
        prompt_per_sequence_ms=0.08,
        prompt_most_ms=4.9,
        prefill_share=0.5,
        max_batch=256,
        kv_tokens=1_500_000,
        block_tokens=16,
    ),
}
