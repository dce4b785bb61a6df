"""A worker's place at its master: it says hello until it is welcomed, learns the master's clock, and ends with it."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Any

import gevent
from gevent.event import Event

from llm_locust.wire.clock import clock_identity

from . import messages
from .messages import ClockSync, to_message
from .state import LLM, hello_of

logger = logging.getLogger(__name__)

HELLO_EVERY_S = 1.0
CLOCK_EVERY_S = 3.0
CLOCK_AT_FIRST = 8
LOOK_EVERY_S = 1.0


class Membership:
    """The place of one worker; `go` ends the worker where it has none."""

    def __init__(
        self, environment: Any, llm: LLM, send: Callable[[str, dict[str, Any]], None], go: Callable[[], None]
    ) -> None:
        self._environment = environment
        self._llm = llm
        self._send = send
        self._go = go
        self._welcomed = Event()
        self._greenlets: list[gevent.Greenlet] = []
        self.sync = ClockSync(clock_identity())

    def start(self) -> None:
        """Register for the master's answers, then say hello until it welcomes or refuses."""
        self._environment.runner.register_message(messages.WELCOME, self._on_welcome, concurrent=False)
        self._environment.runner.register_message(messages.CLOCK, self._on_clock, concurrent=False)
        self._greenlets = [gevent.spawn(self._say_hello), gevent.spawn(self._read_clock)]
        if self._environment.parsed_options.processes:
            self._greenlets.append(gevent.spawn(self._look_after_master, os.getppid()))

    def stop(self) -> None:
        """Say and ask nothing more."""
        for greenlet in self._greenlets:
            greenlet.kill(block=False)

    def _say_hello(self) -> None:
        hello = hello_of(self._llm)
        while not self._welcomed.is_set():
            self._send(messages.HELLO, to_message(hello))
            self._welcomed.wait(HELLO_EVERY_S)

    def _on_welcome(self, environment: Any, msg: Any, **_: Any) -> None:
        self._welcomed.set()
        refusal = msg.data["refused"]
        if refusal:
            self._end(f"the master refuses this worker: {refusal}")
            return
        self._llm.worker = msg.data["name"]

    def _read_clock(self) -> None:
        self._welcomed.wait()
        for _ in range(CLOCK_AT_FIRST):
            self._send(messages.CLOCK, {"sent_ns": self._llm.clock.now_ns()})
            gevent.sleep(0.05)
        while True:
            gevent.sleep(CLOCK_EVERY_S)
            self._send(messages.CLOCK, {"sent_ns": self._llm.clock.now_ns()})

    def _on_clock(self, environment: Any, msg: Any, **_: Any) -> None:
        answer = msg.data
        self.sync.add(answer["sent_ns"], answer["master_ns"], self._llm.clock.now_ns(), answer["identity"])

    def _look_after_master(self, master_pid: int) -> None:
        """End with the master that forked this process, however that ended.

        Locust (2.47) misses a master's heartbeats after 60 s, and never where there was none: the load would go on.
        """
        while os.getppid() == master_pid:
            gevent.sleep(LOOK_EVERY_S)
        self._end("the master is gone; this worker ends, its streams with it")

    def _end(self, reason: str) -> None:
        logger.error("llm-locust: %s", reason)
        self._environment.process_exit_code = 1
        gevent.spawn(self._go)
