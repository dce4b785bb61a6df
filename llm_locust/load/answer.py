"""What a task gets back, and how an error text is rid of secrets."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from llm_locust.load.options import AskOptions
from llm_locust.measure.record import Outcome, RequestRecord
from llm_locust.protocol.types import PromptRequest, Reader

_SHORTEST_SECRET = 4  # shorter header values ("1", "on") are no secrets, and occur in any text


@dataclass(frozen=True, slots=True)
class Answer:
    """What a task gets: the record, the prompt, and the text of the first choice."""

    record: RequestRecord
    prompt: PromptRequest | None
    """What was asked; None where no prompt could be made."""
    text: str
    reasoning: str
    tool_calls: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, record: RequestRecord, prompt: PromptRequest | None, reader: Reader) -> Answer:
        """Join a record, its prompt, and what its reader read."""
        return cls(record, prompt, reader.text, reader.reasoning_text, reader.tool_calls)

    @property
    def ok(self) -> bool:
        """Tell whether the request succeeded; HTTP 200 alone is no success."""
        return self.record.outcome is Outcome.OK


def without_secrets(record: RequestRecord, options: AskOptions) -> RequestRecord:
    """Take the key and header values out of a record's error text."""
    error = without_secrets_text(record.error, options)
    return record if error == record.error else msgspec.structs.replace(record, error=error)


def without_secrets_text(text: str, options: AskOptions) -> str:
    """Take the key and header values out of a text: servers do echo a key that they refuse."""
    for secret in (options.api_key, *(value for _, value in options.headers)):
        if secret and len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return text
