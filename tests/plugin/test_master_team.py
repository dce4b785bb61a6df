"""The master's team: who takes part, who is sent away, who is not waited for any longer."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import gevent
import msgspec
import pytest
from locust.event import Events
from locust.runners import STATE_MISSING, STATE_RUNNING
from locust.user import User

from llm_locust.load.stage import STEADY, StageOrder, Tally
from llm_locust.load.users import LLMUser
from llm_locust.plugin import messages
from llm_locust.plugin.account import ANSWER_S, Account
from llm_locust.plugin.master import ASK_AGAIN_S, MasterTeam
from llm_locust.plugin.messages import Final, Hello, RunOrder, to_message
from llm_locust.plugin.roster import HELLO_WAIT_S
from llm_locust.plugin.secrets import Secrets
from llm_locust.plugin.state import sources_of

RUN_ID = "2026-run"


class Chat(LLMUser):
    """The locustfile's class."""


class Web(User):
    """Another one, which asks no model."""


class Dispatcher:
    """Remembers who gets no users any more."""

    def __init__(self) -> None:
        self.removed: list[str] = []
        self._worker_nodes: list[Any] = []

    def add_worker(self, node: Any) -> None:
        """Deal to it, too."""
        self._worker_nodes.append(node)

    def remove_worker(self, node: Any) -> None:
        """Take it."""
        self.removed.append(node.id)
        self._worker_nodes = [other for other in self._worker_nodes if other.id != node.id]


class Runner:
    """Locust's master, as far as the team asks it."""

    def __init__(self) -> None:
        self.clients: dict[str, Any] = {}
        self.environment: Any = None
        self.state = STATE_RUNNING
        self.spawning_completed = True
        self.user_count = self.target_user_count = 4
        self.spawn_rate = 2.0
        self._users_dispatcher = Dispatcher()
        self.started: list[tuple[int, float]] = []
        self.sent: list[tuple[str, str, Any]] = []
        self.handlers: dict[str, Any] = {}

    def register_message(self, name: str, handler: Any) -> None:
        """Remember the handler."""
        self.handlers[name] = handler

    def send_message(self, name: str, data: Any, client_id: str) -> None:
        """Remember what was sent."""
        self.sent.append((client_id, name, data))

    def start(self, users: int, spawn_rate: float) -> None:
        """Remember that users are dealt anew."""
        self.started.append((users, spawn_rate))


class Field:
    """A team on a clock of its own, with workers that say what the test lets them say."""

    def __init__(self) -> None:
        self.at_s = 1000.0
        self.runner = Runner()
        environment = self.runner.environment = SimpleNamespace(
            runner=self.runner,
            events=Events(),  # type: ignore[no-untyped-call]  # Locust has no types for it
            user_classes=[Chat, Web],
            available_user_classes={"Chat": Chat},
            parsed_options=Namespace(class_picker=False),
        )
        llm: Any = SimpleNamespace(secrets=Secrets(), clock=SimpleNamespace(now_ns=lambda: int(self.at_s * 1e9)))
        self.team = MasterTeam(environment, llm, lambda: self.at_s, lambda: (None, None))
        self.team.start()

    def connect(self, client_id: str) -> None:
        """Locust hears of a worker."""
        node = SimpleNamespace(
            id=client_id, user_count=3, user_classes_count={"Chat": 2, "Web": 1}, state=STATE_RUNNING
        )
        self.runner.clients[client_id] = node
        self.runner._users_dispatcher.add_worker(node)

    def hello(self, client_id: str, **changed: Any) -> None:
        """A worker introduces itself."""
        fields: dict[str, Any] = {
            "version": messages.suite_version(),
            "host": "box",
            "pid": int(client_id[-1]),
            "timestamp_source": "kernel",
            "has_key": False,
            "sources": sources_of([Chat, Web]),
        }
        self.say(client_id, messages.HELLO, to_message(Hello(**{**fields, **changed})))

    def say(self, client_id: str, name: str, data: dict[str, Any]) -> None:
        """A message of a worker arrives."""
        self.runner.handlers[name](environment=None, msg=SimpleNamespace(node_id=client_id, data=data))

    def begin(self, *ready: str) -> list[str]:
        """Begin a run; these workers answer."""
        for client_id in ready:
            self.connect(client_id)
            self.hello(client_id)
        began = gevent.spawn(self.team.begin, RunOrder(run_id=RUN_ID, part=0, seed=1, raw={}, hosts=(), found=None))
        gevent.sleep(0)
        for client_id in ready:
            self.say(client_id, messages.READY, {"run": RUN_ID, "problem": ""})
        problems: list[str] = began.get()
        return problems

    def tally(self, client_id: str, in_flight: int, run: str = RUN_ID) -> None:
        """A worker tells how many streams it has open."""
        told = {"run": run, "tallies": [], "marks": 0, "in_flight": in_flight, "users": 2, "at_ns": 0}
        self.say(client_id, messages.TALLY, told)

    def sent_to(self, client_id: str) -> list[str]:
        """The names of what a worker was sent."""
        return [name for receiver, name, _ in self.runner.sent if receiver == client_id]

    def pass_s(self, seconds: float, **in_flight: int) -> None:
        """Let time pass; these workers tell their streams each second."""
        for _ in range(int(seconds)):
            self.at_s += 1.0
            for client_id, streams in in_flight.items():
                self.tally(client_id, streams)
            self.team.watch()
        gevent.sleep(0)


