"""What is asked of whom: addresses, prompts, bodies, pauses."""

from __future__ import annotations

import random

import msgspec
import pytest

from llm_locust.load.asking import chat_prompt, completion_prompt
from llm_locust.load.backoff import Backoff, retry_after_s
from llm_locust.load.desk import Desk
from llm_locust.load.endpoint import Endpoints, base_of, endpoint_url, shown_url
from llm_locust.load.flight import asked_facts, build_body
from llm_locust.load.gate_types import Ticket
from llm_locust.measure.record import Outcome
from llm_locust.prompts import Ruler, synthetic
from llm_locust.prompts.ruler import ASSUMED
from llm_locust.protocol import BodyOptions, Message, PromptRequest, dialect_names, get_dialect
from llm_locust.wire.types import Exchange

CHAT = "/v1/chat/completions"

# ---- addresses ----


@pytest.mark.parametrize(
    ("host", "path", "url"),
    [
        ("http://s:30000", CHAT, "http://s:30000/v1/chat/completions"),
        ("http://s:30000/", CHAT, "http://s:30000/v1/chat/completions"),
        ("http://s:30000/v1", CHAT, "http://s:30000/v1/chat/completions"),
        ("http://s:30000/v1/", CHAT, "http://s:30000/v1/chat/completions"),
        ("http://s:30000/v1/chat/completions", CHAT, "http://s:30000/v1/chat/completions"),
        ("http://s:30000/v1/completions", CHAT, "http://s:30000/v1/chat/completions"),
        ("http://s:30000/generate", CHAT, "http://s:30000/v1/chat/completions"),
        ("http://s:30000/v1/chat/completions", "/generate", "http://s:30000/generate"),
        ("http://s/generate", "/generate_stream", "http://s/generate_stream"),
        ("https://gw/team-a", CHAT, "https://gw/team-a/v1/chat/completions"),
        ("https://gw/team-a/v1", CHAT, "https://gw/team-a/v1/chat/completions"),
        ("http://[::1]:30000/v1", "/generate", "http://[::1]:30000/generate"),
        ("http://s", "own/path", "http://s/own/path"),
        ("https://az/openai/deployments/d/chat/completions?api-version=1", CHAT,
         "https://az/openai/deployments/d/chat/completions?api-version=1"),
        ("https://gw?key=1", CHAT, "https://gw/v1/chat/completions?key=1"),
    ],
)  # fmt: skip
def test_endpoint_of_a_host(host: str, path: str, url: str) -> None:
    """A base, one ending in /v1, or an endpoint's whole path."""
    assert endpoint_url(host, path) == url


def test_base_of_an_endpoint() -> None:
    """Where /v1/models and the like are asked for."""
    assert (
        base_of("http://s:1/v1/chat/completions") == base_of("http://s:1/v1") == base_of("http://s:1") == "http://s:1"
    )


def test_shown_address_has_no_login_and_no_query() -> None:
    """Both may hold a key."""
    assert shown_url("https://me:secret@gw:8/v1/x?api_key=secret") == "https://gw:8/v1/x"


def test_hosts_are_dealt_in_turn_by_all_users() -> None:
    """One turn per process."""
    endpoints = Endpoints()
    urls = [endpoints.next("http://a, http://b,,http://c", CHAT).url[:8] for _ in range(4)]
    assert urls == ["http://a", "http://b", "http://c", "http://a"]
    with pytest.raises(ValueError, match="--host"):
        endpoints.next(" , ", CHAT)


# ---- prompts ----


def test_chat_takes_texts_conversations_and_prompts() -> None:
    """The call's own limit and extra win over the prompt's."""
    assert chat_prompt("Hi", 5, None) == PromptRequest(text="Hi", output_tokens=5)
    turns = chat_prompt([{"role": "user", "content": "Hi"}, Message("assistant", "Ho")], None, {"top_k": 1})
    assert turns == PromptRequest(messages=(Message("user", "Hi"), Message("assistant", "Ho")), extra={"top_k": 1})
    made = PromptRequest(text="Hi", output_tokens=9, extra={"a": 1, "b": 1})
    assert chat_prompt(made, None, None) is made
    assert chat_prompt(made, 3, {"b": 2}) == PromptRequest(text="Hi", output_tokens=3, extra={"a": 1, "b": 2})


def test_completion_takes_texts_and_token_ids() -> None:
    """The length of token ids is known."""
    assert completion_prompt("Hi", None, None) == PromptRequest(text="Hi")
    assert completion_prompt([5, 6], 1, None) == PromptRequest(token_ids=(5, 6), input_tokens=2, output_tokens=1)


