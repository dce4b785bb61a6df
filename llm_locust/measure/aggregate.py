"""All numbers of a run, or of one worker since its last report, in mergeable cells.

Knows no I/O, no clock and no Locust. Its size and cost do not depend on the number of tokens:

- `cells`: latencies and outcomes, keyed by the stage and phase in which a request *started*;
- `windows`: rates, keyed by the stage and phase in which things *happened* (the ledger books them);
- `seconds`: the timeline, by epoch second, dropped once handed out;
- numbers in flight and starts by second, folded into peaks and gap statistics once their second is handed out.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from llm_locust.measure.finish import Samples, is_broken
from llm_locust.measure.gaps import GapStatistics
from llm_locust.measure.metrics import LATENCIES
from llm_locust.measure.record import FAILURES, Outcome, RequestRecord
from llm_locust.measure.seconds import SecondRow, SecondRows
from llm_locust.measure.tally import Tally

Key = tuple[str, str, str]
"""(stage, name, phase). The name "" holds what belongs to a stage as a whole."""
StartsKey = tuple[str, str]
"""(stage, phase)."""

Delta = list[Any]
"""Everything since the last one, as builtins: [cells, windows, seconds, in flight, starts]."""

_K = TypeVar("_K")

STAGE_WIDE = ""
FINISH_REASONS_LIMIT = 50
"""Raw finish reasons kept apart per cell; a server that invents more gets them counted as `(other)`."""

_SAMPLED = tuple((metric.name, metric.field) for metric in LATENCIES if metric.field is not None)


class Aggregate:
    """Takes records on a worker, deltas on a master; the same class on both, and alone in a local run."""

    def __init__(self) -> None:
        self.cells: dict[Key, Tally] = {}
        self.windows: dict[Key, Tally] = {}
        self.seconds: dict[int, Tally] = {}
        self.in_flight: dict[Key, dict[int, int]] = {}
        self.starts: dict[StartsKey, dict[int, array[int]]] = {}
        self.peaks: dict[Key, int] = {}
        self.gap_statistics: dict[StartsKey, GapStatistics] = {}
        self.changes: Counter[tuple[str, str]] = Counter()
        """How often each (stage, phase) changed: what was computed from an unchanged one still holds."""
        self.computed: dict[tuple[str, str], Any] = {}
        """The snapshot's own place for what it computed; emptied by `reset`."""
        self._second_rows = SecondRows()
        self._handed: Counter[str] = Counter()

    def add(self, record: RequestRecord, samples: Samples) -> None:
        """Book an ended request under the stage and phase in which it started."""
        cell = self._cell((record.stage, record.name, record.phase))
        counts = cell.counts
        counts[f"outcome:{record.outcome.value}"] += 1
        counts["chunks"] += record.chunks
        counts["late"] += record.late_tokens
        counts["bundled"] += record.bundled_tokens
        counts["clock_steps"] += record.clock_step
        counts["repeated"] += samples.prompt_repeated
        if record.finish_reason is not None:
            counts[_finish_key(counts, record.finish_reason)] += 1
        if record.output_tokens_source is not None:
            counts[f"source:{record.output_tokens_source}"] += 1
        if record.timestamp_source is not None:
            counts[f"stamp:{record.timestamp_source}"] += 1
        if record.slo_good is not None:
            counts["slo_judged"] += 1
            counts["slo_good"] += record.slo_good
        if record.scheduled_epoch_ns is not None:
            counts["scheduled"] += 1
        cell.low("start", record.start_epoch_ns)
        cell.high("end", record.start_epoch_ns + _duration_ns(record))
        broken = is_broken(record)
        counts["broken"] += broken
        if record.outcome is Outcome.OK:
            _add_ok_counts(cell, record, samples)
            if not broken:
                _add_ok_samples(cell, record, samples)
        elif record.outcome in FAILURES and not broken:
            cell.sample("failed_ms", record.stream_end_ns)
            cell.sample("failed_ttft_ms", record.ttft_ns)

    def count(self, stage: str, phase: str, key: str, n: int = 1) -> None:
        """Count what belongs to a stage as a whole: arrivals_due, arrivals_started, unissued, backoff_ns."""
        self._cell((stage, STAGE_WIDE, phase)).counts[key] += n

    def add_unstarted(self, stage: str, phase: str, waits_ns: Sequence[int], missed: int = 0) -> None:
        """Book arrivals dropped at the stage's stop with the wait they had; `missed` are already over an SLO limit."""
        cell = self._cell((stage, STAGE_WIDE, phase))
        cell.counts["arrivals_unstarted"] += len(waits_ns)
        cell.counts["slo_judged"] += missed
        cell.samples("unstarted_wait_ms", np.asarray(waits_ns, np.int64))

    def window(self, stage: str, name: str, phase: str) -> Tally:
        """Return the window of this key, a new one where there was none.

        The stage-wide one has observed_ns and, from the gate, cap_reached_ns and backlog_max.
        """
        self.changes[stage, phase] += 1
        return _tally(self.windows, (stage, name, phase))

    def second(self, epoch_s: int) -> Tally:
        """Return the second's cell; one that was handed out already collects what came late."""
        return _tally(self.seconds, epoch_s)

    def raise_in_flight(self, key: Key, epoch_s: int, by: int) -> None:
        """Raise the highest number in flight of a second; each worker raises its own from 0, so they add up."""
        self.changes[key[0], key[2]] += 1
        values = self.in_flight.setdefault(key, {})
        values[epoch_s] = values.get(epoch_s, 0) + by

    def add_starts(self, stage: str, phase: str, epoch_s: int, offsets_us: Sequence[int]) -> None:
        """Note when, within a second, requests started."""
        self.changes[stage, phase] += 1
        self.starts.setdefault((stage, phase), {}).setdefault(epoch_s, array("I")).extend(offsets_us)

    def take_delta(self) -> Delta:
        """Return everything since the last call as builtins, and start empty. Called on workers only."""
        self._handed.update(self._contents())
        delta = self.encode()
        self._clear()
        return delta

    def encode(self) -> Delta:
        """Return the contents as builtins, in one order for equal contents."""
        return [
            [[*key, cell.encode()] for key, cell in sorted(self.cells.items()) if cell],
            [[*key, window.encode()] for key, window in sorted(self.windows.items()) if window],
            [[epoch_s, second.encode()] for epoch_s, second in sorted(self.seconds.items()) if second],
            [[*key, *_columns(values)] for key, values in sorted(self.in_flight.items())],
            [
                [*key, [[epoch_s, np.sort(np.array(us, "<u4")).tobytes()] for epoch_s, us in sorted(seconds.items())]]
                for key, seconds in sorted(self.starts.items())
            ],
        ]

    def merge(self, delta: Delta) -> None:
        """Add what a worker handed in; in any order, each delta once."""
        cells, windows, seconds, in_flight, starts = delta
        for stage, name, phase, encoded in cells:
            self._cell((stage, name, phase)).merge_encoded(encoded)
        for stage, name, phase, encoded in windows:
            self.window(stage, name, phase).merge_encoded(encoded)
        for epoch_s, encoded in seconds:
            self.second(epoch_s).merge_encoded(encoded)
        for stage, name, phase, epochs_s, values in in_flight:
            for epoch_s, value in zip(epochs_s, values, strict=True):
                self.raise_in_flight((stage, name, phase), epoch_s, value)
        for stage, phase, by_second in starts:
            for epoch_s, offsets in by_second:
                self.add_starts(stage, phase, epoch_s, np.frombuffer(offsets, "<u4").tolist())

    def totals(self) -> dict[str, int]:
        """Return all that was ever booked here, for comparing workers with their master: sums must be equal."""
        return dict(sorted((self._handed + self._contents()).items()))

    def pop_seconds(self, before_epoch_s: int) -> list[SecondRow]:
        """Hand out the seconds before this one, each once and without gaps, and drop them."""
        rows = self._second_rows.pop(self.seconds, before_epoch_s)
        for key, values in self.in_flight.items():
            for epoch_s in [second for second in values if second < before_epoch_s]:
                self.peaks[key] = max(self.peaks.get(key, 0), values.pop(epoch_s))
        for starts_key, by_second in self.starts.items():
            statistics = self.gap_statistics.setdefault(starts_key, GapStatistics())
            for epoch_s in sorted(second for second in by_second if second < before_epoch_s):
                statistics.add_second(epoch_s, by_second.pop(epoch_s))
        return rows

    def peak(self, key: Key) -> int | None:
        """Return the most requests in flight; None where there never was one."""
        values = [*self.in_flight.get(key, {}).values()]
        if key in self.peaks:
            values.append(self.peaks[key])
        return max(values, default=None)

    def gaps(self, stage: str, phase: str) -> GapStatistics:
        """Return the gaps between the starts of a stage and phase, those not yet folded included."""
        statistics = self.gap_statistics.get((stage, phase), GapStatistics()).copy()
        for epoch_s, offsets_us in sorted(self.starts.get((stage, phase), {}).items()):
            statistics.add_second(epoch_s, offsets_us)
        return statistics

    def reset(self) -> None:
        """Forget everything: all numbers start again."""
        self._clear()
        self._handed.clear()
        self.peaks.clear()
        self.gap_statistics.clear()
        self.changes.clear()
        self.computed.clear()
        self._second_rows = SecondRows()

    def _cell(self, key: Key) -> Tally:
        self.changes[key[0], key[2]] += 1
        return _tally(self.cells, key)

    def _clear(self) -> None:
        self.cells.clear()
        self.windows.clear()
        self.seconds.clear()
        self.in_flight.clear()
        self.starts.clear()

    def _contents(self) -> Counter[str]:
        sums: Counter[str] = Counter()
        for kind, tallies in (("cell", self.cells), ("window", self.windows)):
            for tally in tallies.values():
                for key, n in tally.counts.items():
                    sums[f"{kind}:{key}"] += n
                for key, histogram in tally.histograms.items():
                    sums[f"{kind}:{key}:samples"] += histogram.count
                    sums[f"{kind}:{key}:sum"] += histogram.total
        return sums