def test_share_of_a_worker_is_its_users_that_ask_a_model() -> None:
    """Of three users one only fetches pages: a warm-up that waited for its first request would never end."""
    field = Field()
    field.begin("w1")
    account = field.team.live()[0]
    assert (account.users, account.all_users) == (2, 3)


def test_worker_that_never_says_hello_is_sent_away_by_name() -> None:
    """A worker without the suite: no share, its users run elsewhere, the run says who it was."""
    field = Field()
    assert field.begin("w1") == []
    field.connect("far_2")
    field.pass_s(HELLO_WAIT_S + 2, w1=1)
    assert list(field.runner.clients) == ["w1"]
    assert field.runner._users_dispatcher.removed == ["far_2"]
    assert field.runner.started == [(4, 2.0)]
    assert "quit" in field.sent_to("far_2")
    assert field.team.sent_away() == ("worker far_2 on far sent away: it never said that it runs llm-locust",)
    assert [account.name for account in field.team.live()] == ["box-1"]


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"sources": {"Other": "1"}}, "it runs another locustfile, without Chat, Web"),
        ({"sources": {"Chat": "1", "Web": "1"}}, "its locustfile differs: the file of Chat, Web is not the master's"),
        ({"version": "0.0.1"}, "it runs llm-locust 0.0.1"),
    ],
    ids=["other classes", "other text", "other version"],
)
def test_worker_of_another_locustfile_is_refused(changed: dict[str, Any], reason: str) -> None:
    """It is told why, and gets no users."""
    field = Field()
    field.connect("w1")
    field.hello("w1", **changed)
    welcome = next(data for receiver, name, data in field.runner.sent if name == messages.WELCOME and receiver == "w1")
    assert welcome["refused"].startswith(reason)
    assert not field.runner.clients
    assert field.runner._users_dispatcher.removed == ["w1"]


def test_hello_of_an_older_suite_is_refused_in_words() -> None:
    """What it lacks is no traceback."""
    field = Field()
    field.connect("w1")
    field.say("w1", messages.HELLO, {"version": "0.0.1"})
    assert "does not introduce itself as this version does" in field.runner.sent[-1][2]["refused"]


def test_worker_that_lost_its_master_is_named_and_ended() -> None:
    """Another test's worker finds this master: its requests are in no number of this run, but they load the server."""
    field = Field()
    assert field.begin("w1") == []
    field.tally("old_9", 7, run="2026-other")
    field.tally("old_9", 7, run="2026-other")
    assert field.sent_to("old_9") == [messages.WELCOME, "quit"]
    assert "another test, 2026-other, whose master it has lost" in field.team.sent_away()[0]


def test_run_without_any_worker_does_not_start() -> None:
    """Nobody is left to send a request."""
    assert Field().begin() == ["no worker takes part"]


def test_run_is_offered_to_a_worker_that_was_out_of_sight() -> None:
    """A worker that Locust did not hear at the start gets the run when it is there again."""
    field = Field()
    field.connect("w2")
    field.hello("w2")
    field.runner.clients["w2"].state = STATE_MISSING
    assert field.begin("w1") == []
    assert messages.RUN not in field.sent_to("w2")
    field.runner.clients["w2"].state = STATE_RUNNING
    field.pass_s(1, w1=0)
    assert field.sent_to("w2").count(messages.RUN) == 1
    field.say("w2", messages.READY, {"run": RUN_ID, "problem": ""})
    assert [account.name for account in field.team.live()] == ["box-2", "box-1"]


def test_worker_that_locust_forgot_gets_its_users_back() -> None:
    """Out of sight, then marked as there by a message about users: Locust's dispatcher does not know it any more."""
    field = Field()
    field.begin("w1", "w2")
    node = field.runner.clients["w2"]
    field.runner._users_dispatcher.remove_worker(node)
    node.state = STATE_MISSING
    field.pass_s(1, w1=1)
    assert field.runner.started == []
    node.state = STATE_RUNNING
    field.pass_s(2, w1=1, w2=1)
    assert [known.id for known in field.runner._users_dispatcher._worker_nodes] == ["w1", "w2"]
    assert field.runner.started == [(4, 2.0)]


