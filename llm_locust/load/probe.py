"""`llm-locust probe URL`: ask a server one short question, show the answer event by event, then what it can do.

    llm-locust probe http://sglang:30000 --llm-model deepseek-r1

The options have the names that they have in a run. Exit code 0: a run can start; 1: it cannot, and why.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import gevent
from gevent.queue import SimpleQueue

from llm_locust.load.answer import without_secrets, without_secrets_text
from llm_locust.load.endpoint import endpoints_of
from llm_locust.load.flight import Flight
from llm_locust.load.options import DEFAULT_DIALECT, AskOptions
from llm_locust.load.preflight import Preflight, preflight
from llm_locust.load.stream import StreamSink
from llm_locust.load.trial import Tester, tester, trial_limits
from llm_locust.measure.finish import Identity, finish_record
from llm_locust.measure.judge import media_type
from llm_locust.measure.record import RequestRecord
from llm_locust.protocol import ANSWER, REASONING, REFUSAL, TOOL, UNSEEN, Arrival, Reader, dialect_names, get_dialect
from llm_locust.protocol.types import BodyOptions
from llm_locust.wire.tls import TLSOptions
from llm_locust.wire.transport import WireTransport
from llm_locust.wire.types import Limits

_SHOWN_CHARACTERS = 160
UPPER_BOUND = "≤ "
"""Before the time of what a late read brought: it came then or earlier."""
_CHANNELS = {ANSWER: "answer", REASONING: "reasoning", REFUSAL: "refusal", TOOL: "tool call", UNSEEN: "no text"}

Seen = tuple[int, str, bool]
"""(instant, what was seen)."""


class Tap(StreamSink):
    """A sink that also tells what it sees, into a queue: printing would block the hub."""

    __slots__ = ("_at_ns", "_comments", "_of_read", "seen")

    def __init__(self, flight: Flight) -> None:
        super().__init__(flight.asked, cast(Reader, _Overheard(flight.reader, self._tell)), flight.timeline)
        self.seen: SimpleQueue[Seen | None] = SimpleQueue()
        self._at_ns = 0
        self._of_read: list[str] = []
        self._comments = 0

    def on_head(self, status: int, headers: list[tuple[bytes, bytes]], at_ns: int) -> None:
        """Take the head."""
        super().on_head(status, headers, at_ns)
        self.seen.put((at_ns, f"head     HTTP {status} {media_type(headers)}", False))

    def on_read(self, data: bytes, at_ns: int, lag_ns: int) -> None:
        """Take one read."""
        self._at_ns = at_ns
        if self._decoder is None:
            self.seen.put((at_ns, f"body     {_shown(data)}", False))
            super().on_read(data, at_ns, lag_ns)
            return
        late_events = self.timeline.late_events
        super().on_read(data, at_ns, lag_ns)
        late = self.timeline.late_events > late_events
        for what in self._of_read:
            self.seen.put((at_ns, what, late))
        self._of_read.clear()
        if self._decoder.comments > self._comments:
            self._comments = self._decoder.comments
            self.seen.put((at_ns, "comment", late))

    def may_hold(self, catch_up: Callable[[int | None], object]) -> bool:
        """Let nothing wait: it is shown as it comes."""
        return False

    def _tell(self, payload: bytes, event_type: bytes, arrivals: tuple[Arrival, ...]) -> None:
        kind = "token" if arrivals else "event"
        channels = ", ".join(_channels(mask) for _, mask in arrivals)
        named = f"[{event_type.decode('latin-1')}] " if event_type else ""
        self._of_read.append(f"{kind:8} {channels and channels + ': '}{named}{_shown(payload)}")


class _Overheard:
    """A reader whose events are told as well."""

    def __init__(self, reader: Reader, tell: Callable[[bytes, bytes, tuple[Arrival, ...]], None]) -> None:
        self._reader = reader
        self._tell = tell

    def event(self, payload: bytes, event_type: bytes = b"") -> tuple[Arrival, ...]:
        """Read an event, and tell it."""
        arrivals = self._reader.event(payload, event_type)
        self._tell(payload, event_type, arrivals)
        return arrivals

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


def probe(server: Tester, body: BodyOptions) -> Iterator[str]:
    """Ask once; yield a line per thing that arrives, then the record's, as it happens."""
    flight, request = server.take_off(body, server.prompt())
    tap = Tap(flight)
    limits = trial_limits(server.options.limits)
    yield f"POST {server.endpoint.shown} ({server.dialect.name})"
    yield f"  {without_secrets_text(_shown(request.content), server.options)}"
    exchange = gevent.spawn(server.http.perform, request, tap, limits, flight.exchange)
    exchange.rawlink(lambda _: tap.seen.put(None))
    try:
        while (seen := tap.seen.get()) is not None:
            at_ns, what, late = seen
            at_ms = f"{UPPER_BOUND if late else ''}{(at_ns - flight.exchange.start_ns) / 1e6:.1f}"
            yield f"{at_ms:>10} ms  {without_secrets_text(what, server.options)}"
    finally:
        exchange.kill()
    tap.finish(flight.exchange)
    flight.body = bytes(tap.body)
    record, _ = finish_record(flight.answer(), flight.asked, _identity(server))
    yield ""
    yield from _summary(without_secrets(record, server.options))


