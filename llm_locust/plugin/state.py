"""`environment.llm`: everything of the suite in one process, one object per Environment.

Users find here what they need (`load.surroundings.Surroundings`); what belongs to one run is replaced when the
next one begins.
"""

from __future__ import annotations

import hashlib
import os
import secrets as random_source
import socket
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from llm_locust.load.desk import Desk
from llm_locust.load.endpoint import Endpoints
from llm_locust.load.options import AskOptions
from llm_locust.measure.finish import RequestLimits
from llm_locust.wire.clock import Clock, get_clock
from llm_locust.wire.transport import WireTransport

from . import equip
from .collector import Collector
from .doorway import Doorway
from .health import Health
from .issuer import Issuer
from .keepsakes import Keepsakes
from .library import Library
from .messages import Hello, RunOrder, suite_version
from .secrets import Secrets
from .settings import Settings

SEED_BITS = 48


class LLM:
    """The suite's state in one process. `worker` is the name that its records carry."""

    def __init__(self, settings: Settings, secrets: Secrets, runner: Any) -> None:
        self.settings = settings
        self.secrets = secrets
        self.clock: Clock = get_clock()
        self.health = Health(self.clock)
        self.run_id = ""
        self.worker = "local"
        self.seed = 0
        self.slo_good: RequestLimits | None = None
        self.options: AskOptions = equip.ask_options(settings, secrets)
        self.transport: WireTransport = equip.transport(settings)
        self._transport_of = equip.transport_settings(settings)
        self.endpoints = Endpoints()
        self.gate = Doorway()
        self.desk = Desk(seed=0)
        self.issuer: Issuer | None = None
        self._runner = runner
        self._library: Library | None = None

    @property
    def user_classes(self) -> list[type[Any]]:
        """The user classes that this process can run."""
        classes: list[type[Any]] = self._runner.environment.user_classes
        return classes

    @property
    def collector(self) -> Collector:
        """Where the numbers of the run go. There is a run whenever the gate lets somebody through."""
        assert self.issuer is not None
        return self.issuer.collector

    def open_library(self, settings: Settings) -> Library:
        """Open the prompts of the next run anew. Raises PromptError where its tokenizer cannot be opened."""
        self._library = Library(settings)
        return self._library

    def library_for(self, settings: Settings) -> Library:
        """The prompts of these settings, opened anew where they were not opened for the same ones."""
        library = self._library
        return library if library is not None and library.settings == settings else self.open_library(settings)

    def transport_for(self, settings: Settings) -> WireTransport:
        """The transport that all users share; a new one where the settings ask for another (its TLS takes 20 ms)."""
        wanted = equip.transport_settings(settings)
        if wanted != self._transport_of:
            self.transport, self._transport_of = equip.transport(settings), wanted
        return self.transport

    def begin_run(self, order: RunOrder, settings: Settings) -> Issuer:
        """Take part in a run: everything of it is new. Raises PromptError where its prompts cannot be opened."""
        self.settings = settings
        self.run_id = order.run_id
        self.seed = order.seed
        library = self.library_for(settings)
        self.options = equip.asked(equip.ask_options(settings, self.secrets, library.tokenizer), order.found)
        demanded = equip.request_objectives(settings, self.user_classes, order.slos)
        self.slo_good = None if demanded is None else demanded.request_good
        self.desk = Desk(seed=order.seed, rulers=equip.rulers(order.found))
        self.endpoints = Endpoints()
        self.transport_for(settings).prepare(*settings.hosts)
        keepsakes = Keepsakes(settings, order.run_id, self.worker)
        if self.issuer is not None:
            self.issuer.gate.retire()
        self.issuer = Issuer(
            Collector(order.run_id, self.clock.now_ns, self.clock.offset_ns, keepsakes),
            self.clock.now_ns,
            self._runner.user_greenlets,
            library.of_stage,
            None if demanded is None else demanded.missed_by_waiting,
        )
        self.gate.lead_to(self.issuer.gate)
        return self.issuer

    def end_run(self) -> None:
        """The run is over: users that Locust starts now wait for the next one."""
        self.gate.lead_to(None)
        if self.issuer is not None and self.issuer.collector.keepsakes is not None:
            self.issuer.collector.keepsakes.close()


def hello_of(llm: LLM) -> Hello:
    """How this process introduces itself."""
    return Hello(
        version=suite_version(),
        host=socket.gethostname(),
        pid=os.getpid(),
        timestamp_source=llm.clock.source,
        has_key=llm.secrets.api_key is not None,
        sources=sources_of(llm.user_classes),
    )


def sources_of(user_classes: Iterable[type[Any]]) -> dict[str, str]:
    """Give each user class by name with a digest of the text of the file that defines it, "" where there is none."""
    return {found.__name__: _digest_of_file(found.__module__) for found in user_classes}


def _digest_of_file(module: str) -> str:
    path = getattr(sys.modules.get(module), "__file__", None)
    if path is None:
        return ""
    try:
        text = Path(path).read_text(encoding="utf-8")  # line ends alike on all systems
    except (OSError, UnicodeDecodeError):
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def fresh_seed() -> int:
    """A seed that nobody had; recorded in every report. Fits into a JSON number."""
    return random_source.randbits(SEED_BITS)
