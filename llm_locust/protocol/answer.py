"""What every dialect's reader has in common: the text by choice and channel, counts and ends.

Knows no dialect, no I/O and no clock. A dialect's reader says what one event means; this class
keeps what came, so that the same rule holds everywhere: the last count that is neither null nor
zero, the first finish reason that is not null, choices beyond the requested n folded into the last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from llm_locust.protocol.lenient import as_label, decode_json, encodable, stated_error
from llm_locust.protocol.tally import Tally
from llm_locust.protocol.types import ANSWER, NOTHING, REASONING, TOOL, UNSEEN, Arrival, Usage

DONE = b"[DONE]"

FIRST_CHOICE: tuple[tuple[Arrival, ...], ...] = (NOTHING, *(((0, mask),) for mask in range(1, 2 * UNSEEN)))
"""The arrivals of an event of choice 0 alone, by channel mask: made once, not per event."""

ABORTED_REASONS = frozenset({"abort", "error"})


class Choice:
    """The generated text of one choice."""

    __slots__ = ("answer", "finish_reason", "reasoning", "refusal", "tools")

    def __init__(self) -> None:
        self.answer: list[str] = []
        self.reasoning: list[str] = []
        self.refusal: list[str] = []
        self.tools: dict[int, list[str]] = {}  # place of the call -> [name, arguments...]
        self.finish_reason: str | None = None

    def add(self, channel: int, text: str) -> int:
        """Add generated text; return its channel, or 0 for empty text."""
        if not text:
            return 0
        parts = self.answer if channel == ANSWER else self.reasoning if channel == REASONING else self.refusal
        parts.append(text)
        return channel

    def add_tool(self, place: int, name: str, arguments: str) -> int:
        """Add a fragment of a tool call; return TOOL, or 0 for an empty one.

        A name may come whole with every fragment (some servers repeat it) or in pieces.
        """
        if not name and not arguments:
            return 0
        call = self.tools.setdefault(place, [""])
        if name and name != call[0]:
            call[0] += name
        if arguments:
            call.append(arguments)
        return TOOL

    def calls(self) -> tuple[tuple[str, str], ...]:
        """Return (name, arguments) of each tool call."""
        return tuple((encodable(call[0]), encodable("".join(call[1:]))) for call in self.tools.values())

    def whole(self) -> str:
        """Return everything that was generated, reasoning first."""
        calls = [part for call in self.tools.values() for part in call]
        return "".join([*self.reasoning, *self.answer, *self.refusal, *calls])


class AnswerReader(ABC):
    """The state of one answer, and the frame in which a dialect reads an event."""

    __slots__ = (
        "_choices",
        "_n",
        "_tally",
        "aborted",
        "cumulative_tokens",
        "error",
        "finish_reason",
        "malformed_events",
        "server_request_id",
        "terminal",
        "usage",
    )

    def __init__(self, n: int = 1) -> None:
        self.usage = Usage()
        self.cumulative_tokens: int | None = None
        self.finish_reason: str | None = None
        self.terminal = False
        self.error: str | None = None
        self.aborted = False
        self.malformed_events = 0
        self.server_request_id: str | None = None
        self._n = n
        self._choices: dict[int, Choice] = {0: Choice()}
        self._tally = Tally(self.usage, n)

    def event(self, payload: bytes, event_type: bytes = b"") -> tuple[Arrival, ...]:
        """Read one event's data; return its token-bearing arrivals. Never raises on input."""
        self.cumulative_tokens = None
        payload = payload.strip()
        if not payload:
            return NOTHING
        if payload == DONE:
            self._end()
            return NOTHING
        try:
            value = decode_json(payload)
        except ValueError:
            self.malformed_events += 1
            return NOTHING
        if not isinstance(value, dict):
            self.malformed_events += value is not None  # llama-server: "data: null" between events
            return NOTHING
        self._note_error(stated_error(value, event_type))
        return self._read(value, event_type)

    def run(self, events: bytes, count: int) -> tuple[Arrival, ...]:
        """Read the data of ``count`` events, joined by SEPARATOR, if all bear the same arrivals and say nothing else.

        Return those arrivals; NOTHING, and nothing read, where that is not so or where a dialect cannot tell.
        """
        return NOTHING

    def document(self, body: bytes) -> None:
        """Read a whole non-streamed answer; a body that cannot be decoded counts as malformed."""
        try:
            value = decode_json(body)
        except ValueError:
            value = None
        documents = value if isinstance(value, list) else [value]
        if not documents or not all(isinstance(document, dict) for document in documents):
            self.malformed_events += 1
            return
        for place, document in enumerate(documents):
            self._note_error(stated_error(document))
            self._read_document(document, place)
        if self.error is None:
            self._end()

    @abstractmethod
    def _read(self, event: dict[str, Any], event_type: bytes) -> tuple[Arrival, ...]:
        """Read one decoded event of a stream."""

    @abstractmethod
    def _read_document(self, document: dict[str, Any], place: int) -> None:
        """Read one decoded document; ``place`` counts those of a list (n > 1)."""

    @property
    def text(self) -> str:
        """The answer text of choice 0."""
        return encodable("".join(self._choices[0].answer))

    @property
    def reasoning_text(self) -> str:
        """The reasoning text of choice 0."""
        return encodable("".join(self._choices[0].reasoning))

    @property
    def whole_text(self) -> str:
        """All generated text of all choices and channels, for counting tokens without usage."""
        return encodable("".join(self._choices[index].whole() for index in sorted(self._choices)))

    @property
    def tool_calls(self) -> tuple[tuple[str, str], ...]:
        """(name, arguments) of each tool call of choice 0."""
        return self._choices[0].calls()

    def _place(self, index: object) -> int:
        """Return a choice's number; those beyond the requested n are one, the last.

        A mock in the field counts the index up with each token.
        """
        return min(index, self._n - 1) if isinstance(index, int) and index > 0 else 0

    def _choice(self, place: int) -> Choice:
        """Return a choice, a new one where it has not spoken yet (then the answer is not finished)."""
        choice = self._choices.get(place)
        if choice is None:
            choice = self._choices[place] = Choice()
            self.finish_reason = None
        return choice

    def _note_error(self, message: str | None) -> None:
        """Keep the first error."""
        if self.error is None:
            self.error = message

    def _note_id(self, value: object) -> None:
        """Keep the first id that is not empty."""
        if self.server_request_id is None:
            self.server_request_id = as_label(value)

    def _finish(self, place: int, reason: object) -> None:
        """Note that a choice ended; the answer has a finish reason when every choice that spoke has one."""
        label = as_label(reason)
        choice = self._choice(place)
        if label is None or choice.finish_reason is not None:
            return
        choice.finish_reason = label
        self._tally.finished += 1
        self.aborted = self.aborted or label in ABORTED_REASONS
        reasons = self._reasons()
        self.finish_reason = None if None in reasons else reasons[0]

    def _reasons(self) -> list[str | None]:
        """Return the finish reason of each choice that spoke."""
        return [self._choices[place].finish_reason for place in sorted(self._choices)]

    def _end(self) -> None:
        """Note the dialect's own end signal.

        It ends choices to which the server gave no finish reason of their own (a proxy was seen
        to finish only the first of two), but it is no finish reason itself.
        """
        self.terminal = True
        if self.finish_reason is None:
            self.finish_reason = next((reason for reason in self._reasons() if reason is not None), None)
