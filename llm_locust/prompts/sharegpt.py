"""ShareGPT conversations: a JSON array of `{"conversations": [{"from": …, "value": …}]}`.

The rule for a row: system turns and user turns in order, leading turns of the model dropped; with
`first_only` the prompt ends before the model's first answer, else it is the whole conversation up
to the last user turn, the model's recorded answers inside it. Rows without a user turn are skipped
and counted. The file is mapped, not read: a row is decoded when it is asked for.
"""

from __future__ import annotations

import codecs
import hashlib
import mmap
import re
from pathlib import Path
from typing import Any

import msgspec

from llm_locust.prompts.rows import Keep
from llm_locust.prompts.source import PromptError, Skipped
from llm_locust.prompts.textfile import TextFile
from llm_locust.protocol.types import Message, PromptRequest

_ROLES = {
    "human": "user",
    "user": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "assistant": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "model": "assistant",
    "system": "system",
}


class ShareGPT:
    """The usable conversations of a file, by index."""

    def __init__(self, path: Path, *, keep: Keep, first_only: bool = False, lenient: bool = False) -> None:
        file = TextFile(path)  # refuses what cannot be opened, UTF-16 and UTF-32
        self._first_only = first_only
        self._map = _mapped(path)
        skipped = Skipped(path, "conversation")
        self._rows: list[msgspec.Raw] = []
        for number, row in enumerate(_elements(self._map, path)):
            try:
                prompt = conversation(msgspec.json.decode(row), first_only=first_only)
            except (msgspec.DecodeError, UnicodeError) as error:
                if not lenient:
                    file.require_utf8()
                    raise PromptError(f"{path}, conversation {number}: {error}") from None
                skipped.add("not JSON", number)
                continue
            reason = prompt if isinstance(prompt, str) else keep(prompt)
            if reason:
                skipped.add(reason, number)
            else:
                self._rows.append(row)
        skipped.require(self._rows)
        self.size: int | None = len(self._rows)
        self.digest = hashlib.sha256(self._map).hexdigest()[:16]
        self.notes = skipped.notes

    def prompt(self, index: int) -> PromptRequest:
        """Decode the prompt of one request."""
        row = self._rows[index % len(self._rows)]
        prompt = conversation(msgspec.json.decode(row), first_only=self._first_only)
        if isinstance(prompt, str):
            raise PromptError(f"the ShareGPT file was changed while it was in use: {prompt}")
        return prompt


def conversation(row: Any, *, first_only: bool) -> PromptRequest | str:
    """Make the prompt of one conversation, or say why there is none."""
    if not isinstance(row, dict):
        return "not an object"
    turns = row.get("conversations", row.get("conversation"))
    if not isinstance(turns, list):
        return "no conversations"
    messages: list[Message] = []
    if isinstance(row.get("system"), str) and row["system"].strip():
        messages.append(Message("system", row["system"]))
    for turn in turns:
        message = _message(turn)
        if message is None:
            return "a turn without text, or of an unknown speaker"
        if message.role == "assistant" and not any(m.role == "user" for m in messages):
            continue
        if message.role == "assistant" and first_only:
            break
        messages.append(message)
    while messages and messages[-1].role != "user":
        messages.pop()
    if not messages:
        return "no user turn"
    return PromptRequest(messages=tuple(messages))


def _message(turn: Any) -> Message | None:
    if not isinstance(turn, dict):
        return None
    role = _ROLES.get(str(turn.get("from", turn.get("role", ""))).lower())
    text = turn.get("value", turn.get("content"))
    return Message(role, text) if role and isinstance(text, str) and text.strip() else None


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:
        raise PromptError(f"{path}: it is empty") from None


def _elements(content: mmap.mmap, path: Path) -> list[msgspec.Raw]:
    """Cut the array into its elements without decoding them."""
    view = memoryview(content)
    if view[:3].tobytes() == codecs.BOM_UTF8:
        view = view[3:]
    try:
        return msgspec.json.decode(view, type=list[msgspec.Raw])
    except (msgspec.DecodeError, UnicodeError) as error:
        line = _line_of(view, str(error))
        raise PromptError(f"{path}, line {line}: not a JSON array of conversations: {error}") from None


def _line_of(content: memoryview, error: str) -> int:
    """Find the line of msgspec's (0.21) error: it names the byte, but for an array that has no end."""
    at = re.search(r"\(byte (\d+)\)", error)
    end = int(at[1]) if at else len(content) if "truncated" in error else 0
    return content[:end].tobytes().rstrip(b"\n").count(b"\n") + 1