@pytest.mark.parametrize("wrong", [[], [{"role": "user"}], [7]], ids=["nothing", "no content", "no turn"])
def test_wrong_conversation_is_a_bug_of_the_task(wrong: list[object]) -> None:
    """Said before anything is sent."""
    with pytest.raises((TypeError, msgspec.ValidationError)):
        chat_prompt(wrong, None, None)  # type: ignore[arg-type]


HERE = ("openai-chat", "")


class Named:
    """The least that a source must be."""

    def __init__(self, name: str) -> None:
        self.name = name

    def prompt(self, index: int) -> PromptRequest:
        return PromptRequest(text=f"{self.name} {index}")


def ticket(index: int = 0, *, place: int | None = None, stage: str = "a", prompts: object = None) -> Ticket:
    return Ticket(index=index, place=place, stage=stage, phase="steady", prompts=prompts)  # type: ignore[arg-type]


def test_prompt_comes_from_the_stage_the_class_or_the_default() -> None:
    """The stage says what a class with these prompts asks; where it says nothing, they are the class's or made."""

    class OfStage:
        """Takes the class's prompts for another source's, and has one for a class without."""

        def of_class(self, own: Named | None) -> Named:
            return Named("stage" if own is None else f"stage's {own.name}")

    of_class, desk = Named("class"), Desk(seed=1)
    taken = [
        desk.prompt(of_class, ticket(prompts=OfStage()), HERE),  # type: ignore[arg-type]
        desk.prompt(None, ticket(prompts=OfStage()), HERE),
        desk.prompt(of_class, ticket(), HERE),  # type: ignore[arg-type]
    ]
    assert [prompt.text for prompt, _ in taken] == ["stage's class 0", "stage 0", "class 0"]
    default, _ = desk.prompt(None, ticket(), HERE)
    assert (default.input_tokens, default.output_tokens) == (1024, 2048)


def test_prompt_has_the_length_that_its_server_counts() -> None:
    """A chat template's tokens are taken off where they were measured, and only there."""
    rulers = {HERE: Ruler(ASSUMED.words, 1.0, 12, "test"), ("openai-completions", ""): ASSUMED}
    desk, source = Desk(seed=1, rulers=rulers), synthetic(100)
    chat, _ = desk.prompt(source, ticket(), HERE)
    plain, _ = desk.prompt(source, ticket(), ("openai-completions", ""))
    assert [len(str(prompt.text).split()) for prompt in (chat, plain)] == [88, 100]


def test_rows_go_on_where_the_stage_before_left_off() -> None:
    """The indices of requests jump between stages, the places in a file do not."""
    desk, source = Desk(seed=1), Named("row")
    taken = [desk.prompt(source, ticket(10_003, place=7, stage="b"), HERE)[0].text]  # type: ignore[arg-type]
    assert taken == ["row 7"]


def test_synthetic_prompts_differ_by_stage_and_seed_and_repeat_by_index() -> None:
    """A prefix cache must not answer one with another; every process makes the same."""
    source = synthetic(input_tokens=32, output_tokens=4)
    desk = Desk(seed=1)
    texts = [
        chosen.prompt(source, asked, HERE)[0].text
        for chosen, asked in (
            (desk, ticket(3)),
            (desk, ticket(4)),
            (desk, ticket(3, stage="b")),
            (Desk(seed=2), ticket(3)),
        )
    ]
    assert len(set(texts)) == 4
    assert Desk(seed=1).prompt(source, ticket(3), HERE)[0].text == texts[0]


def test_prompt_of_a_finite_source_is_repeated_beyond_its_size() -> None:
    """That is counted: a cache may answer."""

    class Two(Named):
        size = 2

    desk, source = Desk(seed=1), Two("two")
    repeated = [desk.prompt(source, ticket(index), HERE)[1] for index in range(4)]  # type: ignore[arg-type]
    assert repeated == [False, False, True, True]


# ---- bodies ----


@pytest.mark.parametrize("name", dialect_names())
@pytest.mark.parametrize("limit", [7, None])
def test_demand_is_known_where_the_body_makes_it(name: str, limit: int | None) -> None:
    """Fewer tokens are a failure only where the body demands a length; without a limit none is demanded."""
    dialect = get_dialect(name)
    prompt = PromptRequest(text="Hi", output_tokens=limit)
    if name == "anthropic-messages" and limit is None:
        pytest.skip("it demands a limit")
    options = BodyOptions(model="m", ignore_eos=True)
    body = build_body(dialect, prompt, options)
    asked = asked_facts(dialect, prompt, options, body)
    has_it = "ignore_eos" in str(body)
    assert has_it == (limit is not None and "ignore_eos" in dialect.optional_fields)
    assert asked.output_tokens_demanded == (7 if has_it else None)
    assert asked_facts(dialect, prompt, options, body, eos_ignored=False).output_tokens_demanded is None
    assert (asked.output_tokens, asked.framing) == (limit, dialect.framing)


