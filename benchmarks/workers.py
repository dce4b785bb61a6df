"""Simulated workers: what a master of many machines hears, from one process.

    python -m benchmarks.workers --port 5557 --workers 200 --names 5 --tokens 200

Each speaks Locust's own worker protocol over a ZeroMQ socket of its own, and on it the suite's, by the suite's own
code: `plugin.worker.Worker`, the gate, the collector, the reports. Only the requests are made up: a user waits as long
as one would take and books a timeline of the usual form. It ends when the master says so.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from argparse import Namespace
from types import SimpleNamespace
from typing import Any, cast

import gevent
import numpy as np
from gevent.pool import Group
from locust import __version__ as locust_version
from locust.event import Events
from locust.exception import StopUser
from locust.rpc.protocol import Message
from locust.rpc.zmqrpc import Client
from locust.stats import RequestStats, setup_distributed_stats_event_listeners

from benchmarks import master_plan
from llm_locust.load.gate_types import Ticket
from llm_locust.measure.finish import Identity, finish_record
from llm_locust.measure.histogram import Histogram
from llm_locust.measure.judge import Answer, AskFacts
from llm_locust.measure.record import Outcome
from llm_locust.measure.timeline import Timeline
from llm_locust.plugin.collector import Collector
from llm_locust.plugin.issuer import Issuer
from llm_locust.plugin.listener_errors import ListenerErrors
from llm_locust.plugin.messages import RunOrder
from llm_locust.plugin.secrets import Secrets
from llm_locust.plugin.state import LLM
from llm_locust.plugin.worker import Worker
from llm_locust.prompts.source import StagePrompts
from llm_locust.protocol import get_dialect
from llm_locust.protocol.types import ANSWER, Usage
from llm_locust.wire.clock import get_clock
from llm_locust.wire.types import End, Exchange

HEARTBEAT_S = 1.0
REPORT_S = 3.0
USERS_WAIT_S = 0.1
LINGER_MS = 1000
"""How long last messages may take; the master may be gone."""
BYTES_A_TOKEN = 180
ARRIVALS = ((0, ANSWER),)
NS = 1_000_000_000


class Requests:
    """Makes up requests: `e2e_s` long with a jitter of a tenth, the first token after a tenth of that."""

    def __init__(self, names: int, tokens: int, e2e_s: float) -> None:
        self.names = [f"name-{number}" for number in range(names)]
        self.tokens = tokens
        self._e2e_ns = int(e2e_s * NS)
        self._random = np.random.default_rng(5)

    def timeline(self, start_ns: int) -> Timeline:
        """Return the arrivals of a request that starts now; the last ones lie ahead."""
        length_ns = self._e2e_ns * self._random.uniform(0.9, 1.1)
        gaps = self._random.gamma(16.0, size=self.tokens)
        gaps[0] = gaps.sum() / 9 * self._random.uniform(0.5, 1.5)
        made = Timeline()
        for at_ns in (start_ns + np.cumsum(gaps) / gaps.sum() * length_ns).astype(np.int64).tolist():
            made.add(ARRIVALS, at_ns)
        return made

    def answer(self, timeline: Timeline, start_ns: int) -> Answer:
        """Return how it ended: well."""
        reader = get_dialect("openai-chat").reader(stream=True)
        reader.usage = Usage(input_tokens=1024, output_tokens=self.tokens)
        reader.finish_reason, reader.terminal = "length", True
        first_ns, last_ns = timeline.first_ns, timeline.last_ns
        assert first_ns is not None
        assert last_ns is not None
        exchange = Exchange(
            start_ns=start_ns, sent_ns=start_ns + 90_000, headers_ns=first_ns - 40_000, end_ns=last_ns + 100_000,
            status=200, headers=[(b"content-type", b"text/event-stream")], end=End.COMPLETE, reads=self.tokens,
            stamped_reads=self.tokens, peer="127.0.0.1:30000",
        )  # fmt: skip
        return Answer(exchange, reader, timeline)


class State:
    """The suite's state of one worker, as far as `Worker` and `hello_of` ask it (`plugin.state.LLM`)."""

    def __init__(self) -> None:
        self.clock = get_clock()
        self.secrets = Secrets()
        self.user_classes = [master_plan.User]
        self.health = self
        self.worker = ""
        self.run_id = ""
        self.issuer: Issuer | None = None
        lags = Histogram()
        lags.fill(np.random.default_rng(6).gamma(2.0, 100_000, 150))
        self._lag = lags.encode()

    def start(self) -> None:
        """Measure no process: what a report says of one is made up."""

    def stop(self) -> None:
        """Nothing runs."""

    def take(self) -> dict[str, Any]:
        """Return what a report says of a process."""
        return {"cpu_percent": 60.0, "lag": self._lag, "clock_steps": 0, "timestamp_source": "kernel",
                "rss_bytes": 120_000_000, "pid": os.getpid()}  # fmt: skip

    def open_library(self, settings: object) -> Any:
        """Nobody asks for prompts."""
        return SimpleNamespace(differences=lambda *_: [])

    def begin_run(self, order: RunOrder, settings: object) -> None:
        """Take part in a run."""
        self.run_id = order.run_id
        collector = Collector(order.run_id, self.clock.now_ns, self.clock.offset_ns)
        self.issuer = Issuer(collector, self.clock.now_ns, Group(), _no_prompts)

    def end_run(self) -> None:
        """The run is over."""
        self.run_id, self.issuer = "", None


