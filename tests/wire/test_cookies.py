"""A user's cookies are kept and sent, as httpx does it."""

from __future__ import annotations

import httpx
import pytest

from llm_locust.wire.transport import WireTransport, http_client


@pytest.mark.parametrize(
    ("headers", "sent"),
    [
        ([("set-cookie", "session=7; Path=/"), ("set-cookie", "lane=b; Path=/")], "session=7; lane=b"),
        ([("Set-Cookie", "session=7; Domain=elsewhere.example")], None),
        ([("content-type", "text/event-stream")], None),
    ],
    ids=["two", "another domain's", "none"],
)
def test_a_response_sets_cookies_for_the_next_request(headers: list[tuple[str, str]], sent: str | None) -> None:
    """What is set is sent to where it belongs, and nothing else is."""
    with http_client(WireTransport()) as client:
        request = httpx.Request("POST", "http://server.example/v1/chat/completions")
        client.cookies.extract_cookies(httpx.Response(200, headers=headers, request=request))
        assert client.build_request("GET", "http://server.example/").headers.get("cookie") == sent


def test_cookies_of_two_users_do_not_mix() -> None:
    """Each client has a jar of its own; one that is given is copied."""
    transport = WireTransport()
    with http_client(transport) as one, http_client(transport) as other:
        one.cookies = {"a": "1"}
        assert (dict(one.cookies), dict(other.cookies)) == ({"a": "1"}, {})
