"""The whole product under the benchmark: plain users, and what the proofs need beside the run's own files.

LLM_BENCH_ARRIVALS=FILE   at the end, every arrival of every request as instants of CLOCK_MONOTONIC, one JSON line each
LLM_BENCH_HOLD_MS=50      hold the hub on purpose, twice a second
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import gevent
from gevent import monkey
from locust import events
from locust.runners import MasterRunner

from llm_locust import LLMUser
from llm_locust.load.gate_types import Ticket
from llm_locust.measure.finish import Samples
from llm_locust.measure.record import RequestRecord
from llm_locust.measure.timeline import Timeline
from llm_locust.plugin.collector import Collector

ARRIVALS = os.environ.get("LLM_BENCH_ARRIVALS")
HOLD_MS = float(os.environ.get("LLM_BENCH_HOLD_MS", "0"))
HOLD_EVERY_S = 0.5

hold = monkey.get_original("time", "sleep")


class User(LLMUser):
    """Asks the run's prompts in the run's dialect."""


if ARRIVALS:
    file = Path(ARRIVALS)
    timelines: dict[int, tuple[Timeline, int]] = {}
    kept: list[tuple[str, str, int, Timeline]] = []
    really_opened, really_book = Collector.opened, Collector.book

    def opened(self: Collector, ticket: Ticket, name: str, timeline: Timeline, start_ns: int) -> None:
        """Keep the timeline of a request."""
        timelines[ticket.index] = (timeline, start_ns)
        really_opened(self, ticket, name, timeline, start_ns)

    def book(self: Collector, record: RequestRecord, samples: Samples) -> None:
        """Keep which request of the server's it was."""
        timeline, start_ns = timelines.pop(record.request_id)
        if timeline.first_ns is not None and record.ttft_ns is not None:
            start_ns = timeline.first_ns - record.ttft_ns
        kept.append((record.client_request_id, record.phase, start_ns, timeline))
        really_book(self, record, samples)

    Collector.opened, Collector.book = opened, book  # type: ignore[method-assign]

    @events.quit.add_listener
    def write_arrivals(**_: object) -> None:
        """Write them when the run is over."""
        with file.open("w") as lines:
            for request_id, phase, start_ns, timeline in kept:
                line = {"request_id": request_id, "phase": phase, "start_ns": start_ns}
                lines.write(json.dumps({**line, "arrivals_ns": timeline.since(0)[0].tolist()}) + "\n")


if HOLD_MS:

    @events.init.add_listener
    def hold_the_hub(environment: Any, **_: object) -> None:
        """Block every greenlet for a while, again and again, as a task with a long computation would."""
        if not isinstance(environment.runner, MasterRunner):
            gevent.spawn(hold_forever)

    def hold_forever() -> None:
        """Hold, and let others run."""
        while True:
            gevent.sleep(HOLD_EVERY_S)
            hold(HOLD_MS / 1000)
