"""Ollama's chat: one JSON object a line, streamed unless ``stream`` is false, the counts in the last line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from llm_locust.mock.pace import Sequence
from llm_locust.mock.voices.voice import Ask, BadRequestError, Voice, chat_prompt, stop_texts, whole_number

_REASONS = {"length": b"length", "stop": b"stop", "abort": b"abort"}


class OllamaChatVoice(Voice):
    """POST /api/chat."""

    content_type = b"application/x-ndjson"

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Ask:
        options = body.get("options") or {}
        if not isinstance(options, dict):
            raise BadRequestError("options must be an object")
        prefix, prompt_tokens = chat_prompt(body.get("messages"))
        return Ask(
            model=str(body.get("model") or "mock"),
            prefix=prefix,
            prompt_tokens=prompt_tokens,
            limit_tokens=whole_number(options, "num_predict"),
            stream=body.get("stream") is not False,
            ignore_eos=bool(body.get("ignore_eos")),
            stop=stop_texts(options),
        )

    def build(self) -> None:
        created = datetime.fromtimestamp(int(self.created), UTC).strftime("%Y-%m-%dT%H:%M:%SZ").encode()
        self._before = b'{"model":%b,"created_at":"%b","message":{"role":"assistant","content":"' % (
            self.model,
            created,
        )

    def token(self, sequence: Sequence, text: bytes, now_ns: int) -> bytes:
        return self._before + text + b'"},"done":false%b}\n' % (b',"t":%d' % now_ns if self.stamp else b"")

    def choice_end(self, sequence: Sequence, finish: str) -> bytes:
        return self._last(sequence, b"", finish) + b"\n"

    def _last(self, sequence: Sequence, text: bytes, finish: str) -> bytes:
        counts = b',"prompt_eval_count":%d,"eval_count":%d' % (self.ask.prompt_tokens, sequence.emitted)
        end = b'"},"done":true,"done_reason":"%b"%b}' % (_REASONS[finish], counts if self.with_usage else b"")
        return self._before + text + end

    def closing(self) -> bytes:
        return b""

    def error(self, message: str) -> bytes:
        return msgspec.json.encode({"error": message}) + b"\n"

    def malformed(self) -> bytes:
        return self._before + b"\n"

    def ending_without_finish(self) -> bytes:
        return b""

    def document(self, texts: list[bytes], finishes: list[str]) -> bytes:
        return self._last(self.sequences[0], texts[0], finishes[0])
