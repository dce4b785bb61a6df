"""The master's crew: who is told what, and what the conductor may believe."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from llm_locust.load.arrivals import ArrivalSpec
from llm_locust.load.deal import RESHARE_LEAD_NS
from llm_locust.load.stage import DRAIN, STEADY, StageOrder, Tally
from llm_locust.plugin.crew import MasterCrew
from llm_locust.plugin.library import ChosenPrompts
from llm_locust.prompts import synthetic
from llm_locust.protocol.types import PromptRequest


class Worker:
    """A worker that remembers what it was sent."""

    def __init__(self, name: str, users: int) -> None:
        self.name = name
        self.users = users
        self.acked_version = 0
        self.marks_seen = 0
        self.tallies: dict[str, Tally] = {}
        self.told_ns = 0
        self.sent: list[tuple[str, Any]] = []

    def send(self, message: str, data: Any) -> None:
        """Remember it."""
        self.sent.append((message, data))

    def orders(self) -> list[StageOrder]:
        """The stages it was told."""
        return [StageOrder.from_message(data["order"]) for message, data in self.sent if message == "llm_stage"]

    def tell(self, label: str, **counts: Any) -> None:
        """Report a row."""
        self.tallies[label] = Tally(number=0, label=label, **counts)


class Trace:
    """Prompts with instants of their own: ten a second for ten seconds."""

    size, digest, notes = 100, "trace", ()
    arrivals_s = np.arange(100) / 10

    def prompt(self, index: int) -> PromptRequest:
        """Nobody asks for a prompt here."""
        raise NotImplementedError


class Bench:
    """A crew over some workers, on a clock of its own."""

    def __init__(self, *workers: Worker) -> None:
        self.workers = list(workers)
        self.at_ns = 0
        self.trace: Trace | None = None
        self.crew = MasterCrew(
            lambda: self.workers, self, lambda: self.at_ns, lambda: (None, None), lambda order: self.prompts
        )

    @property
    def prompts(self) -> ChosenPrompts:
        """Those of each stage."""
        return ChosenPrompts(self.trace or synthetic(), None)

    @property
    def user_count(self) -> int:
        """Users of all workers."""
        return sum(worker.users for worker in self.workers)


def order(number: int = 0, **changes: Any) -> StageOrder:
    """A stage without its dealing."""
    made = StageOrder(number=number, label="a", worker="", users=4, shares=(), seed=1)
    return msgspec.structs.replace(made, **changes)


def test_stage_is_dealt_by_users_and_dealt_again_when_it_opens() -> None:
    """Before users run every worker counts the same; at the opening the shares are as the users are."""
    one, two = Worker("one", 0), Worker("two", 0)
    bench = Bench(one, two)
    bench.crew.send_stage(order(), 10)
    assert [worker.orders()[-1].quota for worker in (one, two)] == [5, 5]
    one.users, two.users = 3, 1
    bench.crew.open(1_000, STEADY)
    assert [worker.orders()[-1].quota for worker in (one, two)] == [8, 2]
    assert one.orders()[-1].weights == (("one", 3), ("two", 1))
    assert one.sent[-1] == ("llm_open", {"at_ns": 1_000, "phase": STEADY, "label": "a", "mark": 1})


def test_quota_is_dealt_by_the_users_that_the_window_finds() -> None:
    """Users come one after the other: the worker of the first had all of it. Once: what follows is the row's own."""
    one, two = Worker("one", 1), Worker("two", 0)
    bench = Bench(one, two)
    bench.crew.send_stage(order(), 10)
    bench.crew.open(1_000, "ramp")
    assert [worker.orders()[-1].quota for worker in (one, two)] == [10, 0]
    one.users, two.users = 2, 3
    bench.crew.mark("a", "warmup", 2_000)
    assert [worker.orders()[-1].quota for worker in (one, two)] == [10, 0]
    bench.crew.mark("a", STEADY, 3_000)
    assert [worker.orders()[-1].quota for worker in (one, two)] == [4, 6]
    assert [message for message, _ in two.sent[-2:]] == ["llm_stage", "llm_mark"]  # before the window opens
    one.users = 5
    sent = len(one.sent)
    bench.crew.mark("a-2", STEADY, 4_000)
    assert [message for message, _ in one.sent[sent:]] == ["llm_mark"]