def _tally(tallies: dict[_K, Tally], key: _K) -> Tally:
    found = tallies.get(key)
    if found is None:
        found = tallies[key] = Tally()
    return found


def _add_ok_counts(cell: Tally, record: RequestRecord, samples: Samples) -> None:
    """Count what a summary says of ok requests."""
    counts = cell.counts
    counts[f"ok:source:{record.output_tokens_source}"] += 1
    counts["ok:bursts"] += record.burst
    counts["ok:upper_bounds"] += record.ttft_upper_bound
    counts["ok:chunks"] += record.chunks
    if record.chunks and samples.streamed_tokens is not None:
        counts["ok:streamed_tokens"] += samples.streamed_tokens
    _sum(cell, "output_tokens", record.output_tokens)
    _sum(cell, "output_tokens_requested", record.output_tokens_requested)
    _sum(cell, "input_tokens", record.input_tokens)
    _sum(cell, "input_tokens_requested", record.input_tokens_requested)
    _sum(cell, "cached_tokens", record.cached_tokens)
    _sum(cell, "reasoning_tokens", record.reasoning_tokens)
    if record.output_tokens is not None:
        cell.low("output_tokens", record.output_tokens)
        if record.output_tokens_requested is not None:
            counts["ok:short"] += record.output_tokens < record.output_tokens_requested
        if record.e2e_ns is not None:
            counts["ok:e2e_tokens"] += record.output_tokens
    if record.input_tokens is not None and record.input_tokens_requested is not None:
        counts["ok:length_known"] += record.input_tokens_requested
        counts["ok:length_error"] += abs(record.input_tokens - record.input_tokens_requested)


