"""A locustfile with a bug: it asks what its dialect cannot carry (token ids in a chat)."""

from __future__ import annotations

from locust import task

from llm_locust import OpenAIChatUser
from llm_locust.protocol import PromptRequest


class Wrong(OpenAIChatUser):
    """Asks token ids of a chat API."""

    @task
    def ask(self) -> None:
        self.client.chat(PromptRequest(token_ids=(1, 2, 3)))
