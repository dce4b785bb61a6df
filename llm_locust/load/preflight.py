"""The pre-flight: one short request before any load, judged, and what the server refuses left out.

Reachable, TLS, key, model, path, streaming, usage, output limit, `ignore_eos`: what is wrong becomes one line that says
what to do next; what the server merely lacks is noted and the bodies of the run are adapted to it. An optional field
(`ignore_eos`, `min_tokens`, `stream_options`, `continuous_usage_stats`, `temperature`) that the server refuses with
400 or 422 is left out, unless it was asked for explicitly: then it is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import gevent
import msgspec

from llm_locust.load.advice import advice
from llm_locust.load.endpoint import Endpoint, endpoints_of
from llm_locust.load.options import AskOptions
from llm_locust.load.trial import OUTPUT_TOKENS, Tester, Trial, tester
from llm_locust.load.yardstick import Yardstick, find_ruler
from llm_locust.measure.record import Outcome
from llm_locust.protocol import BodyOptions, Dialect, get_dialect
from llm_locust.wire.clock import get_clock
from llm_locust.wire.transport import WireTransport

RETRY_S = 2.0
_REFUSALS = (400, 422)
_NOT_READY = frozenset({Outcome.CONNECT_ERROR, Outcome.TIMEOUT_CONNECT, Outcome.REJECTED})
_GATEWAY_NOT_READY = (502, 504)
_ALSO_OPTIONAL = ("temperature",)
_LIMITS = ("max_tokens", "max_completion_tokens")


class Preflight(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. Builtins only, so that a master can tell its workers.

    ``problems`` are reasons not to start, one line each; ``notes`` belong into the report. ``rulers`` are found after
    it (`measure_lengths`), where prompts of a given length are asked for.
    """

    model: str | None = None
    refused: tuple[str, ...] = ()
    continuous_usage: bool = False
    max_completion_tokens: bool = False
    eos_ignored: bool = True
    usage: bool = True
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    rulers: tuple[Yardstick, ...] = ()

    def applied_to(self, options: AskOptions) -> AskOptions:
        """Return the options of a run on this server."""
        body = msgspec.structs.replace(
            options.body,
            model=self.model,
            refused=options.body.refused | frozenset(self.refused),
            continuous_usage=self.continuous_usage,
            max_completion_tokens=self.max_completion_tokens,
        )
        return replace(options, body=body, eos_ignored=self.eos_ignored)


def preflight(
    options: AskOptions,
    dialect_name: str,
    transport: WireTransport,
    *,
    host: str | None = None,
    explicit: Iterable[str] = (),
    wait_ready_s: float = 0.0,
    tell: Callable[[str], object] = lambda line: None,
) -> Preflight:
    """Try every host of the options (or `host`, a user class's own); blocks the greenlet.

    ``explicit`` names the optional fields that were asked for by an option. ``wait_ready_s`` is how long a server that
    does not answer yet is waited for; ``tell`` is called with a line meanwhile.
    """
    dialect = get_dialect(dialect_name)
    path = options.path or (dialect.path if options.body.stream else dialect.document_path)
    first, *others = endpoints_of(options.host or host or "", path)
    with tester(options, dialect, first, transport) as at_first:
        _wait_ready(at_first, wait_ready_s, tell)
        found = _Inspection(at_first, frozenset(explicit)).found()
    for endpoint in others:
        if not found.problems:
            found = _also_there(found, options, dialect, endpoint, transport)
    return found


def measure_lengths(
    found: Preflight,
    options: AskOptions,
    dialect_name: str,
    transport: WireTransport,
    wanted_tokens: int,
    *,
    host: str | None = None,
) -> Preflight:
    """Add the ruler to what the pre-flight of the same server found; blocks the greenlet."""
    dialect = get_dialect(dialect_name)
    path = options.path or (dialect.path if options.body.stream else dialect.document_path)
    first, *_ = endpoints_of(options.host or host or "", path)
    own_host = "" if options.host else host or ""
    with tester(options, dialect, first, transport) as at_first:
        body = found.applied_to(options).body
        yardstick = find_ruler(at_first, body, wanted_tokens, options.tokenizer, host=own_host)
    problems = (*found.problems, yardstick.problem) if yardstick.problem else found.problems
    return msgspec.structs.replace(found, rulers=(yardstick,), problems=problems)


