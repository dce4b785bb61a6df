"""Faults on demand: which request gets which, and the outcome a truthful client must book for it.

Deterministic: the fault of request number N follows from the seed and N alone.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One row of the table: the outcome that the client should see, and what the server does."""

    outcome: str
    what: str
    mid_stream: bool = False  # happens after --fault-after tokens


FAULTS: dict[str, Fault] = {
    "connect_error": Fault("connect_error", "reset the connection before reading"),
    "http_error": Fault("http_error", "status 500"),
    "rejected": Fault("rejected", "status 429 with Retry-After"),
    "unavailable": Fault("rejected", "status 503, no Retry-After"),
    "html": Fault("http_error", "status 200 with a login page"),
    "not_streamed": Fault("not_streamed", "one JSON body although a stream was asked for"),
    "server_error": Fault("server_error", "an error event in mid-stream", mid_stream=True),
    "aborted": Fault("aborted", "finish reason abort", mid_stream=True),
    "malformed": Fault("malformed", "one event that is not JSON", mid_stream=True),
    "cut": Fault("cut", "close in mid-stream", mid_stream=True),
    "reset": Fault("cut", "reset in mid-stream", mid_stream=True),
    "empty": Fault("empty", "a finish, but no token"),
    "truncated": Fault("truncated", "a clean end without finish reason", mid_stream=True),
    "short": Fault("truncated", "finish length with fewer tokens than asked for", mid_stream=True),
    "eos": Fault("ok", "ends with stop although ignore_eos was asked for", mid_stream=True),
    "overrun": Fault("ok", "twice the output limit"),
    "stall": Fault("ok", "--stall-ms of comments in mid-stream", mid_stream=True),
    "slow_first": Fault("ok", "the first token comes --slow-first-ms late"),
    "no_usage": Fault("ok", "usage is left out"),
    "bundle_tokens": Fault("ok", "--bundle tokens in one event"),
    "bundle_events": Fault("ok", "--bundle events in one segment"),
}


def parse_faults(text: str) -> tuple[tuple[str, float], ...]:
    """Read ``cut=0.1,stall=0.05``; a bare name is probability 1. Raises ValueError."""
    faults = []
    for part in filter(None, text.split(",")):
        name, _, share = part.partition("=")
        if name not in FAULTS:
            raise ValueError(f"no fault {name!r}; there are {', '.join(FAULTS)}")
        probability = float(share or 1)
        if not 0 <= probability <= 1:
            raise ValueError(f"{part!r}: not a probability")
        faults.append((name, probability))
    if sum(probability for _, probability in faults) > 1 + 1e-9:
        raise ValueError("the probabilities add up to more than 1")
    return tuple(faults)


def draw_fault(faults: tuple[tuple[str, float], ...], seed: int, number: int) -> str | None:
    """Say which fault request number ``number`` gets, None for none."""
    if not faults:
        return None
    left = random.Random(f"{seed}:fault:{number}").random()
    for name, probability in faults:
        if left < probability:
            return name
        left -= probability
    return None
