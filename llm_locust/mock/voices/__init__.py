"""The API dialects that the server speaks, by path."""

from __future__ import annotations

from llm_locust.mock.voices.openai import ChatVoice, CompletionsVoice
from llm_locust.mock.voices.sglang import GenerateVoice
from llm_locust.mock.voices.voice import Voice

VOICES: dict[str, type[Voice]] = {
    "/v1/chat/completions": ChatVoice,
    "/v1/completions": CompletionsVoice,
    "/generate": GenerateVoice,
}
