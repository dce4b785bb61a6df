"""When tokens are due: the interface of a pace, and the simplest one, with fixed times.

Pure: time comes in as an argument (integer ns of any clock), nothing here sends or sleeps.
"""

from __future__ import annotations

import heapq
from typing import Any, Protocol

from llm_locust.mock.tokens import TokenKey

NS_PER_MS = 1_000_000


class Sequence:
    """One answer being generated (a request with n choices has n)."""

    __slots__ = (
        "block_hashes",
        "cached_tokens",
        "choice",
        "done",
        "due_ns",
        "emitted",
        "generated",
        "hold_until_ns",
        "limit_tokens",
        "owner",
        "prefill_left",
        "prefix",
        "private_blocks",
        "prompt_tokens",
        "shared_blocks",
    )

    def __init__(self, owner: Any, choice: int, prefix: tuple[TokenKey, ...], prompt_tokens: int, limit_tokens: int):
        self.owner = owner
        self.choice = choice
        self.prefix = prefix  # what the prefix cache compares; may be shorter than prompt_tokens (template)
        self.prompt_tokens = prompt_tokens
        self.limit_tokens = limit_tokens
        self.generated = 0  # by the pace; it may be ahead of
        self.emitted = 0  # what the owner has made of it
        self.cached_tokens = 0
        self.hold_until_ns = 0  # no token before this instant
        self.done = False
        self.due_ns = 0
        self.prefill_left = 0
        self.private_blocks = 0
        self.shared_blocks: list[int] = []
        self.block_hashes: list[int] = []

    @property
    def complete(self) -> bool:
        """The owner has had the last token."""
        return self.emitted >= self.limit_tokens


class Pace(Protocol):
    """Decides when each sequence's tokens are due."""

    def submit(self, sequence: Sequence, now_ns: int) -> None:
        """Take a sequence in."""
        ...

    def cancel(self, sequence: Sequence) -> None:
        """Forget a sequence."""
        ...

    def next_ns(self) -> int | None:
        """When something is due next; None: nothing will be until a sequence comes."""
        ...

    def advance(self, now_ns: int) -> list[Sequence]:
        """Let time pass; return a sequence once for each of its tokens due by now, in order."""
        ...

    def flush_cache(self) -> None:
        """Empty the prefix cache."""
        ...

    @property
    def running(self) -> int:
        """Sequences in the batch."""
        ...

    @property
    def waiting(self) -> int:
        """Sequences in the queue."""
        ...

    @property
    def kv_used_ratio(self) -> float:
        """Share of the KV pool in use."""
        ...

    @property
    def preemptions(self) -> int:
        """How often a sequence lost its KV blocks and had to be prefilled again."""
        ...


class FixedPace:
    """First token after a fixed time, then one every fixed time, whatever else is running."""

    preemptions = 0
    waiting = 0
    kv_used_ratio = 0.0

    def __init__(self, ttft_ns: int, itl_ns: int) -> None:
        self._ttft_ns = ttft_ns
        self._itl_ns = itl_ns
        self._heap: list[tuple[int, int, Sequence]] = []
        self._count = 0
        self.running = 0

    def submit(self, sequence: Sequence, now_ns: int) -> None:
        """Schedule the first token."""
        self.running += 1
        self._push(sequence, now_ns + self._ttft_ns)

    def _push(self, sequence: Sequence, due_ns: int) -> None:
        self._count += 1
        heapq.heappush(self._heap, (due_ns, self._count, sequence))

    def cancel(self, sequence: Sequence) -> None:
        """Forget a sequence; its entry is dropped when it comes up."""
        if not sequence.done:
            sequence.done = True
            self.running -= 1

    def next_ns(self) -> int | None:
        """The earliest due token."""
        return self._heap[0][0] if self._heap else None

    def advance(self, now_ns: int) -> list[Sequence]:
        """Return the sequences whose token is due; each keeps its own schedule however late it is served."""
        due: list[Sequence] = []
        heap = self._heap
        while heap and heap[0][0] <= now_ns:
            at_ns, count, sequence = heap[0]
            if sequence.done:
                heapq.heappop(heap)
                continue
            if sequence.hold_until_ns > at_ns:
                heapq.heapreplace(heap, (sequence.hold_until_ns, count, sequence))
                continue
            sequence.due_ns = at_ns
            sequence.generated += 1
            due.append(sequence)
            if sequence.generated >= sequence.limit_tokens:
                sequence.done = True
                self.running -= 1
                heapq.heappop(heap)
            else:
                heapq.heapreplace(heap, (at_ns + self._itl_ns, count, sequence))
        return due

    def flush_cache(self) -> None:
        """There is no cache."""