def test_hung_worker_ends_the_drain_in_bounded_time_with_words() -> None:
    """It sends heartbeats and tells of no streams, but never hands in: 20 s, then it does not answer."""
    field = Field()
    field.begin("w1", "w2")
    field.tally("w2", 0)
    field.team.close(1800.0)
    _hand_in(field, "w1")
    assert not field.team.handed_in()
    assert field.team.owing() == ("box-2",)
    field.pass_s(ANSWER_S + 1, w2=0)
    assert field.team.handed_in()
    assert field.team.lost() == (
        "worker box-2 does not answer: it never reported, at least 0 streams not accounted for",
    )
    assert not field.team.users_replaced
    assert field.runner.clients["w2"]  # in the drain nobody is given new users


def test_drain_waits_for_streams_however_long_and_asks_again() -> None:
    """Open streams are no silence; a lost order to hand in is repeated."""
    field = Field()
    field.begin("w1")
    field.team.close(1800.0)
    for _ in range(60):
        field.pass_s(1, w1=3)
        assert not field.team.handed_in()
    asked = field.sent_to("w1").count(messages.DRAIN)
    assert 60 / ASK_AGAIN_S - 1 <= asked <= 60 / ASK_AGAIN_S + 2
    _hand_in(field, "w1")
    assert field.team.handed_in()
    assert field.team.lost() == ()


def test_worker_that_falls_silent_loses_its_users() -> None:
    """Its heartbeats go on, nothing of ours comes: it is lost after 20 s and its users run elsewhere."""
    field = Field()
    field.begin("w1", "w2")
    field.pass_s(ANSWER_S + 1, w1=2)
    assert list(field.runner.clients) == ["w1"]
    assert field.runner.started == [(4, 2.0)]
    assert field.team.lost()[0].startswith("worker box-2 does not answer")
    assert field.sent_to("w2")[-1] == "quit"
    assert not field.team.deserted()
    field.pass_s(ANSWER_S + 2)
    assert field.team.deserted()


def test_run_is_not_deserted_by_workers_that_handed_in_and_went() -> None:
    """One was lost, the other has given its account before it left."""
    field = Field()
    field.begin("w1", "w2")
    del field.runner.clients["w1"]
    field.pass_s(1, w2=1)
    field.team.close(1800.0)
    _hand_in(field, "w2")
    del field.runner.clients["w2"]
    field.pass_s(1)
    assert field.team.lost()
    assert not field.team.deserted()


def test_worker_that_does_not_acknowledge_a_stage_is_not_waited_for() -> None:
    """It talks, but does not take the stage."""
    field = Field()
    field.begin("w1")
    account: Account = field.team.live()[0]
    account.send(messages.STAGE, {"version": 3})
    account.acknowledged(2)
    field.pass_s(ANSWER_S - 1, w1=0)
    assert not account.hung
    account.acknowledged(3)
    field.pass_s(5, w1=0)
    assert not account.hung
    account.send(messages.STAGE, {"version": 4})
    field.pass_s(ANSWER_S + 1, w1=0)
    assert field.team.live() == []


def _hand_in(field: Field, client_id: str) -> None:
    final = Final(run_id=RUN_ID, part=0, last_seq=0, totals={}, in_flight=0, listener_errors=0)
    field.say(client_id, messages.FINAL, to_message(final))


def test_worker_that_was_ended_in_mid_run_is_named_and_its_quota_goes_to_the_other() -> None:
    """SIGTERM at one worker: it handed in, so nothing is missing; the run goes on, and not for ever."""
    field = Field()
    field.begin("w1", "w2")
    field.team.crew.send_stage(StageOrder(number=0, label="a", worker="", users=4, shares=(), seed=1), 10)
    field.team.crew.open(0, STEADY)
    issued = Tally(number=0, label="a", issued=2, steady_issued=2)
    told = {"run": RUN_ID, "tallies": [msgspec.to_builtins(issued)], "marks": 1, "in_flight": 0, "users": 2, "at_ns": 0}
    field.say("w1", messages.TALLY, told)
    _hand_in(field, "w1")
    del field.runner.clients["w1"]
    field.pass_s(1, w2=0)
    stages = [data for client, name, data in field.runner.sent if (client, name) == ("w2", messages.STAGE)]
    assert StageOrder.from_message(stages[-1]["order"]).quota == 8
    assert field.team.lost() == ()
    assert field.team.sent_away() == ("worker box-1 was ended at 1.0 s and handed in; others took over",)
    assert not field.team.deserted()
    _hand_in(field, "w2")
    del field.runner.clients["w2"]
    field.pass_s(1)
    assert field.team.deserted()