@pytest.mark.parametrize(("users", "again"), [((2, 2), False), ((3, 1), True)])
def test_arrivals_are_dealt_by_the_users_that_the_window_finds(users: tuple[int, int], again: bool) -> None:
    """Equal parts stay as they are; others hold from as far ahead as a message needs."""
    one, two = Worker("one", 1), Worker("two", 1)
    bench = Bench(one, two)
    bench.crew.send_stage(order(arrivals=ArrivalSpec("constant"), profile=((0.0, 10.0),)), None)
    bench.crew.open(0, "ramp")
    one.users, two.users = users
    bench.crew.mark("a", STEADY, 1_000)
    shares = two.orders()[-1].shares
    assert shares[0] == (0, (("one", 1), ("two", 1)))
    assert shares[1:] == (((RESHARE_LEAD_NS // 100_000_000, (("one", 3), ("two", 1))),) if again else ())


def test_quota_of_a_schedule_is_what_each_owns_of_it_from_the_window_on() -> None:
    """20 a second, one user and then three of five: until the new shares hold, the first owns all that comes."""
    one, two = Worker("one", 1), Worker("two", 0)
    bench = Bench(one, two)
    bench.crew.send_stage(order(arrivals=ArrivalSpec("constant"), profile=((0.0, 20.0),)), 100)
    bench.crew.open(0, "ramp")
    one.users, two.users = 3, 2
    bench.crew.mark("a", STEADY, 200_000_000)
    alone = (RESHARE_LEAD_NS - 200_000_000) // 50_000_000
    quotas = [worker.orders()[-1].quota for worker in (one, two)]
    assert sum(quota or 0 for quota in quotas) == 100
    assert quotas[0] == alone + round((100 - alone) * 3 / 5)


def test_who_comes_to_a_schedule_whose_requests_are_dealt_gets_none_of_it() -> None:
    """Its arrivals would be issued by nobody; in a run without a number it takes its share."""
    one, two = Worker("one", 2), Worker("two", 0)
    for requests, shares in ((100, 1), (None, 2)):
        bench = Bench(one, two)
        two.users = 0
        bench.crew.send_stage(order(arrivals=ArrivalSpec("constant"), profile=((0.0, 20.0),)), requests)
        bench.crew.open(0, STEADY)
        two.users = 2
        bench.at_ns = 5_000_000_000
        bench.crew.follow_users()
        assert len(one.orders()[-1].shares) == shares


def test_lost_worker_leaves_what_it_had_not_issued_in_any_row_of_the_stage() -> None:
    """An edit splits the row, not the quota: 30 in the first piece and 5 in the second are 35 of 50."""
    one, two = Worker("one", 2), Worker("two", 2)
    bench = Bench(one, two)
    bench.crew.send_stage(order(), 100)
    bench.crew.open(0, STEADY)
    bench.crew.mark("a-2", "ramp", 1_000)
    for worker in (one, two):
        worker.tell("a", steady_issued=30)
        worker.tell("a-2", steady_issued=5)
    bench.workers.remove(one)
    bench.crew.lost(one)
    assert two.orders()[-1].quota == 50 + 15


def test_stage_is_acknowledged_when_every_worker_has_the_newest() -> None:
    """An acknowledgement of an older sending does not count."""
    one, two = Worker("one", 1), Worker("two", 1)
    bench = Bench(one, two)
    bench.crew.send_stage(order(), None)
    one.acked_version = two.acked_version = 1
    assert bench.crew.acked(0)
    bench.crew.send_stage(order(label="b"), None)
    assert not bench.crew.acked(0)
    two.acked_version = 2
    assert not bench.crew.acked(0)
    one.acked_version = 2
    assert bench.crew.acked(0)
    assert not bench.crew.acked(1)


def test_row_is_told_when_every_worker_has_told_it() -> None:
    """What all must have reached is not told by some."""
    one, two = Worker("one", 1), Worker("two", 1)
    bench = Bench(one, two)
    bench.crew.send_stage(order(), None)
    one.tell("a", issued=3, warm=True)
    assert bench.crew.tally("a") is None
    two.tell("a", issued=4, warm=False)
    merged = bench.crew.tally("a")
    assert merged is not None
    assert (merged.issued, merged.warm) == (7, False)


def test_row_is_not_drained_by_what_was_told_before_the_mark() -> None:
    """A tally from before the gate closed says "drained" of a gate that had not opened."""
    one = Worker("one", 1)
    bench = Bench(one)
    bench.crew.send_stage(order(), None)
    bench.crew.open(0, STEADY)
    bench.crew.mark("a", DRAIN, 5)
    one.tell("a", drained=True, exhausted=True)
    one.marks_seen = 1
    told = bench.crew.tally("a")
    assert told is not None
    assert not told.drained
    one.marks_seen = 2
    told = bench.crew.tally("a")
    assert told is not None
    assert told.drained


def test_late_worker_is_told_everything_in_order_and_gets_a_share() -> None:
    """Stage first, then what was announced since; its users get arrivals from an index that nobody used."""
    one = Worker("one", 2)
    bench = Bench(one)
    bench.crew.send_stage(order(arrivals=ArrivalSpec("constant", 0.0), profile=((0.0, 10.0),)), None)
    bench.crew.open(0, STEADY)
    late = Worker("late", 0)
    bench.workers.append(late)
    bench.crew.welcome(late)
    assert [message for message, _ in late.sent] == ["llm_stage", "llm_open"]
    assert late.orders()[-1].own_users == 0
    late.users = 2
    bench.at_ns = 3_000_000_000
    bench.crew.follow_users()
    shares = late.orders()[-1].shares
    assert shares[-1][1] == (("one", 2), ("late", 2))
    ahead_s = RESHARE_LEAD_NS / 1e9
    assert shares[-1][0] == round((3 + ahead_s) * 10)  # 10 a second


def test_lost_worker_leaves_its_quota_and_what_fell_due_is_counted() -> None:
    """Quota that was not issued goes to the others; arrivals due since its last word are unissued."""
    one, two = Worker("one", 1), Worker("two", 1)
    bench = Bench(one, two)
    constant = order(arrivals=ArrivalSpec("constant", 0.0), profile=((0.0, 10.0),))
    bench.crew.send_stage(constant, 100)
    bench.crew.open(0, STEADY)
    two.tell("a", steady_issued=10, issued=10, in_flight=1)
    two.told_ns = 2_000_000_000
    bench.workers.remove(two)
    bench.at_ns = 5_000_000_000
    bench.crew.lost(two)
    assert one.orders()[-1].quota == 90
    unissued = bench.crew.take_unissued()
    ahead_s = RESHARE_LEAD_NS / 1e9
    assert abs(unissued["a"] - (5 + ahead_s - 2) * 10 / 2) <= 1  # every other one of 10 a second
    assert not bench.crew.take_unissued()
    one.tell("a", issued=40)
    merged = bench.crew.tally("a")
    assert merged is not None
    assert (merged.issued, merged.in_flight) == (50, 0)


@pytest.mark.parametrize("arrivals", [None, ArrivalSpec("constant", 0.0)], ids=["closed loop", "open loop"])
def test_quota_of_a_worker_without_users_goes_to_those_with_users(arrivals: ArrivalSpec | None) -> None:
    """One user on four workers: dealt evenly before anybody told of users, the run would never end."""
    workers = [Worker(name, 0) for name in ("one", "two", "three", "four")]
    bench = Bench(*workers)
    bench.crew.send_stage(order(arrivals=arrivals, profile=((0.0, 10.0),) if arrivals else ()), 7)
    bench.crew.open(0, STEADY)
    assert [worker.orders()[-1].quota for worker in workers] == [2, 2, 2, 1]
    workers[1].users = 1
    workers[3].tell("a", issued=1, steady_issued=1)  # it had a user, and lost it
    for seconds in range(12):
        bench.at_ns = seconds * 1_000_000_000
        for worker in workers[:-1]:
            worker.told_ns = bench.at_ns
        bench.crew.follow_users()
    assert [worker.orders()[-1].quota for worker in workers] == [0, 6, 0, 1]
    assert len(workers[1].orders()) == 4  # sent, opened, new shares, the quotas: told once each


def test_worker_that_was_only_out_of_sight_goes_on_and_is_counted_once() -> None:
    """It is told of the shares that others took over, and of every mark it missed; what it started is not unissued."""
    one, two = Worker("one", 1), Worker("two", 1)
    bench = Bench(one, two)
    bench.crew.send_stage(order(arrivals=ArrivalSpec("constant", 0.0), profile=((0.0, 10.0),)), None)
    bench.crew.open(0, STEADY)
    one.tell("a", issued=40)
    two.tell("a", issued=10, in_flight=1)
    two.marks_seen, two.told_ns = 1, 2_000_000_000
    bench.workers.remove(two)
    bench.at_ns = 5_000_000_000
    bench.crew.lost(two)
    assert two.orders()[-1].weights == (("one", 1),)
    bench.crew.mark("a", DRAIN, 6_000_000_000)
    two.sent.clear()
    two.tell("a", issued=30, in_flight=2)
    bench.workers.append(two)
    bench.crew.returned(two)
    assert [message for message, _ in two.sent] == ["llm_stage", "llm_mark"]  # not the opening: it had seen that
    assert bench.crew.take_unissued()["a"] == 0
    merged = bench.crew.tally("a")
    assert merged is not None
    assert (merged.issued, merged.in_flight) == (70, 2)


def test_lost_worker_of_a_trace_leaves_its_arrivals_to_the_others() -> None:
    """The master knows the trace's instants: what is due later goes to the others, and nothing is due twice."""
    one, two = Worker("one", 1), Worker("two", 1)
    bench = Bench(one, two)
    bench.trace = Trace()
    bench.crew.send_stage(order(arrivals=ArrivalSpec("trace", 0.0)), None)
    bench.crew.open(0, STEADY)
    two.told_ns = 2_000_000_000
    bench.workers.remove(two)
    bench.at_ns = 3_000_000_000
    bench.crew.lost(two)
    ahead_s = RESHARE_LEAD_NS / 1e9
    assert one.orders()[-1].shares[-1] == (round((3 + ahead_s) * 10), (("one", 1),))
    assert bench.crew.take_unissued()["a"] == 12  # every other one of 25 that fell due between 2 s and 4.5 s
