"""The workers of a master in a run: they are told of it, looked after, waited for, and missed.

One `Account` per worker and run. A worker is lost when Locust has missed its heartbeats, or when it went
without handing in; it is named with the time of its last report and the streams that it had open.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from math import ceil
from typing import Any

import gevent
import msgspec

from llm_locust.load.stage import StageOrder, Tally
from llm_locust.measure.aggregate import Aggregate
from llm_locust.measure.record import RequestRecord
from llm_locust.outputs import WorkerFacts
from llm_locust.outputs.live import WorkerNow
from llm_locust.prompts.source import StagePrompts
from llm_locust.wire.clock import clock_identity

from . import messages
from .account import Account
from .books import Books
from .crew import Asked, MasterCrew
from .health import HealthBooks
from .messages import Final, RunOrder
from .reports import REPORT_KEY
from .roster import Roster
from .state import LLM

logger = logging.getLogger(__name__)

READY_WAIT_S = 10.0
ASK_AGAIN_S = 5.0


class MasterTeam:
    """The workers of a master, for one run after another (`team.Team`)."""

    def __init__(self, environment: Any, llm: LLM, now_s: Callable[[], float], asked: Asked) -> None:
        self._runner = environment.runner
        self._environment = environment
        self._llm = llm
        self._now_s = now_s
        self._clock_identity = clock_identity()
        self._asked = asked
        self._roster = Roster(environment, llm, now_s)
        self._accounts = self._roster.accounts
        self._order: RunOrder | None = None
        self._started_s = 0.0
        self._draining = False
        self._beginning = False
        self._drain_ends_s = self._asked_s = 0.0
        self._books = Books()
        self.users_replaced = True
        self.crew = self._new_crew()

    def start(self) -> None:
        """Register for messages and events."""
        for message, handler in {
            messages.HELLO: self._on_hello,
            messages.CLOCK: self._on_clock,
            messages.READY: self._on_ready,
            messages.STAGE_ACK: self._on_stage_ack,
            messages.TALLY: self._on_tally,
            messages.FINAL: self._on_final,
        }.items():
            self._runner.register_message(message, handler)
        self._environment.events.worker_report.add_listener(self._on_report)

    # ---- the run ----

    def begin(self, order: RunOrder) -> list[str]:
        """Tell every worker of the run and wait until each is ready; return what keeps the run from starting."""
        self._order = order
        self._beginning = True
        self._started_s = self._now_s()
        self._draining = False
        self._books.reset()
        self.users_replaced = True
        self.crew = self._new_crew()
        self._roster.begin_run()
        for account in self._accounts.values():
            account.begin_run(order.run_id, order.part)
            account.offer_run(self._share_of(order))
        with gevent.Timeout(READY_WAIT_S, False):
            while not self._all_answered():
                gevent.sleep(0.02)
        self._beginning = False
        waiting = [account for account in self._accounts.values() if not account.answered]
        late = [account.name for account in waiting] + self._roster.strangers()
        if late:
            logger.warning("llm-locust: not ready after %.0f s: %s", READY_WAIT_S, ", ".join(late))
        problems = [f"{account.name}: {account.problem}" for account in self._accounts.values() if account.problem]
        return problems if problems or self.live() else ["no worker takes part"]

    def _share_of(self, order: RunOrder) -> RunOrder:
        """The order as one of the workers gets it: the users are dealt evenly."""
        workers = sum(not account.gone for account in self._accounts.values())
        return msgspec.structs.replace(order, most_users=ceil(order.most_users / max(workers, 1)))

    def _all_answered(self) -> bool:
        """Whether every worker that Locust knows has said hello and can take part, or has said why not."""
        return not self._roster.strangers() and all(account.answered for account in self._accounts.values())

    def reset(self, part: int) -> None:
        """All numbers start again, here and on every worker."""
        assert self._order is not None
        self._order = msgspec.structs.replace(self._order, part=part)
        self._books.reset()
        for account in self._accounts.values():
            account.inbox.next_part(part)
            account.totals = Counter()
            account.send(messages.RESET, {"run": self._order.run_id, "part": part})

    def watch(self) -> None:
        """Look for workers that are gone or hang, and let the shares follow the users; called twice a second."""
        self._roster.watch()
        order = None if self._order is None or self._draining else self._share_of(self._order)
        for account in self._accounts.values():
            if order is not None:
                account.offer_run(order)
            if account.ready and account.final is None and account.lost_s is None and (account.gone or account.hung):
                self._lose(account)
            elif account.lost_s is not None and account.final is None and not account.gone and not account.hung:
                account.came_back(self._now_s() - self._started_s, self._started_s)
                logger.warning("llm-locust: %s", account.absences[-1])
                self.crew.returned(account)
            elif account.final is not None and account.gone and account.left_s is None and not self._draining:
                self._let_go(account)
        for label, count in self.crew.take_unissued().items():
            self._books.count_unissued(label, count)
        if not self._draining:
            self._roster.mend()
            self.users_replaced = self.users_replaced or self._runner.user_count >= self._runner.target_user_count > 0
            self.crew.follow_users()

    def _lose(self, account: Account) -> None:
        """A worker is gone, or does not answer: nobody waits for it, others take its users and its shares."""
        account.lost_s = self._now_s()
        account.lost_how = "lost" if account.gone else "does not answer"
        logger.warning("llm-locust: %s", account.lost_sentence(self._started_s))
        self.users_replaced = False
        self.crew.lost(account)
        if not account.gone and not self._draining:  # Locust itself takes those whose heartbeats fail
            self._roster.dismiss(account.client_id)

    def _let_go(self, account: Account) -> None:
        """A worker was ended by itself, and has handed in: nothing is missing, and others take over."""
        account.left_s = self._now_s()
        logger.warning("llm-locust: %s", account.left_sentence(self._started_s))
        self.crew.lost(account)

    def live(self) -> list[Account]:
        """The workers that take part, are there and answer."""
        return [
            account
            for account in self._accounts.values()
            if account.ready and account.lost_s is None and not account.gone
        ]

    def deserted(self) -> bool:
        """Whether all that took part in the run are lost, or have left it."""
        took_part = [account for account in self._accounts.values() if account.ready]
        return bool(took_part) and all(
            account.lost_s is not None or account.left_s is not None for account in took_part
        )

    # ---- the drain (`drain.Drainable`) ----

    def close(self, limit_s: float) -> None:
        """Tell every worker to end its streams and to hand in."""
        self._draining = True
        self._drain_ends_s = self._now_s() + limit_s
        self._ask_to_hand_in()

    def _ask_to_hand_in(self) -> None:
        assert self._order is not None
        self._asked_s = self._now_s()
        told = {"run": self._order.run_id, "limit_s": max(self._drain_ends_s - self._asked_s, 0.0)}
        for account in self._accounts.values():
            if account.final is None:
                account.send(messages.DRAIN, told)

    def cut(self) -> None:
        """End what is in flight at once."""
        self.crew.cut()

    def handed_in(self) -> bool:
        """Whether every worker that takes part has handed in, or is lost."""
        self.watch()
        if self._now_s() - self._asked_s >= ASK_AGAIN_S:
            self._ask_to_hand_in()
        return not self.owing()

    def owing(self) -> tuple[str, ...]:
        """The workers that have not handed in, and are neither lost nor silent."""
        return tuple(account.name for account in self.live() if account.final is None)

    def in_flight(self) -> int:
        """Open streams, as the workers told last."""
        return sum(account.in_flight for account in self.live() if account.final is None)

    # ---- what the outputs take ----

    @property
    def numbers(self) -> Aggregate:
        """The numbers of the run."""
        return self._books.numbers

    @property
    def health(self) -> HealthBooks:
        """How well the workers kept time."""
        return self._books.health

    def settle(self) -> None:
        """Nothing to do: the workers harvest."""

    def take_rows(self, most: int | None = None) -> list[RequestRecord]:
        """The oldest records that were not taken yet, at most so many."""
        return self._books.take_rows(most)

    def complete_before_epoch_s(self) -> int | None:
        """Every live worker has reported all seconds before this one; None: not yet known."""
        told = [account.harvested_epoch_s for account in self.live() if account.final is None]
        return min(told, default=None)

    def facts(self) -> tuple[WorkerFacts, ...]:
        """What the summary says of the workers."""
        return tuple(account.facts() for account in self._accounts.values() if account.ready)

    def workers_now(self) -> tuple[WorkerNow, ...]:
        """What the page shows of the workers."""
        now_s = self._now_s()
        return tuple(
            account.now(now_s, self.health.latest.get(account.name, {}))
            for account in self._accounts.values()
            if account.ready
        )

    def listener_errors(self) -> int:
        """Exceptions of listeners on the workers."""
        return sum(account.final.listener_errors for account in self._accounts.values() if account.final is not None)

    # ---- what the verdict asks ----

    def reports_missing(self) -> int:
        """Reports that were sent and never came."""
        return sum(account.inbox.gaps for account in self._accounts.values())

    def lost(self) -> tuple[str, ...]:
        """What is to be said of each lost worker, and of those that were out of sight for a time."""
        accounts = self._accounts.values()
        lost = [account.lost_sentence(self._started_s) for account in accounts if account.lost_s is not None]
        return (*lost, *(sentence for account in accounts for sentence in account.absences))

    def sent_away(self) -> tuple[str, ...]:
        """What is to be said of workers that did not belong to the run, or left it before its end."""
        left = [
            account.left_sentence(self._started_s) for account in self._accounts.values() if account.left_s is not None
        ]
        return (*self._roster.sent_away(), *left)

    def clock_uncertainty_ms(self) -> float | None:
        """The least certain clock offset of a worker; between processes of one machine there is one clock."""
        known = [a.clock_uncertainty_ns for a in self._accounts.values() if a.clock_uncertainty_ns is not None]
        return max(known) / 1e6 if known else None

    def differences(self) -> tuple[str, ...]:
        """Where the totals of workers and master differ, and who did not hand in; to be asked after the drain."""
        return self._books.differences(self._accounts.values())

    # ---- messages ----

    def _on_hello(self, environment: Any, msg: Any, **_: Any) -> None:
        account = self._roster.greet(msg.node_id, msg.data)
        if account is not None and self._order is not None and not self._draining:
            account.begin_run(self._order.run_id, self._order.part)
            account.offer_run(self._share_of(self._order))

    def _on_clock(self, environment: Any, msg: Any, **_: Any) -> None:
        answer = {
            "sent_ns": msg.data["sent_ns"],
            "master_ns": self._llm.clock.now_ns(),
            "identity": self._clock_identity,
        }
        self._runner.send_message(messages.CLOCK, answer, msg.node_id)

    def _on_ready(self, environment: Any, msg: Any, **_: Any) -> None:
        account = self._of_run(msg, msg.data["run"])
        if account is None:
            return
        account.problem = msg.data["problem"]
        if account.problem:
            if not self._beginning:  # the run goes on without a worker that joined and cannot take part
                self._roster.refuse(msg.node_id, account.name, account.problem)
        elif not account.ready:
            account.ready = True
            account.owed.pop(messages.RUN, None)
            self.crew.welcome(account)

    def _on_stage_ack(self, environment: Any, msg: Any, **_: Any) -> None:
        account = self._accounts.get(msg.node_id)
        if account is not None:
            account.acknowledged(msg.data["version"])

    def _on_tally(self, environment: Any, msg: Any, **_: Any) -> None:
        account = self._of_run(msg, msg.data["run"])
        if account is None:
            return
        account.streams(msg.data["in_flight"])
        account.marks_seen = msg.data["marks"]
        account.told_ns = msg.data["at_ns"]
        account.tallies.update({tally["label"]: Tally.from_message(tally) for tally in msg.data["tallies"]})

    def _on_final(self, environment: Any, msg: Any, **_: Any) -> None:
        final = msgspec.convert(msg.data, Final)
        account = self._of_run(msg, final.run_id)
        if account is not None and final.part == account.inbox.part:
            account.final = final
            account.in_flight = final.in_flight
            account.inbox.close(final.last_seq)

    def _on_report(self, client_id: str, data: dict[str, Any], **_: Any) -> None:
        message = data.pop(REPORT_KEY, None)
        account = self._accounts.get(client_id)
        if message is None or account is None:
            return
        for delta in account.inbox.take(message):
            self._books.add(account, delta, self._now_s())
        if message["run"] == account.inbox.run_id:
            answer = {"run": message["run"], "part": message["part"], "seq": account.inbox.applied}
            account.send(messages.ACK, answer)

    def _of_run(self, msg: Any, run_id: str) -> Account | None:
        """The sender's account, if it speaks of the run that is on."""
        account = self._accounts.get(msg.node_id)
        if account is None:
            self._roster.unknown(msg.node_id, run_id)
            return None
        account.heard_s = self._now_s()
        return account if account.inbox.run_id == run_id else None

    def _new_crew(self) -> MasterCrew:
        return MasterCrew(self.live, self._runner, self._llm.clock.now_ns, self._asked, self._stage_prompts)

    def _stage_prompts(self, order: StageOrder) -> StagePrompts:
        """The prompts of a stage, as the workers have them."""
        return self._llm.library_for(self._llm.settings).of_stage(order)
