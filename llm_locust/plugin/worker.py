"""A worker's side of a run: it takes orders, reports, and hands in at the end.

What a worker must know before it issues comes in messages that it acknowledges. Its reports ride on Locust's own
(every 3 s); the counters that the conductor waits for are told once a second, and at once when they are final.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import gevent
import msgspec
from gevent.event import Event
from locust.exception import RPCError

from llm_locust.load.stage import DRAIN, StageOrder, Tally
from llm_locust.prompts.source import PromptError

from . import ahead, ctrl_c, messages, settings
from .checks import open_files_problem
from .collector import packed
from .drain import CTRL_C_S, SIGTERM_S, in_main_greenlet
from .listener_errors import ListenerErrors
from .membership import Membership
from .messages import Final, RunOrder, to_message
from .reports import REPORT_KEY, Outbox
from .state import LLM

logger = logging.getLogger(__name__)

TELL_EVERY_S = 1.0
HAND_IN_WAIT_S = 10.0
"""How long the last reports may take to be acknowledged; they go again after REPORT_AGAIN_S."""
REPORT_AGAIN_S = 1.0


class Worker:
    """The suite on one worker."""

    def __init__(self, environment: Any, llm: LLM, listener_errors: ListenerErrors) -> None:
        self._environment = environment
        self._runner = environment.runner
        self._llm = llm
        self._listener_errors = listener_errors
        self._membership = Membership(environment, llm, self._send, self._go_unwanted)
        self._sync = self._membership.sync
        self._acknowledged = Event()
        self._outbox = Outbox("")
        self._marks_seen = 0
        self._handed_in = True
        self._in_run = False  # until its account is on its way to the master
        self._final: Final | None = None
        self._draining = False
        self._told_drained: str | None = None
        self._telling: gevent.Greenlet | None = None

    # ---- life ----

    def start(self) -> None:
        """Register for messages and events, then join the master."""
        ahead.remember_defaults()
        handlers = {
            messages.RUN: (self._on_run, False),
            messages.STAGE: (self._on_stage, False),
            messages.OPEN: (self._on_open, False),
            messages.MARK: (self._on_mark, False),
            messages.ACK: (self._on_ack, False),
            messages.RESET: (self._on_reset, False),
            messages.CUT: (self._on_cut, True),
            messages.DRAIN: (self._on_drain, True),  # the loop that reads messages must go on reading heartbeats
        }
        for message, (handler, concurrent) in handlers.items():
            self._runner.register_message(message, handler, concurrent=concurrent)
        self._environment.events.report_to_master.add_listener(self._on_report)
        self._environment.events.quitting.add_listener(self._on_quitting)
        ctrl_c.install(self._ctrl_c_is_ours)
        self._llm.health.start()
        self._membership.start()
        self._telling = gevent.spawn(self._tell)

    def _ctrl_c_is_ours(self) -> bool:
        """Processes forked by --processes get the terminal's Ctrl-C too; during a run the master decides."""
        return not self._in_run or not self._environment.parsed_options.processes

    def _send(self, message: str, data: dict[str, Any]) -> None:
        try:
            self._runner.send_message(message, data)
        except RPCError as error:
            logger.warning("llm-locust: %s could not be sent: %s", message, error)

    # ---- what the master says ----

    def _on_run(self, environment: Any, msg: Any, **_: Any) -> None:
        order = msgspec.convert(msg.data, RunOrder)
        if self._llm.run_id == order.run_id and self._llm.issuer is not None:
            self._send(messages.READY, {"run": order.run_id, "problem": ""})
            return
        found, _problems = settings.from_raw(order.raw)
        found = msgspec.structs.replace(found, hosts=order.hosts)
        self._listener_errors.reset()
        problem = self._begin_run(order, found)
        if problem:
            self._llm.end_run()
            self._send(messages.READY, {"run": order.run_id, "problem": problem})
            return
        self._outbox = Outbox(order.run_id, order.part)
        self._marks_seen = 0
        self._handed_in = False
        self._in_run = True
        self._final = None
        self._draining = False
        self._told_drained = None
        self._send(messages.READY, {"run": order.run_id, "problem": ""})

    def _begin_run(self, order: RunOrder, found: settings.Settings) -> str:
        """Take part in the run; say what keeps this process from it, "" where nothing does."""
        if problem := open_files_problem(order.most_users):
            return problem
        try:
            if differences := self._llm.open_library(found).differences(order.datasets, self._environment.user_classes):
                return "; ".join(differences)
            self._llm.begin_run(order, found)
        except PromptError as error:
            return str(error)
        except Exception as error:  # the master would wait for an answer
            logger.exception("llm-locust: this worker cannot take part")
            return f"{type(error).__name__}: {error}"
        return ""

    def _on_stage(self, environment: Any, msg: Any, **_: Any) -> None:
        issuer = self._llm.issuer
        if issuer is None or self._handed_in:
            return
        order = StageOrder.from_message(msg.data["order"])
        if order.number != issuer.number:
            self._marks_seen = 0
        issuer.begin_stage(order)
        self._send(messages.STAGE_ACK, {"version": msg.data["version"]})

    def _on_open(self, environment: Any, msg: Any, **_: Any) -> None:
        if self._llm.issuer is None or self._handed_in or msg.data["mark"] <= self._marks_seen:
            return
        self._told_drained = None
        self._llm.issuer.open(self._sync.to_worker_ns(msg.data["at_ns"]), msg.data["phase"], msg.data["label"])
        self._marks_seen = msg.data["mark"]

    def _on_mark(self, environment: Any, msg: Any, **_: Any) -> None:
        if self._llm.issuer is None or self._handed_in or msg.data["mark"] <= self._marks_seen:
            return
        self._llm.issuer.mark(msg.data["label"], msg.data["phase"], self._sync.to_worker_ns(msg.data["at_ns"]))
        self._marks_seen = msg.data["mark"]

    def _on_ack(self, environment: Any, msg: Any, **_: Any) -> None:
        self._outbox.acknowledge(msg.data["run"], msg.data["part"], msg.data["seq"])
        self._acknowledged.set()

    def _on_reset(self, environment: Any, msg: Any, **_: Any) -> None:
        if msg.data["run"] != self._outbox.run_id or self._llm.issuer is None:
            return
        self._llm.issuer.reset()
        self._llm.health.take()
        self._outbox.next_part(msg.data["part"])

    def _on_cut(self, environment: Any, msg: Any, **_: Any) -> None:
        if self._llm.issuer is not None:
            self._llm.issuer.cut()

    def _on_drain(self, environment: Any, msg: Any, **_: Any) -> None:
        if msg.data["run"] != self._outbox.run_id:
            return
        if self._final is not None:
            self._send(messages.FINAL, to_message(self._final))  # asked again: the first one did not arrive
        elif not self._draining:
            self._draining = True
            self._drain(msg.data["limit_s"])

    def _drain(self, limit_s: float) -> None:
        """Let streams end, cut what is left at the limit, and hand in; once."""
        issuer = self._llm.issuer
        if issuer is None or self._handed_in:
            return
        self._tell_once()
        if not issuer.drain(limit_s):
            issuer.cut()
        self._hand_in()

    def _hand_in(self) -> None:
        """Send what is left, wait for its acknowledgement, then say what it was in all."""
        issuer = self._llm.issuer
        assert issuer is not None
        if self._handed_in:
            return
        self._handed_in = True
        issuer.settle()
        self._tell_once()
        self._fill_outbox()
        with gevent.Timeout(HAND_IN_WAIT_S, False):
            while len(self._outbox):
                self._acknowledged.clear()
                self._report_now()
                self._acknowledged.wait(REPORT_AGAIN_S)
        final = Final(
            run_id=self._outbox.run_id,
            part=self._outbox.part,
            last_seq=self._outbox.last_seq,
            totals=issuer.collector.totals(),
            in_flight=issuer.collector.in_flight,
            listener_errors=self._listener_errors.count,
        )
        self._report_now()  # Locust's own numbers
        self._send(messages.FINAL, to_message(final))
        self._final = final
        self._in_run = False
        self._llm.end_run()

    # ---- what the worker tells ----

    def _on_report(self, client_id: str, data: dict[str, Any], **_: Any) -> None:
        """Add ours to Locust's report; whatever was not acknowledged goes again."""
        issuer = self._llm.issuer
        if issuer is None:
            return
        if not self._handed_in:
            issuer.tallies()
            issuer.collector.harvest()
            self._fill_outbox()
            self._tell_once()  # never older than the records: of a lost worker it tells what was not reported
        message = self._outbox.message()
        if message is not None:
            data[REPORT_KEY] = message

    def _fill_outbox(self) -> None:
        """Take what is new as deltas; each report has one at least, for the health of the process."""
        issuer = self._llm.issuer
        assert issuer is not None
        deltas = issuer.collector.take_deltas() or [{"numbers": None, "rows": packed([])}]
        deltas[-1].update(
            health=self._llm.health.take(),
            totals=issuer.collector.totals(),
            in_flight=issuer.collector.in_flight,
            stage=issuer.label,
            harvested_epoch_s=issuer.collector.harvested_epoch_s,
            clock=[self._sync.offset_ns, self._sync.uncertainty_ns],
        )
        for delta in deltas:
            self._outbox.add(delta)

    def _report_now(self) -> None:
        try:
            self._runner._send_stats()  # Locust has no public name for "report now" (2.47)
        except RPCError as error:
            logger.warning("llm-locust: a report could not be sent and goes again: %s", error)

    def _tell(self) -> None:
        """Tell the conductor's counters once a second, and within 50 ms when everything has drained."""
        while True:
            self._tell_once()
            for _ in range(int(TELL_EVERY_S / 0.05)):
                gevent.sleep(0.05)
                if self._newly_drained():
                    break

    def _newly_drained(self) -> bool:
        issuer = self._llm.issuer
        if issuer is None or self._handed_in or not issuer.gate.drained or self._told_drained == issuer.label:
            return False
        if issuer.phase == DRAIN:
            self._told_drained = issuer.label
            return True
        return False

    def _tell_once(self) -> None:
        issuer = self._llm.issuer
        if issuer is None or not issuer.label:
            return
        now_ns = self._llm.clock.now_ns()
        tallies = [self._in_master_time(tally) for tally in issuer.tallies()]
        told = {
            "run": issuer.run_id,
            "tallies": msgspec.to_builtins(tallies),
            "marks": self._marks_seen,
            "in_flight": issuer.gate.in_flight,
            "users": self._runner.user_count,
            "at_ns": now_ns + self._sync.offset_ns,
        }
        self._send(messages.TALLY, told)

    def _in_master_time(self, tally: Tally) -> Tally:
        if tally.last_steady_end_ns is None:
            return tally
        return msgspec.structs.replace(tally, last_steady_end_ns=tally.last_steady_end_ns + self._sync.offset_ns)

    # ---- a worker that is ended itself ----

    def _go_unwanted(self) -> None:
        """End at once, in the middle of a run too: its numbers have no place, and its requests load a server."""
        issuer = self._llm.issuer
        if issuer is not None and not self._handed_in:
            self._handed_in = True
            issuer.cut()
            self._llm.end_run()
            self._in_run = False
        self._runner.quit()

    def _on_quitting(self, environment: Any, **_: Any) -> None:
        """Ctrl-C or SIGTERM at this worker: its streams may end, its numbers are handed in, then it goes."""
        self._membership.stop()
        if self._telling is not None:
            self._telling.kill(block=False)
        issuer = self._llm.issuer
        if issuer is not None and not self._handed_in:
            limit_s = CTRL_C_S if in_main_greenlet() else SIGTERM_S
            streams = issuer.gate.in_flight
            if streams:
                said = f"llm-locust: {streams} streams have {limit_s:.0f} s to end; Ctrl-C ends them at once"
                print(said, file=sys.stderr)
            try:
                self._drain(limit_s)
            except KeyboardInterrupt:
                issuer.cut()
                self._hand_in()
        self._llm.health.stop()
