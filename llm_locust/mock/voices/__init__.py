"""The API dialects that the server speaks, by path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_locust.mock.voices.anthropic import MessagesVoice
from llm_locust.mock.voices.ollama import OllamaChatVoice
from llm_locust.mock.voices.openai import ChatVoice, CompletionsVoice
from llm_locust.mock.voices.responses import ResponsesVoice
from llm_locust.mock.voices.sglang import GenerateVoice
from llm_locust.mock.voices.tgi import TGIDocumentVoice, TGIVoice
from llm_locust.mock.voices.voice import Voice

VOICES: dict[str, type[Voice]] = {
    "/v1/chat/completions": ChatVoice,
    "/v1/completions": CompletionsVoice,
    "/v1/responses": ResponsesVoice,
    "/v1/messages": MessagesVoice,
    "/generate": GenerateVoice,
    "/generate_stream": TGIVoice,
    "/api/chat": OllamaChatVoice,
}


def voice_for(path: str, body: Mapping[str, Any]) -> type[Voice]:
    """The dialect of a request; TGI and SGLang share /generate and differ in the prompt's field."""
    return TGIDocumentVoice if path == "/generate" and "inputs" in body else VOICES[path]
