"""One short request outside of any load: what the pre-flight and `llm-locust probe` send, and how they judge it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import msgspec

from llm_locust.load.answer import without_secrets_text
from llm_locust.load.endpoint import Endpoint, base_of
from llm_locust.load.flight import Flight, asked_facts, build_body, fly, request_headers
from llm_locust.load.options import AskOptions
from llm_locust.load.stream import TokenEvent
from llm_locust.measure.judge import judge
from llm_locust.measure.record import Outcome
from llm_locust.protocol import BodyOptions, Dialect, PromptRequest
from llm_locust.protocol.lenient import as_mapping, as_mappings, decode_json
from llm_locust.wire.client import Outgoing, http_client
from llm_locust.wire.transport import WireTransport
from llm_locust.wire.types import Limits

PROMPT = "Reply with the single word OK."
OUTPUT_TOKENS = 32
"""Long enough to tell a running count from a final one, short enough for a slow server."""
TOO_MANY_TOKENS = 8 * OUTPUT_TOKENS
"""Token events after which a trial is ended: the server does not obey its limit."""
LONGEST_S = 300.0
"""A first request may compile kernels; a server that says nothing for longer is told as silent."""
MODELS_TIMEOUT_S = 10.0


class LimitIgnoredError(Exception):
    """Far more tokens came than were asked for."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one short request. `error` is rid of secrets."""

    flight: Flight
    outcome: Outcome
    error: str
    limit_ignored: bool = False

    @property
    def output_tokens(self) -> int:
        """Output tokens that the server stated; 0 where it stated none."""
        return self.flight.reader.usage.output_tokens or 0

    @property
    def ttft_s(self) -> float | None:
        """Seconds to the first token; None without one."""
        first_ns = self.flight.timeline.first_ns
        return None if first_ns is None else (first_ns - self.flight.exchange.start_ns) / 1e9

    @property
    def counts_run(self) -> bool:
        """Whether a running token count came with the events."""
        return self.flight.timeline.analyse().token_counts is not None


class Tester:
    """Sends trials to one endpoint over a connection of its own."""

    def __init__(self, options: AskOptions, dialect: Dialect, endpoint: Endpoint, transport: WireTransport) -> None:
        self.options = options
        self.dialect = dialect
        self.endpoint = endpoint
        self.http = http_client(transport)

    def prompt(self) -> PromptRequest:
        """Return the short prompt: a model that is free to stop does so after a few tokens."""
        return PromptRequest(text=PROMPT, output_tokens=OUTPUT_TOKENS, exact_output=True)

    def take_off(self, body_options: BodyOptions, prompt: PromptRequest) -> tuple[Flight, Outgoing]:
        """Build a flight and its request. Raises ValueError where the dialect cannot carry it."""
        body = build_body(self.dialect, prompt, body_options)
        # Whether `ignore_eos` is honoured is what a trial finds out: too few tokens are no failure of it.
        asked = asked_facts(self.dialect, prompt, body_options, body, eos_ignored=False)
        flight = Flight(reader=self.dialect.reader(stream=body_options.stream, n=asked.n), asked=asked)
        headers = request_headers(self.dialect, self.options)
        content = msgspec.json.encode(body)
        return flight, self.http.outgoing("POST", self.endpoint.url, headers, content, uuid.uuid4().hex)

    def ask(self, body_options: BodyOptions) -> Trial:
        """Send the short prompt; end it early where the server does not obey the output limit."""
        flight, request = self.take_off(body_options, self.prompt())
        seen = 0

        def count(_: TokenEvent) -> bool:
            nonlocal seen
            seen += 1
            if seen > TOO_MANY_TOKENS * flight.asked.n:
                raise LimitIgnoredError
            return True

        try:
            fly(flight, self.http, request, trial_limits(self.options.limits), count)
        except LimitIgnoredError:
            return Trial(flight, Outcome.OK, "", limit_ignored=True)
        return self.judged(flight)

    def judged(self, flight: Flight) -> Trial:
        """Judge a flight that has ended."""
        outcome, error = judge(flight.answer(), flight.asked)
        return Trial(flight, outcome, without_secrets_text(error, self.options))

    def models(self) -> tuple[str, ...]:
        """Ask `/v1/models`; empty where the server has none, or no such endpoint."""
        headers = {**request_headers(self.dialect, self.options), "Accept": "application/json"}
        headers.pop("Content-Type", None)
        url = base_of(self.endpoint.url) + "/v1/models"
        try:
            response = self.http.get(url, headers=headers, timeout=MODELS_TIMEOUT_S)
            listed = as_mappings(as_mapping(decode_json(response.content)).get("data")) if response.is_success else []
        except (httpx.HTTPError, ValueError):
            return ()
        return tuple(model["id"] for model in listed if isinstance(model.get("id"), str))

    def close(self) -> None:
        """Close the connection."""
        self.http.close()


@contextmanager
def tester(options: AskOptions, dialect: Dialect, endpoint: Endpoint, transport: WireTransport) -> Iterator[Tester]:
    """Make a tester and close it afterwards."""
    made = Tester(options, dialect, endpoint, transport)
    try:
        yield made
    finally:
        made.close()


def trial_limits(limits: Limits) -> Limits:
    """Return the run's limits, none longer than a trial may take."""

    def shorter(limit_s: float) -> float:
        return min(limit_s, LONGEST_S) if limit_s else LONGEST_S

    return Limits(limits.connect_s, shorter(limits.first_token_s), shorter(limits.stall_s), shorter(limits.total_s))