def _also_there(
    found: Preflight, options: AskOptions, dialect: Dialect, endpoint: Endpoint, transport: WireTransport
) -> Preflight:
    """Try another host with what was found at the first one."""
    with tester(options, dialect, endpoint, transport) as other:
        trial = other.ask(found.applied_to(options).body)
        if trial.outcome is Outcome.OK:
            return found
        return msgspec.structs.replace(found, problems=(*found.problems, advice(other, trial)))


def _wait_ready(server: Tester, wait_s: float, tell: Callable[[str], object]) -> None:
    """Ask until the server answers, or the time is over."""
    clock = get_clock()
    until_ns = clock.now_ns() + int(wait_s * 1e9)
    while clock.now_ns() < until_ns:
        trial = server.ask(msgspec.structs.replace(server.options.body, ignore_eos=False))
        if not _is_not_ready(server, trial):
            return
        left_s = (until_ns - clock.now_ns()) / 1e9
        if left_s > 0:
            tell(f"{server.endpoint.shown} is not ready ({trial.error or trial.outcome.value}); {left_s:.0f} s left")
            gevent.sleep(min(RETRY_S, left_s))


class _Inspection:
    """The trials of one server, in their order."""

    def __init__(self, server: Tester, explicit: frozenset[str]) -> None:
        self._server = server
        self._explicit = explicit
        self._stream = server.options.body.stream
        self._notes: list[str] = []
        self._refused: list[str] = []

    def found(self) -> Preflight:
        """Run the trials."""
        body = self._with_model(self._server.options.body)
        if isinstance(body, str):
            return Preflight(problems=(body,))
        wanted = msgspec.structs.replace(body, continuous_usage=self._may_count_running(body))
        body, trial = self._accepted(wanted)
        if trial.outcome is not Outcome.OK:
            return Preflight(model=body.model, problems=(advice(self._server, trial),))
        forced = [name for name in self._refused if name in self._explicit]
        if forced:
            return Preflight(model=body.model, problems=tuple(self._forced(name) for name in forced))
        return self._judge(*self._limit_obeyed(body, trial))

    def _with_model(self, body: BodyOptions) -> BodyOptions | str:
        """Fill in the one model that the server names; return what is wrong where there is not one."""
        if body.model is not None or not self._names_model(body):
            return body
        models = self._server.models()
        if len(models) == 1:
            self._notes.append(f"model {models[0]}, the one that the server names")
            return msgspec.structs.replace(body, model=models[0])
        if models:
            return f"{self._server.endpoint.shown} serves {', '.join(models)}: choose one with --llm-model"
        return body

    def _names_model(self, body: BodyOptions) -> bool:
        """Tell whether this dialect's body has a model at all."""
        named = msgspec.structs.replace(body, model="m")
        return "model" in self._server.dialect.body(self._server.prompt(), named)

    def _may_count_running(self, body: BodyOptions) -> bool:
        known = "continuous_usage_stats" in self._server.dialect.optional_fields
        return known and body.stream and body.include_usage

    def _accepted(self, body: BodyOptions) -> tuple[BodyOptions, Trial]:
        """Leave out what the server refuses; return the body that it takes and its trial, or the last failure."""
        trial = self._server.ask(body)
        if not _is_refusal(trial):
            return body, trial
        if not body.max_completion_tokens and any(name in trial.error for name in _LIMITS):
            body = msgspec.structs.replace(body, max_completion_tokens=True)
            self._notes.append("max_completion_tokens instead of max_tokens, which the server refused")
            return self._accepted(body)
        named = [name for name in self._optional(body) if name in trial.error]
        if named:
            return self._accepted(self._without(body, named))
        bare = self._without(body, self._optional(body), note=False)
        bare_trial = self._server.ask(bare)
        if bare_trial.outcome is not Outcome.OK or bare == body:
            return body, trial
        return self._one_by_one(body, bare, bare_trial)

    def _one_by_one(self, body: BodyOptions, bare: BodyOptions, trial: Trial) -> tuple[BodyOptions, Trial]:
        """Add the optional fields singly to a body that was taken, and keep those that do no harm."""
        for name in self._optional(body):
            fuller = msgspec.structs.replace(bare, refused=bare.refused - {name})
            fuller_trial = self._server.ask(fuller)
            if fuller_trial.outcome is Outcome.OK:
                bare, trial = fuller, fuller_trial
            else:
                self._refused.append(name)
        return bare, trial

    def _optional(self, body: BodyOptions) -> list[str]:
        """Name the optional fields that this body sends."""
        sent = _field_names(self._server.dialect.body(self._server.prompt(), body))
        optional = (*self._server.dialect.optional_fields, *_ALSO_OPTIONAL)
        return [name for name in optional if name in sent and name not in body.extra_body]

    def _without(self, body: BodyOptions, names: Iterable[str], *, note: bool = True) -> BodyOptions:
        if note:
            self._refused.extend(names)
        return msgspec.structs.replace(body, refused=body.refused | frozenset(names))

    def _forced(self, name: str) -> str:
        option = "--llm-" + name.replace("_", "-")
        return (
            f"{self._server.endpoint.shown} refuses {name}, which {option} asks for: leave the option out, "
            f"or serve with a server that has it"
        )

    def _limit_obeyed(self, body: BodyOptions, trial: Trial) -> tuple[BodyOptions, Trial]:
        """Try the limit's other spelling where this one had no effect."""
        if not _over_limit(trial) or self._server.dialect.name not in ("openai-chat", "openai-completions"):
            return body, trial
        other = msgspec.structs.replace(body, max_completion_tokens=not body.max_completion_tokens)
        other_trial = self._server.ask(other)
        if other_trial.outcome is Outcome.OK and not _over_limit(other_trial):
            spelled = "max_completion_tokens" if other.max_completion_tokens else "max_tokens"
            self._notes.append(f"the output limit is sent as {spelled}: the server does not obey the other spelling")
            return other, other_trial
        return body, trial

    def _judge(self, body: BodyOptions, trial: Trial) -> Preflight:
        """Say what the server can do, from the trial that it took."""
        eos_ignored = True
        if _over_limit(trial):
            self._notes.append(f"the output limit is not obeyed: more than {OUTPUT_TOKENS} tokens came")
        usage = bool(trial.output_tokens)
        if not usage and not trial.limit_ignored:
            self._notes.append("no usage comes with the answer: tokens are counted by chunks, an estimate")
        if body.ignore_eos and "ignore_eos" in self._refused:
            eos_ignored = False
        elif body.ignore_eos and 0 < trial.output_tokens < OUTPUT_TOKENS * trial.flight.asked.n:
            eos_ignored = False
            self._notes.append("ignore_eos is not honoured: lengths are free, short outputs are counted")
        refused = tuple(name for name in dict.fromkeys(self._refused))
        self._notes += [f"server refused {name}: left out" for name in refused]
        continuous = body.continuous_usage and "continuous_usage_stats" not in body.refused and trial.counts_run
        return Preflight(
            model=body.model,
            refused=tuple(sorted(body.refused - self._server.options.body.refused)),
            continuous_usage=continuous,
            max_completion_tokens=body.max_completion_tokens,
            eos_ignored=eos_ignored,
            usage=usage,
            notes=tuple(self._notes),
        )


def _is_refusal(trial: Trial) -> bool:
    return trial.outcome is Outcome.HTTP_ERROR and trial.flight.exchange.status in _REFUSALS


def _is_not_ready(server: Tester, trial: Trial) -> bool:
    """Tell whether the server may yet answer: nobody there, busy, or (404) up without any model."""
    status = trial.flight.exchange.status
    if trial.outcome in _NOT_READY or status in _GATEWAY_NOT_READY:
        return True
    return status == 404 and not server.models()


def _over_limit(trial: Trial) -> bool:
    return trial.limit_ignored or trial.output_tokens > OUTPUT_TOKENS * trial.flight.asked.n


def _field_names(body: object) -> set[str]:
    """Collect the names of a body's fields, those of nested objects included."""
    if not isinstance(body, dict):
        return set()
    return set(body).union(*(_field_names(value) for value in body.values()))
