"""`self.client`: asks one request at a time, and makes of it one record, one booking and one Locust event.

The order of one request: leave from the gate → prompt → body → wire → record → collector → gate → Locust's `request`
event → `llm_events.response` → a pause after a rejection. Whatever happens between the gate's leave and the record, a
bug of ours or a kill included, the record is booked exactly once.

Locust's request type is the framing of the answer: `SSE`, `NDJSON`, or `POST` where no stream was asked for.
"""

from __future__ import annotations

import logging
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import gevent
import msgspec
from gevent.event import Event
from locust.exception import StopTest, StopUser

from llm_locust.load.answer import Answer, without_secrets
from llm_locust.load.asking import Turn, chat_prompt, completion_prompt
from llm_locust.load.backoff import Backoff
from llm_locust.load.endpoint import endpoints_of
from llm_locust.load.events import FLOW_EXCEPTIONS, llm_events
from llm_locust.load.flight import Flight, asked_facts, build_body, count_tokens, fly, request_headers
from llm_locust.load.gate_types import Ticket
from llm_locust.load.options import DEFAULT_DIALECT
from llm_locust.load.row_name import row_name
from llm_locust.load.surroundings import Surroundings
from llm_locust.load.telling import Asking, tell_locust, token_listener
from llm_locust.measure.finish import Identity, finish_record
from llm_locust.measure.judge import AskFacts
from llm_locust.measure.record import Outcome, RequestRecord
from llm_locust.protocol import PromptRequest, get_dialect
from llm_locust.wire.client import Outgoing, UserClient, http_client
from llm_locust.wire.clock import get_clock
from llm_locust.wire.turn import give_way
from llm_locust.wire.types import End, Exchange

logger = logging.getLogger(__name__)

Prompting = Callable[[Ticket], tuple[PromptRequest, bool]]
"""Gives a ticket's prompt, and whether it came before."""


_LONG_CHARACTERS = 100_000
"""A text from which making, encoding and sending it take a millisecond each (700 KB: 120,000 tokens)."""
_LONG_IDS = 30_000
"""So many token ids take as long (120,000: 1.8 ms to make, 0.9 ms to encode)."""


def _let_streams_read(prompt: PromptRequest) -> None:
    """Go through the hub's loop between two steps of a long prompt; before its start, so in no latency."""
    if len(prompt.text or "") > _LONG_CHARACTERS or len(prompt.token_ids or ()) > _LONG_IDS:
        gevent.sleep(1e-6)  # 0 would run before the next poll of the sockets


