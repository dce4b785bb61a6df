"""Reads that are held and parsed together say what reads parsed one by one say, and nobody has to wait for them."""

from __future__ import annotations

import gc
import struct
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gevent
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llm_locust.load.stream import StreamSink
from llm_locust.measure.judge import AskFacts
from llm_locust.measure.timeline import Timeline
from llm_locust.protocol import get_dialect
from llm_locust.wire import held as held_reads
from llm_locust.wire import receive
from llm_locust.wire.clock import get_clock
from llm_locust.wire.held import LONG_BYTES, MOST_EVENTS, HeldReads
from llm_locust.wire.receive import Receiver
from llm_locust.wire.tls import TLSOptions
from llm_locust.wire.transport import WireTransport
from llm_locust.wire.types import End, Exchange, Limits
from tests.cases.expected import EXPECTED
from tests.cases.streams import STREAMS
from tests.wire.scripted import FIN, HEAD, LAST, RST, ScriptedServer, ask, chunk, played, user
from tests.wire.test_tls import tls_server

MS = 1_000_000
FIRST = b'data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}\n\n'
STREAMED = sorted(
    name for name, case in EXPECTED.items()
    if "RAW" not in name and case.stream and case.dialect != "ollama-chat" and not name.startswith("A37")
)  # fmt: skip


def token(text: str) -> bytes:
    """One event of chat that bears a token."""
    return b'data: {"id":"1","choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}\n\n' % text.encode()


def sink_of(dialect: str = "openai-chat", *, holds: bool = True) -> StreamSink:
    """A sink as a run makes it, or one that wants each read at once."""
    spoken = get_dialect(dialect)
    asked = AskFacts(stream=True, framing=spoken.framing, finish_reason_expected=spoken.finish_reason_expected)
    sink = StreamSink(asked, spoken.reader(stream=True), Timeline())
    return sink if holds else Hasty(asked, sink.reader, sink.timeline)


class Hasty(StreamSink):
    """Lets nothing be held."""

    def may_hold(self, catch_up: Callable[[int | None], object]) -> bool:
        """Say no."""
        return False


class Watcher:
    """In the place of a hub's watcher."""

    def start(self, *_: object) -> None:
        """Nothing is watched."""

    stop = close = start


@dataclass
class Line:
    """In the place of a connection: gives the reads that it is told, with stamps; then nothing more has come."""

    reads: list[bytes]
    at_ns: list[int]
    lags_ns: list[int]
    tls: None = None
    used: bool = False
    peer: str = "127.0.0.1:1"
    reader: Watcher = field(default_factory=Watcher)
    writer: Watcher = field(default_factory=Watcher)
    now_ns: int = 0

    @property
    def raw(self) -> Line:
        """The socket."""
        return self

    def recvmsg_into(self, buffers: Sequence[bytearray], _: int) -> tuple[int, list[Any], int, None]:
        """Read."""
        if not self.reads:
            raise BlockingIOError
        data, at_ns = self.reads.pop(0), self.at_ns.pop(0)
        self.now_ns = at_ns + self.lags_ns.pop(0)
        stamp = struct.pack("qq", *divmod(at_ns + get_clock().offset_ns, 1_000_000_000))
        buffers[0][: len(data)] = data
        return len(data), [(1, 35, stamp)], 0, None

    def close(self) -> None:
        """Close."""


def heard(
    monkeypatch: pytest.MonkeyPatch, sink: StreamSink, reads: list[bytes], lags_ns: list[int], turn: int
) -> tuple[Any, ...]:
    """Let a receiver take reads of which one comes each ms, and say what came of them."""
    clock = get_clock()
    line = Line(list(reads), [(place + 1) * 50 * MS for place in range(len(reads))], list(lags_ns))
    monkeypatch.setattr(clock, "source", "kernel")
    monkeypatch.setattr(held_reads, "_first_turns", iter([turn]))
    monkeypatch.setattr(receive, "time_ns", lambda: line.now_ns + clock.offset_ns)
    monkeypatch.setattr(receive, "monotonic_ns", lambda: line.now_ns)
    exchange = Exchange(start_ns=1)
    receiver = Receiver(line, "POST", sink, Limits(0, 0, 0, 0), exchange)  # type: ignore[arg-type]
    while line.reads and exchange.end is None:
        receiver._readable()
    if exchange.end is None:
        receiver._finish(End.STOPPED)
    receiver._settle()
    sink.finish(exchange)
    reader, timeline = sink.reader, sink.timeline
    return (
        [column.tolist() for column in timeline.since(0)], timeline.late_events, timeline.bundled_events,
        timeline.first_read_late, timeline.first_with(-1), reader.text, reader.reasoning_text, reader.whole_text,
        reader.tool_calls, reader.usage, reader.finish_reason, reader.terminal, reader.error, reader.malformed_events,
        reader.server_request_id, exchange.end, exchange.error, exchange.end_ns, exchange.reads,
        exchange.stamped_reads, exchange.received_bytes,
    )  # fmt: skip


