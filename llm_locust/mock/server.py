"""The process: listen, say so, serve until told to stop, leave the truth behind."""

from __future__ import annotations

import signal
import ssl
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import gevent
from gevent.event import Event
from gevent.server import StreamServer

from llm_locust.mock.app import App
from llm_locust.mock.engine import Engine
from llm_locust.mock.faults import draw_fault
from llm_locust.mock.http import Connection, listen
from llm_locust.mock.options import Options, parse
from llm_locust.mock.pace import NS_PER_MS, FixedPace, Pace
from llm_locust.mock.profiles import PROFILES
from llm_locust.mock.script import read_scripts
from llm_locust.mock.truth import Truth

DEFAULT_TTFT_MS = 20.0
DEFAULT_ITL_MS = 5.0
SETTLE_EVERY_S = 0.2
SETTLE_AT_MOST = 4


def make_pace(options: Options) -> Pace:
    """The pace that the profile names."""
    if options.profile != "fast":
        return Engine(PROFILES[options.profile], options.time_scale)
    ns_per_ms = NS_PER_MS / options.time_scale
    ttft_ms, itl_ms = options.ttft_ms or DEFAULT_TTFT_MS, options.itl_ms or DEFAULT_ITL_MS
    return FixedPace(round(ttft_ms * ns_per_ms), round(itl_ms * ns_per_ms))


def serve_from_arguments(argv: Sequence[str] | None) -> int:
    """Parse, serve, return the exit code."""
    return serve(parse(argv))


def serve(options: Options) -> int:
    """Serve until SIGTERM or SIGINT."""
    raise_file_limit()
    try:
        scripts = read_scripts(options.script) if options.script else {}
        context = tls_context(options)
        file = options.truth.open("wb") if options.truth else None
        listener = listen(options.host, options.port)
    except (OSError, ValueError) as error:
        print(f"llm-locust mock: {error}", file=sys.stderr)
        return 1
    with file or nullcontext():
        truth = Truth(file)
        app = App(options, make_pace(options), truth, scripts)
        acceptor = Acceptor(app, context)
        server = StreamServer(listener, acceptor.accept)
        server.start()
        loops = [gevent.spawn(app.pacer.run), gevent.spawn(_settle, app)]
        stop = Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            gevent.signal_handler(number, stop.set)
        print(f"llm-locust mock ready on {_url(options, listener)}", flush=True)
        stop.wait()
        server.stop(timeout=0)
        gevent.killall(loops)
        acceptor.close_all()
        app.settle()
    return 0


class Acceptor:
    """Makes a connection of each accepted socket; resets those that the fault asks for."""

    def __init__(self, app: App, context: ssl.SSLContext | None) -> None:
        self._app = app
        self._context = context
        self._count = 0
        self._connections: set[Connection] = set()
        self._refusals = tuple(pair for pair in app.options.faults if pair[0] == "connect_error")

    def accept(self, sock: Any, address: Any) -> None:
        """Serve one connection in its greenlet."""
        self._count += 1
        connection = Connection(sock, self._context, self._app.handle)
        if draw_fault(self._refusals, self._app.options.seed, -self._count):
            self._app.truth.refused_connections += 1
            connection.reset()
            return
        self._connections.add(connection)
        try:
            connection.run()
        finally:
            self._connections.discard(connection)

    def close_all(self) -> None:
        """Close what is open; requests in flight are told as incomplete."""
        for connection in list(self._connections):
            connection.stop()


def _settle(app: App) -> None:
    """Write finished requests in pieces that hold the pacing loop for less than a millisecond."""
    while True:
        gevent.sleep(0 if app.settle(SETTLE_AT_MOST) else SETTLE_EVERY_S)


def raise_file_limit() -> None:
    """Each stream is an open file: take as many as the system allows."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def tls_context(options: Options) -> ssl.SSLContext | None:
    """The TLS settings, None for plain HTTP. Raises OSError on an unreadable certificate."""
    if options.tls_cert is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options.tls_cert, options.tls_key)
    return context


def _url(options: Options, listener: Any) -> str:
    host = f"[{options.host}]" if ":" in options.host else options.host
    return f"{'https' if options.tls_cert else 'http'}://{host}:{listener.getsockname()[1]}"
