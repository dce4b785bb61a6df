"""What a response is on the wire, and where it ends: framing, encodings, cuts."""

from __future__ import annotations

import gzip
import zlib

import pytest

from llm_locust.wire.types import End
from tests.cases.streams import STREAMS
from tests.wire.scripted import FIN, HEAD, LAST, RST, ScriptedServer, Sink, ask, chunk, played, user, whole

A = b'data: {"a"}\n\n'
B = b'data: {"b"}\n\n'


def deflate(data: bytes, window: int) -> bytes:
    packer = zlib.compressobj(wbits=window)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize(
    "script",
    [
        pytest.param([(0, HEAD + chunk(A)), (5, chunk(B) + LAST)], id="chunked, body in the head's read"),
        pytest.param([(0, HEAD), (5, chunk(A)), (10, chunk(B)), (15, LAST)], id="chunked, one read each"),
        pytest.param([(0, HEAD + chunk(A) + chunk(B) + LAST)], id="chunked, one read"),
        pytest.param([(0, HEAD), (5, chunk(A + B)[:9]), (10, chunk(A + B)[9:] + LAST)], id="chunk in two reads"),
        pytest.param([(0, HEAD + chunk(A) + chunk(B) + b"0\r\nX-Trailer: 1\r\n\r\n")], id="trailer"),
        pytest.param([(0, whole(A + B))], id="content-length"),
        pytest.param([(0, b"HTTP/1.1 200 OK\r\n\r\n" + A), (5, B), (10, FIN)], id="until close"),
        pytest.param([(0, b"HTTP/1.0 200 OK\r\n\r\n" + A + B), (10, FIN)], id="HTTP/1.0"),
        pytest.param([(0, b"HTTP/1.1 100 Continue\r\n\r\n"), (5, whole(A + B))], id="100 Continue"),
        pytest.param([(0, b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + whole(A + B))], id="103 in the same read"),
        pytest.param([(0, whole(gzip.compress(A + B), b"Content-Encoding: gzip"))], id="gzip"),
        pytest.param([(0, whole(gzip.compress(A) + gzip.compress(B), b"Content-Encoding: gzip"))], id="two members"),
        pytest.param([(0, whole(deflate(A + B, 15), b"Content-Encoding: deflate"))], id="deflate"),
        pytest.param([(0, whole(deflate(A + B, -15), b"Content-Encoding: deflate"))], id="raw deflate"),
        pytest.param([(i, bytes([byte])) for i, byte in enumerate(whole(A + B))], id="a byte a read"),
    ],
)
def test_body_is_whole_when_framed_so(script: list[tuple[float, bytes]]) -> None:
    exchange, sink = played(*script)
    assert (exchange.end, exchange.error, exchange.status, sink.body) == (End.COMPLETE, "", 200, A + B)
    assert [status for status, _, _ in sink.heads] == [200]
    assert exchange.reads == len(sink.reads)
    assert exchange.received_bytes == len(A + B)


def test_read_is_handed_once_when_it_holds_many_chunks() -> None:
    exchange, sink = played((0, HEAD), (20, chunk(A) + chunk(B) + chunk(A) + LAST))
    assert [data for data, _, _ in sink.reads] == [A + B + A]
    assert exchange.reads == 1


@pytest.mark.parametrize("variant", ["V1", "V2", "V3", "V4"])
def test_body_is_cut_when_the_connection_ends_in_it(variant: str) -> None:
    """Case A12: what came before the cut is kept, the exchange is never complete."""
    token = b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
    begin = HEAD if variant != "V3" else b"HTTP/1.1 200 OK\r\nContent-Length: 128\r\n\r\n"
    part = {"V1": chunk(token), "V2": b"40\r\ndata: {choi", "V3": token, "V4": chunk(token)}[variant]
    exchange, sink = played((0, begin), (20, part), (60, RST if variant == "V4" else FIN))
    error = "connection reset" if variant == "V4" else "incomplete body"
    assert (exchange.end, exchange.error, exchange.status) == (End.CUT, error, 200)
    assert sink.body == (b"data: {choi" if variant == "V2" else token)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        pytest.param([(10, FIN)], "closed before a response", id="FIN"),
        pytest.param([(0, b"HTTP/1.1 200 OK\r\nCont"), (10, FIN)], "closed before a response", id="FIN in the head"),
        pytest.param([(10, RST)], "connection reset", id="RST"),
    ],
)
def test_exchange_is_cut_without_status_when_no_head_came(script: list[tuple[float, bytes]], error: str) -> None:
    exchange, sink = played(*script)
    assert (exchange.end, exchange.error, exchange.status) == (End.CUT, error, None)
    assert (sink.heads, sink.reads, exchange.resent) == ([], [], False)


