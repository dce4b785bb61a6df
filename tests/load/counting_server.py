"""A chat server that only counts: its usage follows from a rule that the test gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from gevent.pywsgi import WSGIServer

Rule = Callable[[int], int | None]
"""Prompt tokens of a text of so many words; None: no usage."""


@dataclass
class CountingServer:
    """Answers every path that ends in /chat/completions with one token; notes the words of each prompt."""

    rule: Rule
    asked: list[int] = field(default_factory=list)
    url: str = ""

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        body = msgspec.json.decode(environ["wsgi.input"].read() or b"{}")
        if not environ["PATH_INFO"].endswith("/chat/completions"):
            start_response("404 Not Found", [("Content-Type", "application/json")])
            return [b'{"error":{"message":"no such path"}}']
        words = len(body["messages"][-1]["content"].split())
        self.asked.append(words)
        tokens = self.rule(words)
        start_response("200 OK", [("Content-Type", "text/event-stream")])
        events: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]},
        ]
        if tokens is not None:
            events.append({"choices": [], "usage": {"prompt_tokens": tokens, "completion_tokens": 1}})
        return [b"".join(b"data: " + msgspec.json.encode(event) + b"\n\n" for event in events) + b"data: [DONE]\n\n"]


@contextmanager
def counting(rule: Rule) -> Iterator[CountingServer]:
    """Serve in this process's hub."""
    server = CountingServer(rule)
    wsgi = WSGIServer(("127.0.0.1", 0), server, log=None, error_log=None)
    wsgi.start()
    server.url = f"http://127.0.0.1:{wsgi.server_port}"
    try:
        yield server
    finally:
        wsgi.stop(1)
