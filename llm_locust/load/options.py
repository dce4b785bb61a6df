"""What every request of a process has in common, as one frozen value. Made by the plugin (or the probe)."""

from __future__ import annotations

from dataclasses import dataclass, field

from llm_locust.prompts.tokenizers import TokenCounter
from llm_locust.protocol.types import BodyOptions
from llm_locust.wire.types import Limits

DEFAULT_DIALECT = "openai-chat"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions:
    """What every request of a process has in common; the pre-flight's findings are in it already.

    None means "the user class decides" (``host``, ``dialect``, ``think_time_s``) or the dialect (``path``). Neither
    ``api_key`` nor ``headers`` show in a repr. ``eos_ignored`` is False where the pre-flight saw the server end early
    although `ignore_eos` was sent: then lengths are free.
    """

    host: str | None = None
    dialect: str | None = None
    path: str | None = None
    body: BodyOptions = field(default_factory=BodyOptions)
    limits: Limits = field(default_factory=Limits)
    api_key: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    think_time_s: tuple[float, float] | None = None
    eos_ignored: bool = True
    tokenizer: TokenCounter | None = None
    keep_raw: bool = False
    """Whether the collector is given the raw bytes of answers."""
    drain_s: float = 1800.0
    """How long `User.stop` waits for a request in flight."""
