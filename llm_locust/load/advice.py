"""One line for what is wrong with a server, and what to do next."""

from __future__ import annotations

from collections.abc import Callable

from llm_locust.load.endpoint import base_of
from llm_locust.load.trial import Tester, Trial
from llm_locust.measure.record import Outcome

Line = Callable[[Tester, Trial], str]

# What helps against a failure of TLS, by words of OpenSSL's reason; the first that applies.
_OF_TLS = {
    "expired": "Renew it, or give --llm-insecure to skip the check",
    "not valid for": "Ask by a name that it holds, or give --llm-insecure to skip the check",
    "not trusted": "Give the authority with --llm-ca-file, or --llm-insecure to skip the check",
    "certificate required": "Give the client's certificate with --llm-client-cert",
    "alert": "The server refuses the handshake: it may want a certificate of the client, --llm-client-cert",
}
_NOT_TLS = "Is it plain HTTP? Then its address begins with http://"


def advice(server: Tester, trial: Trial) -> str:
    """Return the line: where, what happened, what to do."""
    told = _TOLD.get(trial.outcome, _other)(server, trial)
    return f"{server.endpoint.shown}: {told}"


def _connect(server: Tester, trial: Trial) -> str:
    reason = trial.error.rstrip(".")
    hint = "Is the server running, and its address right? A run waits for it with --llm-wait-ready 10m"
    if "TLS" in reason:
        hint = next((told for words, told in _OF_TLS.items() if words in reason), _NOT_TLS)
    return f"{reason}. {hint}"


def _cut(server: Tester, trial: Trial) -> str:
    if trial.flight.exchange.headers_ns is not None:
        return _other(server, trial)
    plain = server.endpoint.url.startswith("http://")
    hint = "If it speaks TLS, its address begins with https://" if plain else "It took the request and closed"
    return f"{trial.error}. {hint}"


def _silent(server: Tester, trial: Trial) -> str:
    exchange, reason = trial.flight.exchange, trial.error or trial.outcome.value
    if exchange.headers_ns is None:
        return f"no answer at all ({reason}): the server took the request and says nothing"
    return f"HTTP {exchange.status}, then no token ({reason})"


def _rejected(server: Tester, trial: Trial) -> str:
    status = trial.flight.exchange.status
    return f"HTTP {status}: {trial.error}. It is busy or still loading: a run waits for it with --llm-wait-ready 10m"


def _http(server: Tester, trial: Trial) -> str:
    status = trial.flight.exchange.status
    if status is None:
        return f"{trial.error}. Is --host an HTTP server? If it speaks TLS, its address begins with https://"
    if status in (401, 403):
        given = "refuses the API key" if server.options.api_key else "asks for an API key"
        return f"HTTP {status}: it {given} ({trial.error}). Set LOCUST_LLM_API_KEY or OPENAI_API_KEY to the right one"
    if status == 404:
        return _not_found(server, trial)
    if 300 <= status < 400:
        return f"HTTP {status}: it redirects, which is not followed. Give the address that it leads to as --host"
    if 200 <= status < 300:
        return f"{trial.error}, not the answer of an API. Is --host the server itself, and --llm-path right?"
    return f"HTTP {status}: {trial.error}"


def _not_found(server: Tester, trial: Trial) -> str:
    models = server.models()
    model = server.options.body.model
    if models and model not in models:
        return f"HTTP 404: there is no model {model!r} ({trial.error}). It serves {', '.join(models)}: --llm-model"
    if model is not None and model in trial.error:
        return f"HTTP 404: there is no model {model!r} ({trial.error}). Give another --llm-model"
    asked = f"--llm-dialect {server.dialect.name}"
    return f"HTTP 404 ({trial.error}): it has no such endpoint. Is {asked} right, or --llm-path needed?"


def _not_streamed(server: Tester, trial: Trial) -> str:
    return f"a stream was asked for, {trial.error}. Add --no-llm-stream to measure whole answers, without TTFT"


def _no_token(server: Tester, trial: Trial) -> str:
    return f"HTTP {trial.flight.exchange.status}, but {trial.error}. {_event_by_event(server)}"


def _other(server: Tester, trial: Trial) -> str:
    return f"{trial.outcome.value}: {trial.error or 'no reason given'}. {_event_by_event(server)}"


def _event_by_event(server: Tester) -> str:
    return f"See it event by event: llm-locust probe {base_of(server.endpoint.shown)}"


_TOLD: dict[Outcome, Line] = {
    Outcome.CONNECT_ERROR: _connect,
    Outcome.TIMEOUT_CONNECT: _connect,
    Outcome.CUT: _cut,
    Outcome.TIMEOUT_FIRST_TOKEN: _silent,
    Outcome.TIMEOUT_STALL: _silent,
    Outcome.TIMEOUT_TOTAL: _silent,
    Outcome.REJECTED: _rejected,
    Outcome.HTTP_ERROR: _http,
    Outcome.NOT_STREAMED: _not_streamed,
    Outcome.EMPTY: _no_token,
    Outcome.TRUNCATED: _no_token,
}
