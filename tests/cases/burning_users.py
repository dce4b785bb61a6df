"""Users beside a bug of the locustfile: a greenlet that holds the hub for 50 ms in every 100."""

from __future__ import annotations

import time
from typing import Any

import gevent
from locust import events

from llm_locust import LLMUser


class User(LLMUser):
    """Asks the run's prompts."""


def _burn() -> None:
    while True:
        gevent.sleep(0.05)
        until_s = time.perf_counter() + 0.05
        while time.perf_counter() < until_s:
            pass


@events.test_start.add_listener  # type: ignore[untyped-decorator]  # Locust's is not annotated
def _start(environment: Any, **_: Any) -> None:
    gevent.spawn(_burn)
