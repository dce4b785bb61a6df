"""What a process needs to send requests, made of the settings: options of a request, prompts, transport.

Made in `init` or at a run's start, never at import: `--processes` forks after the imports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from llm_locust.load.options import AskOptions
from llm_locust.load.preflight import Preflight
from llm_locust.load.stage import StageOrder
from llm_locust.measure.finish import RequestLimits
from llm_locust.measure.slo import Slo
from llm_locust.measure.slo_grammar import parse_slo
from llm_locust.prompts.lengths import parse_length
from llm_locust.prompts.registry import DEFAULT_INPUT, Wanted, open_prompts
from llm_locust.prompts.source import PromptSource
from llm_locust.protocol.types import BodyOptions
from llm_locust.wire.tls import TLSOptions
from llm_locust.wire.transport import WireTransport

from .drain import PLANNED_S
from .secrets import Secrets
from .settings import Settings

_OF_PROMPTS = frozenset({"prompts", "input_tokens", "output_tokens", "shared_prefix"})


def ask_options(settings: Settings, secrets: Secrets) -> AskOptions:
    """What every request has in common, before the pre-flight has found anything."""
    given = settings.given
    return AskOptions(
        host=",".join(settings.hosts) or None,
        dialect=settings.dialect if "dialect" in given else None,
        path=settings.path,
        body=BodyOptions(
            model=settings.model,
            stream=settings.stream,
            ignore_eos=not settings.honours_eos,
            temperature=settings.temperature,
            extra_body=dict(settings.extra_body),
        ),
        limits=settings.limits,
        api_key=secrets.api_key,
        headers=settings.headers,
        think_time_s=settings.think_time_s if "think_time_s" in given else None,
        drain_s=PLANNED_S if settings.drain_s is None else settings.drain_s,
    )


def transport(settings: Settings) -> WireTransport:
    """The transport that all users of a process share."""
    tls = TLSOptions(
        verify=not settings.insecure,
        ca_file=settings.ca_file,
        client_cert=settings.client_cert,
    )
    return WireTransport(tls, keep_alive=settings.keep_alive)


def option_prompts(settings: Settings, seed: int) -> PromptSource | None:
    """The prompts that the run's options name; None where they name none. Raises PromptError."""
    if not settings.given & _OF_PROMPTS:
        return None
    return open_prompts(settings.prompts, wanted(settings, seed))


def wanted(settings: Settings, seed: int) -> Wanted:
    """What the options ask of prompts."""
    return Wanted(
        input_tokens=settings.input_tokens or DEFAULT_INPUT,
        output_tokens=settings.output_tokens,
        shared_prefix=settings.shared_prefix,
        max_context_tokens=settings.max_context_tokens,
        seed=seed,
    )


def stage_prompts(settings: Settings, seed: int) -> Callable[[StageOrder], PromptSource | None]:
    """Give the opener of what a stage names, each kind of prompts opened once."""
    opened: dict[tuple[str, str, str], PromptSource] = {}

    def open_for(order: StageOrder) -> PromptSource | None:
        key = (order.prompts, order.input_tokens, order.output_tokens)
        if not any(key):
            return None
        if key not in opened:
            of_run = wanted(settings, seed)
            asked = Wanted(
                input_tokens=parse_length(order.input_tokens) if order.input_tokens else of_run.input_tokens,
                output_tokens=parse_length(order.output_tokens) if order.output_tokens else of_run.output_tokens,
                shared_prefix=of_run.shared_prefix,
                max_context_tokens=of_run.max_context_tokens,
                seed=seed,
            )
            opened[key] = open_prompts(order.prompts, asked)
        return opened[key]

    return open_for


def asked(options: AskOptions, found: dict[str, Any] | None) -> AskOptions:
    """The options of a request with what the pre-flight found; None where there was none."""
    return options if found is None else msgspec.convert(found, Preflight).applied_to(options)


def slo(settings: Settings) -> Slo | None:
    """The objectives of the run. Raises SloError with a pointer to the wrong place."""
    return parse_slo(settings.slo) if settings.slo else None


def request_limits(settings: Settings) -> RequestLimits | None:
    """What each request is judged by; None where nothing is asked of single requests."""
    objectives = slo(settings)
    return objectives.request_good if objectives is not None and objectives.request_limits else None
