"""What each dialect asks: whole bodies compared, refusals of what it cannot carry."""

from __future__ import annotations

from typing import Any

import pytest

from llm_locust.protocol import BodyOptions, Message, PromptRequest, dialect_names, get_dialect

TEXT = PromptRequest(text="Hi", output_tokens=7)
TALK = PromptRequest(messages=(Message("system", "Be brief."), Message("user", "Hi")), output_tokens=7)
IDS = PromptRequest(token_ids=(5, 6), output_tokens=7)
PLAIN = BodyOptions(model="m")
FIXED = BodyOptions(model="m", ignore_eos=True, continuous_usage=True, n=2)
USER = [{"role": "user", "content": "Hi"}]
TURNS = [{"role": "system", "content": "Be brief."}, *USER]
COMMON = {"model": "m", "stream": True, "temperature": 0.0}
USAGE = {"stream_options": {"include_usage": True}}


@pytest.mark.parametrize(
    ("dialect", "prompt", "options", "body"),
    [
        pytest.param(
            "openai-chat", TEXT, PLAIN, {**COMMON, "messages": USER, "max_tokens": 7, **USAGE}, id="chat, text"
        ),
        pytest.param(
            "openai-chat", TALK, PLAIN, {**COMMON, "messages": TURNS, "max_tokens": 7, **USAGE}, id="chat, messages"
        ),
        pytest.param(
            "openai-chat", TEXT, FIXED,
            {**COMMON, "messages": USER, "max_tokens": 7, "n": 2, "ignore_eos": True, "min_tokens": 7,
             "stream_options": {"include_usage": True, "continuous_usage_stats": True}},
            id="chat, everything",
        ),
        pytest.param(
            "openai-chat", TEXT,
            BodyOptions(model="m", max_completion_tokens=True, temperature=None, include_usage=False),
            {"model": "m", "stream": True, "messages": USER, "max_completion_tokens": 7},
            id="chat, the newer limit, the server's temperature",
        ),
        pytest.param(
            "openai-chat", TEXT, BodyOptions(model="m", stream=False, continuous_usage=True),
            {**COMMON, "stream": False, "messages": USER, "max_tokens": 7},
            id="chat, a document has no stream options",
        ),
        pytest.param(
            "openai-chat", TEXT,
            BodyOptions(model="m", ignore_eos=True, continuous_usage=True,
                        refused=frozenset({"min_tokens", "continuous_usage_stats"})),
            {**COMMON, "messages": USER, "max_tokens": 7, "ignore_eos": True, **USAGE},
            id="chat, some refused",
        ),
        pytest.param(
            "openai-chat", TEXT,
            BodyOptions(model="m", ignore_eos=True, refused=frozenset({"ignore_eos", "min_tokens", "stream_options"})),
            {**COMMON, "messages": USER, "max_tokens": 7},
            id="chat, all refused",
        ),
        pytest.param(
            "openai-completions", IDS, PLAIN, {**COMMON, "prompt": [5, 6], "max_tokens": 7, **USAGE}, id="ids"
        ),
        pytest.param(
            "openai-completions", PromptRequest(messages=(Message("user", "Hi"),)), PLAIN,
            {**COMMON, "prompt": "Hi", **USAGE},
            id="one message is its content, no limit",
        ),
        pytest.param(
            "openai-responses", TEXT, PLAIN, {**COMMON, "input": "Hi", "max_output_tokens": 7}, id="responses, text"
        ),
        pytest.param(
            "openai-responses", TALK, PLAIN, {**COMMON, "input": TURNS, "max_output_tokens": 7}, id="responses, turns"
        ),
        pytest.param(
            "sglang-generate", TEXT, PLAIN,
            {"text": "Hi", "stream": True, "sampling_params": {"max_new_tokens": 7, "temperature": 0.0}},
            id="generate, text",
        ),
        pytest.param(
            "sglang-generate", IDS, FIXED,
            {"input_ids": [5, 6], "stream": True,
             "sampling_params": {"max_new_tokens": 7, "temperature": 0.0, "ignore_eos": True, "n": 2}},
            id="generate, ids",
        ),
        pytest.param(
            "sglang-generate", TEXT, BodyOptions(ignore_eos=True, refused=frozenset({"ignore_eos"})),
            {"text": "Hi", "stream": True, "sampling_params": {"max_new_tokens": 7, "temperature": 0.0}},
            id="generate, refused",
        ),
        pytest.param(
            "anthropic-messages", TALK, PLAIN, {**COMMON, "system": "Be brief.", "messages": USER, "max_tokens": 7},
            id="messages, the system turn apart",
        ),
        pytest.param(
            "tgi-generate", TEXT, PLAIN,
            {"inputs": "Hi", "parameters": {"max_new_tokens": 7, "do_sample": False, "details": True}},
            id="TGI, temperature 0 is greedy",
        ),
        pytest.param(
            "tgi-generate", TEXT, BodyOptions(temperature=0.7),
            {"inputs": "Hi",
             "parameters": {"max_new_tokens": 7, "temperature": 0.7, "do_sample": True, "details": True}},
            id="TGI, sampling",
        ),
        pytest.param(
            "ollama-chat", TALK, PLAIN,
            {"model": "m", "stream": True, "messages": TURNS, "options": {"num_predict": 7, "temperature": 0.0}},
            id="Ollama",
        ),
    ],
)  # fmt: skip
def test_a_dialect_asks_with_its_own_words(
    dialect: str, prompt: PromptRequest, options: BodyOptions, body: dict[str, Any]
) -> None:
    """The whole body, no field more and none less."""
    assert get_dialect(dialect).body(prompt, options) == body


