"""The user classes under Locust itself: their tasks, and how they stop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gevent
import pytest
from locust import between, constant, task
from locust.env import Environment
from locust.user.task import TaskSet

from benchmarks.rig.mock_process import MockProcess, start_mock
from llm_locust.load.options import AskOptions
from llm_locust.load.users import LLMUser, OpenAIChatUser, OpenAICompletionsUser, default_task
from llm_locust.measure.record import Outcome
from llm_locust.protocol import BodyOptions
from tests.load.around import Around, OpenGate

OPTIONS = AskOptions(host="http://127.0.0.1:9", body=BodyOptions(model="m", ignore_eos=True))


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockProcess]:
    """A server whose answers take some 250 ms, and an endless one by script."""
    token = 'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n'
    path = Path(tmp_path_factory.mktemp("scripts"), "scripts.json")
    path.write_text(json.dumps({"endless": [[10, token], [30_000, token]]}))
    with start_mock("--profile", "fast", "--ttft-ms", "50", "--itl-ms", "10", "--script", str(path)) as process:
        yield process


def environment_for(user_class: type[LLMUser], around: Around) -> Environment:
    """A Locust environment with these surroundings in place of the plugin's."""
    environment = Environment(user_classes=[user_class], catch_exceptions=True)
    environment.llm = around  # type: ignore[attr-defined]
    return environment


# ---- tasks ----


def test_class_without_a_task_asks_its_prompts() -> None:
    """The default task."""

    class Plain(OpenAIChatUser):
        pass

    assert Plain.tasks == [default_task]
    assert not Plain.abstract


def test_own_task_replaces_the_default_in_every_generation() -> None:
    """Locust hands tasks down: the default must not come along."""

    class Plain(OpenAIChatUser):
        pass

    class Own(Plain):
        @task(2)
        def mine(self) -> None: ...

    class Child(Own):
        pass

    class Sets(Plain):
        @task
        class Inner(TaskSet):
            @task
            def deep(self) -> None: ...

    assert Own.tasks == [Own.mine, Own.mine]
    assert Child.tasks == [Own.mine, Own.mine]
    assert Sets.tasks == [Sets.Inner]
    assert Plain.tasks == [default_task]


def test_abstract_class_has_no_default_task() -> None:
    """It is there to be built upon."""

    class Base(OpenAICompletionsUser):
        abstract = True

    class Concrete(Base):
        pass

    assert (Base.tasks, Concrete.tasks) == ([], [default_task])


def test_tasks_given_as_a_list_or_mapping_are_own_tasks() -> None:
    """As Locust takes them."""

    def job(user: Any) -> None: ...

    class Listed(OpenAIChatUser):
        tasks = [job]  # noqa: RUF012

    class Weighted(OpenAIChatUser):
        tasks = {job: 2}  # type: ignore[assignment]  # noqa: RUF012

    assert [list(Listed.tasks), list(Weighted.tasks)] == [[job], [job, job]]


# ---- think time ----


def test_think_time_option_wins_over_the_class() -> None:
    """Option given > class attribute > default."""

    class Thinks(OpenAIChatUser):
        wait_time = between(7, 8)

    class Plain(OpenAIChatUser):
        pass

    without, with_option = Around(OPTIONS), Around(replace(OPTIONS, think_time_s=(1.0, 2.0)))
    waits = [
        user_class(environment_for(user_class, around)).wait_time()
        for user_class, around in ((Plain, without), (Thinks, without), (Thinks, with_option))
    ]
    assert waits[0] == 0
    assert 7 <= waits[1] <= 8
    assert 1 <= waits[2] <= 2


# ---- stopping ----


def run_users(user_class: type[LLMUser], around: Around, users: int) -> tuple[Environment, Any]:
    """Start users and wait until all of them have a request in flight."""
    environment = environment_for(user_class, around)
    runner = environment.create_local_runner()
    runner.start(users, spawn_rate=100)
    with gevent.Timeout(10):
        while len(around.collector.open) < users:
            gevent.sleep(0.01)
    return environment, runner


class Streams(OpenAIChatUser):
    """Asks for some 20 tokens at a time."""

    wait_time = constant(0)

    @task
    def stream(self) -> None:
        self.client.chat("Hi", output_tokens=20)


def outcomes(around: Around) -> list[Outcome]:
    """The outcomes booked so far."""
    return [record.outcome for record in around.collector.records]


def test_lowering_users_cuts_no_stream(mock: MockProcess) -> None:
    """8 → 4 users: whoever goes ends its request first, and takes no new one."""
    around = Around(replace(OPTIONS, host=mock.url))
    _, runner = run_users(Streams, around, 8)
    runner.start(4, spawn_rate=100, wait=True)
    with gevent.Timeout(10):
        while runner.user_count > 4:
            gevent.sleep(0.01)
    assert Outcome.UNFINISHED not in outcomes(around)
    assert len(around.gate.left) == 4
    runner.quit()
    assert outcomes(around) == [Outcome.OK] * len(outcomes(around))
    assert len(around.collector.open) == len(around.collector.records) == len(around.gate.ended)


def test_stop_ends_an_endless_stream_at_the_drain_limit(mock: MockProcess) -> None:
    """It is unfinished then, with its token, once."""
    options = replace(OPTIONS, host=mock.url, headers=(("X-Mock-Script", "endless"),), drain_s=0.2)
    around = Around(options)
    environment, runner = run_users(Streams, around, 2)
    gevent.sleep(0.1)
    runner.quit()
    assert outcomes(around) == [Outcome.UNFINISHED] * 2
    assert [record.chunks for record in around.collector.records] == [1, 1]
    assert environment.stats.total.num_requests == 0


class ClosedGate(OpenGate):
    """Lets nobody through."""

    def admit(self, user: object) -> Any:
        self.issued += 1
        gevent.sleep(60)
        raise AssertionError("unreachable")


@pytest.mark.parametrize("stop_timeout", [0, 30], ids=["killed", "asked to stop"])
def test_user_that_waits_at_the_gate_ends_at_once(stop_timeout: int) -> None:
    """Nothing is lost by that, so nothing is waited for."""
    around = Around(OPTIONS, gate=ClosedGate())
    environment = environment_for(Streams, around)
    environment.stop_timeout = stop_timeout
    runner = environment.create_local_runner()
    runner.start(3, spawn_rate=100)
    with gevent.Timeout(5):
        while around.gate.issued < 3:
            gevent.sleep(0.01)
        runner.quit()
    assert (outcomes(around), len(around.gate.left)) == ([], 3)


def test_connection_is_closed_when_its_user_has_ended(mock: MockProcess) -> None:
    """Also in a class whose `on_stop` does not know of it."""

    class Careless(Streams):
        def on_stop(self) -> None:
            """Forget everything."""

    around = Around(replace(OPTIONS, host=mock.url))
    _, runner = run_users(Careless, around, 2)
    clients = [greenlet.args[0].client for greenlet in runner.user_greenlets]
    runner.quit()
    gevent.sleep(0)
    assert [client._http for client in clients] == [None, None]
