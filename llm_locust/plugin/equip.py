"""What a process needs to send requests, made of the settings: options of a request, prompts, transport.

Made in `init` or at a run's start, never at import: `--processes` forks after the imports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from llm_locust.load.desk import Spoken
from llm_locust.load.flight import choices_asked
from llm_locust.load.options import AskOptions
from llm_locust.load.preflight import Preflight
from llm_locust.load.users import LLMUser
from llm_locust.prompts.ruler import Ruler
from llm_locust.prompts.tokenizers import TokenCounter
from llm_locust.protocol.types import BodyOptions
from llm_locust.wire.tls import TLSOptions
from llm_locust.wire.transport import WireTransport

from .drain import PLANNED_S
from .objectives import Objectives, objectives
from .secrets import Secrets
from .settings import Settings


def ask_options(settings: Settings, secrets: Secrets, tokenizer: TokenCounter | None = None) -> AskOptions:
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
            ignore_eos_if_exact=settings.ignore_eos is None and "output_tokens" not in given,
            temperature=settings.temperature,
            n=choices_asked(settings.extra_body),
            extra_body=dict(settings.extra_body),
        ),
        limits=settings.limits,
        api_key=secrets.api_key,
        headers=settings.headers,
        think_time_s=settings.think_time_s if "think_time_s" in given else None,
        tokenizer=tokenizer,
        keep_raw=settings.save_failures > 0,
        drain_s=PLANNED_S if settings.drain_s is None else settings.drain_s,
    )


def transport_settings(settings: Settings) -> tuple[object, ...]:
    """What a transport is made of: with the same ones the same transport serves."""
    return settings.insecure, settings.ca_file, settings.client_cert, settings.keep_alive, settings.proxy


def transport(settings: Settings) -> WireTransport:
    """The transport that all users of a process share."""
    tls = TLSOptions(
        verify=not settings.insecure,
        ca_file=settings.ca_file,
        client_cert=settings.client_cert,
    )
    return WireTransport(tls, keep_alive=settings.keep_alive, proxy=settings.proxy)


def asked(options: AskOptions, found: dict[str, Any] | None) -> AskOptions:
    """The options of a request with what the pre-flight found; None where there was none."""
    return options if found is None else msgspec.convert(found, Preflight).applied_to(options)


def rulers(found: dict[str, Any] | None) -> dict[Spoken, Ruler]:
    """The measured lengths of words that the pre-flight's findings hold."""
    measured = () if found is None else msgspec.convert(found, Preflight).rulers
    return {(yardstick.dialect, yardstick.host): yardstick.ruler for yardstick in measured}


def request_objectives(
    settings: Settings, user_classes: Iterable[type[Any]], of_stages: Mapping[str, str]
) -> Objectives | None:
    """What each request is judged by; None where nothing is asked of single requests."""
    demanded = objectives(settings, [owner for owner in user_classes if issubclass(owner, LLMUser)], of_stages)
    return demanded if demanded is not None and demanded.judge_requests else None
