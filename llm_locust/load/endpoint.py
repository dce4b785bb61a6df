"""Where requests go: hosts separated by commas, each a base, one ending in `/v1`, or an endpoint's whole path."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

# Paths that stand for an endpoint: a host ending in one of them names it; the rest is the server's base.
_ENDPOINTS = (
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/messages",
    "/generate_stream",
    "/generate",
    "/api/chat",
)


def base_of(host: str) -> str:
    """Return the server's base address: without an endpoint's path, a trailing `/v1` and slashes.

    >>> base_of("http://sglang:30000/v1/chat/completions")
    'http://sglang:30000'
    """
    parts = urlsplit(host.strip())
    path = parts.path.rstrip("/")
    for ending in (*_ENDPOINTS, "/v1"):
        if path.endswith(ending):
            path = path.removesuffix(ending)
            break
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def endpoint_url(host: str, path: str) -> str:
    """Return the URL of an endpoint's path on a host.

    A host that already ends in an endpoint's path stands for the server behind it; one with any other path is a base,
    as behind a gateway: `http://gw/team-a` is asked at `http://gw/team-a/v1/chat/completions`. A query string of the
    host is kept (some gateways need one).
    """
    parts = urlsplit(host.strip())
    query = parts.query
    if parts.path.rstrip("/").endswith(path.removeprefix("/v1")):  # the endpoint itself, as Azure's have it
        return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), query, ""))
    url = base_of(host) + "/" + path.lstrip("/")
    return f"{url}{'&' if '?' in url else '?'}{query}" if query else url


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address that requests go to: the URL with its secrets, and how a report may show it."""

    url: str = field(repr=False)
    shown: str


class Endpoints:
    """Deals the hosts in turn, one per request; one per process, so that all users share the turn."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, str], Iterator[Endpoint]] = {}

    def next(self, hosts: str, path: str) -> Endpoint:
        """Return where the next request goes. Raises ValueError without a host."""
        key = (hosts, path)
        turn = self._turns.get(key)
        if turn is None:
            turn = self._turns[key] = itertools.cycle(endpoints_of(hosts, path))
        return next(turn)


def endpoints_of(hosts: str, path: str) -> tuple[Endpoint, ...]:
    """Return the endpoints of `--host`, whose URLs are separated by commas. Raises ValueError for a wrong one."""
    urls = [endpoint_url(host, path) for host in hosts.split(",") if host.strip()]
    if not urls:
        raise ValueError("no host: give --host http://SERVER:PORT, or a `host` attribute to the user class")
    for url in urls:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).netloc:
            raise ValueError(f"{shown_url(url)} is not an address: right is http://SERVER:PORT")
    return tuple(Endpoint(url, shown_url(url)) for url in urls)


def shown_url(url: str) -> str:
    """Return a URL without login and query: both may hold a key."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
