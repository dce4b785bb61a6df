"""A master with workers on one fake clock: real gates and dealers, users that come and go at once, no messages."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import msgspec

from llm_locust.load.arrivals import Weights
from llm_locust.load.conductor import Conductor
from llm_locust.load.deal import Dealer
from llm_locust.load.stage import Stage, StageOrder, Tally

from .stand import FakeUser, S, Stand, Started

Log = list[tuple[object, ...]]


class Ensemble:
    """Implements `Crew` over stands. `log` holds what the conductor asked for, in order."""

    def __init__(self, workers: Sequence[str] = ("a", "b"), service_ns: Callable[[Started], int] | None = None) -> None:
        self.stands = {worker: Stand() if service_ns is None else Stand(service_ns=service_ns) for worker in workers}
        self.users: dict[str, list[FakeUser]] = {worker: [] for worker in workers}
        self.log: Log = []
        self.asks: tuple[int | None, float | None] = (None, None)
        self.missing_users = 0
        self.acks_after_s = 0
        self._acked_from_ns = 0
        self._dealer: Dealer | None = None
        self._number = -1
        self._kept: dict[str, Tally] = {}

    # ---- Crew ----

    def now_ns(self) -> int:
        return max(stand.now_ns for stand in self.stands.values())

    def send_stage(self, order: StageOrder, requests: int | None) -> None:
        self.log.append(("stage", order.number, order.label))
        self._acked_from_ns = self.now_ns() + self.acks_after_s * S
        if self._number == order.number and self._dealer is not None:
            self._dealer.amend(order)
        else:
            self._dealer = Dealer(order, self._weights(), requests)
        self._number = order.number
        self._hand_out()

    def acked(self, number: int) -> bool:
        return self._number == number and self.now_ns() >= self._acked_from_ns

    def open(self, at_ns: int, phase: str) -> None:
        self.log.append(("open", phase, self.user_count()))
        assert self._dealer is not None
        self._dealer.deal_anew(self._weights())
        self._hand_out()
        for stand in self.stands.values():
            stand.gate.open(at_ns, phase)

    def mark(self, label: str, phase: str, at_ns: int) -> None:
        self.log.append(("mark", label, phase))
        for stand in self.stands.values():
            stand.gate.mark(phase, at_ns, label)

    def cut(self) -> None:
        self.log.append(("cut",))
        for stand in self.stands.values():
            for user in list(stand.greenlets):
                stand.greenlets.pop(user).kill()

    def user_count(self) -> int:
        return sum(len(users) for users in self.users.values())

    def asked(self) -> tuple[int | None, float | None]:
        return self.asks

    def tally(self, label: str) -> Tally | None:
        told = [t for stand in self.stands.values() for t in stand.gate.tallies() if t.label == label]
        if len(told) < len(self.stands):
            return self._kept.get(label)
        merged = Tally.merged(told)
        assert merged is not None
        self._kept[label] = merged
        return merged

    # ---- what Locust does ----

    def spawn(self, count: int) -> None:
        """Bring the users to a number, spread over the workers in turn."""
        turns = itertools.cycle(self.stands)
        while self.user_count() < count - self.missing_users:
            worker = min(self.users, key=lambda name: len(self.users[name]))
            self.users[worker] += self.stands[worker].add_users(1)
        while self.user_count() > count:
            worker = next(turns)
            if self.users[worker]:
                self.stands[worker].gate.leave(self.users[worker].pop())

    def run(self, conductor: Conductor, *, until_s: float = 1e6, tick_s: float = 1.0) -> float:
        """Tick once a second as Locust does until the plan is done; return the seconds that it took."""
        while self.now_ns() < until_s * S:
            answer = conductor.tick()
            if answer is None:
                break
            self.spawn(answer[0])
            until_ns = self.now_ns() + int(tick_s * S)
            for stand in self.stands.values():
                stand.run_until(until_ns)
        return self.now_ns() / S

    @property
    def started(self) -> list[Started]:
        """Every request, in the order of the starts."""
        return sorted((r for stand in self.stands.values() for r in stand.started), key=lambda r: r.start_ns)

    def close(self) -> None:
        """End every user."""
        for stand in self.stands.values():
            stand.close()

    def _weights(self) -> Weights:
        weights = tuple((worker, len(users)) for worker, users in self.users.items())
        return weights if any(users for _, users in weights) else tuple((worker, 1) for worker in self.users)

    def _hand_out(self) -> None:
        assert self._dealer is not None
        for order in self._dealer.orders():
            self.stands[order.worker].gate.begin_stage(order)


def closed(label: str, users: int, **fields: object) -> Stage:
    """Make a stage of a closed loop that holds 10 s, unless the fields say otherwise."""
    stage = Stage(label=label, users=users, hold_s=10.0)
    return msgspec.structs.replace(stage, **fields)


def opened_at(conductor: Conductor, label: str) -> int:
    """The instant at which a row was opened."""
    return next(row.opened_ns or 0 for row in conductor.applied if row.label == label)


def per_stage(ensemble: Ensemble) -> dict[str, list[Started]]:
    """Requests by the stage on their ticket."""
    result: dict[str, list[Started]] = {}
    for request in ensemble.started:
        result.setdefault(request.ticket.stage, []).append(request)
    return result
