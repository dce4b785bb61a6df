"""A user's client: heads that are made once, cookies, logins, and what may not be sent."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from llm_locust.wire.client import MOST_KINDS, RequestKind, http_client
from llm_locust.wire.transport import WireTransport
from llm_locust.wire.types import End
from tests.wire.scripted import ScriptedServer, ask, user, whole

URL = "http://server.example:8000/v1/chat/completions?team=a"
OK = whole(b"data: x\n\n")


def lines_of(payload: bytes) -> tuple[bytes, list[bytes], bytes]:
    """Return request line, header lines and body."""
    head, _, body = payload.partition(b"\r\n\r\n")
    first, *headers = head.split(b"\r\n")
    return first, headers, body


def test_a_request_goes_out_as_httpx_has_it_and_its_head_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same line and headers in the same number, whatever the body; httpx is asked once."""
    made: list[httpx.Request] = []
    build = httpx.Client.build_request

    def noting(client: httpx.Client, *asked: Any, **settings: Any) -> httpx.Request:
        made.append(build(client, *asked, **settings))
        return made[-1]

    monkeypatch.setattr(httpx.Client, "build_request", noting)
    headers = {"Authorization": "Bearer key", "X-Request-Id": "mine", "Content-Type": "application/json"}
    with http_client(WireTransport()) as client:
        requests = [client.outgoing("POST", URL, headers, b"{}" * n, f"id{n}") for n in (1, 700)]
        assert len(made) == 1
        for request, content, name in zip(requests, (b"{}", b"{}" * 700), ("id1", "id700"), strict=True):
            line, sent, body = lines_of(request.payload())
            by_httpx = request.whole(client)
            assert (line, body) == (b"POST /v1/chat/completions?team=a HTTP/1.1", content)
            assert sorted(one.lower() for one in sent) == sorted(
                b"%s: %s" % (key.lower(), value.lower()) for key, value in by_httpx.headers.raw
            )
            assert by_httpx.headers.get_list("x-request-id") == [name]


def test_a_login_in_the_address_is_sent() -> None:
    """As httpx does it: in the Authorization header, never in the line."""
    with http_client(WireTransport()) as client:
        line, sent, _ = lines_of(client.outgoing("POST", "http://me:pass@server.example/v1", {}, b"", "1").payload())
    assert line == b"POST /v1 HTTP/1.1"
    assert b"Authorization: Basic bWU6cGFzcw==" in sent


@pytest.mark.parametrize(
    ("url", "headers", "error"),
    [
        (URL, {"X-Note": "a\r\nX-Other: b"}, httpx.LocalProtocolError),
        ("ftp://server.example/v1", {}, httpx.UnsupportedProtocol),
    ],
    ids=["line break", "scheme"],
)
def test_what_cannot_be_sent_is_refused(url: str, headers: dict[str, str], error: type[Exception]) -> None:
    with http_client(WireTransport()) as client, pytest.raises(error):
        client.outgoing("POST", url, headers, b"", "1")


def test_connections_that_are_not_kept_say_so() -> None:
    with http_client(WireTransport(keep_alive=False)) as client:
        _, sent, _ = lines_of(client.outgoing("POST", URL, {}, b"", "1").payload())
    assert [line for line in sent if line.lower().startswith(b"connection")] == [b"Connection: close"]


def test_heads_are_bounded() -> None:
    """A session's header makes a kind of its own: thousands of sessions do not pile up."""
    with http_client(WireTransport()) as client:
        for number in range(MOST_KINDS + 10):
            client.outgoing("POST", URL, {"X-Session": str(number)}, b"", "1")
        assert len(client._kinds) == 10


def test_cookies_that_a_server_sets_go_with_the_next_request() -> None:
    """A gateway that keeps sessions apart by a cookie sees one session per user."""
    sets = whole(b"data: x\n\n", b"Set-Cookie: lane=b; Path=/", b"Set-Cookie: other=1; Domain=elsewhere.example")
    with ScriptedServer([[(0, sets)], [(0, OK)], [(0, OK)]]) as server, user() as client, user() as another:
        assert [ask(client, server.url).end for _ in range(2)] == [End.COMPLETE] * 2
        ask(another, server.url)
        cookies = [b"lane=b" in head for _, head, _ in server.requests]
    assert cookies == [False, True, False]


def test_a_request_shows_neither_key_nor_prompt() -> None:
    with http_client(WireTransport()) as client:
        request = client.outgoing("POST", URL, {"Authorization": "Bearer canary"}, b"canary", "1")
    assert isinstance(request.kind, RequestKind)
    assert "canary" not in f"{request!r} {request} {request.kind!r}"
