"""Words are measured on the server before the load, whatever it offers for it; what cannot be measured is said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from benchmarks.rig.mock_process import MockProcess, start_mock
from llm_locust.load.options import AskOptions
from llm_locust.load.preflight import Preflight, measure_lengths, preflight
from llm_locust.load.yardstick import Yardstick
from llm_locust.plugin.equip import rulers
from llm_locust.prompts import Ruler, synthetic
from llm_locust.prompts.ruler import ASSUMED
from llm_locust.prompts.tokenizers import TokenCounter
from llm_locust.protocol import BodyOptions
from llm_locust.wire.transport import WireTransport
from tests.load.counting_server import CountingServer, Rule, counting

FAST = ("--profile", "fast", "--ttft-ms", "1", "--itl-ms", "0.1")
NO_TOKENIZE = ("--without", "/tokenize,/v1/tokenize")
TEMPLATE_TOKENS = 4  # the embedded server's, a message


class Words:
    """A tokenizer of one token a word."""

    def __init__(self, name: str) -> None:
        self.name = name

    def count(self, text: str) -> int:
        return len(text.split())


@contextmanager
def mock(*arguments: str) -> Iterator[MockProcess]:
    with start_mock(*FAST, *arguments) as process:
        yield process


def measured(
    url: str, dialect: str = "openai-chat", *, tokenizer: TokenCounter | None = None, wanted: int = 256
) -> tuple[Preflight, Yardstick]:
    """Run the pre-flight and measure, as a run does."""
    options = AskOptions(host=url, body=BodyOptions(ignore_eos=True), tokenizer=tokenizer)
    transport = WireTransport()
    found = preflight(options, dialect, transport)
    found = measure_lengths(found, options, dialect, transport, wanted)
    (yardstick,) = found.rulers
    return found, yardstick


@pytest.mark.parametrize(
    ("arguments", "source"),
    [
        (("--tokenize", "prompt"), "/tokenize (prompt)"),
        (("--tokenize", "prompt", "--without", "/tokenize"), "/v1/tokenize (prompt)"),
        (("--tokenize", "content"), "/tokenize (content)"),
        (NO_TOKENIZE, "usage"),
    ],
    ids=["vllm and sglang", "sglang's other path", "llama.cpp", "usage alone"],
)
def test_server_is_measured_by_what_it_offers(arguments: tuple[str, ...], source: str) -> None:
    """By each of them the template's four tokens are told apart, and a word is a token."""
    with mock(*arguments) as process:
        found, yardstick = measured(process.url)
        ruler = yardstick.ruler
        assert (ruler.source, ruler.tokens_per_word, ruler.overhead_tokens) == (source, 1.0, TEMPLATE_TOKENS)
        assert (yardstick.estimate, yardstick.problem, found.problems) == ("", "", ())


def test_prompt_of_that_ruler_is_counted_as_it_was_asked_for() -> None:
    """The whole way: 64 tokens asked for are 64 in the server's own account."""
    with mock() as process:
        _, yardstick = measured(process.url)
        text = synthetic(64).prepared(1, yardstick.ruler).prompt(0).text
        assert len(str(text).split()) + TEMPLATE_TOKENS == 64


def test_plain_completions_have_no_template() -> None:
    """Each dialect is measured by itself."""
    with mock() as process:
        _, yardstick = measured(process.url, "openai-completions")
    assert (yardstick.dialect, yardstick.ruler.overhead_tokens) == ("openai-completions", 0)


def test_calibration_takes_eight_requests_at_most() -> None:
    """They are a load too: of one output token each."""
    with mock(*NO_TOKENIZE) as process:
        options = AskOptions(host=process.url, body=BodyOptions(ignore_eos=True))
        transport = WireTransport()
        found = preflight(options, "openai-chat", transport)
        before = len(process.lines())
        measure_lengths(found, options, "openai-chat", transport, 4000)
        asked = process.lines()[before:]
    assert 3 <= len(asked) <= 8
    assert {line["output_tokens"] for line in asked} == {1}
    assert abs(asked[-1]["prompt_tokens"] - 4000) <= 80


