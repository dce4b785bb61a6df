"""What a dialect says: the prompt it is given, the arrivals, usage and ends it reports.

Knows no I/O, no clock and no Locust. Bytes go in, these values come out.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

# Channels of generated text; one event may carry several of them (a bit mask).
ANSWER = 1
REASONING = 2
REFUSAL = 4
TOOL = 8
UNSEEN = 16  # a token without text: the cumulative usage grew under an empty delta

Arrival = tuple[int, int]
"""(choice index, channel mask) of one token-bearing event of one choice."""

NOTHING: tuple[Arrival, ...] = ()
"""What an event that bears no token reports."""

SEPARATOR = b"\n\ndata: "
"""What stands between the data of plain events that are read at once."""


class Framing(enum.Enum):
    """How a streamed body is cut into events."""

    SSE = "text/event-stream"
    NDJSON = "application/x-ndjson"


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """One turn of a conversation."""

    role: str
    content: str


class PromptRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt with the lengths asked for; exactly one of text, messages, token_ids is set.

    ``input_tokens`` is the length that the prompt was built to have (None: not known),
    ``output_tokens`` the limit asked for (None: the server's own). Token counts, not characters. ``exact_output``:
    the answer is to have that length, wherever the model would end it (words without a meaning say nothing of that).
    """

    text: str | None = None
    messages: tuple[Message, ...] | None = None
    token_ids: tuple[int, ...] | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    exact_output: bool = False
    extra: Mapping[str, Any] = {}


class BodyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What every body of a run has in common. ``refused`` names optional fields to leave out.

    ``ignore_eos_if_exact``: where `ignore_eos` is on, then only with prompts whose answer is to have its exact length.
    """

    model: str | None = None
    stream: bool = True
    ignore_eos: bool = False
    ignore_eos_if_exact: bool = False
    temperature: float | None = 0.0
    include_usage: bool = True
    continuous_usage: bool = False
    max_completion_tokens: bool = False
    n: int = 1
    extra_body: Mapping[str, Any] = {}
    refused: frozenset[str] = frozenset()


class Usage(msgspec.Struct, kw_only=True):
    """Token counts that the server stated; None where it stated none."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None


class Reader(Protocol):
    """Reads the answer to one request. Made by ``Dialect.reader``; used once.

    ``cumulative_tokens`` is the server's running count after the last event, None where it
    gives none per event. ``error`` is the server's own message (at most 200 characters, never an
    echoed input). ``terminal`` says that the dialect's own end signal came ([DONE],
    message_stop, done:true, response.completed).
    """

    usage: Usage
    cumulative_tokens: int | None
    finish_reason: str | None
    terminal: bool
    error: str | None
    aborted: bool
    malformed_events: int
    server_request_id: str | None

    def event(self, payload: bytes, event_type: bytes = b"") -> tuple[Arrival, ...]:
        """Read one event's data; return its token-bearing arrivals. Hot path: never raises on input."""
        ...

    def run(self, events: bytes, count: int) -> tuple[Arrival, ...]:
        """Read the data of ``count`` events, joined by SEPARATOR, if all bear the same arrivals and say nothing else.

        Return those arrivals; NOTHING, and nothing read, where that is not so. A reader that always returns NOTHING is
        right, and slower.
        """
        ...

    def document(self, body: bytes) -> None:
        """Read a whole non-streamed answer; a body that cannot be decoded counts as malformed."""
        ...

    @property
    def text(self) -> str:
        """The answer text of choice 0."""
        ...

    @property
    def reasoning_text(self) -> str:
        """The reasoning text of choice 0."""
        ...

    @property
    def whole_text(self) -> str:
        """All generated text of all choices and channels, for counting tokens without usage."""
        ...

    @property
    def tool_calls(self) -> tuple[tuple[str, str], ...]:
        """(name, arguments) of each tool call of choice 0."""
        ...


class Dialect(Protocol):
    """One API's language: how to ask, and what its events mean. Stateless; one per process."""

    name: str
    path: str
    document_path: str
    """Where a non-streamed answer is asked for; ``path`` in all dialects but TGI's."""
    framing: Framing
    finish_reason_expected: bool
    """False where the dialect has no finish reason and its end signal alone means success."""
    optional_fields: tuple[str, ...]
    """Body fields that pre-flight may leave out when a server refuses them."""

    def body(self, prompt: PromptRequest, options: BodyOptions) -> dict[str, Any]:
        """Build the JSON body. Raises ValueError where the dialect cannot carry the prompt."""
        ...

    def headers(self, api_key: str | None) -> dict[str, str]:
        """The dialect's own request headers (authorization, API version)."""
        ...

    def reader(self, *, stream: bool, n: int = 1) -> Reader:
        """Make the reader of one answer."""
        ...
