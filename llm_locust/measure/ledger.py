"""Books what happens while streams run: tokens, time in flight, starts and ends, by when they happened.

Knows no I/O, no clock and no Locust: instants are ns of the process's monotonic clock, and come in.
The hot path only appends to timelines; `harvest` walks what arrived since and books it into the second
and the window (stage, phase, name) in which it arrived. When a stream has ended, its true token count is
known: the difference to what was booked is spread over its arrivals. A prompt's tokens belong to the instant of the
first token, and are booked as soon as the server has told their number. So the totals do not depend on when harvests
happened, no token is booked twice, and no total is ever below 0 once its streams have ended.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llm_locust.measure.aggregate import STAGE_WIDE, Aggregate
from llm_locust.measure.finish import Samples, is_broken
from llm_locust.measure.levels import Levels
from llm_locust.measure.record import FAILURES, Outcome, RequestRecord
from llm_locust.measure.tally import Tally
from llm_locust.measure.timeline import Timeline
from llm_locust.measure.tokens import one_each, running_tokens

SECOND_NS = 1_000_000_000
STREAMS_PER_PIECE = 32
STARTS_PER_PIECE = 256
EVENTS_PER_PIECE = 20_000
PARSED_PER_PIECE = 256
"""Events that a harvest has parsed; they cost more than those that were."""

Ints = NDArray[np.int64]


class Ending(NamedTuple):
    """How a stream ended."""

    at_ns: int
    record: RequestRecord
    samples: Samples


class Stream:
    """One request in flight, as the ledger knows it."""

    __slots__ = ("booked", "booked_events", "booked_input_tokens", "booked_until_ns", "counts_input", "ending",
                 "first_event", "name", "start_ns", "timeline")  # fmt: skip

    def __init__(self, name: int, start_ns: int, timeline: Timeline) -> None:
        self.name = name
        self.start_ns = start_ns
        self.timeline = timeline
        self.booked = False
        self.booked_events = 0
        self.booked_input_tokens = 0
        self.counts_input = True
        self.first_event = 0
        self.booked_until_ns = start_ns
        self.ending: Ending | None = None


class Ledger:
    """The streams in flight of one process and the marks of its stages; writes into an `Aggregate`.

    `epoch_offset_ns` turns the process's monotonic ns into epoch ns; it stays the same for a whole run, so that a
    step of the wall clock neither loses nor doubles a second.
    """

    def __init__(self, book: Aggregate, epoch_offset_ns: int) -> None:
        self._book = book
        self._offset_ns = epoch_offset_ns
        self._names: list[str] = []
        self._name_index: dict[str, int] = {}
        self._streams: list[Stream] = []
        self._opened: list[Stream] = []
        self._mark_at: list[int] = [-(1 << 62)]
        self._mark_of: list[tuple[str, str]] = [("", "")]
        self._harvested_ns: int | None = None
        self._levels = Levels(book, epoch_offset_ns)

    @property
    def in_flight(self) -> int:
        """Requests in flight now."""
        return sum(stream.ending is None for stream in self._streams)

    def mark(self, at_ns: int, stage: str, phase: str) -> int:
        """Begin a phase of a stage at `at_ns`; return when it took effect.

        What happens at that very instant belongs to the new phase: a window that is to end with its last completion
        ends 1 ns after it. What is booked stays booked: a mark before the last harvest or the last mark takes effect
        there.
        """
        at_ns = max(at_ns, self._mark_at[-1])
        if self._harvested_ns is not None:
            at_ns = max(at_ns, self._harvested_ns + 1)
        self._mark_at.append(at_ns)
        self._mark_of.append((stage, phase))
        return at_ns

    def open(self, name: str, start_ns: int, timeline: Timeline) -> Stream:
        """Take a request that starts now; its timeline is read at each harvest."""
        index = self._name_index.get(name)
        if index is None:
            index = self._name_index[name] = len(self._names)
            self._names.append(name)
        stream = Stream(index, start_ns, timeline)
        self._streams.append(stream)
        self._opened.append(stream)
        self._levels.step(start_ns, name, 1)
        return stream

    def close(self, stream: Stream, record: RequestRecord, samples: Samples) -> None:
        """Note that the request ended; it is booked at the next harvest beyond its end."""
        last_ns = stream.timeline.last_ns
        end_ns = stream.start_ns + (record.stream_end_ns or 0)
        stream.ending = Ending(max(end_ns, last_ns or end_ns), record, samples)
        self._levels.step(stream.ending.at_ns, self._names[stream.name], -1)

    def restart(self) -> None:
        """Forget what was harvested, as its aggregate does at a reset: streams in flight count from here on."""
        for stream in self._streams:
            stream.first_event = stream.booked_events
            stream.counts_input = not stream.booked_events
        self._levels.restart()

    def harvest(self, until_ns: int) -> Iterator[None]:
        """Book what happened up to `until_ns`, in pieces: the caller may yield to the hub after each.

        A mark must come before the harvest that passes it: so harvest up to about a second ago, and up to now
        at the end. Run one harvest to its end before the next.
        """
        since_ns = self._harvested_ns
        if since_ns is None:
            since_ns = self._mark_at[1] if len(self._mark_at) > 1 else until_ns
        elif until_ns <= since_ns:
            return
        self._harvested_ns = until_ns
        self._book_windows(since_ns, until_ns)
        yield from self._book_starts(until_ns)
        piece: list[Stream] = []
        events = parsed = 0
        for stream in [stream for stream in self._streams if stream.start_ns <= until_ns]:
            piece.append(stream)
            before = len(stream.timeline)
            if stream.timeline.catch_up is not None:
                stream.timeline.catch_up(until_ns)
            parsed += len(stream.timeline) - before
            events += len(stream.timeline) - stream.booked_events
            if len(piece) >= STREAMS_PER_PIECE or events >= EVENTS_PER_PIECE or parsed >= PARSED_PER_PIECE:
                self._book_piece(piece, until_ns)
                piece, events, parsed = [], 0, 0
                yield
        self._book_piece(piece, until_ns)
        self._streams = [stream for stream in self._streams if not stream.booked]
        yield
        self._levels.settle(until_ns, self._mark_at, self._mark_of)
        yield

    def _book_piece(self, streams: list[Stream], until_ns: int) -> None:
        """Book the tokens and the time in flight of some streams."""
        if not streams:
            return
        pieces: list[tuple[Ints, Ints]] = []
        for stream in streams:
            ending = stream.ending
            if ending is not None and ending.at_ns <= until_ns:
                pieces.append(_ended_tokens(stream, ending))
                self._book_end(stream, ending)
            else:
                pieces.append(_running_tokens(stream, until_ns))
                if stream.booked_events and not stream.booked_input_tokens:
                    self._book_input(stream, stream.timeline.first_ns, stream.timeline.usage.input_tokens)
        at_ns, tokens = (np.concatenate(column) for column in zip(*pieces, strict=True))
        names = np.repeat([stream.name for stream in streams], [at.size for at, _ in pieces])
        self._book_tokens("output_tokens", at_ns, tokens, names)
        self._book_time_in_flight(streams, until_ns)

    def _book_tokens(self, key: str, at_ns: Ints, tokens: Ints, names: Ints) -> None:
        """Add tokens to the seconds and windows of their instants; corrections may be negative."""
        if not at_ns.size:
            return
        epochs_s = (at_ns + self._offset_ns) // SECOND_NS
        first_s = int(epochs_s.min())
        by_second = np.bincount(epochs_s - first_s, tokens)
        for place in np.flatnonzero(by_second).tolist():
            self._book.second(first_s + place).counts[key] += int(by_second[place])
        marks = np.searchsorted(self._mark_at, at_ns, "right") - 1
        by_window = np.bincount(marks * len(self._names) + names, tokens)
        for place in np.flatnonzero(by_window).tolist():
            mark, name = divmod(place, len(self._names))
            self._window(mark, self._names[name]).counts[key] += int(by_window[place])

    def _book_time_in_flight(self, streams: list[Stream], until_ns: int) -> None:
        """Add the time that each stream was in flight since it was booked last."""
        booked_ns = np.array([stream.booked_until_ns for stream in streams])
        known_ns = np.array([min(stream.ending.at_ns, until_ns) if stream.ending else until_ns for stream in streams])
        # An end may become known only after a harvest beyond it: what was booked too much is taken back.
        sign = np.where(known_ns < booked_ns, -1, 1)
        from_ns, to_ns = np.minimum(known_ns, booked_ns), np.maximum(known_ns, booked_ns)
        names = np.array([stream.name for stream in streams])
        for start_ns, end_ns in self._segments(int(from_ns.min()), int(to_ns.max())):
            parts = sign * np.clip(np.minimum(to_ns, end_ns) - np.maximum(from_ns, start_ns), 0, None)
            by_name = np.bincount(names, parts)
            second, mark = self._second(start_ns), self._mark(start_ns)
            for name in np.flatnonzero(by_name).tolist():
                second.counts["in_flight_ns"] += int(by_name[name])
                self._window(mark, self._names[name]).counts["in_flight_ns"] += int(by_name[name])
        for stream, until in zip(streams, known_ns.tolist(), strict=True):
            stream.booked_until_ns = until

    def _book_end(self, stream: Stream, ending: Ending) -> None:
        """Count the end of a stream, its input tokens and its share of the timeline's percentiles."""
        end_ns, record, samples = ending
        stream.booked = True
        name = self._names[stream.name]
        window, second = self._window(self._mark(end_ns), name), self._second(end_ns)
        kind = "failed" if record.outcome in FAILURES else record.outcome.value
        window.counts[kind] += 1
        second.counts[kind] += 1
        ok = record.outcome is Outcome.OK
        if ok and record.slo_good:
            window.counts["good"] += 1
        if ok and not is_broken(record):
            second.sample("ttft_ms", record.ttft_ns)
            second.sample("ttft_scheduled_ms", record.ttft_scheduled_ns)
            second.sample("tpot_ms", record.tpot_ns)
            second.sample("user_wait_ms", record.user_wait_ns)
            second.sample("dispatch_lag_ms", record.dispatch_lag_ns)
            second.samples("itl_ms", samples.itl_ns)
        self._book_input(stream, stream.timeline.first_ns or (end_ns if ok else None), record.input_tokens)

    def _book_input(self, stream: Stream, first_ns: int | None, input_tokens: int | None) -> None:
        """Count the prompt's tokens at the first token: what was not counted yet, or the difference to what was."""
        if first_ns is None or input_tokens is None or not stream.counts_input:
            return
        fresh = input_tokens - stream.booked_input_tokens
        stream.booked_input_tokens = input_tokens
        self._window(self._mark(first_ns), self._names[stream.name]).counts["input_tokens"] += fresh
        self._second(first_ns).counts["input_tokens"] += fresh

    def _book_starts(self, until_ns: int) -> Iterator[None]:
        """Count the requests that started, in pieces; what a caller that is ended leaves is counted the next time."""
        started = [stream for stream in self._opened if stream.start_ns <= until_ns]
        self._opened = [stream for stream in self._opened if stream.start_ns > until_ns]
        counted = 0
        try:
            for stream in started:
                self._book_start(stream)
                counted += 1
                if counted % STARTS_PER_PIECE == 0:
                    yield
        finally:
            self._opened += started[counted:]

    def _book_start(self, stream: Stream) -> None:
        mark = self._mark(stream.start_ns)
        self._window(mark, self._names[stream.name]).counts["started"] += 1
        self._second(stream.start_ns).counts["started"] += 1
        epoch_s, offset_ns = divmod(stream.start_ns + self._offset_ns, SECOND_NS)
        self._book.add_starts(*self._mark_of[mark], epoch_s, (offset_ns // 1000,))

    def _book_windows(self, since_ns: int, until_ns: int) -> None:
        """Tell how long each phase has lasted."""
        for start_ns, end_ns in self._between_marks(since_ns, until_ns):
            window = self._window(self._mark(start_ns), STAGE_WIDE)
            window.counts["observed_ns"] += end_ns - start_ns
            window.low("from", start_ns + self._offset_ns)
            window.high("until", end_ns + self._offset_ns)

    def _between_marks(self, from_ns: int, to_ns: int) -> Iterator[tuple[int, int]]:
        """Cut a time at the marks."""
        if from_ns >= to_ns:
            return
        first, last = bisect_right(self._mark_at, from_ns), bisect_left(self._mark_at, to_ns)
        yield from pairwise([from_ns, *self._mark_at[first:last], to_ns])

    def _segments(self, from_ns: int, to_ns: int) -> Iterator[tuple[int, int]]:
        """Cut a time at the marks and at full seconds."""
        for start_ns, end_ns in self._between_marks(from_ns, to_ns):
            first_s = (start_ns + self._offset_ns) // SECOND_NS + 1
            edges = range(first_s * SECOND_NS - self._offset_ns, end_ns, SECOND_NS)
            yield from pairwise([start_ns, *edges, end_ns])

    def _mark(self, at_ns: int) -> int:
        return bisect_right(self._mark_at, at_ns) - 1

    def _window(self, mark: int, name: str) -> Tally:
        stage, phase = self._mark_of[mark]
        return self._book.window(stage, name, phase)

    def _second(self, at_ns: int) -> Tally:
        return self._book.second((at_ns + self._offset_ns) // SECOND_NS)


def _running_tokens(stream: Stream, until_ns: int) -> tuple[Ints, Ints]:
    """Return instants and tokens of the events that are not booked yet."""
    first, timeline = stream.booked_events, stream.timeline
    if timeline.plain:
        at_ns = timeline.instants(first, until_ns)
        tokens = one_each(at_ns.size)
    else:
        at_ns, cumulative, arrivals = timeline.since(first, until_ns)
        tokens = running_tokens(cumulative, timeline.cumulative_before(first), arrivals)
    stream.booked_events += at_ns.size
    return at_ns, tokens


def _ended_tokens(stream: Stream, ending: Ending) -> tuple[Ints, Ints]:
    """Return instants and tokens that are still to be booked, corrections of what was booked among them."""
    total, timeline = ending.samples.streamed_tokens, stream.timeline
    booked, first = stream.booked_events, stream.first_event
    if not len(timeline):
        # Counted by usage or in a whole document: they came with the end.
        return np.array([ending.at_ns]), np.array([total or 0])
    if timeline.plain and (total is None or total == len(timeline)):  # nothing that was booked is to be corrected
        at_ns = timeline.instants(booked)
        return at_ns, one_each(at_ns.size)
    at_ns, tokens = timeline.tokens(total)
    if booked:
        _, cumulative, arrivals = timeline.since(0)
        tokens = tokens.copy()
        tokens[:booked] -= running_tokens(cumulative[:booked], 0, arrivals[:booked])
    return at_ns[first:], tokens[first:]
