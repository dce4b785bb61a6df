"""What the bare loops share: streams that ask one after the other, times per token, one JSON line at the end.

Runs in a throw-away environment: the standard library only.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections.abc import Sequence
from typing import Any

SENT = re.compile(rb'"t":(\d+)')
HEADERS = {"X-Stamp": "1"}
"""Asks for the instant of its sending in each token."""


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--streams", type=int, required=True)
    parser.add_argument("--requests", type=int, required=True)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--raw", action="store_true", help="look only at the clock and the sender's: decode nothing")
    return parser.parse_args()


class Times:
    """Keeps what each measured request saw, and when the first one began."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.body: dict[str, Any] = {
            "model": "deepseek-r1",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": True,
            "max_tokens": given.tokens,
        }
        self.errors: list[int] = []
        self.ttfts: list[int] = []
        self.gaps: list[int] = []
        self.began_ns = self.ended_ns = 0

    def start(self, measured: bool) -> int:
        """Note a request's start; return its instant."""
        now = time.monotonic_ns()
        if measured and not self.began_ns:
            self.began_ns = now
        return now

    def read(self, data: bytes, start: int, last: int, measured: bool) -> int:
        """Take one read without decoding it; return the instant of its last token."""
        now = time.monotonic_ns()
        for sent in SENT.findall(data):
            last = self.token(int(sent), now, start, last, measured)
        return last

    def line(self, line: bytes, start: int, last: int, measured: bool) -> int:
        """Take one line as a tool does that wants to know what came; return the instant of the last token."""
        now = time.monotonic_ns()
        if line.startswith(b"data: {"):
            event = json.loads(line[6:])
            choices = event["choices"]
            if choices and choices[0]["delta"].get("content"):
                return self.token(event["t"], now, start, last, measured)
        return last

    def token(self, sent: int, now: int, start: int, last: int, measured: bool) -> int:
        """Note one token; return its instant."""
        if measured:
            self.errors.append(now - sent)
            if last:
                self.gaps.append(now - last)
            else:
                self.ttfts.append(now - start)
        return now

    def tell(self) -> None:
        """Print what was seen."""
        self.ended_ns = self.ended_ns or time.monotonic_ns()
        told = {"error_ms": self.errors, "ttft_ms": self.ttfts, "itl_ms": self.gaps}
        spreads = {name: _spread(values) for name, values in told.items()}
        print(json.dumps({"tokens": len(self.errors), "began_ns": self.began_ns, "ended_ns": self.ended_ns, **spreads}))


def _spread(values: Sequence[int]) -> dict[str, float]:
    ordered = sorted(values)
    rank = {name: ordered[math.ceil(q * len(ordered)) - 1] / 1e6 for name, q in (("p50", 0.5), ("p99", 0.99))}
    return {"mean": sum(ordered) / len(ordered) / 1e6, **rank, "max": ordered[-1] / 1e6}
