"""This process as the conductor sees it (`load.crew.Crew`): the only worker of a local runner."""

from __future__ import annotations

from collections.abc import Callable

from llm_locust.load.arrivals import Weights
from llm_locust.load.deal import Dealer
from llm_locust.load.stage import StageOrder, Tally

from .crew import Asked, UserCounter
from .issuer import Issuer

LOCAL = "local"


class LocalCrew:
    """The crew of a local runner: the gate of this process."""

    def __init__(self, issuer: Issuer, runner: UserCounter, asking_users: Callable[[], int], asked: Asked) -> None:
        """`asking_users` counts those of the runner's users that ask a model."""
        self._issuer = issuer
        self._runner = runner
        self._asking_users = asking_users
        self.asked = asked
        self._dealer: Dealer | None = None
        self._number = -1

    def now_ns(self) -> int:
        """This process's clock."""
        return self._issuer.now_ns()

    def send_stage(self, order: StageOrder, requests: int | None) -> None:
        """Hand the stage to the gate, all of it."""
        if self._dealer is not None and self._number == order.number:
            self._dealer.amend(order)
        else:
            self._dealer = Dealer(order, self._weights(order.users), requests)
            self._number = order.number
        self._hand_over()

    def acked(self, number: int) -> bool:
        """A call is its own acknowledgement."""
        return self._number == number

    def open(self, at_ns: int, phase: str) -> None:
        """Open the gate, its shares by the users that are here."""
        assert self._dealer is not None
        self._dealer.deal_anew(self._weights(self._asking_users()))
        self._hand_over()
        self._issuer.open(at_ns, phase)

    def mark(self, label: str, phase: str, at_ns: int) -> None:
        """Mark a phase."""
        self._issuer.mark(label, phase, at_ns)

    def cut(self) -> None:
        """End what is in flight."""
        self._issuer.cut()

    def user_count(self) -> int:
        """Users that run."""
        return self._runner.user_count

    def tally(self, label: str) -> Tally | None:
        """The counters of a row."""
        return self._issuer.tally(label)

    def _hand_over(self) -> None:
        assert self._dealer is not None
        for order in self._dealer.orders():
            self._issuer.begin_stage(order)

    @staticmethod
    def _weights(users: int) -> Weights:
        return ((LOCAL, max(users, 1)),)