def cut(data: bytes, places: list[int]) -> list[bytes]:
    """Cut bytes at places, wherever they lie."""
    ends = [*sorted({place % len(data) for place in places} - {0}), len(data)]
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def both_ways(dialect: str, reads: list[bytes], lags_ns: list[int], turn: int, *, mixed: bool = False) -> None:
    """Held and parsed at once, a response must come to the same; with ``mixed`` line ends times may be bounds."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        at_once = heard(monkeypatch, sink_of(dialect, holds=False), reads, lags_ns, turn)
        held = heard(monkeypatch, sink_of(dialect), reads, lags_ns, turn)
    if mixed and held[1]:
        assert held[1] >= at_once[1]
        assert all(bound >= exact for bound, exact in zip(held[0][0], at_once[0][0], strict=True))
        held, at_once = held[4:], at_once[4:]
    assert held == at_once


@pytest.mark.parametrize("name", STREAMED)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_held_reads_say_what_reads_parsed_at_once_say(name: str, data: st.DataObject) -> None:
    """Whatever the chunks, whatever the reads, late or not, ended or not."""
    body = b"".join(piece for _, piece in STREAMS[name] if piece != FIN)
    anywhere = st.lists(st.integers(0, 5000), max_size=9).map(lambda places: cut(body, places))
    chunks = data.draw(st.one_of(st.just(body.splitlines(keepends=True)), st.just(_events(body)), anywhere))
    last = data.draw(st.sampled_from([LAST, b"0\r\nx-trailer: y\r\n\r\n", b"", b"zz\r\n"]))
    pieces = [HEAD, *map(chunk, chunks), last]
    if data.draw(st.booleans()):
        reads = [piece for piece in pieces if piece]
    else:
        reads = cut(b"".join(pieces), data.draw(st.lists(st.integers(0, 9000), max_size=12)))
    lags_ns = [data.draw(st.sampled_from([1000, 1000, 1000, 5 * MS])) for _ in reads]
    both_ways(EXPECTED[name].dialect, reads, lags_ns, data.draw(st.integers(1, 5)), mixed=b"\r" in body)


def _events(body: bytes) -> list[bytes]:
    return [event + b"\n\n" for event in body.removesuffix(b"\n\n").split(b"\n\n")]


@given(bunches=st.lists(st.integers(1, 4), min_size=1, max_size=90), turn=st.integers(1, MOST_EVENTS))
@example(bunches=[1] * 90, turn=7)
@settings(max_examples=40, deadline=None)
def test_long_streams_lose_nothing_between_two_parsings(bunches: list[int], turn: int) -> None:
    """Some reads bring several tokens, and the held ones are parsed several times."""
    reads = [HEAD + chunk(FIRST)]
    for place, bunch in enumerate(bunches):
        reads.append(b"".join(chunk(token(f"{place}-{number} ")) for number in range(bunch)))
    both_ways("openai-chat", [*reads, chunk(b"data: [DONE]\n\n") + LAST], [1000] * (len(reads) + 1), turn)


def test_a_long_read_ends_the_holding() -> None:
    """What is held stays small, and what it says is the same."""
    held = HeldReads()
    held._most = MOST_EVENTS
    short, long = chunk(token("a")), chunk(token("b" * LONG_BYTES))
    assert (held.add(short, 1, 1000), held.full) == (True, False)
    assert (held.add(long, 2, 1000), held.full) == (True, True)
    assert held.take()[:2] == (short + long, array("q", [1, 2]))
    reads = [HEAD + chunk(FIRST), *[short, long] * 3, short + long + long, chunk(b"data: [DONE]\n\n") + LAST]
    both_ways("openai-chat", reads, [1000] * len(reads), MOST_EVENTS)


@pytest.mark.parametrize(
    ("reads", "late"),
    [
        ([chunk(token("b")[:-1]) + chunk(b"\n" + token("c"))], 0),
        ([chunk(token("b")), chunk(b"\n"), chunk(token("c"))], 0),
        ([chunk(token("b")), b"0000001\r\n\n\r\n", chunk(token("c"))], 0),
        ([chunk(token("b") + token("c").replace(b"\n", b"\r"))], 0),
        ([chunk(token("b").replace(b"\n\n", b"\r\r") + token("c"))], 3),
    ],
    ids=[
        "two chunks share a blank line",
        "a blank line too many",
        "and in a longer head",
        "the last ends with CR",
        "one of two ends with CR",
    ],
)
def test_times_are_bounds_where_it_is_not_known_which_read_ended_an_event(reads: list[bytes], late: int) -> None:
    """Nothing is lost, and nobody is told that such a time is exact."""
    reads = [HEAD + chunk(FIRST), chunk(token("a")), *reads, chunk(b"data: [DONE]\n\n") + LAST]
    with pytest.MonkeyPatch.context() as monkeypatch:
        sink = sink_of()
        heard(monkeypatch, sink, reads, [1000] * len(reads), MOST_EVENTS)
    assert (sink.reader.text, len(sink.timeline), sink.timeline.late_events) == ("abc", 3, late)


@pytest.mark.parametrize(
    "rest",
    [b"garbage\n\n\r\n", b"garbage", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\n\n\r\n"],
    ids=["held", "not held", "a response nobody asked for"],
)
def test_bytes_after_the_end_do_not_keep_a_response_from_ending(rest: bytes) -> None:
    """They only spoil the connection."""
    reads = [HEAD + chunk(FIRST), chunk(token("a")), chunk(token("b")) + chunk(b"data: [DONE]\n\n") + LAST + rest]
    for given_reads in (reads, [*reads[:2], chunk(token("b")), LAST + rest]):
        both_ways("openai-chat", given_reads, [1000] * len(given_reads), MOST_EVENTS)
        with pytest.MonkeyPatch.context() as monkeypatch:
            assert End.COMPLETE in heard(monkeypatch, sink_of(), given_reads, [1000] * len(given_reads), MOST_EVENTS)


def test_bounds_before_a_fault_are_no_earlier_than_what_they_bound() -> None:
    """Which read ended the events before the fault is not known here; the last one that was held came after all."""
    open_line = token("a")[:-1]
    head = b"%x\r\n%s" % (len(open_line), open_line)
    reads = [HEAD + chunk(FIRST), head[:-8], head[-8:] + b"\r\n1\r\n\n\r\n", chunk(token("b")), b"zz\r\n\n\n\r\n"]
    with pytest.MonkeyPatch.context() as monkeypatch:
        sink = sink_of()
        told = heard(monkeypatch, sink, reads, [1000] * len(reads), MOST_EVENTS)
    at_ns = sink.timeline.instants(0).tolist()
    assert (sink.reader.text, End.PROTOCOL_ERROR in told) == ("ab", True)
    exact = at_ns == [150 * MS, 200 * MS]
    assert exact or (sink.timeline.late_events == 2 and at_ns[0] >= 150 * MS and at_ns[1] >= 200 * MS)


def test_a_response_that_is_no_http_leaves_nothing_for_the_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        for fault in (b"no chunk\r\n", b"no chunk\n\n\r\n"):
            _, sink = streamed(*TOKENS, (140, fault), (180, chunk(token("y"))), (200, FIN))
            sink.timeline.catch_up = None  # as whoever flies the request does
            del sink
        gevent.sleep(0.01)
        left = [thing for thing in gc.get_objects() if isinstance(thing, Receiver | Timeline)]
    finally:
        gc.enable()
    assert left == []


def streamed(*script: tuple[float, bytes], limits: Limits | None = None) -> tuple[Exchange, StreamSink]:
    """Play a stream of tokens over a real connection to a sink that lets reads be held."""
    return played((0, HEAD + chunk(FIRST)), *script, sink=sink_of(), limits=limits)


TOKENS = [(10.0 + 10 * place, chunk(token("x"))) for place in range(12)]


@pytest.mark.parametrize(
    ("rest", "end"),
    [
        ([(140, LAST)], End.COMPLETE),
        ([(140, FIN)], End.CUT),
        ([(140, RST)], End.CUT),
        ([(140, b"no chunk\r\n")], End.PROTOCOL_ERROR),
        ([(140, b"no chunk\n\n\r\n"), (180, chunk(token("y")))], End.PROTOCOL_ERROR),
    ],
    ids=["complete", "closed", "reset", "not HTTP", "not HTTP, held"],
)
def test_what_is_held_counts_however_the_response_ends(rest: list[tuple[float, bytes]], end: End) -> None:
    exchange, sink = streamed(*TOKENS, *rest, (400, FIN))
    assert (exchange.end, len(sink.timeline), sink.timeline.late_events) == (end, 12, 0)
    gaps_ms = sink.timeline.analyse().gaps_ns / 1e6
    assert 8 < gaps_ms.mean() < 12


@pytest.mark.parametrize(
    ("limits", "end", "at_ms"),
    [(Limits(0, 5, 0.06, 0), End.TIMEOUT_STALL, 180), (Limits(0, 5, 0, 0.1), End.TIMEOUT_TOTAL, 100)],
    ids=["stall", "total"],
)
def test_limits_know_of_tokens_that_are_held(limits: Limits, end: End, at_ms: float) -> None:
    """A stall begins with the last token that came, held or not; no stall is seen while they come."""
    exchange, sink = streamed(*TOKENS, (600, LAST), limits=limits)
    assert exchange.end is end
    assert exchange.end_ns is not None
    assert at_ms - 5 < (exchange.end_ns - exchange.start_ns) / 1e6 < at_ms + 40
    assert len(sink.timeline) == (12 if end is End.TIMEOUT_STALL else pytest.approx(9, abs=2))


def test_whoever_must_know_has_what_is_held() -> None:
    """A harvest asks up to an instant; what came later may wait on."""
    sink = sink_of()
    with ScriptedServer([[(0, HEAD + chunk(FIRST)), *TOKENS, (300, LAST)]]) as server, user() as client:
        stream = gevent.spawn(ask, client, server.url, sink)
        gevent.sleep(0.2)
        assert sink.timeline.catch_up is not None
        sink.timeline.catch_up(1)
        waiting = len(sink.timeline)
        sink.timeline.catch_up(get_clock().now_ns())
        assert (waiting < 12, len(sink.timeline)) == (True, 12)
        assert stream.get(timeout=2).end is End.COMPLETE
        sink.timeline.catch_up(None)  # later than the end
    assert len(sink.timeline) == 12


def test_a_user_that_is_stopped_leaves_what_came() -> None:
    sink = sink_of()
    with ScriptedServer([[(0, HEAD + chunk(FIRST)), *TOKENS, (900, LAST)]]) as server, user() as client:
        stream = gevent.spawn(ask, client, server.url, sink)
        gevent.sleep(0.2)
        stream.kill()
    assert len(sink.timeline) == 12


@pytest.mark.linux
def test_reads_under_tls_are_held_and_keep_their_stamps() -> None:
    sink, transport = sink_of(), WireTransport(TLSOptions(verify=False))
    script = [(0, HEAD + chunk(FIRST)), *TOKENS, (140, LAST)]
    with ScriptedServer([script], tls=tls_server()) as server, user(transport) as client:
        exchange = ask(client, server.url, sink)
    assert (exchange.end, len(sink.timeline), exchange.reads, exchange.stamped_reads) == (End.COMPLETE, 12, 13, 13)
    assert 8 < (sink.timeline.analyse().gaps_ns / 1e6).mean() < 12


def test_sink_that_raises_over_held_reads_ends_the_exchange() -> None:
    class Raising(StreamSink):
        def on_held(self, *_: object) -> None:
            raise KeyError("a bug")

    usual = sink_of()
    sink = Raising(usual._asked, usual.reader, usual.timeline)
    with ScriptedServer([[(0, HEAD + chunk(FIRST)), *TOKENS, (300, LAST)]]) as server, user() as client:
        exchange = ask(client, server.url, sink)
    assert (exchange.end, exchange.error) == (End.SINK_ERROR, "KeyError: 'a bug'")
