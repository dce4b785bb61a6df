"""Conversations: the history holds the server's real answers, turn by turn, under one session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from locust import constant

from benchmarks.rig.mock_process import MockProcess, start_mock
from llm_locust.load.answer import Answer
from llm_locust.load.conversation import Conversation, ConversationUser
from llm_locust.load.options import AskOptions
from llm_locust.measure.record import Outcome, RequestRecord
from llm_locust.protocol import BodyOptions, Message, PromptRequest
from tests.load.around import Around
from tests.load.test_users import environment_for

RECORDED = PromptRequest(
    messages=(
        Message("system", "Be brief."), Message("user", "one"), Message("assistant", "as recorded"),
        Message("user", "two"), Message("assistant", "as recorded too"), Message("user", "three"),
    ),
    output_tokens=9,
)  # fmt: skip


def answer(text: str, prompt: PromptRequest) -> Answer:
    record = RequestRecord(
        run_id="r", worker="w", request_id=0, user_class="U", name="n", dialect="d", stage="s", phase="steady",
        start_epoch_ns=0, outcome=Outcome.OK,
    )  # fmt: skip
    return Answer(record, prompt, text, "", ())


def test_each_turn_sends_all_that_was_said_before() -> None:
    """The lengths are then what they are: nobody asked for them."""
    talk = Conversation()
    first = talk.open(PromptRequest(text="Hi", input_tokens=1, output_tokens=5))
    assert first == PromptRequest(text="Hi", input_tokens=1, output_tokens=5)
    talk.hear(answer("Ho", first))
    second = talk.next(PromptRequest(text="And?", input_tokens=1, output_tokens=6))
    turns = (Message("user", "Hi"), Message("assistant", "Ho"), Message("user", "And?"))
    assert second == PromptRequest(messages=turns, output_tokens=6)
    talk.hear(answer("So.", second))
    assert talk.history == (*turns, Message("assistant", "So."))
    assert talk.goes_on


def test_recorded_conversation_is_said_turn_by_turn_with_real_answers() -> None:
    """Its user's turns in order; what its model had said is not sent."""
    talk = Conversation()
    first = talk.open(RECORDED)
    assert first.messages == (Message("system", "Be brief."), Message("user", "one"))
    talk.hear(answer("really", first))
    second = talk.next_recorded()
    assert second.messages == (*first.messages, Message("assistant", "really"), Message("user", "two"))
    assert second.output_tokens == 9
    talk.hear(answer("truly", second))
    assert (talk.next_recorded().messages or ())[-1] == Message("user", "three")
    assert not talk.goes_on


@dataclass
class Questions:
    """Numbered questions; or one recorded conversation for all."""

    recorded: PromptRequest | None = None
    asked: list[int] = field(default_factory=list)

    size = None
    digest = ""
    notes = ()

    def prompt(self, index: int) -> PromptRequest:
        self.asked.append(index)
        return self.recorded or PromptRequest(text=f"Question {index}", output_tokens=3)


class Talker(ConversationUser):
    """Three turns, no pause."""

    turns = 3
    wait_time = constant(0)


@pytest.fixture(scope="module")
def mock() -> Iterator[MockProcess]:
    with start_mock("--profile", "fast", "--ttft-ms", "1", "--itl-ms", "0.5") as process:
        yield process


def talk_once(url: str, questions: Questions, sent: list[Any], turns: int = 3) -> Around:
    """Have one conversation; note what goes over the wire."""
    around = Around(AskOptions(host=url, body=BodyOptions(model="m", ignore_eos=True), dialect="openai-chat"))
    kind = type("Talker", (Talker,), {"prompts": questions, "turns": turns})
    user = kind(environment_for(kind, around))
    user.wait = lambda: None  # outside of its task there is no pause to take
    client = user.client._client()
    outgoing = client.outgoing

    def noting(method: str, url: str, headers: Any, content: bytes, request_id: str) -> Any:
        sent.append((json.loads(content), headers))
        return outgoing(method, url, headers, content, request_id)

    client.outgoing = noting
    user.do()
    user.client.close()
    return around


def test_user_talks_in_one_session_and_hears_the_server(mock: MockProcess) -> None:
    """Three requests, one session id, each with the answers before it."""
    sent: list[Any] = []
    questions = Questions()
    around = talk_once(mock.url, questions, sent)
    assert questions.asked == [0, 1, 2]
    bodies = [body["messages"] for body, _ in sent]
    assert [len(messages) for messages in bodies] == [1, 3, 5]
    assert bodies[2][:3] == bodies[1]
    assert [m["role"] for m in bodies[2]] == ["user", "assistant", "user", "assistant", "user"]
    assert all(len(m["content"].split()) == 3 for m in bodies[2] if m["role"] == "assistant")  # three tokens each
    assert len({headers["X-Session-Id"] for _, headers in sent}) == 1
    assert [record.outcome for record in around.collector.records] == [Outcome.OK] * 3


def test_recorded_conversation_takes_one_row_and_ends_with_it(mock: MockProcess) -> None:
    """Its two later turns come from the same row; more turns than it has are not made up."""
    sent: list[Any] = []
    questions = Questions(RECORDED)
    talk_once(mock.url, questions, sent, turns=9)
    assert questions.asked == [0]
    assert [[m["content"] for m in body["messages"] if m["role"] == "user"] for body, _ in sent] == [
        ["one"], ["one", "two"], ["one", "two", "three"],
    ]  # fmt: skip
    assert "as recorded" not in str(sent)


def test_failed_turn_ends_the_conversation() -> None:
    """What nobody answered cannot be talked about."""
    with start_mock("--profile", "fast", "--fault", "http_error=1") as failing:
        sent: list[Any] = []
        around = talk_once(failing.url, Questions(), sent)
    assert len(sent) == 1
    assert [record.outcome for record in around.collector.records] == [Outcome.HTTP_ERROR]


def test_number_of_turns_is_drawn_by_the_runs_seed() -> None:
    """Reproducible, and within its range."""
    kind = type("Wide", (Talker,), {"turns": (2, 5)})
    user = kind(environment_for(kind, Around(AskOptions(host="http://127.0.0.1:9", dialect="openai-chat"))))
    drawn = [user._turns(request) for request in range(200)]
    assert set(drawn) == {2, 3, 4, 5}
    assert drawn == [user._turns(request) for request in range(200)]
