"""Users that talk: a conversation whose history grows with what the server really answered.

A multi-turn load is what a prefix cache is for: each turn sends all that was said before. The answers in the history
are the server's own, never a dataset's, so its cache has them, and lengths are what they are.
"""

from __future__ import annotations

import random
import uuid
from typing import ClassVar

import msgspec

from llm_locust.load.answer import Answer
from llm_locust.load.users import LLMUser
from llm_locust.protocol.types import Message, PromptRequest


class ConversationUser(LLMUser):
    """Has one conversation after the other, each with an id of its own in a header; speaks `--llm-dialect`.

    Every user turn is the next prompt of `prompts`; a prompt of several user turns (ShareGPT) is a whole conversation,
    said turn by turn. ``turns`` bounds it: a number, or the ends of a range. Between turns the user thinks, as long as
    its `wait_time` or `--llm-think-time` says. A turn that fails ends the conversation.
    """

    abstract = True
    turns: ClassVar[int | tuple[int, int]] = (2, 6)
    session_header: ClassVar[str] = "X-Session-Id"
    """Its name; "" sends none."""

    def do(self) -> None:
        """Have one conversation."""
        talk = Conversation()
        headers = {self.session_header: uuid.uuid4().hex} if self.session_header else {}
        answer = self.client.ask(reshape=talk.open, headers=headers)
        turns = self._turns(answer.record.request_id)
        for _ in range(1, turns):
            if not (answer.ok and talk.goes_on):
                return
            talk.hear(answer)
            self.wait()  # type: ignore[no-untyped-call]  # Locust's is not annotated
            if talk.recorded:
                answer = self.client.chat(talk.next_recorded(), headers=headers)
            else:
                answer = self.client.ask(reshape=talk.next, headers=headers)

    def _turns(self, request_id: int) -> int:
        """Draw the number of turns that belongs to a conversation's first request: reproducible by the run's seed."""
        low, high = (self.turns, self.turns) if isinstance(self.turns, int) else self.turns
        return random.Random(f"{self.environment.llm.seed}/turns/{request_id}").randint(low, high)


class Conversation:
    """What was said so far, and, where a dataset recorded a whole conversation, what the user still has to say."""

    def __init__(self) -> None:
        self.history: tuple[Message, ...] = ()
        self.recorded: list[Message] = []
        self._is_recorded = False
        self._output_tokens: int | None = None

    @property
    def goes_on(self) -> bool:
        """Whether there is anything left to say."""
        return bool(self.recorded) or not self._is_recorded

    def open(self, prompt: PromptRequest) -> PromptRequest:
        """Begin with a prompt; of a recorded conversation with what stands up to its first user turn."""
        users = [place for place, turn in enumerate(prompt.messages or ()) if turn.role == "user"]
        if prompt.messages is None or len(users) < 2:
            return prompt
        self._is_recorded = True
        self._output_tokens = prompt.output_tokens
        self.recorded = [prompt.messages[place] for place in users[1:]]
        return msgspec.structs.replace(prompt, messages=prompt.messages[: users[0] + 1], input_tokens=None)

    def hear(self, answer: Answer) -> None:
        """Add what was asked and what the server answered."""
        assert answer.prompt is not None  # it could be sent, so there is one
        self.history = (*_messages(answer.prompt), Message("assistant", answer.text))

    def next(self, prompt: PromptRequest) -> PromptRequest:
        """Say a prompt after all that was said before."""
        messages = (*self.history, *_messages(prompt))
        return msgspec.structs.replace(prompt, text=None, messages=messages, input_tokens=None)

    def next_recorded(self) -> PromptRequest:
        """Say the next turn that was recorded."""
        messages = (*self.history, self.recorded.pop(0))
        return PromptRequest(messages=messages, output_tokens=self._output_tokens)


def _messages(prompt: PromptRequest) -> tuple[Message, ...]:
    """A prompt as messages: a text is a user's turn."""
    return prompt.messages or (Message("user", prompt.text or ""),)