@pytest.mark.parametrize(
    ("dialect", "prompt", "options", "words"),
    [
        pytest.param("openai-chat", IDS, PLAIN, "not token ids", id="chat, ids"),
        pytest.param("openai-responses", IDS, PLAIN, "not token ids", id="responses, ids"),
        pytest.param("anthropic-messages", IDS, PLAIN, "not token ids", id="messages, ids"),
        pytest.param("ollama-chat", IDS, PLAIN, "not token ids", id="Ollama, ids"),
        pytest.param("tgi-generate", IDS, PLAIN, "not token ids", id="TGI, ids"),
        pytest.param("openai-completions", TALK, PLAIN, "conversation of 2 messages", id="completions, talk"),
        pytest.param("sglang-generate", TALK, PLAIN, "conversation of 2 messages", id="generate, talk"),
        pytest.param("tgi-generate", TALK, PLAIN, "conversation of 2 messages", id="TGI, talk"),
        pytest.param("anthropic-messages", PromptRequest(text="x"), PLAIN, "output limit", id="messages, no limit"),
        pytest.param("openai-responses", TEXT, FIXED, "one choice, not 2", id="responses, n"),
        pytest.param("anthropic-messages", TEXT, FIXED, "one choice, not 2", id="messages, n"),
        pytest.param("tgi-generate", TEXT, FIXED, "one choice, not 2", id="TGI, n"),
        pytest.param("ollama-chat", TEXT, FIXED, "one choice, not 2", id="Ollama, n"),
    ],
)
def test_what_a_dialect_cannot_carry_is_an_error_that_names_it(
    dialect: str, prompt: PromptRequest, options: BodyOptions, words: str
) -> None:
    """Never a silently different request."""
    with pytest.raises(ValueError, match=f"{dialect}.*{words}"):
        get_dialect(dialect).body(prompt, options)


def test_extra_fields_merge_and_the_prompts_own_win() -> None:
    """Objects under one name merge, anything else is replaced; the inputs stay as they were."""
    options = BodyOptions(
        model="m", extra_body={"stream_options": {"x": 1}, "top_p": 0.5, "a": {"b": {"c": 1}, "d": [1]}}
    )
    prompt = PromptRequest(text="Hi", extra={"top_p": 0.9, "temperature": 1.0, "a": {"b": {"e": 2}, "d": [2]}})
    body = get_dialect("openai-chat").body(prompt, options)
    assert body["stream_options"] == {"include_usage": True, "x": 1}
    assert (body["top_p"], body["temperature"]) == (0.9, 1.0)
    assert body["a"] == {"b": {"c": 1, "e": 2}, "d": [2]}
    assert options.extra_body["a"] == {"b": {"c": 1}, "d": [1]}


def test_a_refused_field_that_the_extra_body_names_is_still_sent() -> None:
    """What was asked for explicitly is not left out in silence."""
    options = BodyOptions(model="m", extra_body={"min_tokens": 3}, refused=frozenset({"min_tokens"}))
    assert get_dialect("openai-chat").body(TEXT, options)["min_tokens"] == 3


@pytest.mark.parametrize("dialect", dialect_names())
def test_a_key_is_sent_in_the_dialects_own_header(dialect: str) -> None:
    """Anthropic has its own header and a version; everyone else a bearer."""
    headers, bare = get_dialect(dialect).headers("k"), get_dialect(dialect).headers(None)
    if dialect == "anthropic-messages":
        assert headers == {"x-api-key": "k", "anthropic-version": "2023-06-01"}
        assert bare == {"anthropic-version": "2023-06-01"}
    else:
        assert (headers, bare) == ({"Authorization": "Bearer k"}, {})