@pytest.mark.parametrize(
    ("exact", "asked_for", "ignored"), [(True, False, True), (False, False, False), (False, True, True)]
)
def test_answers_to_texts_that_say_something_end_where_the_model_ends_them(
    exact: bool, asked_for: bool, ignored: bool
) -> None:
    """By default the end is ignored where the length is to be exact; a task's own text has its end, unless one asks."""
    dialect, prompt = get_dialect("openai-chat"), PromptRequest(text="Hi", output_tokens=64, exact_output=exact)
    options = BodyOptions(model="m", ignore_eos=True, ignore_eos_if_exact=not asked_for)
    body = build_body(dialect, prompt, options)
    assert ("ignore_eos" in body, "min_tokens" in body) == (ignored, ignored)
    assert asked_facts(dialect, prompt, options, body).output_tokens_demanded == (64 if ignored else None)


def test_minimum_in_the_extra_body_is_a_demand() -> None:
    """`min_tokens` alone, as `--llm-extra-body` may have it."""
    dialect, prompt = get_dialect("openai-chat"), PromptRequest(text="Hi", output_tokens=9)
    options = BodyOptions(model="m", extra_body={"min_tokens": 5})
    body = build_body(dialect, prompt, options)
    assert asked_facts(dialect, prompt, options, body).output_tokens_demanded == 5


# ---- pauses ----


@pytest.mark.parametrize(
    ("value", "pause_s"),
    [
        ("2", 2.0), ("0", 0.0), ("0.5", 0.5), ("3600", 30.0), ("-5", 1.0), ("soon", 1.0), ("", 1.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 7.0), ("Sun, 06 Nov 1994 08:49:00 GMT", 0.0),
        ("Sun, 06 Nov 1994 09:49:00 GMT", 30.0),
    ],
)  # fmt: skip
def test_retry_after(value: str, pause_s: float) -> None:
    """Seconds or a date, at most 30 s; 1 s where it is neither."""
    assert retry_after_s(value, epoch_s=784111770.0) == pause_s


draw = random.Random(1).random


def test_pause_after_a_rejection_is_what_the_server_asks_for() -> None:
    """1 s without a word; none after anything else that took its time."""
    backoff = Backoff()
    asked = Exchange(headers=[(b"retry-after", b"3")])
    assert backoff.pause_s(Outcome.REJECTED, asked, 0.0, draw) == 3.0
    assert backoff.pause_s(Outcome.REJECTED, Exchange(), 0.0, draw) == 1.0
    others = set(Outcome) - {Outcome.REJECTED, Outcome.CONNECT_ERROR, Outcome.TIMEOUT_CONNECT, Outcome.CLIENT_ERROR}
    answered = Exchange(headers=asked.headers, status=200, start_ns=5, end_ns=5 + 100_000_000)
    assert {backoff.pause_s(outcome, answered, 0.0, draw) for outcome in others} == {0.0}


@pytest.mark.parametrize("outcome", [Outcome.HTTP_ERROR, Outcome.EMPTY, Outcome.NOT_STREAMED, Outcome.SERVER_ERROR])
def test_a_user_whose_requests_fail_at_once_asks_ten_times_a_second(outcome: Outcome) -> None:
    """The rest of a tenth of a second from the request's start; nothing after a success as quick."""
    backoff = Backoff()
    quick = Exchange(status=500, start_ns=7, end_ns=7 + 2_000_000)
    assert backoff.pause_s(outcome, quick, 0.0, draw) == pytest.approx(0.098)
    assert backoff.pause_s(outcome, quick, 0.0, draw, scheduled=True) == 0.0  # it would be in latencies from schedule
    assert backoff.pause_s(Outcome.OK, quick, 0.0, draw) == 0.0
    assert backoff.pause_s(Outcome.UNFINISHED, quick, 0.0, draw) == 0.0


def test_pause_grows_while_no_connection_can_be_made() -> None:
    """0.5 → 5 s with jitter, and from the start again after an answer; a reset before one is no answer."""
    backoff = Backoff()
    pauses_s = [backoff.pause_s(Outcome.CONNECT_ERROR, Exchange(), 0.0, draw) for _ in range(12)]
    for pause_s, longest_s in zip(pauses_s, [0.5, 1, 2, 4, *[5] * 8], strict=True):
        assert max(0.5, 0.75 * longest_s) <= pause_s <= longest_s
    assert len(set(pauses_s[4:])) == 8
    assert backoff.pause_s(Outcome.CUT, Exchange(status=200), 0.0, draw) == 0.1
    assert backoff.pause_s(Outcome.CUT, Exchange(), 0.0, draw) == 0.5
    assert backoff.pause_s(Outcome.OK, Exchange(), 0.0, draw) == 0.0
    assert backoff.pause_s(Outcome.TIMEOUT_CONNECT, Exchange(), 0.0, draw) == 0.5
