"""The run's ruler, found before the load: how many tokens this server makes of a text.

Tried in this order: the tokenizer of `--llm-tokenizer`; the server's own `/tokenize`, in SGLang's and vLLM's spelling
or in llama.cpp's; calibration by the `usage` of short requests. What a chat template (and a begin token) adds is told
apart by requests of one output token, whose `usage` also proves a tokenizer to be the server's. Never asked while a
stage is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import httpx
import msgspec

from llm_locust.load.endpoint import base_of
from llm_locust.load.flight import fly, request_headers
from llm_locust.load.trial import Tester, trial_limits
from llm_locust.measure.record import Outcome
from llm_locust.prompts.ruler import ASSUMED, Count, Ruler, RulerError, calibrate, calibration_text, prove
from llm_locust.prompts.tokenizers import TokenCounter
from llm_locust.protocol.lenient import as_mapping, decode_json
from llm_locust.protocol.types import BodyOptions, PromptRequest

LONGEST_TRIED_TOKENS = 4096
"""Calibration proves the wanted length up to here: a longer prompt counts alike, and its prefill may take minutes."""
TOKENIZE_TIMEOUT_S = 10.0
_TOKENIZE_PATHS = ("/tokenize", "/v1/tokenize")
_SHORT, _LONG = 32, 160  # words of the two requests that tell template and text apart


class Yardstick(msgspec.Struct, frozen=True, kw_only=True):
    """The ruler of one dialect at one host (`desk.Spoken`). Builtins at heart, so that a master can tell its workers.

    ``estimate`` says why lengths are estimates, "" where they were measured; ``problem`` is a reason not to start.
    """

    dialect: str
    host: str = ""
    ruler: Ruler = ASSUMED
    estimate: str = ""
    problem: str = ""


def find_ruler(
    server: Tester, body: BodyOptions, wanted_tokens: int, tokenizer: TokenCounter | None = None, *, host: str = ""
) -> Yardstick:
    """Measure words on a server that the pre-flight found good; blocks the greenlet. Never raises for the server.

    ``body`` has what the pre-flight found; ``host`` is the user class's own.
    """
    found = Yardstick(dialect=server.dialect.name, host=host)
    ask = _usage_of(server, body)
    failures = []
    for source, count in _counters(server, body, tokenizer):
        try:
            ruler = prove(count, source)
            try:
                return msgspec.structs.replace(found, ruler=_with_template(ruler, ask))
            except _NoUsageError as lacking:
                estimate = f"texts are exact, what the chat template adds is not known: {lacking}"
                return msgspec.structs.replace(found, ruler=ruler, estimate=estimate)
        except _OtherModelError as error:
            if tokenizer is not None:
                return msgspec.structs.replace(found, problem=f"--llm-tokenizer: {error}")
            failures.append(str(error))
        except RulerError as error:
            failures.append(str(error))
    try:
        ruler, _ = calibrate(ask, min(wanted_tokens, LONGEST_TRIED_TOKENS))
    except RulerError as error:
        reasons = "; ".join([*failures, str(error)])
        return msgspec.structs.replace(found, estimate=f"a word is taken for a token: {reasons}")
    return msgspec.structs.replace(found, ruler=ruler)


class _NoUsageError(RulerError):
    """The server answers, but does not say how many tokens a prompt had."""


class _OtherModelError(RulerError):
    """A tokenizer that does not count as the server does."""


def _with_template(ruler: Ruler, ask: Count) -> Ruler:
    """Prove the counter with the server; the overhead is what `usage` has more than the text's own tokens."""
    short, long = (ask(calibration_text(ruler.words, words, words)) for words in (_SHORT, _LONG))
    if long - short != _LONG - _SHORT:
        raise _OtherModelError(
            f"{ruler.source} counts {_LONG - _SHORT} tokens where the server counts {long - short}: "
            "it is another model's"
        )
    return replace(ruler, overhead_tokens=short - _SHORT)


def _usage_of(server: Tester, body: BodyOptions) -> Count:
    """Give the asker of `usage.prompt_tokens`: one request of one output token per call."""

    def ask(text: str) -> int:
        flight, request = server.take_off(body, PromptRequest(text=text, output_tokens=1, exact_output=True))
        fly(flight, server.http, request, trial_limits(server.options.limits))
        if tokens := flight.reader.usage.input_tokens:
            return tokens
        trial = server.judged(flight)
        if trial.outcome is Outcome.OK:
            raise _NoUsageError("the server states no usage")
        raise RulerError(f"a prompt of {len(text.split())} words: {trial.error or trial.outcome.value}")

    return ask


def _counters(server: Tester, body: BodyOptions, tokenizer: TokenCounter | None) -> Iterator[tuple[str, Count]]:
    """Give the counters there are: the tokenizer of the option, then what the server itself offers and answers."""
    if tokenizer is not None:
        yield f"tokenizer {tokenizer.name}", tokenizer.count
    model = {} if body.model is None else {"model": body.model}
    spellings: tuple[tuple[str, Callable[[str], dict[str, object]]], ...] = (
        ("prompt", lambda text: {**model, "prompt": text}),
        ("content", lambda text: {"content": text}),
    )
    for path in _TOKENIZE_PATHS:
        for field, spell in spellings:
            count = _tokenize(server, path, spell)
            try:
                answers = count("the the") > 0  # llama.cpp finds no token where there is no `content`
            except RulerError:
                continue
            if answers:
                yield f"{path} ({field})", count


def _tokenize(server: Tester, path: str, spell: Callable[[str], dict[str, object]]) -> Count:
    """Give the counter of one path and spelling. Raises RulerError where the server has none."""
    url = base_of(server.endpoint.url) + path
    headers = {**request_headers(server.dialect, server.options), "Accept": "application/json"}

    def count(text: str) -> int:
        content = msgspec.json.encode(spell(text))
        try:
            response = server.http.post(url, content=content, headers=headers, timeout=TOKENIZE_TIMEOUT_S)
            answer = as_mapping(decode_json(response.content)) if response.is_success else {}
        except (httpx.HTTPError, ValueError) as error:
            raise RulerError(f"{path}: {error}") from None
        tokens, number = answer.get("tokens"), answer.get("count")
        if isinstance(tokens, list):
            return len(tokens)
        if isinstance(number, int):
            return number
        raise RulerError(f"{path}: HTTP {response.status_code} without a count")

    return count
