"""One generated answer: its sequences, its fault, what of it goes out when.

The pacer calls ``token`` once for each token that is due; everything that is sent for it is sent there.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic_ns
from typing import TYPE_CHECKING

import gevent

from llm_locust.mock.answer import AnswerUnderWay
from llm_locust.mock.faults import FAULTS
from llm_locust.mock.http import LAST_CHUNK, Connection, chunk, head
from llm_locust.mock.pace import NS_PER_MS, Sequence
from llm_locust.mock.plan import plan_length
from llm_locust.mock.tokens import JSON_TEXTS, text_number
from llm_locust.mock.truth import Told
from llm_locust.mock.voices.voice import SSE, Voice

if TYPE_CHECKING:
    from llm_locust.mock.app import App

COMMENT = b": keep-alive\n\n"
COMMENTS_PER_STALL = 6

BUNDLING = ("bundle_tokens", "bundle_events")
# What the faults make of an answer that is one document.
DOCUMENT_OUTCOMES = {
    "cut": "cut",
    "reset": "cut",
    "server_error": "http_error",
    "empty": "empty",
    "aborted": "aborted",
    "malformed": "malformed",
}


class Generation(AnswerUnderWay):
    """The answer to one request, from its admission to its last byte."""

    def __init__(self, app: App, connection: Connection, voice: Voice, told: Told) -> None:
        super().__init__(connection, app.truth, told)
        self._app = app
        self._voice = voice
        self._fault = told.fault
        self._streamed = voice.ask.stream and told.fault != "not_streamed"
        self._act_at = 0  # the token after which a mid-stream fault happens; 0: none
        self._bundles: dict[int, list[bytes]] = {}
        self._finishes: list[str] = []
        self._left = voice.ask.n
        self._send_ns = told.token_send_ns

    def start(self) -> None:
        """Plan the lengths, send the head, hand the sequences to the pace."""
        ask, told, options = self._voice.ask, self._told, self._app.options
        told.prompt_tokens = ask.prompt_tokens
        sequences = []
        for choice in range(ask.n):
            limit, finish = plan_length(ask, told.number, choice, options)
            sequences.append(Sequence(self, choice, ask.prefix, ask.prompt_tokens, limit))
            self._finishes.append(finish)
        self._voice.sequences = sequences
        self._prepare_fault(sequences)
        self._connection.begin(self)
        if self._streamed:
            told.head_ns = monotonic_ns()
            headers = [(b"Content-Type", self._voice.content_type), (b"Cache-Control", b"no-cache")]
            opening = self._voice.opening()
            self._put(head(200, [*headers, (b"Transfer-Encoding", b"chunked")]) + (chunk(opening) if opening else b""))
        for sequence in sequences:
            self._app.pace.submit(sequence, told.arrival_ns)
        self._app.pacer.wake()

    def _prepare_fault(self, sequences: list[Sequence]) -> None:
        fault, ask, told, options = self._fault, self._voice.ask, self._told, self._app.options
        if fault is None:
            return
        told.outcome = FAULTS[fault].outcome
        scale = NS_PER_MS / options.time_scale
        longest = max(sequence.limit_tokens for sequence in sequences)
        act_at = max(1, min(options.fault_after, longest - 1))
        if fault in ("short", "eos"):
            told.outcome = self._outcome_of_short(act_at < longest)
            for sequence in sequences:
                sequence.limit_tokens = min(sequence.limit_tokens, act_at)
            self._finishes = ["length" if fault == "short" else "stop"] * ask.n
        elif fault == "overrun":
            for sequence in sequences:
                sequence.limit_tokens *= 2
        elif fault == "slow_first":
            for sequence in sequences:
                sequence.hold_until_ns = told.arrival_ns + round(options.slow_first_ms * scale)
        elif fault == "no_usage":
            self._voice.with_usage = False
        elif fault == "empty":
            for sequence in sequences:
                sequence.limit_tokens = 1
        elif longest == 1 and FAULTS[fault].mid_stream:
            told.outcome = "ok"  # one token has no middle
            self._fault = told.fault = None
        elif FAULTS[fault].mid_stream:
            self._act_at = act_at
        if not ask.stream and fault != "short":
            told.outcome = DOCUMENT_OUTCOMES.get(fault, "ok")

    def _outcome_of_short(self, shortened: bool) -> str:
        """Too few tokens are a failure only where a length was demanded and usage tells."""
        ask = self._voice.ask
        demanded = ask.ignore_eos or ask.min_tokens > 0
        seen_by_preflight = dict(self._app.options.faults).get("eos") == 1.0
        counted = ask.include_usage or ask.continuous_usage or not ask.stream or self._voice.always_counts
        return "truncated" if shortened and demanded and counted and not seen_by_preflight else "ok"

    # -- tokens -----------------------------------------------------------------------------------------------------

    def token(self, sequence: Sequence) -> None:
        """One token of one sequence is due: send it. Hot path."""
        if self._over:
            return
        if self._fault == "empty":
            self._end_empty(sequence)
            return
        text = JSON_TEXTS[text_number(self._told.number, sequence.choice, sequence.emitted)]
        sequence.emitted += 1
        complete = sequence.emitted >= sequence.limit_tokens
        if self._streamed:
            if self._fault in BUNDLING:
                self._token_in_bundle(sequence, text)
            else:
                self._send_token(sequence, text, complete)
        if complete:
            self._choice_done()

    def _send_token(self, sequence: Sequence, text: bytes, complete: bool) -> None:
        now_ns = monotonic_ns()
        if complete:
            event = self._voice.last_token(sequence, text, now_ns, self._finishes[sequence.choice])
        else:
            event = self._voice.token(sequence, text, now_ns)
        self._send_ns.append(now_ns)
        self._truth.tokens += 1
        self._put(chunk(event))
        if self._act_at and not complete and len(self._send_ns) >= self._act_at:
            self._act()

    def _put(self, payload: bytes) -> None:
        self._told.sent_bytes += len(payload)
        self._connection.send(payload)

    def _end_empty(self, sequence: Sequence) -> None:
        """The fault that ends a choice where its first token should have been."""
        if self._streamed:
            self._put(chunk(self._voice.choice_end(sequence, self._finishes[sequence.choice])))
        self._choice_done()

    def _token_in_bundle(self, sequence: Sequence, text: bytes) -> None:
        """The faults that send several tokens together: in one event, or as several events in one segment."""
        together = self._fault == "bundle_tokens"
        bundle = self._bundles.setdefault(sequence.choice, [])
        bundle.append(text if together else chunk(self._voice.token(sequence, text, monotonic_ns())))
        if sequence.complete or len(bundle) >= self._app.options.bundle:
            now_ns = monotonic_ns()
            joined = b"".join(bundle)
            self._send_ns += [now_ns] * len(bundle)
            self._truth.tokens += len(bundle)
            bundle.clear()
            self._put(chunk(self._voice.token(sequence, joined, now_ns)) if together else joined)
        if sequence.complete:
            self._put(chunk(self._voice.choice_end(sequence, self._finishes[sequence.choice])))

    def _choice_done(self) -> None:
        self._left -= 1
        if self._left:
            return
        if self._streamed:
            self._put(chunk(self._voice.closing()) + LAST_CHUNK)
            self._finish(self._connection.finish)
        else:
            self._send_document()

    def _send_document(self) -> None:
        sequences, number = self._voice.sequences, self._told.number
        texts = [
            b"".join(JSON_TEXTS[text_number(number, sequence.choice, position)] for position in range(sequence.emitted))
            for sequence in sequences
        ]
        if self._fault in ("cut", "reset"):
            self._act()
            return
        if self._fault == "server_error":
            self._over = True
            self._finish(lambda: self._connection.reply(500, b'{"error":{"message":"engine died","code":500}}'))
            return
        if self._fault == "aborted":
            self._finishes = ["abort"] * len(self._finishes)
        document = self._voice.document(texts, self._finishes)
        if self._fault == "malformed":
            document = document[:-2]
        self._told.sent_bytes += len(document)
        self._finish(lambda: self._connection.reply(200, document))

    # -- faults -----------------------------------------------------------------------------------------------------

    def _act(self) -> None:
        """The mid-stream fault happens now."""
        self._act_at = 0
        voice, fault = self._voice, self._fault
        if fault == "stall":
            self._stall()
        elif fault == "malformed":
            self._put(chunk(voice.malformed()))
        elif fault in ("cut", "reset"):
            self._finish(self._connection.close if fault == "cut" else self._connection.reset)
        elif fault == "server_error":
            self._end_early(voice.error("engine died"))
        elif fault == "truncated":
            self._end_early(voice.ending_without_finish())
        elif fault == "aborted":
            self._finishes = ["abort"] * voice.ask.n
            ends = b"".join(
                voice.choice_end(sequence, "abort") for sequence in voice.sequences if not sequence.complete
            )
            self._end_early(ends + voice.closing())

    def _end_early(self, events: bytes) -> None:
        self._put((chunk(events) if events else b"") + LAST_CHUNK)
        self._finish(self._connection.finish)

    def _stall(self) -> None:
        stall_ns = round(self._app.options.stall_ms * NS_PER_MS / self._app.options.time_scale)
        until_ns = monotonic_ns() + stall_ns
        for sequence in self._voice.sequences:
            sequence.hold_until_ns = until_ns
        if self._voice.content_type == SSE:
            gevent.spawn(self._comment, stall_ns / 1e9 / (COMMENTS_PER_STALL + 1))

    def _comment(self, every_s: float) -> None:
        for _ in range(COMMENTS_PER_STALL):
            gevent.sleep(every_s)
            if self._over:
                return
            self._put(chunk(COMMENT))

    # -- the end ----------------------------------------------------------------------------------------------------

    def _finish(self, last_act: Callable[[], None]) -> None:
        """All was sent as intended, unless the client went over it; the last act tells the connection so."""
        if self._told.end_ns is not None:
            return
        self._told.completed = True
        self._close_books()
        last_act()

    def _close_books(self) -> None:
        told = self._told
        told.output_tokens = self._voice.output_tokens
        told.cached_tokens = self._voice.cached_tokens
        told.finish_reason = self._finishes[0]
        for sequence in self._voice.sequences:
            self._app.pace.cancel(sequence)
        if not self._streamed and told.completed:
            self._truth.tokens += told.output_tokens
        super()._close_books()