def probe_main(argv: Sequence[str]) -> int:
    """Run the command; return its exit code."""
    given = _parser().parse_args(argv)
    try:
        options, transport = _options(given)
        dialect = get_dialect(options.dialect or DEFAULT_DIALECT)
        path = options.path or (dialect.path if options.body.stream else dialect.document_path)
        endpoint = endpoints_of(given.url, path)[0]
        transport.prepare(endpoint.url)
    except (ValueError, OSError) as error:
        print(f"llm-locust probe: {error}")
        return 1
    found = preflight(options, dialect.name, transport, explicit=_explicit(given), tell=print)
    with tester(options, dialect, endpoint, transport) as server:
        for line in probe(server, found.applied_to(options).body):
            print(line, flush=True)
    print()
    print("\n".join(_verdict(found)))
    return 1 if found.problems else 0


def _verdict(found: Preflight) -> Iterator[str]:
    """Say what a run would do on this server."""
    if found.problems:
        yield from found.problems
        return
    named = f"model {found.model}, "
    notes = [note for note in found.notes if not note.startswith("server refused ")]  # said by `left out`
    model = next((note.removeprefix("model ") for note in notes if note.startswith(named)), found.model or "none sent")
    yield f"model:            {model}"
    yield f"usage:            {'yes' if found.usage else 'no'}{', with every event' if found.continuous_usage else ''}"
    yield f"ignore_eos:       {'honoured, or not needed' if found.eos_ignored else 'not honoured'}"
    yield f"left out:         {', '.join(found.refused) or 'nothing'}"
    yield from (note for note in notes if not note.startswith(named))


def _summary(record: RequestRecord) -> Iterator[str]:
    """Say what the record says."""
    yield f"outcome:          {record.outcome.value}{': ' + record.error if record.error else ''}"
    ttft_bound = UPPER_BOUND if record.ttft_upper_bound else ""
    for label, bound, ns in (
        ("connect", "", record.connect_ns), ("TTFT", ttft_bound, record.ttft_ns), ("E2E", "", record.e2e_ns)
    ):  # fmt: skip
        yield f"{label + ':':17} {'–' if ns is None else f'{bound}{ns / 1e6:.1f} ms'}"
    yield f"TPOT:             {'–' if record.tpot_ns is None else f'{record.tpot_ns / 1e6:.2f} ms'}"
    tokens = "–" if record.output_tokens is None else f"{record.output_tokens} ({record.output_tokens_source})"
    yield f"output tokens:    {tokens} in {record.chunks} chunks"
    yield f"input tokens:     {'–' if record.input_tokens is None else record.input_tokens}"
    yield f"finish reason:    {record.finish_reason or '–'}"
    late = f", {record.late_tokens} tokens in late reads: ≤ is an upper bound" if record.late_tokens else ""
    yield f"receive times:    {record.timestamp_source or '–'}{late}"


def _options(given: argparse.Namespace) -> tuple[AskOptions, WireTransport]:
    """Make the options of the request. Raises ValueError or OSError for a wrong one."""
    headers = []
    for header in given.llm_header:
        name, colon, value = header.partition(":")
        if not colon:
            raise ValueError(f"--llm-header {name!r} is not NAME: VALUE")
        headers.append((name.strip(), value.strip()))
    extra = json.loads(given.llm_extra_body)
    if not isinstance(extra, dict):
        raise ValueError("--llm-extra-body is not a JSON object")
    options = AskOptions(
        host=given.url,
        dialect=given.llm_dialect,
        path=given.llm_path,
        body=BodyOptions(
            model=given.llm_model, stream=given.llm_stream, ignore_eos=given.llm_ignore_eos is not False,
            extra_body=extra,
        ),
        limits=Limits(),
        api_key=_key(given.llm_api_key_file),
        headers=tuple(headers),
    )  # fmt: skip
    tls = TLSOptions(verify=not given.llm_insecure, ca_file=given.llm_ca_file, client_cert=given.llm_client_cert)
    return options, WireTransport(tls)


def _key(file: str | None) -> str | None:
    """Read the key, which is never an argument: a command line can be seen by others."""
    if file is not None:
        return Path(file).read_text(encoding="utf-8").splitlines()[0].strip()
    return os.environ.get("LOCUST_LLM_API_KEY") or os.environ.get("OPENAI_API_KEY") or None


def _explicit(given: argparse.Namespace) -> frozenset[str]:
    return frozenset({"ignore_eos"} if given.llm_ignore_eos else ())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="llm-locust probe", description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("url", help="the server, as --host has it: http://sglang:30000")
    add("--llm-model", metavar="NAME", help="default: the one that /v1/models names")
    add("--llm-dialect", choices=dialect_names(), default=DEFAULT_DIALECT)
    add("--llm-path", metavar="PATH", help="where it is not the dialect's own")
    add("--llm-api-key-file", metavar="FILE", help="else LOCUST_LLM_API_KEY or OPENAI_API_KEY from the environment")
    add("--llm-header", metavar="NAME: VALUE", action="append", default=[])
    add("--llm-extra-body", metavar="JSON", default="{}")
    add("--llm-stream", action=argparse.BooleanOptionalAction, default=True)
    add("--llm-ignore-eos", action=argparse.BooleanOptionalAction, default=None)
    add("--llm-insecure", action="store_true", help="do not verify the certificate")
    add("--llm-ca-file", metavar="FILE")
    add("--llm-client-cert", metavar="FILE")
    return parser


def _identity(server: Tester) -> Identity:
    return Identity(
        run_id="probe", worker="", request_id=0, user_class="", name="probe", dialect=server.dialect.name, stage="",
        phase="", epoch_offset_ns=0, endpoint=server.endpoint.shown,
    )  # fmt: skip


def _channels(mask: int) -> str:
    return "+".join(name for bit, name in _CHANNELS.items() if mask & bit)


def _shown(data: bytes) -> str:
    text = " ".join(data.decode("utf-8", "replace").split())
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