def _sum(cell: Tally, field: str, tokens: int | None) -> None:
    """Add up a token count and the requests that had it; absent adds to neither."""
    if tokens is not None:
        cell.counts[f"ok:{field}"] += tokens
        cell.counts[f"ok:{field}:requests"] += 1


def _add_ok_samples(cell: Tally, record: RequestRecord, samples: Samples) -> None:
    """Add the latencies of an ok request; a speed is kept in millionths, as a ms is."""
    for name, field in _SAMPLED:
        cell.sample(name, getattr(record, field))
    cell.samples("icl_ms", samples.icl_ns)
    cell.samples("itl_ms", samples.itl_ns)
    if record.e2e_ns is not None and record.output_tokens:
        cell.sample("normalized_ms_per_token", record.e2e_ns / record.output_tokens)
    if record.tpot_ns:
        cell.sample("output_speed_tok_per_s", 1e15 / record.tpot_ns)


def _finish_key(counts: dict[str, int], reason: str) -> str:
    key = f"finish:{reason[:40]}"
    if key not in counts and sum(known.startswith("finish:") for known in counts) >= FINISH_REASONS_LIMIT:
        return "finish:(other)"
    return key


def _duration_ns(record: RequestRecord) -> int:
    """Return how long the request took as other tools see it: until its last token, else its end."""
    if record.outcome is Outcome.OK and record.e2e_ns is not None:
        return record.e2e_ns
    return record.stream_end_ns or record.e2e_ns or 0


def _columns(values: dict[int, int]) -> tuple[list[int], list[int]]:
    epochs_s = sorted(values)
    return epochs_s, [values[epoch_s] for epoch_s in epochs_s]
