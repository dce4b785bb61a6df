"""HTTP/1.1 as bytes: the request's head, the reading of one response, the inflating of its body.

Knows no sockets and no clock; httptools (llhttp) does the parsing.
"""

from __future__ import annotations

import zlib

import httptools
import httpx

Headers = list[tuple[bytes, bytes]]
"""Names in lower case."""

_BODYLESS = frozenset({204, 304})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})
"""What the bytes of the body decide; a body from a generator is read whole, so its length is known."""


class ContentError(Exception):
    """A body that is well-framed but cannot be read: unknown or broken encoding."""


class ResponseParser:
    """Reads one response; ``feed`` takes bytes, ``pieces`` collects the body's, still encoded.

    Interim responses (1xx) are skipped. The body callback is ``pieces.append`` itself, so a token costs no
    Python frame here; an empty piece marks the response's end. What follows it sets ``leftover``. Names of headers
    are lower case.
    """

    __slots__ = (
        "_ended",
        "_interim",
        "_method",
        "_parser",
        "begun",
        "chunked",
        "done",
        "feed",
        "head_complete",
        "headers",
        "keep_alive",
        "leftover",
        "on_body",
        "pieces",
        "status",
        "until_close",
    )

    def __init__(self, method: str) -> None:
        self._method = method
        self._interim = False
        self._ended = False  # the body has been taken to its end
        self.begun = False
        self.chunked = False
        self.head_complete = False
        self.done = False
        self.keep_alive = False
        self.leftover = False
        self.until_close = False
        self.status = 0
        self.headers: Headers = []
        self.pieces: list[bytes] = []
        self.on_body = self.pieces.append
        self._parser = httptools.HttpResponseParser(self)
        self.feed = self._parser.feed_data

    def on_message_begin(self) -> None:
        """Note the first byte of a response, or of something after it."""
        self.begun = True
        self.leftover = self.done

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect a header; trailers are dropped."""
        if not self.head_complete:
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """Note the head; a HEAD request's response ends here."""
        if self.done:
            return
        status = self._parser.get_status_code()
        if status < 200 and status != 101:
            self._interim = True
            return
        self.status = status
        self.head_complete = True
        if self._method == "HEAD":
            self._end()
        elif status not in _BODYLESS:
            sized = any(name == b"content-length" for name, _ in self.headers)
            self.chunked = b"chunked" in _values(self.headers, b"transfer-encoding")
            self.until_close = not sized and not self.chunked

    def on_message_complete(self) -> None:
        """Note the end; an interim response only makes room for the next."""
        if self._interim:
            self._interim = False
            self.headers.clear()
        elif not self.done:
            self._end()

    def body(self) -> bytes:
        """Take the body bytes collected since the last call."""
        pieces = self.pieces
        if self.done:
            end = 0 if self._ended else pieces.index(b"")
            self.leftover = self.leftover or len(pieces) > end + (not self._ended)
            self._ended = True
            del pieces[end:]
        joined = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        return joined

    def finish(self) -> bool:
        """Take the connection's end; return whether the response is complete with it."""
        if self.head_complete and self.until_close and not self.done:
            self.done = self._ended = True
        return self.done

    def close(self) -> None:
        """Let go of llhttp: it and this object hold bound methods of each other."""
        del self.feed, self._parser

    def _end(self) -> None:
        self.done = True
        self.keep_alive = self._parser.should_keep_alive()
        self.pieces.append(b"")


class Inflater:
    """Inflates a gzip or deflate body as it comes."""

    __slots__ = ("_begun", "_gzip", "_stream")

    def __init__(self, encoding: bytes) -> None:
        self._gzip = encoding != b"deflate"
        self._stream = zlib.decompressobj(31 if self._gzip else 15)
        self._begun = False

    @property
    def finished(self) -> bool:
        """Whether the compressed stream came to its own end (or never began)."""
        return self._stream.eof or not self._begun

    def feed(self, data: bytes) -> bytes:
        """Return what can be inflated so far. Raises ContentError on broken data."""
        if not self._begun and not self._gzip and data and data[0] & 0x0F != 8:
            self._stream = zlib.decompressobj(-15)  # deflate without its zlib wrapping: some servers send it
        self._begun = True
        try:
            out = self._stream.decompress(data)
            while self._gzip and self._stream.unused_data:  # the next member of a gzip stream
                rest = self._stream.unused_data
                self._stream = zlib.decompressobj(31)
                out += self._stream.decompress(rest)
        except zlib.error as error:
            raise ContentError(f"content encoding is broken: {error}") from None
        return out


def inflater(headers: Headers) -> Inflater | None:
    """Return what the response's encoding needs; None for identity. Raises ContentError on others."""
    transfer = _values(headers, b"transfer-encoding")
    if transfer not in (b"", b"chunked", b"identity"):
        raise ContentError(f"transfer encoding {transfer.decode('latin-1')!r} cannot be read")
    encoding = _values(headers, b"content-encoding")
    if encoding in (b"", b"identity"):
        return None
    if encoding in (b"gzip", b"x-gzip", b"deflate"):
        return Inflater(encoding)
    raise ContentError(f"content encoding {encoding.decode('latin-1')!r} cannot be read")


def _values(headers: Headers, name: bytes) -> bytes:
    """Return a header's values joined by comma, in lower case."""
    return b", ".join([value for header, value in headers if header == name]).lower()


def request_bytes(request: httpx.Request, *, keep_alive: bool) -> bytes:
    """Return head and body as they go out. Raises LocalProtocolError on a header with a line break."""
    body = request.read()
    length = b"Content-Length: %d\r\n" % len(body) if body or request.method in _WITH_BODY else b""
    return b"%s%s\r\n%s" % (head_bytes(request, keep_alive=keep_alive), length, body)


def head_bytes(request: httpx.Request, *, keep_alive: bool) -> bytes:
    """Return the head but for the body's length and the blank line at its end. Raises LocalProtocolError as above."""
    lines = [b"%s %s HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    for name, value in request.headers.raw:
        lower = name.lower()
        if lower == b"connection" and not keep_alive:
            lines.append(b"Connection: close")
        elif lower not in _FRAMING:
            lines.append(b"%s: %s" % (name, value))
    head = b"\r\n".join(lines)
    if head.count(b"\n") != len(lines) - 1 or head.count(b"\r") != len(lines) - 1:
        raise httpx.LocalProtocolError("a request header holds a line break", request=request)
    return head + b"\r\n"
