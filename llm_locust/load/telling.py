"""What others are told of a request: the listeners of its tokens, and Locust, once.

Locust's request type is the framing of the answer: `SSE`, `NDJSON`, or `POST` where no stream was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llm_locust.load.answer import Answer
from llm_locust.load.endpoint import Endpoint
from llm_locust.load.events import llm_events
from llm_locust.load.flight import OnToken
from llm_locust.load.gate_types import Ticket
from llm_locust.load.options import AskOptions
from llm_locust.load.stream import TokenEvent
from llm_locust.measure.record import FAILURES
from llm_locust.wire.types import Exchange


@dataclass(frozen=True, slots=True)
class Asking:
    """What is known of a request before it is sent."""

    ticket: Ticket
    name: str
    endpoint: Endpoint
    options: AskOptions
    client_request_id: str
    headers: Mapping[str, str]


class RequestError(Exception):
    """What Locust's `request` event carries for a failure. Its text is the outcome's name only: Locust keeps one row
    per text."""

    def __repr__(self) -> str:
        """Return the outcome's name: what Locust prints."""
        return str(self)


def tell_locust(event: Any, user: Any, answer: Answer, request_type: str, exchange: Exchange) -> None:
    """Fire Locust's `request` event: E2E in ms, for a failure the time until it failed.

    Never for an unfinished request: it is neither success nor failure.
    """
    record = answer.record
    failed = record.outcome in FAILURES
    duration_ns = record.stream_end_ns if failed or record.e2e_ns is None else record.e2e_ns
    event.fire(
        request_type=request_type,
        name=record.name,
        response_time=(duration_ns or 0) / 1e6,
        response_length=exchange.received_bytes,
        response=answer,
        context={"llm": record, **user.context()},
        exception=RequestError(record.outcome.value) if failed else None,
        start_time=record.start_epoch_ns / 1e9,
        url=record.endpoint,
    )


def token_listener(user: Any, name: str, request_id: int) -> OnToken | None:
    """Return what tells the listeners of one request's tokens; None while nobody listens."""
    if not llm_events.token and not llm_events.first_token:
        return None
    first = True

    def tell(event: TokenEvent) -> bool:
        nonlocal first
        arrivals, at_ns = event
        for choice, channels in arrivals:
            arrived = {"user": user, "name": name, "request_id": request_id, "at_ns": at_ns}
            if first:
                first = False
                llm_events.first_token.fire(**arrived, choice=choice, channels=channels)
            llm_events.token.fire(**arrived, choice=choice, channels=channels)
        return bool(llm_events.token)

    return tell