class LLMClient:
    """One user's client. Its connection is made at the first request and kept."""

    def __init__(self, user: Any, surroundings: Surroundings, request_event: Any) -> None:
        options = surroundings.options
        host = options.host or user.host
        if not host:
            raise StopTest("no host: give --host http://SERVER:PORT, or a `host` attribute to the user class")
        try:
            endpoints_of(host, "/")
        except ValueError as error:
            raise StopTest(str(error)) from None
        self._host: str = host
        self._user = user
        self._here = surroundings
        self._request_event = request_event
        self._dialect = get_dialect(user.dialect or options.dialect or DEFAULT_DIALECT)
        self._spoken = (self._dialect.name, "" if options.host else host)
        self._request_type = self._dialect.framing.name if options.body.stream else "POST"
        self._http: UserClient | None = None
        self._backoff = Backoff()
        self._landed = Event()
        self._landed.set()
        self._left = False
        self._told: set[str] = set()
        self.waiting = False
        """Whether the user waits for the gate, or pauses: nothing is lost if it is killed now."""

    # ---- what a task calls ----

    def ask(
        self,
        *,
        name: str | None = None,
        reshape: Callable[[PromptRequest], PromptRequest] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask the next prompt of the run's source (or of the class's `prompts`); `reshape` makes of it what is sent."""

        def prompting(ticket: Ticket) -> tuple[PromptRequest, bool]:
            prompt, repeated = self._here.desk.prompt(self._user.prompts, ticket, self._spoken)
            return prompt if reshape is None else reshape(prompt), repeated

        return self._request(prompting, name, headers)

    def chat(
        self,
        prompt: str | Sequence[Turn] | PromptRequest,
        *,
        name: str | None = None,
        output_tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask a text or a conversation; `extra` is merged into the body, `name` is the row in the statistics.

        `headers` are sent beside those of the run. Raises StopUser when there is nothing more to issue; never for what
        the server does.
        """
        wanted = chat_prompt(prompt, output_tokens, extra)
        return self._request(lambda _: (wanted, False), name, headers)

    def complete(
        self,
        prompt: str | Sequence[int] | PromptRequest,
        *,
        name: str | None = None,
        output_tokens: int | None = None,
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask a plain text or token ids; else as `chat`."""
        wanted = completion_prompt(prompt, output_tokens, extra)
        return self._request(lambda _: (wanted, False), name, headers)

    # ---- what the user's life calls ----

    @property
    def in_flight(self) -> bool:
        """Whether a request is under way."""
        return not self._landed.is_set()

    def leave(self) -> None:
        """Take no new request; block until the one in flight has ended, at most the drain limit."""
        self._left = True
        self._here.gate.leave(self._user)
        self._landed.wait(self._here.options.drain_s)

    def close(self) -> None:
        """The user is gone: nobody waits for it any more, and its connection is closed. Never blocks."""
        if not self._left:
            self._left = True
            self._here.gate.leave(self._user)
        if self._http is not None:
            self._http.close()
            self._http = None

    # ---- one request ----

    def _request(self, prompting: Prompting, name: str | None, headers: Mapping[str, str] | None) -> Answer:
        here = self._here
        options = here.options
        stream = options.body.stream
        path = options.path or (self._dialect.path if stream else self._dialect.document_path)
        if self._http is None:
            give_way()  # hundreds of users may be spawned at once: what arrives is read between their first requests
        ticket = self._admit()
        self._landed.clear()
        outcome = Outcome.CLIENT_ERROR
        try:
            endpoint = here.endpoints.next(self._host, path)
            row = row_name(name or self._user.name or path)
            request = Asking(ticket, row, endpoint, options, uuid.uuid4().hex, headers or {})
            flight = Flight(
                reader=self._dialect.reader(stream=stream), asked=AskFacts(stream=stream), keep_raw=options.keep_raw
            )
            stop = self._prepare_and_fly(flight, request, prompting)
            record = self._book(flight, request)
            if flight.keep_raw:
                here.collector.answered(record, flight.raw)
            outcome = record.outcome
        finally:
            here.gate.finished(self._user, ticket, outcome)
            self._landed.set()
        if stop is not None:
            raise stop
        answer = Answer.of(record, flight.prompt, flight.reader)
        if record.outcome is not Outcome.UNFINISHED:
            tell_locust(self._request_event, self._user, answer, self._request_type, flight.exchange)
            llm_events.response.fire(user=self._user, answer=answer)
        self._pause(record, flight.exchange)
        return answer

    def _admit(self) -> Ticket:
        if self._left:
            raise StopUser
        self.waiting = True
        try:
            return self._here.gate.admit(self._user)
        finally:
            self.waiting = False

    def _prepare_and_fly(self, flight: Flight, request: Asking, prompting: Prompting) -> BaseException | None:
        """Build, send and wait for the end; return what is to be raised once the record is booked."""
        stop: BaseException | None = None
        ready: Outgoing | None = None
        try:
            ready = self._prepare(flight, request, prompting)
        except Exception as error:
            self._fail(flight, error)
        except BaseException as killed:
            flight.end(End.STOPPED, type(killed).__name__)
            stop = killed
        start_ns = flight.exchange.start_ns = flight.exchange.start_ns or get_clock().now_ns()
        self._here.collector.opened(request.ticket, request.name, flight.timeline, start_ns)
        return stop if ready is None else self._fly(flight, request, ready)

    def _prepare(self, flight: Flight, request: Asking, prompting: Prompting) -> Outgoing:
        """Build the request: prompt, body, headers. Raises ValueError where the dialect cannot carry the prompt."""
        options = request.options
        prompt, repeated = prompting(request.ticket)
        flight.prompt = prompt
        _let_streams_read(prompt)
        body = build_body(self._dialect, prompt, options.body)
        flight.asked = asked_facts(
            self._dialect, prompt, options.body, body, eos_ignored=options.eos_ignored, prompt_repeated=repeated
        )
        flight.reader = self._dialect.reader(stream=options.body.stream, n=flight.asked.n)
        headers = {**request_headers(self._dialect, options), **request.headers}
        content = msgspec.json.encode(body)
        _let_streams_read(prompt)
        return self._client().outgoing("POST", request.endpoint.url, headers, content, request.client_request_id)

    def _fly(self, flight: Flight, request: Asking, ready: Outgoing) -> BaseException | None:
        options, exchange = request.options, flight.exchange
        try:
            listener = token_listener(self._user, request.name, request.ticket.index)
            fly(flight, self._client(), ready, options.limits, listener)
            if options.tokenizer is not None:
                count_tokens(flight, options.tokenizer)
        except FLOW_EXCEPTIONS as stop:  # a listener ends its user in mid-stream
            flight.end(End.STOPPED, type(stop).__name__)
            return stop
        except Exception as error:
            self._fail(flight, error)
        except BaseException as stop:
            flight.end(End.STOPPED, type(stop).__name__)
            if isinstance(stop, gevent.Timeout) and exchange.end is End.STOPPED:
                exchange.end, exchange.error = End.TIMEOUT_TOTAL, "the task's own limit"
            return stop
        return None

    def _fail(self, flight: Flight, error: Exception) -> None:
        """Note a fault of ours, or of the prompt: the request becomes a `client_error`."""
        flight.end(End.SINK_ERROR)
        flight.asked = replace(flight.asked, client_error=f"{type(error).__name__}: {error}")
        logger.debug("A request could not be made, or its answer not be read", exc_info=True)

    def _client(self) -> UserClient:
        if self._http is None:
            self._http = http_client(self._here.transport)
        return self._http

    def _book(self, flight: Flight, request: Asking) -> RequestRecord:
        here, ticket = self._here, request.ticket
        record, samples = finish_record(
            flight.answer(),
            flight.asked,
            Identity(
                run_id=here.run_id,
                worker=here.worker,
                request_id=ticket.index,
                user_class=type(self._user).__name__,
                name=request.name,
                dialect=self._dialect.name,
                stage=ticket.stage,
                phase=ticket.phase,
                epoch_offset_ns=get_clock().offset_ns,
                scheduled_ns=ticket.scheduled_ns,
                user_wait_ns=ticket.user_wait_ns,
                endpoint=request.endpoint.shown,
                client_request_id=request.client_request_id,
            ),
            here.slo_good,
        )
        record = without_secrets(record, request.options)
        here.collector.book(record, samples)
        if record.outcome is Outcome.CLIENT_ERROR and record.error not in self._told:
            self._told.add(record.error)
            logger.error("client_error in %s: %s", record.name, record.error)
        return record

    def _jitter(self, request_id: int) -> float:
        """Draw the jitter that belongs to a request: reproducible by the run's seed."""
        return random.Random(f"{self._here.seed}/{request_id}").random()

    def _pause(self, record: RequestRecord, exchange: Exchange) -> None:
        """Let the user wait where the server, or its absence, asks for it; outside all latencies."""
        clock = get_clock()
        epoch_s = clock.epoch_ns(clock.now_ns()) / 1e9
        pause_s = self._backoff.pause_s(
            record.outcome, exchange, epoch_s, lambda: self._jitter(record.request_id),
            scheduled=record.scheduled_epoch_ns is not None,
        )  # fmt: skip
        if not pause_s:
            return
        begun_ns = clock.now_ns()
        self.waiting = True
        try:
            gevent.sleep(pause_s)
        finally:
            self.waiting = False
            if record.outcome is Outcome.REJECTED:
                self._here.collector.paused(record.stage, record.name, clock.now_ns() - begun_ns)
