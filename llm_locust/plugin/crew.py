"""The workers of a master as the conductor sees them (`load.crew.Crew`).

A change is announced ahead in the master's clock; each worker turns it into its own. Nothing blocks here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from llm_locust.load.arrivals import Weights, trace_instants_ns
from llm_locust.load.deal import RESHARE_LEAD_NS, Dealer
from llm_locust.load.stage import DRAIN, STEADY, StageOrder, Tally

from . import messages
from .issuer import PromptsOfStage

IDLE_NS = 5_000_000_000
"""A worker that was without users for so long, and has told its counters since, will issue nothing more by itself.
Its reports, which tell of users, come every 3 s."""

Asked = Callable[[], tuple[int | None, float | None]]
"""(users, rate) as they stand in the web form."""


class UserCounter(Protocol):
    """What a crew asks Locust's runner."""

    @property
    def user_count(self) -> int:
        """Users that run."""
        ...


class Hand(Protocol):
    """One worker, as the master's crew needs it."""

    name: str
    acked_version: int
    marks_seen: int
    tallies: dict[str, Tally]
    told_ns: int
    """When it told its tallies last, in the master's clock."""

    @property
    def users(self) -> int:
        """Users that run there."""
        ...

    def send(self, message: str, data: Any) -> None:
        """Send it a message."""
        ...


@dataclass(slots=True)
class Loss:
    """What a lost worker told last, and what fell due there in the row that ran before the others took over."""

    tallies: dict[str, Tally]
    label: str
    number: int
    unissued: int = 0


