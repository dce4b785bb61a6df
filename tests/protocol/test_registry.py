"""Dialects by name, and a dialect of another package."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from llm_locust.protocol import Framing, NDJSONDecoder, SSEDecoder, dialect_names, get_dialect, make_decoder, registry
from llm_locust.protocol.openai_chat import OpenAIChat

OWN = (
    "openai-chat", "openai-completions", "openai-responses", "sglang-generate", "anthropic-messages", "tgi-generate",
    "ollama-chat",
)  # fmt: skip


class EchoDialect(OpenAIChat):
    """A third party's dialect."""

    name = "echo"
    path = "/echo"


class Impostor(OpenAIChat):
    """A third party's dialect under a name that is taken."""

    path = "/elsewhere"


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pretend that another package is installed."""
    found = EntryPoints(
        EntryPoint(name, f"{__name__}:{made.__name__}", registry.ENTRY_POINT_GROUP)
        for name, made in (("echo", EchoDialect), ("openai-chat", Impostor))
    )

    def entry_points(*, group: str) -> EntryPoints:
        assert group == "llm_locust.dialects"
        return found

    monkeypatch.setattr(registry, "entry_points", entry_points)
    get_dialect.cache_clear()
    yield
    get_dialect.cache_clear()


def test_the_suite_has_seven_dialects() -> None:
    """The names of the option, in its order; each names itself and exists once."""
    assert dialect_names()[:7] == OWN
    assert [get_dialect(name).name for name in OWN] == list(OWN)
    assert get_dialect("openai-chat") is get_dialect("openai-chat")


@pytest.mark.usefixtures("others")
def test_another_package_adds_a_dialect_but_takes_no_name() -> None:
    """An entry point adds one; a name of the suite's own stays the suite's."""
    assert dialect_names() == (*OWN, "echo")
    assert get_dialect("echo").path == "/echo"
    assert get_dialect("openai-chat").path == "/v1/chat/completions"


@pytest.mark.usefixtures("others")
def test_an_unknown_name_is_an_error_that_lists_the_names() -> None:
    """One clear line."""
    with pytest.raises(ValueError, match=r"no dialect 'openai'; there are openai-chat, .*, echo"):
        get_dialect("openai")


def test_a_framing_has_its_decoder() -> None:
    """SSE by default, lines for Ollama."""
    assert isinstance(make_decoder(Framing.SSE), SSEDecoder)
    assert isinstance(make_decoder(get_dialect("ollama-chat").framing), NDJSONDecoder)


def test_a_document_is_asked_for_at_the_same_path_but_for_tgi() -> None:
    """TGI has two paths."""
    apart = {name for name in OWN if get_dialect(name).document_path != get_dialect(name).path}
    assert apart == {"tgi-generate"}
