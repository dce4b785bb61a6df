"""One user's client: what httpx makes of a request, sent over the wire with a sink.

httpx builds a request (URL, headers, login, cookies); of the requests of one kind it builds the head once, and each
adds its length, its id and its body: 1.5 µs a request, where building it anew takes some 110.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx

from llm_locust.wire.http import head_bytes
from llm_locust.wire.proxy import perform_through_proxy
from llm_locust.wire.transport import Call, WireTransport, origin_of
from llm_locust.wire.types import Exchange, Limits, Sink

ID_HEADER = "X-Request-Id"
_ID_HEADER = ID_HEADER.encode()
MOST_KINDS = 64
"""Kinds of request whose heads a client keeps: hosts × headers of its own; a session has one for itself."""

_PLAIN_TIMEOUT_S = 30.0
_DEFAULT_HEADERS = {"Accept-Encoding": "identity", "Accept": "*/*"}

logging.getLogger("httpx").setLevel(logging.WARNING)  # at INFO it writes each URL, secrets included


class RequestKind:
    """What the requests to one URL with the same headers have in common. No repr: it holds the key."""

    __slots__ = ("head", "headers", "method", "origin", "url")

    def __init__(self, client: UserClient, method: str, url: str, headers: Mapping[str, str]) -> None:
        """Raises httpx.TransportError for what cannot be sent: another scheme, a line break in a header."""
        self.method = method
        self.url = url
        self.headers = {name: value for name, value in headers.items() if name.lower() != ID_HEADER.lower()}
        request = client.build_request(method, url, headers=self.headers)
        if request.url.userinfo:
            login = httpx.BasicAuth(request.url.username, request.url.password)
            request = next(login.auth_flow(request))
        self.origin = origin_of(request)
        self.head = head_bytes(request, keep_alive=client.keep_alive)


class Outgoing(NamedTuple):
    """One request, ready to be sent."""

    kind: RequestKind
    content: bytes
    request_id: str
    """Of visible ASCII characters."""

    def __repr__(self) -> str:
        """Show the id alone: neither the prompt nor the key."""
        return f"Outgoing({self.request_id})"

    def payload(self) -> bytes:
        """Return the bytes as they go out."""
        head, content = self.kind.head, self.content
        own_id = self.request_id.encode("ascii")
        return b"%sContent-Length: %d\r\n%s: %s\r\n\r\n%s" % (head, len(content), _ID_HEADER, own_id, content)

    def whole(self, client: httpx.Client) -> httpx.Request:
        """Return the same request as httpx has it."""
        kind = self.kind
        headers = {**kind.headers, ID_HEADER: self.request_id}
        return client.build_request(kind.method, kind.url, content=self.content, headers=headers)


class UserClient(httpx.Client):
    """A client that has kinds of requests. Redirects are not followed."""

    def __init__(self, *, keep_alive: bool, **settings: Any) -> None:
        super().__init__(timeout=_PLAIN_TIMEOUT_S, **settings)
        self.keep_alive = keep_alive
        self._kinds: dict[tuple[Any, ...], RequestKind] = {}

    def outgoing(self, method: str, url: str, headers: Mapping[str, str], content: bytes, request_id: str) -> Outgoing:
        """Return a request of the kind that method, URL and headers make. Raises httpx.TransportError as the kind."""
        key = (method, url, *headers.items())
        kind = self._kinds.get(key)
        if kind is None:
            if len(self._kinds) >= MOST_KINDS:
                self._kinds.clear()
            kind = self._kinds[key] = RequestKind(self, method, url, headers)
        return Outgoing(kind, content, request_id)

    def perform(self, request: Outgoing, sink: Sink, limits: Limits, exchange: Exchange | None = None) -> Exchange:
        """Send the request, feed the sink, return the exchange complete; blocks the greenlet until the end.

        Whatever happens on the wire is the exchange's ``end``, never an exception. What kills the greenlet is raised,
        after End.STOPPED: hand in an ``exchange`` to see it then.
        """
        exchange = exchange if exchange is not None else Exchange()
        self._perform(request, Call(sink, limits, exchange))
        return exchange

    def _perform(self, request: Outgoing, call: Call) -> None:
        raise NotImplementedError


class WireClient(UserClient):
    """A client on connections of its own. What httpx asks by itself (`get`) is answered with the whole body."""

    def __init__(self, transport: WireTransport, headers: Mapping[str, str]) -> None:
        self._wire = transport.sibling()
        super().__init__(keep_alive=transport.keep_alive, transport=self._wire, headers=headers)

    def _perform(self, request: Outgoing, call: Call) -> None:
        self._wire.exchange(request.kind.origin, request.kind.method, request.payload(), call)
        if any(name == b"set-cookie" for name, _ in call.exchange.headers):
            self._keep_cookies(request, call.exchange)

    def _keep_cookies(self, request: Outgoing, exchange: Exchange) -> None:
        """Take the cookies that a response sets; the heads made so far lack them."""
        asked = httpx.Request(request.kind.method, request.kind.url)
        self.cookies.extract_cookies(httpx.Response(exchange.status or 0, headers=exchange.headers, request=asked))
        self._kinds.clear()


class ProxiedClient(UserClient):
    """A client whose requests go through a proxy, by httpx's own transport."""

    def _perform(self, request: Outgoing, call: Call) -> None:
        perform_through_proxy(self, request.whole(self), call)


def http_client(transport: WireTransport, headers: Mapping[str, str] | None = None) -> UserClient:
    """Return one user's client (some 50 µs, 2 KB) with connections of its own on the shared settings.

    Proxies of the environment are used only where the transport says "env". Plain requests time out after 30 s
    unless they say otherwise; an exchange has its own limits.
    """
    sent = {**_DEFAULT_HEADERS, **(headers or {})}
    if transport.proxy is None:
        return WireClient(transport, sent)
    if not transport.keep_alive:
        sent["Connection"] = "close"
    from_environment = transport.proxy == "env"
    return ProxiedClient(
        keep_alive=transport.keep_alive,
        verify=transport.tls.context(),
        headers=sent,
        trust_env=from_environment,
        proxy=None if from_environment else transport.proxy,
    )
