"""What a run is, for its reports: settings, versions, seeds, how to repeat it. Secrets are masked here."""

from __future__ import annotations

import platform
import sys
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec
from locust.runners import MasterRunner

from llm_locust.load.preflight import Preflight
from llm_locust.load.yardstick import Yardstick
from llm_locust.outputs import RunFacts

from .messages import RunOrder
from .repeat import Chosen, chosen_classes, repeat_command, repeat_options
from .secrets import mask_url
from .settings import Settings, masked

_PACKAGES = ("llm-locust", "locust", "gevent", "httpx", "httptools", "msgspec", "numpy", "boost-histogram")


def versions() -> dict[str, str]:
    """What the run was made with."""
    found = {"python": sys.version.split()[0], "platform": platform.platform(), "kernel": platform.release()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _length_facts(yardstick: Yardstick) -> dict[str, object]:
    """How prompts got their lengths at one host in one dialect."""
    ruler = yardstick.ruler
    return {
        "dialect": yardstick.dialect,
        "host": mask_url(yardstick.host),
        "source": ruler.source,
        "overhead_tokens": ruler.overhead_tokens,
        "tokens_per_word": ruler.tokens_per_word,
        "words": len(ruler.words),
        "estimate": yardstick.estimate,
    }


def estimates(found: Preflight | None, least_tokens: int | None) -> tuple[str, ...]:
    """Say where prompts have not the length that was asked for, and why; `least_tokens` is the shortest one."""
    if least_tokens is None:
        return ()
    if found is None:
        return ("prompt lengths are estimates: without a pre-flight nobody measured words",)
    said = [f"prompt lengths are estimates: {known.estimate}" for known in found.rulers if known.estimate]
    shortest = max((known.ruler.shortest_tokens for known in found.rulers), default=1)
    if least_tokens < shortest:
        said.append(f"prompts of fewer than {shortest} tokens have {shortest}: the chat template and one word")
    return tuple(dict.fromkeys(said))


def run_facts(
    environment: Any,
    settings: Settings,
    order: RunOrder,
    started: datetime,
    shape: str | None,
    found: Preflight | None,
) -> RunFacts:
    """Collect everything that is known when a run begins."""
    parsed = environment.parsed_options
    runner = environment.runner
    chosen = Chosen(
        shape=shape,
        classes=chosen_classes(parsed, environment.available_user_classes or ()),
        workers=runner.worker_count if isinstance(runner, MasterRunner) else 0,
    )
    options, left_out = repeat_options(settings, parsed, chosen)
    hosts = settings.hosts or tuple(sorted({cls.host for cls in environment.user_classes if cls.host}))
    return RunFacts(
        run_id=order.run_id,
        started=started,
        host=",".join(mask_url(host) for host in hosts),
        model=settings.model or (found.model if found is not None else None),
        shape=shape,
        versions=versions(),
        settings=masked(settings),
        options=options,
        left_out=left_out,
        seeds={"run": order.seed},
        repeat_command=repeat_command(settings, parsed, chosen),
        chosen_classes=chosen.classes,
        server={} if found is None else {k: v for k, v in msgspec.to_builtins(found).items() if k != "rulers"},
        lengths=() if found is None else tuple(_length_facts(yardstick) for yardstick in found.rulers),
        tags=dict(settings.tags),
        note=settings.note,
        locustfiles=tuple(Path(name) for name in environment.parsed_locustfiles or () if Path(name).is_file()),
    )
