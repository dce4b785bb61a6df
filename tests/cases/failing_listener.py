"""A locustfile whose own listener is broken."""

from __future__ import annotations

from typing import Any

from locust import events

from llm_locust import LLMUser


class User(LLMUser):
    """Asks the run's prompts."""


@events.request.add_listener  # type: ignore[untyped-decorator]  # Locust's is not annotated
def _broken(request_type: str, **_: Any) -> None:
    raise KeyError("my dashboard")
