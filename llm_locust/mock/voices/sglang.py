"""SGLang's native /generate: text and output_ids are cumulative, usage lies in meta_info."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from llm_locust.mock.pace import Sequence
from llm_locust.mock.voices.voice import Ask, BadRequestError, Voice, stop_texts, text_prompt, whole_number


class GenerateVoice(Voice):
    """POST /generate."""

    @classmethod
    def parse(cls, body: Mapping[str, Any]) -> Ask:
        sampling = body.get("sampling_params") or {}
        if not isinstance(sampling, dict):
            raise BadRequestError("sampling_params must be an object")
        prefix, prompt_tokens = text_prompt(body["input_ids"] if "input_ids" in body else body.get("text"))
        return Ask(
            model=str(body.get("model") or "mock"),
            prefix=prefix,
            prompt_tokens=prompt_tokens,
            limit_tokens=whole_number(sampling, "max_new_tokens") or 128,
            stream=bool(body.get("stream")),
            min_tokens=whole_number(sampling, "min_new_tokens", 0) or 0,
            ignore_eos=bool(sampling.get("ignore_eos")),
            n=whole_number(sampling, "n") or 1,
            stop=stop_texts(sampling),
        )

    def build(self) -> None:
        self._texts = [b""] * self.ask.n
        self._ids = [b""] * self.ask.n

    def token(self, sequence: Sequence, text: bytes, now_ns: int) -> bytes:
        self._add(sequence, text)
        return b"data: %b\n\n" % self._event(sequence, b"null", b',"t":%d' % now_ns if self.stamp else b"")

    def last_token(self, sequence: Sequence, text: bytes, now_ns: int, finish: str) -> bytes:
        self._add(sequence, text)
        tail = b',"t":%d' % now_ns if self.stamp else b""
        return b"data: %b\n\n" % self._event(sequence, _finish(sequence, finish), tail)

    def _add(self, sequence: Sequence, text: bytes) -> None:
        choice = sequence.choice
        self._texts[choice] += text
        ids = self._ids[choice]
        self._ids[choice] = b"%b,%d" % (ids, 1000 + sequence.emitted) if ids else b"%d" % (1000 + sequence.emitted)

    def _event(self, sequence: Sequence, finish: bytes, tail: bytes = b"") -> bytes:
        choice = sequence.choice
        counts = b',"prompt_tokens":%d,"completion_tokens":%d,"cached_tokens":%d' % (
            self.ask.prompt_tokens,
            sequence.emitted,
            sequence.cached_tokens,
        )
        return b'{"text":"%b","output_ids":[%b],"meta_info":{"id":"%b","finish_reason":%b%b}%b%b}' % (
            self._texts[choice],
            self._ids[choice],
            self.id,
            finish,
            counts if self.with_usage else b"",
            b',"index":%d' % choice if self.ask.n > 1 else b"",
            tail,
        )

    def choice_end(self, sequence: Sequence, finish: str) -> bytes:
        return b"data: %b\n\n" % self._event(sequence, _finish(sequence, finish))

    def document(self, texts: list[bytes], finishes: list[str]) -> bytes:
        self._texts = texts
        for sequence in self.sequences:
            self._ids[sequence.choice] = b",".join(b"%d" % (1001 + position) for position in range(sequence.emitted))
        answers = [
            self._event(sequence, _finish(sequence, finish))
            for sequence, finish in zip(self.sequences, finishes, strict=True)
        ]
        return answers[0] if len(answers) == 1 else b"[%b]" % b",".join(answers)


def _finish(sequence: Sequence, finish: str) -> bytes:
    reasons = {
        "length": {"type": "length", "length": sequence.emitted},
        "stop": {"type": "stop", "matched": 1},
        "abort": {"type": "abort", "message": "aborted by the operator", "status_code": 500},
    }
    return msgspec.json.encode(reasons[finish])
