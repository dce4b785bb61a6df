"""The arrivals of one request's tokens, and what follows from them.

Knows no I/O, no clock and no Locust: instants come in as integer nanoseconds. Definitions: sections
1 and 2 of docs/metrics.md. `add` is the hot path; everything else runs once, after the end.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llm_locust.measure.tokens import UNKNOWN, final_tokens, known_tokens
from llm_locust.protocol.types import ANSWER, NOTHING, REASONING, Arrival, Usage

LATE_READ_NS = 1_000_000
"""A read of several events whose first byte may have come longer ago has upper bounds only."""

Instants = NDArray[np.int64]
Gaps = NDArray[np.int64]
_NO_GAPS: Gaps = np.empty(0, np.int64)


class Timeline:
    """Arrival times, channels and running counts of one stream, in the order of arrival."""

    __slots__ = (
        "_at",
        "_cumulative",
        "_last_kind",
        "_runs",
        "bundled_events",
        "catch_up",
        "first_read_late",
        "late_events",
        "usage",
    )

    def __init__(self) -> None:
        self._at = array("q")
        self._cumulative = array("q")  # up to the last event that told a running count
        # Arrivals of one stream nearly always look alike: only where they change is kept.
        self._runs: list[tuple[int, tuple[Arrival, ...]]] = []
        self._last_kind: tuple[Arrival, ...] = NOTHING
        self.late_events = 0
        self.bundled_events = 0
        self.first_read_late = False
        self.catch_up: Callable[[int | None], object] | None = None
        """Brings in what was received up to an instant but not parsed yet; None where nothing waits."""
        self.usage = Usage()
        """What the server has told of its counts so far: its reader's."""

    def add(self, arrivals: tuple[Arrival, ...], at_ns: int, cumulative_tokens: int | None = None) -> None:
        """Append one token-bearing event. Hot path, per event; `arrivals` is not empty."""
        if arrivals is not self._last_kind and arrivals != self._last_kind:
            self._last_kind = arrivals
            self._runs.append((len(self._at), arrivals))
        self._at.append(at_ns)
        if cumulative_tokens is not None:
            self._count(cumulative_tokens)

    def extend(self, arrivals: tuple[Arrival, ...], at_ns: array[int]) -> None:
        """Append events that all bear the same arrivals and tell no running count."""
        if arrivals != self._last_kind:
            self._last_kind = arrivals
            self._runs.append((len(self._at), arrivals))
        self._at.extend(at_ns)

    def close_read(self, events: int, lag_ns: int) -> None:
        """Note that the last `events` events came in one read, whose first byte may have waited for `lag_ns`."""
        if lag_ns > LATE_READ_NS:
            self.late_events += events
            if events == len(self._at):
                self.first_read_late = True
        else:
            self.bundled_events += events

    def __len__(self) -> int:
        """Return the number of token-bearing events."""
        return len(self._at)

    @property
    def first_ns(self) -> int | None:
        """First arrival; None without one."""
        return self._at[0] if self._at else None

    @property
    def last_ns(self) -> int | None:
        """Last arrival; None without one."""
        return self._at[-1] if self._at else None

    def since(self, index: int, until_ns: int | None = None) -> tuple[Instants, Instants, Instants]:
        """Return (instants, cumulative counts or UNKNOWN, arrivals per event) of the events from `index` on.

        With `until_ns` up to that instant; a stamp that runs back by microseconds may stand before the cut.
        """
        at_ns = self.instants(index, until_ns)
        end = index + at_ns.size
        return at_ns, self._counts(index, end), self._arrivals_per_event(index, end)

    def instants(self, index: int, until_ns: int | None = None) -> Instants:
        """Return the instants alone of what `since` gives."""
        end = len(self._at) if until_ns is None else bisect_right(self._at, until_ns, lo=index)
        return np.frombuffer(self._at[index:end], np.int64)

    @property
    def plain(self) -> bool:
        """Whether each event so far is one arrival and none told a running count: one token each, as far as one can
        tell yet.
        """
        return not self._cumulative and self.one_by_one

    def tokens(self, total: int | None) -> tuple[Instants, Instants]:
        """Return (instants, tokens) of all events, given the true number of streamed tokens; it is spread over the
        arrivals by what each is known to have brought, else evenly.
        """
        at_ns, cumulative, arrivals = self.since(0)
        known = known_tokens(cumulative) if at_ns.size else None
        weights = arrivals if known is None else known
        return at_ns, weights if total is None else final_tokens(weights, total)

    def cumulative_before(self, index: int) -> int:
        """Return the count of the event before this one; 0 at the beginning."""
        return int(self._counts(index - 1, index)[0]) if index else 0

    @property
    def one_by_one(self) -> bool:
        """Whether each event so far is one arrival: always so with one choice."""
        return all(len(kind) == 1 for _, kind in self._runs)

    def _count(self, tokens: int) -> None:
        """Note the running count at the newest event; most streams have none, or one at every event."""
        uncounted = len(self._at) - 1 - len(self._cumulative)
        if uncounted:
            self._cumulative.extend([UNKNOWN] * uncounted)
        self._cumulative.append(tokens)

    def _counts(self, index: int, end: int) -> Instants:
        """Return the running count at each event; the events after the last count have none."""
        counts = np.full(end - index, UNKNOWN, np.int64)
        told = self._cumulative[index:end]
        counts[: len(told)] = told
        return counts

    def _arrivals_per_event(self, index: int, end: int) -> Instants:
        if self.one_by_one:
            return np.ones(end - index, np.int64)
        starts = [start for start, _ in self._runs]
        per_event = np.repeat([len(kind) for _, kind in self._runs], np.diff(starts, append=len(self._at)))
        return per_event[index:end]

    def first_with(self, channels: int) -> int | None:
        """Return the index of the first event with one of the channels (a bit mask); None without one."""
        for start, kind in self._runs:
            if any(channel & channels for _, channel in kind):
                return start
        return None

    def analyse(self, n: int = 1) -> Arrivals:
        """Compute what needs all arrivals; `n` is the number of choices asked for."""
        return _analyse(self, n)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What a whole timeline says. `gaps_ns` is ICL; `token_counts` is per event, None where not known."""

    count: int
    """Arrivals: one per event and choice."""
    first_ns: int | None
    last_ns: int | None
    first_answer_ns: int | None
    second_ns: int | None
    reasoning_seen: bool
    gaps_ns: Gaps
    token_counts: NDArray[np.int64] | None

    @property
    def first_tokens(self) -> int:
        """k: tokens in the first event where per-chunk counts tell, else 1."""
        return 1 if self.token_counts is None else int(self.token_counts[0])

    def token_gaps_ns(self, tokens_by_usage: int | None) -> Gaps:
        """Return ITL: the gaps per token, empty where a chunk's token count is not known.

        `tokens_by_usage` are the streamed tokens the server stated: as many as arrivals means that
        every chunk is one token.
        """
        if self.token_counts is not None:
            return _share(self.gaps_ns, self.token_counts[1:])
        if tokens_by_usage is not None and tokens_by_usage == self.count:
            return self.gaps_ns
        return _NO_GAPS


def _share(gaps_ns: Gaps, tokens: NDArray[np.int64]) -> Gaps:
    """Divide each gap by the tokens that came with it; a gap without a token joins the next one."""
    growing = np.flatnonzero(tokens)
    if growing.size == 0:
        return _NO_GAPS
    reached = np.cumsum(gaps_ns)[growing]
    joined = np.diff(reached, prepend=0)
    counts = tokens[growing]
    return np.repeat(np.rint(joined / counts).astype(np.int64), counts)


def _analyse(timeline: Timeline, n: int) -> Arrivals:
    instants = timeline.instants(0)
    if not instants.size:
        return Arrivals(0, None, None, None, None, False, _NO_GAPS, None)
    # A refreshed clock offset may move a stamp back by microseconds: arrivals never run backwards.
    at_ns = np.maximum.accumulate(instants)
    runs = timeline._runs
    one_choice = n == 1 and timeline.one_by_one
    answer = timeline.first_with(ANSWER)
    per_choice = [at_ns] if one_choice else _by_choice(at_ns, runs, n)
    return Arrivals(
        count=sum(part.size for part in per_choice),
        first_ns=int(at_ns[0]),
        last_ns=int(at_ns[-1]),
        first_answer_ns=None if answer is None else int(at_ns[answer]),
        second_ns=next((int(part[1]) for part in per_choice if part.size > 1), None),
        reasoning_seen=timeline.first_with(REASONING) is not None,
        gaps_ns=np.concatenate([part[1:] - part[:-1] for part in per_choice]),
        token_counts=known_tokens(timeline.since(0)[1]) if one_choice and not timeline.plain else None,
    )


def _by_choice(at_ns: Instants, runs: list[tuple[int, tuple[Arrival, ...]]], n: int) -> list[Instants]:
    """Split the arrivals by choice; an index beyond n - 1 belongs to the last choice."""
    parts: dict[int, list[Instants]] = {}
    ends = [start for start, _ in runs[1:]] + [at_ns.size]
    for (start, kind), end in zip(runs, ends, strict=True):
        for choice in {min(choice, n - 1) for choice, _ in kind}:
            parts.setdefault(choice, []).append(at_ns[start:end])
    return [np.concatenate(part) for part in parts.values()]