def test_tokenizer_of_the_option_is_taken_where_it_counts_as_the_server_does() -> None:
    """It is proved by two requests."""
    with mock() as process:
        _, yardstick = measured(process.url, tokenizer=Words("own"))
    assert (yardstick.ruler.source, yardstick.ruler.overhead_tokens) == ("tokenizer own", TEMPLATE_TOKENS)


def looked_at(server: CountingServer, *, tokenizer: TokenCounter | None = None, wanted: int = 1024) -> Yardstick:
    """Measure on a server that the pre-flight would find good."""
    options = AskOptions(host=server.url, body=BodyOptions(model="m"), tokenizer=tokenizer)
    found = measure_lengths(Preflight(model="m"), options, "openai-chat", WireTransport(), wanted)
    assert found.problems == tuple(filter(None, [found.rulers[0].problem]))
    return found.rulers[0]


def test_tokenizer_of_another_model_is_an_error() -> None:
    """Who gives a tokenizer wants exact lengths; a wrong one would make them wrong without a word."""
    with counting(lambda words: 2 * words + 3) as server:
        problem = looked_at(server, tokenizer=Words("another")).problem
    assert problem.startswith("--llm-tokenizer: tokenizer another counts 128 tokens where the server counts 256")


@pytest.mark.parametrize(("per_word", "template"), [(1.37, 26), (0.75, 9), (2.0, 0)])
def test_calibration_finds_words_of_several_tokens(per_word: float, template: int) -> None:
    """A prompt then comes within 2 % of its length, after 8 requests at most."""
    with counting(lambda words: round(per_word * words) + template) as server:
        ruler = looked_at(server, wanted=3000).ruler
    assert len(server.asked) <= 8
    reached = round(per_word * ruler.words_for(3000)) + template
    assert abs(reached - 3000) <= 0.02 * 3000
    assert (ruler.source, abs(ruler.overhead_tokens - template) <= 3) == ("usage", True)


def test_long_prompts_are_tried_at_a_length_that_does_not_take_minutes() -> None:
    """120,000 tokens would be a prefill of minutes for each try; they count as 4096 do."""
    with counting(lambda words: words + 7) as server:
        ruler = looked_at(server, wanted=120_000).ruler
    assert max(server.asked) <= 4096
    assert ruler.words_for(120_000) == 119_993


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (lambda words: None, "a word is taken for a token: the server states no usage"),
        (lambda words: 40 if words < 20 else 50, "still counts as 50"),
        (lambda words: 12, "usage is not to be used"),
    ],
    ids=["no usage", "usage that stands still", "usage that says nothing"],
)
def test_lengths_are_estimates_where_nothing_can_be_measured(rule: Rule, told: str) -> None:
    """No end of the run: the lengths stay as they would be without, and the report says why."""
    with counting(rule) as server:
        yardstick = looked_at(server, wanted=5000)
    assert (yardstick.ruler, yardstick.problem) == (ASSUMED, "")
    assert told in yardstick.estimate


def test_tokenizer_without_usage_leaves_the_template_unknown() -> None:
    """The text's own tokens are exact all the same."""
    with counting(lambda words: None) as server:
        yardstick = looked_at(server, tokenizer=Words("own"))
    assert (yardstick.ruler.source, yardstick.ruler.overhead_tokens) == ("tokenizer own", 0)
    assert yardstick.estimate == (
        "texts are exact, what the chat template adds is not known: the server states no usage"
    )


def test_server_that_fails_meanwhile_is_an_estimate() -> None:
    """The load itself will show what is wrong with it."""
    with counting(lambda words: 1) as server:
        server.url += "/elsewhere?"
        yardstick = looked_at(server)
    assert yardstick.ruler == ASSUMED
    assert yardstick.estimate


def test_ruler_reaches_workers_as_builtins() -> None:
    """What a master found goes to its workers inside the pre-flight's findings."""
    ruler = Ruler(("a", "b"), 1.5, 4, "usage")
    found = Preflight(model="m", rulers=(Yardstick(dialect="openai-chat", host="http://s", ruler=ruler),))
    told = msgspec.msgpack.decode(msgspec.msgpack.encode(msgspec.to_builtins(found)))
    assert rulers(told) == {("openai-chat", "http://s"): ruler}
    assert rulers(None) == {}