class MasterCrew:
    """The crew of a master: every live worker, by messages."""

    def __init__(
        self,
        hands: Callable[[], Sequence[Hand]],
        runner: UserCounter,
        now_ns: Callable[[], int],
        asked: Asked,
        stage_prompts: PromptsOfStage,
    ) -> None:
        self._hands = hands
        self._runner = runner
        self.now_ns = now_ns
        self.asked = asked
        self._stage_prompts = stage_prompts
        self._unissued: Counter[str] = Counter()
        self._lost: dict[str, Loss] = {}
        self._dealer: Dealer | None = None
        self._number = -1
        self._version = 0
        self._marks: list[tuple[str, dict[str, Any]]] = []
        self._opened_ns: int | None = None
        self._label = ""
        self._idle_since_ns: dict[str, int] = {}

    # ---- what the conductor calls ----

    def send_stage(self, order: StageOrder, requests: int | None) -> None:
        """Send a stage to every worker, dealt by their users; the running number again amends it."""
        if self._dealer is not None and self._number == order.number:
            self._dealer.amend(order)
        else:
            trace_ns = trace_instants_ns(self._stage_prompts(order).named) if _follows_trace(order) else None
            self._dealer = Dealer(order, self._weights(), requests, trace_ns)
            self._number = order.number
            self._marks.clear()
            self._opened_ns = None
            self._label = order.label
            for hand in self._hands():
                hand.marks_seen = 0
        self._send_deal()

    def acked(self, number: int) -> bool:
        """Whether every live worker has acknowledged the stage as it was sent last."""
        hands = self._hands()
        return self._number == number and bool(hands) and all(h.acked_version >= self._version for h in hands)

    def open(self, at_ns: int, phase: str) -> None:
        """Send the stage again with the shares as the users are now, then open every gate at that instant."""
        assert self._dealer is not None
        weights = self._weights()
        self._dealer.deal_anew(weights)
        if phase == STEADY:
            self._dealer.measure(weights, 0, 0)
        self._send_deal()
        self._opened_ns = at_ns
        self._tell(messages.OPEN, at_ns=at_ns, phase=phase, label=self._label)

    def mark(self, label: str, phase: str, at_ns: int) -> None:
        """Announce a phase; `drain` closes the gates. What is measured is dealt by the users as they are now."""
        assert self._dealer is not None
        self._label = label
        if phase == STEADY:
            assert self._opened_ns is not None
            if self._dealer.measure(self._weights(), self._offset_ns(), at_ns - self._opened_ns):
                self._send_deal()
        self._tell(messages.MARK, at_ns=at_ns, phase=phase, label=label)

    def cut(self) -> None:
        """Tell every worker to end what is in flight."""
        for hand in self._hands():
            hand.send(messages.CUT, {})

    def user_count(self) -> int:
        """Users that run on all workers."""
        return self._runner.user_count

    def tally(self, label: str) -> Tally | None:
        """The counters of a row over all workers; None until every live one has told it."""
        hands = self._hands()
        if not all(label in hand.tallies for hand in hands):
            return None
        told = [self._as_told(hand, label) for hand in hands]
        lost = [loss.tallies[label].lost() for loss in self._lost.values() if label in loss.tallies]
        return Tally.merged([*told, *lost])

    # ---- what the master tells ----

    def welcome(self, hand: Hand) -> None:
        """Bring a worker that joined up to date: the stage, then what was announced since."""
        if self._dealer is None:
            return
        self._send_order(hand, self._dealer.order_for(hand.name))
        for message, told in self._marks:
            if told["mark"] > hand.marks_seen:
                hand.send(message, told)

    def follow_users(self) -> None:
        """Give shares to workers whose users have none; called once a second."""
        if self._dealer is None or self._opened_ns is None or self._closed:
            return
        weights = self._dealer.with_quota(self._weights())
        with_users = {worker for worker, users in weights if users}
        with_shares = {worker for worker, users in self._dealer.weights if users}
        if with_users and with_users != with_shares:
            self._dealer.reshare(weights, self._offset_ns())
            self._send_deal()
        if self._taken_back(weights):
            self._send_deal()

    def _taken_back(self, weights: Weights) -> bool:
        """Let those with users have what workers without any were to issue: nobody there ever would."""
        assert self._dealer is not None
        now_ns = self.now_ns()
        idle = [hand for hand in self._hands() if not hand.users]
        self._idle_since_ns = {hand.name: self._idle_since_ns.get(hand.name, now_ns) for hand in idle}
        taken = False
        for hand in idle:
            if hand.told_ns - self._idle_since_ns[hand.name] >= IDLE_NS:
                taken |= self._dealer.take_back(hand.name, self._steady_issued(hand), weights)
        return taken

    def lost(self, hand: Hand) -> None:
        """A worker is gone: its shares and its quota go to the others, what fell due there is counted.

        It is told, too: one that was only out of sight must not start what others took over.
        """
        loss = self._lost[hand.name] = Loss(dict(hand.tallies), self._label, self._number)
        if self._dealer is None or self._opened_ns is None or self._closed or not self._hands():
            return
        before = self._dealer.unissued
        self._dealer.lost(
            hand.name,
            self._weights(),
            steady_issued=self._steady_issued(hand),
            last_seen_ns=max(hand.told_ns - self._opened_ns, 0),
            offset_ns=self._offset_ns(),
        )
        loss.unissued = self._dealer.unissued - before
        self._unissued[self._label] += loss.unissued
        self._send_deal()
        self._send_order(hand, self._dealer.order_for(hand.name))

    def returned(self, hand: Hand) -> None:
        """A worker that was lost is there again: it goes on, and has itself started what fell due there meanwhile."""
        loss = self._lost.pop(hand.name)
        self._unissued[loss.label] -= loss.unissued
        if loss.number != self._number:
            hand.marks_seen = 0
        self.welcome(hand)

    def take_unissued(self) -> Counter[str]:
        """What fell due at lost workers since the last call, by row."""
        taken, self._unissued = self._unissued, Counter()
        return taken

    # ---- inside ----

    @property
    def _closed(self) -> bool:
        return bool(self._marks) and self._marks[-1][1]["phase"] == DRAIN

    def _offset_ns(self) -> int:
        """From where new shares may hold: as far ahead as a message needs."""
        assert self._opened_ns is not None
        return max(self.now_ns() + RESHARE_LEAD_NS - self._opened_ns, 0)

    def _steady_issued(self, hand: Hand) -> int:
        """What a worker has issued of its quota: in all rows of the stage."""
        return sum(tally.steady_issued for tally in hand.tallies.values() if tally.number == self._number)

    def _as_told(self, hand: Hand, label: str) -> Tally:
        """What a worker told of a row; from before it saw the last mark it cannot tell that it is drained."""
        tally = hand.tallies[label]
        if hand.marks_seen < len(self._marks):
            return msgspec.structs.replace(tally, drained=False, warm=False, exhausted=False)
        return tally

    def _weights(self) -> Weights:
        """(worker, users) of the live workers; before any user runs, each counts the same."""
        hands = self._hands()
        weights = tuple((hand.name, hand.users) for hand in hands)
        return weights if any(users for _, users in weights) else tuple((hand.name, 1) for hand in hands)

    def _send_deal(self) -> None:
        assert self._dealer is not None
        self._version += 1
        for hand in self._hands():
            self._send_order(hand, self._dealer.order_for(hand.name))

    def _send_order(self, hand: Hand, order: StageOrder) -> None:
        hand.send(messages.STAGE, {"order": order.to_message(), "version": self._version})

    def _tell(self, message: str, **told: Any) -> None:
        self._marks.append((message, {**told, "mark": len(self._marks) + 1}))
        for hand in self._hands():
            hand.send(*self._marks[-1])


def _follows_trace(order: StageOrder) -> bool:
    return order.arrivals is not None and order.arrivals.law == "trace"
