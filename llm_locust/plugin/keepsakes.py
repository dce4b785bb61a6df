"""What a process keeps of single requests beside itself: arrival times, and raw answers of failures; never sent.

`--llm-save-arrivals` and `--llm-save-failures`. A disk that refuses is told once; the run goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from llm_locust.measure.finish import Samples
from llm_locust.measure.record import FAILURES, RequestRecord
from llm_locust.measure.timeline import Timeline
from llm_locust.outputs.samples import ArrivalsFile, FailureSamples

from .settings import Settings

logger = logging.getLogger(__name__)


class Keepsakes:
    """The files of one process and run, in the run's folder on its own machine."""

    def __init__(self, settings: Settings, run_id: str, worker: str) -> None:
        self._directory = Path(settings.out) / run_id
        self._told = False
        self._arrivals: ArrivalsFile | None = None
        self._failures = FailureSamples(self._directory, worker, settings.save_failures)
        if settings.save_arrivals:
            self._attempt(lambda: self._open_arrivals(run_id, worker))

    def _open_arrivals(self, run_id: str, worker: str) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._arrivals = ArrivalsFile(self._directory, run_id, worker)

    def add(self, record: RequestRecord, samples: Samples, timeline: Timeline) -> None:
        """Keep the arrivals of a request that has ended."""
        if self._arrivals is not None and timeline.first_ns is not None and record.ttft_ns is not None:
            start_ns = timeline.first_ns - record.ttft_ns
            at_ns, tokens = timeline.tokens(samples.streamed_tokens)
            self._arrivals.add(record.request_id, record.stage, (at_ns - start_ns).tolist(), tokens.tolist())

    def answer(self, record: RequestRecord, raw: bytes) -> None:
        """Keep the raw answer of a failed request, the first few per outcome."""
        if record.outcome in FAILURES and self._failures.wanted(record.outcome):
            self._attempt(lambda: self._failures.save(record.outcome, raw))

    def flush(self) -> None:
        """Write what came since the last flush."""
        if self._arrivals is not None:
            self._attempt(self._arrivals.flush)

    def close(self) -> None:
        """Write the rest."""
        if self._arrivals is not None:
            self._attempt(self._arrivals.close)

    def _attempt(self, write: Callable[[], object]) -> None:
        try:
            write()
        except OSError as error:
            if not self._told:
                self._told = True
                logger.error("llm-locust: %s cannot be written: %s", self._directory, error)
