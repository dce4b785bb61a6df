"""The users of the suite: one abstract class per dialect; a locustfile subclasses one, or takes `locustfiles/llm.py`.

All are abstract, because Locust runs every concrete class that a locustfile imports. The default task (ask one
prompt) exists only in a class without a task of its own: Locust hands tasks down from base classes, and a default
among the user's own tasks would be load that nobody asked for.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from locust import User, between, constant

from llm_locust.load.client import LLMClient
from llm_locust.prompts.source import PromptSource


def default_task(user: LLMUser) -> None:
    """Do what a class does that has no task of its own."""
    user.do()


class LLMUser(User):
    """A user that asks a language model; `self.client` is its `LLMClient`.

    ``dialect`` names the API it speaks (None: `--llm-dialect`), ``prompts`` is where `client.ask()` takes prompts from
    (anything with ``prompt(index) -> PromptRequest``; None: the run's). ``name`` is the row of its requests in the
    statistics (None: the path), ``slo`` what is demanded of them where `--llm-slo` is not given.
    """

    abstract = True
    wait_time = constant(0)
    dialect: ClassVar[str | None] = None
    prompts: ClassVar[PromptSource | None] = None
    name: ClassVar[str | None] = None
    slo: ClassVar[str | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = [task for task in cls.tasks if task is not default_task]
        cls.tasks = own or ([] if cls.abstract else [default_task])

    def __init__(self, environment: Any) -> None:
        super().__init__(environment)
        self.client = LLMClient(self, environment.llm, environment.events.request)
        think_time_s = environment.llm.options.think_time_s
        if think_time_s is not None:  # an option given wins over the class
            self.wait_time = partial(between(*think_time_s), self)  # type: ignore[method-assign]  # as Locust does

    def do(self) -> None:
        """Ask the next prompt: the task of a class that has none of its own."""
        self.client.ask()

    def stop(self, force: bool = False) -> bool:
        """Let a request in flight end (at most the drain limit), then stop; a user that only waits ends at once.

        Locust kills users with GreenletExit when their number is lowered, which would cut streams (8 → 4 users cut 4
        of 8 with Locust 2.47). While this waits, the user takes no new request.
        """
        self.client.leave()
        killed: bool = super().stop(force or self.client.waiting)
        return killed

    def start(self, group: Any) -> Any:
        """Start the user's greenlet; however that ends, nobody waits for the user then, and its connection is closed.

        A `gevent.Timeout` of a task is no `Exception`: Locust (2.47) lets the user die of it, and starts no other.
        """
        greenlet = super().start(group)
        greenlet.rawlink(lambda _: self.client.close())
        return greenlet


class OpenAIChatUser(LLMUser):
    """Speaks OpenAI's chat completions, as SGLang, vLLM, llama.cpp, TGI and most gateways do."""

    abstract = True
    dialect = "openai-chat"


class OpenAICompletionsUser(LLMUser):
    """Speaks OpenAI's completions: plain prompts, without a chat template."""

    abstract = True
    dialect = "openai-completions"


class OpenAIResponsesUser(LLMUser):
    """Speaks OpenAI's Responses API."""

    abstract = True
    dialect = "openai-responses"


class SGLangGenerateUser(LLMUser):
    """Speaks SGLang's native /generate."""

    abstract = True
    dialect = "sglang-generate"


class AnthropicMessagesUser(LLMUser):
    """Speaks Anthropic's messages."""

    abstract = True
    dialect = "anthropic-messages"


class TGIUser(LLMUser):
    """Speaks Text Generation Inference's /generate_stream."""

    abstract = True
    dialect = "tgi-generate"


class OllamaUser(LLMUser):
    """Speaks Ollama's /api/chat."""

    abstract = True
    dialect = "ollama-chat"