def _no_prompts(_: object) -> StagePrompts:
    """Nobody asks for them."""
    return cast(StagePrompts, None)


class User:
    """Somebody for the gate to know."""


class SimulatedWorker:
    """Locust's side of one worker (`runners.WorkerRunner`), with the suite's own `Worker` on it."""

    def __init__(self, port: int, number: int, requests: Requests) -> None:
        self.client_id = f"simulated_{number:04}"
        self.ended = gevent.event.Event()
        self.user_classes_count: dict[str, int] = {}
        self._client = Client("127.0.0.1", port, self.client_id)
        self._requests = requests
        self._handlers: dict[str, tuple[Any, bool]] = {}
        self._state = "ready"
        self._users: list[gevent.Greenlet] = []
        self._llm = State()
        self.stats = RequestStats()
        self.environment = SimpleNamespace(
            runner=self, events=Events(), parsed_options=Namespace(processes=None), user_classes=[master_plan.User],
            process_exit_code=None,
        )  # fmt: skip
        setup_distributed_stats_event_listeners(self.environment.events, self.stats)
        self.environment.events.report_to_master.add_listener(self._add_users)
        Worker(self.environment, cast(LLM, self._llm), ListenerErrors()).start()

    # ---- what the suite asks of a runner ----

    @property
    def user_count(self) -> int:
        """Users that run."""
        return sum(self.user_classes_count.values())

    def register_message(self, name: str, handler: Any, concurrent: bool = False) -> None:
        """Remember the handler of a message."""
        self._handlers[name] = (handler, concurrent)

    def send_message(self, name: str, data: Any = None, client_id: str | None = None) -> None:
        """Send to the master."""
        self._client.send(Message(name, data, self.client_id))

    def _send_stats(self) -> None:
        data: dict[str, Any] = {}
        self.environment.events.report_to_master.fire(client_id=self.client_id, data=data)
        self.send_message("stats", data)

    def quit(self) -> None:
        """End."""
        self.ended.set()

    # ---- Locust's own protocol ----

    def run(self, phase_s: float) -> None:
        """Work until the master ends it; reports begin after `phase_s`, so that workers do not report together."""
        self.send_message("client_ready", locust_version)
        loops = [gevent.spawn(self._listen), gevent.spawn(self._beat), gevent.spawn_later(phase_s, self._report)]
        self.ended.wait()
        gevent.killall([*loops, *self._users])
        self.send_message("quit")
        self._client.close(linger=LINGER_MS)

    def _beat(self) -> None:
        while True:
            usage = {"state": self._state, "current_cpu_usage": 60.0, "current_memory_usage": 120_000_000}
            self.send_message("heartbeat", usage)
            gevent.sleep(HEARTBEAT_S)

    def _report(self) -> None:
        while True:
            self._send_stats()
            gevent.sleep(REPORT_S)

    def _listen(self) -> None:
        while True:
            message = self._client.recv()
            handler, concurrent = self._handlers.get(message.type, (None, False))
            if handler is not None and concurrent:
                gevent.spawn(handler, environment=self.environment, msg=message)
            elif handler is not None:
                handler(environment=self.environment, msg=message)
            elif message.type == "spawn":
                self.send_message("spawning")
                self._set_users(message.data["user_classes_count"])
                told = {"user_classes_count": self.user_classes_count, "user_count": self.user_count}
                self.send_message("spawning_complete", told)
                self._state = "running"
            elif message.type == "stop":
                self._set_users({})
                self._state = "ready"
                self.send_message("client_stopped")
                self.send_message("client_ready", locust_version)
            elif message.type == "quit":
                self._send_stats()
                self.ended.set()

    def _set_users(self, wanted: dict[str, int]) -> None:
        self.user_classes_count = wanted
        for number in range(len(self._users), self.user_count):
            self._users.append(gevent.spawn(self._use, number))
        gevent.killall(self._users[self.user_count :])
        del self._users[self.user_count :]

    def _add_users(self, client_id: str, data: dict[str, Any]) -> None:
        data["user_classes_count"], data["user_count"] = self.user_classes_count, self.user_count

    # ---- users ----

    def _use(self, number: int) -> None:
        user = User()
        name = self._requests.names[number % len(self._requests.names)]
        while True:
            issuer = self._llm.issuer
            if issuer is None:
                gevent.sleep(USERS_WAIT_S)
                continue
            try:
                ticket = issuer.gate.admit(user)
            except StopUser:
                return
            self._ask(issuer, ticket, name)
            issuer.gate.finished(user, ticket, Outcome.OK)

    def _ask(self, issuer: Issuer, ticket: Ticket, name: str) -> None:
        """Book a request from its start to its end."""
        clock = self._llm.clock
        start_ns = clock.now_ns()
        timeline = self._requests.timeline(start_ns)
        last_ns = timeline.last_ns
        assert last_ns is not None
        issuer.collector.opened(ticket, name, timeline, start_ns)
        gevent.sleep((last_ns - start_ns) / NS)
        identity = Identity(
            run_id=issuer.run_id, worker=self._llm.worker, request_id=ticket.index, user_class="User", name=name,
            dialect="openai-chat", stage=ticket.stage, phase=ticket.phase, epoch_offset_ns=clock.offset_ns,
            endpoint="http://127.0.0.1:30000/v1/chat/completions", client_request_id=f"{self.client_id}-{ticket.index}",
        )  # fmt: skip
        asked = AskFacts(output_tokens=self._requests.tokens, input_tokens=1024)
        record, samples = finish_record(self._requests.answer(timeline, start_ns), asked, identity)
        issuer.collector.book(record, samples)
        self.stats.log_request("POST", name, round((record.e2e_ns or 0) / 1e6), self._requests.tokens * BYTES_A_TOKEN)


def main() -> int:
    """Run the workers until the master ends them all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--names", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=200, help="of a request")
    parser.add_argument("--e2e-s", type=float, default=4.0, help="how long a request takes")
    given = parser.parse_args()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    requests = Requests(given.names, given.tokens, given.e2e_s)
    workers = [SimulatedWorker(given.port, number, requests) for number in range(given.workers)]
    began_s = time.monotonic()
    running = [gevent.spawn(one.run, number * REPORT_S / given.workers) for number, one in enumerate(workers)]
    gevent.joinall(running)
    used = resource.getrusage(resource.RUSAGE_SELF)
    took_s = time.monotonic() - began_s
    print(f"{given.workers} workers, CPU {(used.ru_utime + used.ru_stime) / took_s:.0%} of a core", file=sys.stderr)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
