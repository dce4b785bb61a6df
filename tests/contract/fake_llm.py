"""A locustfile whose users book streams without a server: what master, workers and files make of them is under test.

FAKE_STREAM_S: length of a stream. FAKE_FAIL=1: every request fails. FAKE_OPEN_FILES: as many as this process may open.
"""

from __future__ import annotations

import os
import resource
from typing import Any

import gevent
from locust import constant, task

from llm_locust.load.gate_types import Ticket
from llm_locust.load.users import LLMUser
from llm_locust.measure.finish import Samples
from llm_locust.measure.record import Outcome, RequestRecord
from llm_locust.measure.timeline import Timeline
from llm_locust.protocol.types import ANSWER
from llm_locust.wire.clock import get_clock

STREAM_S = float(os.environ.get("FAKE_STREAM_S", "0.5"))
FAILS = os.environ.get("FAKE_FAIL") == "1"
TOKENS = 10
if "FAKE_OPEN_FILES" in os.environ:  # after Locust has raised its own limit
    resource.setrlimit(resource.RLIMIT_NOFILE, (int(os.environ["FAKE_OPEN_FILES"]),) * 2)


class FakeUser(LLMUser):
    """Streams TOKENS tokens over STREAM_S, and books them as the client does."""

    host = "http://127.0.0.1:1"
    wait_time = constant(0)
    in_flight = False

    @task
    def stream(self) -> None:
        here, clock = self.environment.llm, get_clock()
        ticket = here.gate.admit(self)
        timeline, start_ns = Timeline(), clock.now_ns()
        here.collector.opened(ticket, "/fake", timeline, start_ns)
        os.write(1, b"fake stream begins\n")  # whole, whichever process else writes
        outcome = Outcome.HTTP_ERROR if FAILS else Outcome.OK
        try:
            for _ in range(TOKENS):
                gevent.sleep(STREAM_S / TOKENS)
                if not FAILS:
                    timeline.add(((0, ANSWER),), clock.now_ns())
        except gevent.GreenletExit:
            outcome = Outcome.UNFINISHED
            raise
        finally:
            self._book(here, ticket, timeline, start_ns, outcome)
            here.gate.finished(self, ticket, outcome)

    def _book(self, here: Any, ticket: Ticket, timeline: Timeline, start_ns: int, outcome: Outcome) -> None:
        end_ns = get_clock().now_ns()
        found = timeline.analyse(1)
        seen = len(timeline)
        record = RequestRecord(
            run_id=here.run_id,
            worker=here.worker,
            request_id=ticket.index,
            user_class=type(self).__name__,
            name="/fake",
            dialect="fake",
            stage=ticket.stage,
            phase=ticket.phase,
            start_epoch_ns=start_ns + get_clock().offset_ns,
            ttft_ns=None if found.first_ns is None else found.first_ns - start_ns,
            e2e_ns=None if found.last_ns is None else found.last_ns - start_ns,
            stream_end_ns=end_ns - start_ns,
            output_tokens=seen or None,
            output_tokens_source="usage" if seen else None,
            chunks=seen,
            reads=seen,
            outcome=outcome,
            timestamp_source="kernel" if seen else None,
        )
        here.collector.book(record, Samples(found.gaps_ns, found.gaps_ns, seen or None))
        if outcome is not Outcome.UNFINISHED:
            failed = outcome is not Outcome.OK
            self.environment.events.request.fire(
                request_type="SSE",
                name="/fake",
                response_time=(end_ns - start_ns) / 1e6,
                response_length=0,
                exception=Exception(outcome.value) if failed else None,
                context={},
            )