def test_gzip_is_inflated_step_by_step_when_it_streams() -> None:
    """Case A37: each event is seen when it comes, not at the end."""
    segments = STREAMS["A37/Content-Encoding: gzip, sync-flushed per event"]
    exchange, sink = played(
        (0, b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"),
        *[(at, chunk(data)) for at, data in segments],
        (segments[-1][0] + 20, LAST),
    )
    assert exchange.end is End.COMPLETE
    assert len(sink.reads) == len(segments)
    assert sink.body == zlib.decompressobj(31).decompress(b"".join(data for _, data in segments))
    gaps_ms = [(later[1] - former[1]) / 1e6 for former, later in zip(sink.reads, sink.reads[1:], strict=False)]
    assert min(gaps_ms) > 25, "not all at the end"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        pytest.param(whole(A, b"Content-Encoding: br"), "content encoding 'br' cannot be read", id="br"),
        pytest.param(whole(A, b"Content-Encoding: zstd"), "content encoding 'zstd' cannot be read", id="zstd"),
        pytest.param(
            whole(A, b"Content-Encoding: gzip, gzip"), "content encoding 'gzip, gzip' cannot be read", id="twice"
        ),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + chunk(A) + LAST,
            "transfer encoding 'gzip, chunked' cannot be read",
            id="transfer encoding",
        ),
        pytest.param(
            whole(b"not gzip at all", b"Content-Encoding: gzip"),
            "content encoding is broken: Error -3 while decompressing data: incorrect header check",
            id="broken gzip",
        ),
    ],
)
def test_encoding_is_a_protocol_error_when_it_cannot_be_read(answer: bytes, error: str) -> None:
    exchange, sink = played((0, answer))
    assert (exchange.end, exchange.error, exchange.status) == (End.PROTOCOL_ERROR, error, 200)
    assert sink.reads == []


def test_body_is_cut_when_gzip_ends_early() -> None:
    exchange, _ = played((0, whole(gzip.compress(A * 50)[:-12], b"Content-Encoding: gzip")))
    assert (exchange.end, exchange.error) == (End.CUT, "incomplete body")


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9.6\r\n", b"\x15\x03\x03\x00\x02\x02\x46", b"HTTP/1.1 abc OK\r\n\r\n"]
)
def test_exchange_is_a_protocol_error_when_the_answer_is_not_http(answer: bytes) -> None:
    exchange, _ = played((0, answer), (50, FIN))
    assert (exchange.end, exchange.status) == (End.PROTOCOL_ERROR, None)
    assert exchange.error.startswith("not HTTP: ")


def test_what_came_before_is_handed_when_a_chunk_is_broken() -> None:
    exchange, sink = played((0, HEAD + chunk(A) + b"zz\r\n"), (50, FIN))
    assert (exchange.end, sink.body) == (End.PROTOCOL_ERROR, A)


@pytest.mark.parametrize(
    ("method", "answer", "status"),
    [
        pytest.param("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, id="HEAD"),
        pytest.param("HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, id="HEAD, chunked"),
        pytest.param("POST", b"HTTP/1.1 204 No Content\r\n\r\n", 204, id="204"),
        pytest.param("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, id="304"),
        pytest.param("POST", b"HTTP/1.1 307 Over There\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", 307, id="307"),
    ],
)
def test_response_without_a_body_leaves_the_connection_usable(method: str, answer: bytes, status: int) -> None:
    with ScriptedServer([[(0, answer)]]) as server, user() as client:
        first = ask(client, server.url, method=method)
        second = ask(client, server.url, method=method)
    assert [(e.end, e.status, e.reads) for e in (first, second)] == [(End.COMPLETE, status, 0)] * 2
    assert server.connections == 1


@pytest.mark.parametrize(
    "case", [STREAMS[name] for name in STREAMS if name.startswith("A40/")], ids=["429", "503", "HTML"]
)
def test_error_page_is_a_complete_exchange(case: list[tuple[int, bytes]]) -> None:
    """Case A40: the wire tells status, headers and body; what they mean is judged elsewhere."""
    exchange, sink = played(*case)
    head, body = case[0][1].split(b"\r\n\r\n", 1)
    assert (exchange.end, sink.body) == (End.COMPLETE, body)
    assert exchange.status == int(head.split(b" ")[1])
    names = [line.split(b":")[0].lower() for line in head.split(b"\r\n")[1:]]
    assert [name for name, _ in exchange.headers] == names


def test_request_is_sent_as_httpx_built_it() -> None:
    sink = Sink()
    with ScriptedServer([[(0, whole(A))]]) as server, user() as client:
        ask(client, server.url + "?x=1", sink, body=b'{"model":"m"}')
        _, head, body = server.requests[0]
    lines = head.split(b"\r\n")
    assert lines[0] == b"POST /v1/chat/completions?x=1 HTTP/1.1"
    assert b"accept-encoding: identity" in [line.lower() for line in lines]
    assert b"content-length: 13" in [line.lower() for line in lines]
    assert body == b'{"model":"m"}'
