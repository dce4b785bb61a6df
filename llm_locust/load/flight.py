"""One request on its way: what was asked, the sink that takes the answer, and how it ended.

Used by the client under load and by the pre-flight alike. Knows no gate, no collector and no Locust.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gevent
import msgspec
from gevent.queue import SimpleQueue

from llm_locust.load.options import AskOptions
from llm_locust.load.stream import RawSink, StreamSink, TokenEvent
from llm_locust.measure.judge import Answer, AskFacts
from llm_locust.measure.timeline import Timeline
from llm_locust.prompts.tokenizers import TokenCounter
from llm_locust.protocol import BodyOptions, Dialect, PromptRequest, Reader
from llm_locust.wire.client import Outgoing, UserClient
from llm_locust.wire.clock import get_clock
from llm_locust.wire.types import End, Exchange, Limits

OnToken = Callable[[TokenEvent], bool]
"""Called for a token event in the user's greenlet; False: it wants no more of them."""

_LONG_TEXT = 8_000
"""Characters from which a text is counted off the hub: some 2,000 tokens, 2 ms (tiktoken 0.9)."""


@dataclass(slots=True, kw_only=True)
class Flight:
    """All that belongs to one request; complete when ``exchange.end`` is set."""

    reader: Reader
    asked: AskFacts
    timeline: Timeline = field(default_factory=Timeline)
    exchange: Exchange = field(default_factory=Exchange)
    body: bytes = b""
    counted_tokens: int | None = None
    keep_raw: bool = False
    raw: bytes = b""
    prompt: PromptRequest | None = None

    def answer(self) -> Answer:
        """Return what `measure` judges."""
        return Answer(self.exchange, self.reader, self.timeline, self.body, self.counted_tokens)

    def end(self, end: End, error: str = "") -> None:
        """Give the exchange an end where the wire could not: it was killed, or failed before it began."""
        exchange = self.exchange
        now_ns = get_clock().now_ns()
        exchange.start_ns = exchange.start_ns or now_ns
        if exchange.end is None:
            exchange.end, exchange.error, exchange.end_ns = end, error, now_ns


def asked_facts(
    dialect: Dialect,
    prompt: PromptRequest,
    options: BodyOptions,
    body: Mapping[str, Any],
    *,
    eos_ignored: bool = True,
    prompt_repeated: bool = False,
) -> AskFacts:
    """State what a body asks for, as far as the outcome depends on it; the length asked for is that of all choices."""
    n = choices_asked(body)
    return AskFacts(
        stream=options.stream,
        framing=dialect.framing,
        finish_reason_expected=dialect.finish_reason_expected,
        n=n,
        input_tokens=prompt.input_tokens,
        output_tokens=None if prompt.output_tokens is None else prompt.output_tokens * n,
        output_tokens_demanded=_demanded_tokens(body, prompt) if eos_ignored else None,
        prompt_repeated=prompt_repeated,
    )


def build_body(dialect: Dialect, prompt: PromptRequest, options: BodyOptions) -> dict[str, Any]:
    """Build the body. Raises ValueError where the dialect cannot carry the prompt.

    A prompt without an output limit does not ask to ignore the end of the sequence: the answer would run to the end of
    the context. Nor does one that says something, unless that was asked for.
    """
    own = options.ignore_eos_if_exact and not prompt.exact_output
    if options.ignore_eos and (own or prompt.output_tokens is None):
        options = msgspec.structs.replace(options, ignore_eos=False)
    return dialect.body(prompt, options)


def request_headers(dialect: Dialect, options: AskOptions) -> dict[str, str]:
    """Return the headers of every request: the dialect's own, then those of the run."""
    return {
        "Content-Type": "application/json",
        "Accept": f"{dialect.framing.value}, application/json" if options.body.stream else "application/json",
        **dialect.headers(options.api_key),
        **dict(options.headers),
    }


def fly(flight: Flight, http: UserClient, request: Outgoing, limits: Limits, on_token: OnToken | None = None) -> None:
    """Send the request and block the greenlet until its end; `on_token` is called in this greenlet, per token event.

    Whatever happens on the wire is the exchange's end. Raises what killed the greenlet, and what `on_token` raises.
    """
    make_sink = RawSink if flight.keep_raw else StreamSink
    sink = make_sink(flight.asked, flight.reader, flight.timeline)
    try:
        if on_token is None:
            http.perform(request, sink, limits, flight.exchange)
        else:
            _fly_beside(lambda: http.perform(request, sink, limits, flight.exchange), sink, on_token)
        sink.finish(flight.exchange)
    finally:
        flight.timeline.catch_up = None  # it and the wire hold each other
        flight.body = bytes(sink.body)
        if isinstance(sink, RawSink):
            flight.raw = bytes(sink.raw)


def _fly_beside(run: Callable[[], Exchange], sink: StreamSink, on_token: OnToken) -> None:
    """Run the exchange in a greenlet of its own, so that this one is free to call the listeners.

    The other one ends with this call, however it ends.
    """
    queue: SimpleQueue[list[TokenEvent] | None] = SimpleQueue()
    sink.on_tokens = queue.put
    failures: list[Exception] = []

    def carry() -> None:
        try:
            run()
        except Exception as error:
            failures.append(error)
        finally:
            queue.put(None)

    carrier = gevent.spawn(carry)
    try:
        while (events := queue.get()) is not None:
            for event in events:
                if sink.on_tokens is not None and not on_token(event):
                    sink.on_tokens = None
    finally:
        carrier.kill()
    if failures:
        raise failures[0]


def count_tokens(flight: Flight, tokenizer: TokenCounter) -> None:
    """Count the tokens of the whole text where the server stated none; a long text is counted off the hub."""
    if flight.reader.usage.output_tokens or not len(flight.timeline):
        return
    text = flight.reader.whole_text
    if len(text) < _LONG_TEXT:
        flight.counted_tokens = tokenizer.count(text)
    else:
        flight.counted_tokens = gevent.get_hub().threadpool.apply(tokenizer.count, (text,))


def choices_asked(body: Mapping[str, Any]) -> int:
    """Return the choices that the body asks for, whoever put `n` there: a dialect, the extra body, a task."""
    n = _fields(body).get("n", 1)
    return n if isinstance(n, int) and n > 1 else 1


def _fields(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the body's fields with those of its sampling parameters."""
    nested = body.get("sampling_params")
    return {**nested, **body} if isinstance(nested, Mapping) else body


def _demanded_tokens(body: Mapping[str, Any], prompt: PromptRequest) -> int | None:
    """Return the output tokens that the body demands: by `ignore_eos`, or by a minimum; None for none."""
    fields = _fields(body)
    if fields.get("ignore_eos") is True:
        return prompt.output_tokens
    minimum = fields.get("min_tokens", fields.get("min_new_tokens"))
    return minimum if isinstance(minimum, int) and minimum > 0 else None
