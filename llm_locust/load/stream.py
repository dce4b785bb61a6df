"""The hot path: the bytes of one read, or of several that were held, become token arrivals on the request's timeline.

`StreamSink` is called by the wire in the hub's callback. It never blocks, logs or formats; what can wait (a whole
document, the message of an error) waits until the end of the exchange.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence

from llm_locust.measure.judge import AskFacts, is_expected_type, media_type
from llm_locust.measure.timeline import Timeline
from llm_locust.protocol import NOTHING, Arrival, Event, EventDecoder, Reader, SSEDecoder, make_decoder
from llm_locust.wire.looks import looks
from llm_locust.wire.types import Bundle, End, Exchange

MAX_BODY_BYTES = 1_000_000
"""Kept of a body that is no answer: an error's, a page's."""
MAX_DOCUMENT_BYTES = 64_000_000
"""Kept of a whole answer that was not streamed."""

_UNKNOWN_NS = 1 << 62

TokenEvent = tuple[tuple[Arrival, ...], int]
"""(arrivals, instant) of one token-bearing event, for listeners."""

OnTokens = Callable[[list[TokenEvent]], object]
"""Takes the token events of one read in the hub's callback: it notes them and returns."""


class StreamSink:
    """Takes one response: events into the reader and the timeline, any other body into ``body``.

    ``on_tokens`` is None unless somebody listens to tokens.
    """

    __slots__ = ("_asked", "_decoder", "_kept_bytes", "body", "on_tokens",
                 "reader", "timeline")  # fmt: skip

    def __init__(self, asked: AskFacts, reader: Reader, timeline: Timeline, on_tokens: OnTokens | None = None) -> None:
        self.reader = reader
        self.timeline = timeline
        timeline.usage = reader.usage
        self.body = bytearray()
        self._asked = asked
        self._decoder: EventDecoder | None = None
        self._kept_bytes = MAX_BODY_BYTES
        self.on_tokens = on_tokens

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]], at_ns: int) -> None:
        """Choose how the body is read: as the stream that was asked for, or as bytes."""
        asked = self._asked
        if not 200 <= status < 300 or not is_expected_type(media_type(headers), asked):
            return
        if asked.stream:
            self._decoder = make_decoder(asked.framing)
        else:
            self._kept_bytes = MAX_DOCUMENT_BYTES

    @property
    def last_token_ns(self) -> int:
        """The instant of the last token, 0 before the first."""
        return self.timeline.last_ns or 0

    def on_read(self, data: bytes, at_ns: int, lag_ns: int) -> None:
        """Take one read."""
        decoder = self._decoder
        if decoder is None:
            self.body += data[: self._kept_bytes - len(self.body)]
            return
        tokens = 0
        reader = self.reader
        for event_type, payload in decoder.feed(data):
            arrivals = reader.event(payload, event_type)
            if arrivals:
                tokens += 1
                self.timeline.add(arrivals, at_ns, reader.cumulative_tokens)
                if self.on_tokens is not None:
                    self.on_tokens([(arrivals, at_ns)])
        if tokens > 1:
            self.timeline.close_read(tokens, max(lag_ns, looks().unseen_ns()))

    def may_hold(self, catch_up: Callable[[int | None], object]) -> bool:
        """Let reads be held where each token's time is known from them alone and nobody listens."""
        if self.on_tokens is not None or not isinstance(self._decoder, SSEDecoder):
            return False
        self.timeline.catch_up = catch_up
        return True

    def on_held(self, body: bytes, at_ns: array[int], bundles: Sequence[Bundle], until_ns: int) -> None:
        """Take the reads that were held: at once where all bear the same, as the tokens of a text mostly do."""
        decoder, timeline = self._decoder, self.timeline
        assert isinstance(decoder, SSEDecoder)
        plain = decoder.joined(body)
        same = NOTHING if plain is None else self.reader.run(plain, len(at_ns))
        events = [] if same else decoder.blocks(body)
        if not same and len(events) != len(at_ns):  # whose instant is whose is not known
            at_ns = array("q", [until_ns]) * len(events)
            bundles = [(0, len(events), _UNKNOWN_NS)]
        for start, end, lag_ns in _parts(len(at_ns), bundles):
            if same:
                timeline.extend(same, at_ns[start:end])
                tokens = end - start
            else:
                tokens = self._take(events[start:end], at_ns[start:end])
            # The only token of a read has the read's own instant, if it is known which read that was.
            fewest = 1 if lag_ns == _UNKNOWN_NS else 2
            if lag_ns is not None and tokens >= fewest:
                timeline.close_read(tokens, lag_ns)

    def _take(self, events: list[Event | None], at_ns: array[int]) -> int:
        """Read events, each with its instant; return how many bore tokens."""
        reader, before = self.reader, len(self.timeline)
        for event, event_ns in zip(events, at_ns, strict=True):
            if event is not None:
                arrivals = reader.event(event[1], event[0])
                if arrivals:
                    self.timeline.add(arrivals, event_ns, reader.cumulative_tokens)
        return len(self.timeline) - before

    def finish(self, exchange: Exchange) -> None:
        """Take the end of the exchange: the event that the body's end completed, or the whole document.

        Nothing may be concluded from a body that was cut.
        """
        if exchange.end is not End.COMPLETE or exchange.end_ns is None or not _is_success(exchange.status):
            return
        if self._decoder is not None:
            for event_type, payload in self._decoder.finish():
                arrivals = self.reader.event(payload, event_type)
                if arrivals:
                    self.timeline.add(arrivals, exchange.end_ns, self.reader.cumulative_tokens)
        elif not self._asked.stream and is_expected_type(media_type(exchange.headers), self._asked):
            self.reader.document(bytes(self.body))


class RawSink(StreamSink):
    """Keeps the first bytes of the body as they came, too (`--llm-save-failures`)."""

    __slots__ = ("raw",)

    def __init__(self, asked: AskFacts, reader: Reader, timeline: Timeline, on_tokens: OnTokens | None = None) -> None:
        super().__init__(asked, reader, timeline, on_tokens)
        self.raw = bytearray()

    def on_read(self, data: bytes, at_ns: int, lag_ns: int) -> None:
        """Keep the read's bytes, then take it."""
        self.raw += data[: MAX_BODY_BYTES - len(self.raw)]
        super().on_read(data, at_ns, lag_ns)

    def on_held(self, body: bytes, at_ns: array[int], bundles: Sequence[Bundle], until_ns: int) -> None:
        """Keep the reads' bytes, then take them."""
        self.raw += body[: MAX_BODY_BYTES - len(self.raw)]
        super().on_held(body, at_ns, bundles, until_ns)


def _parts(count: int, bundles: Sequence[Bundle]) -> Iterator[tuple[int, int, int | None]]:
    """Cut events at the reads that ended several: yield (start, end, lag, None for events of reads of their own)."""
    done = 0
    for first, events, lag_ns in bundles:
        if first > done:
            yield done, first, None
        done = first + events
        yield first, done, lag_ns
    if count > done:
        yield done, count, None


def _is_success(status: int | None) -> bool:
    return status is not None and 200 <= status < 300
