"""The prefix cache is emptied between stages, where the server can; where it cannot, that is said beside the stage."""

from __future__ import annotations

import pytest

from benchmarks.rig.mock_process import start_mock
from llm_locust.load.flush import flush_caches
from llm_locust.load.options import AskOptions
from llm_locust.wire.transport import WireTransport

FAST = ("--profile", "fast", "--ttft-ms", "1", "--itl-ms", "0.1")
NOBODY = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("without", "asked"),
    [("", {"/flush_cache": 1}), ("/flush_cache", {"/flush_cache": 2, "/reset_prefix_cache": 1})],
    ids=["sglang", "vllm"],
)
def test_cache_is_emptied_in_the_servers_own_words(without: str, asked: dict[str, int]) -> None:
    """SGLang's path first, then vLLM's; nothing is to be said."""
    with start_mock(*FAST, "--without", without) as mock:
        assert flush_caches(AskOptions(), f"{mock.url}/v1", WireTransport()) == ()
        paths = mock.truth()["paths"]
    assert {path: n for path, n in paths.items() if "cache" in path} == asked


def test_server_that_cannot_is_named_with_what_would_be_needed() -> None:
    """Each host by itself."""
    with start_mock(*FAST, "--without", "/flush_cache,/reset_prefix_cache") as mock:
        lacking, absent = flush_caches(AskOptions(), f"{mock.url},{NOBODY}", WireTransport())
    assert lacking == (
        f"{mock.url}: its prefix cache was not emptied: it has neither /flush_cache (SGLang) nor /reset_prefix_cache "
        "(vLLM with VLLM_SERVER_DEV_MODE=1)"
    )
    assert absent.startswith(f"{NOBODY}: its prefix cache was not emptied: ")


def test_refusal_is_told_without_the_key() -> None:
    """A server that wants another key."""
    with start_mock(*FAST, "--api-key", "right-canary") as mock:
        options = AskOptions(api_key="wrong-canary")
        (told,) = flush_caches(options, mock.url, WireTransport())
    assert told == f"{mock.url}: its prefix cache was not emptied: POST /flush_cache answers HTTP 401"
