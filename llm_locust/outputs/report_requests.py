"""What a report needs of requests.csv: the latencies of all ok requests by the second of their end, and a sample.

Read in pieces: a million rows need about 200 MB and 15 s. Knows no Locust.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.errors import EmptyDataError

from llm_locust.measure.record import Outcome
from llm_locust.measure.snapshot import STEADY
from llm_locust.outputs.readers import request_chunks
from llm_locust.outputs.sample import MOST, PER_STAGE

LATENCY_COLUMNS = ("ttft_ms", "ttft_scheduled_ms", "tpot_ms", "user_wait_ms", "dispatch_lag_ms")
"""Latencies that are drawn over time."""

_COLUMNS = frozenset(
    {"worker", "request_id", "stage", "phase", "outcome", "start_epoch_s", "scheduled_epoch_s", "stream_end_ms"}
    | {"e2e_ms", "e2e_scheduled_ms", "input_tokens", "output_tokens"}
    | set(LATENCY_COLUMNS)
)


@dataclass(frozen=True, slots=True)
class EndedRequests:
    """Ok requests of all phases in the order of their end: its second, and each latency in ms (NaN is absent)."""

    end_s: NDArray[np.int64]
    latencies_ms: dict[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class SampledStage:
    """The sample of one stage's measured window, as `sample.Sample` keeps it; `requests` are its `Told`."""

    stage: str
    seen: int
    requests: list[list[float | int | None]]


def read_ended(directory: Path) -> tuple[EndedRequests, list[SampledStage]]:
    """Read what is needed of a run's requests. Raises OSError; a run without the file has none."""
    ends: list[NDArray[np.int64]] = []
    latencies: dict[str, list[NDArray[np.float32]]] = {name: [] for name in LATENCY_COLUMNS}
    sampler = _Sampler()
    for chunk in _chunks(directory):
        ok = chunk[(chunk["outcome"] == Outcome.OK.value) & chunk["stream_end_ms"].notna()]
        ends.append((ok["start_epoch_s"] + ok["stream_end_ms"] / 1000).to_numpy().astype(np.int64))
        for name in LATENCY_COLUMNS:
            latencies[name].append(ok[name].to_numpy(np.float32))
        sampler.add(chunk)
    end_s = np.concatenate([np.empty(0, np.int64), *ends])
    order = np.argsort(end_s, kind="stable")
    columns = {name: np.concatenate([np.empty(0, np.float32), *parts])[order] for name, parts in latencies.items()}
    return EndedRequests(end_s[order], columns), sampler.told()


def _chunks(directory: Path) -> Iterator[pd.DataFrame]:
    try:
        yield from request_chunks(directory, _COLUMNS)
    except (FileNotFoundError, EmptyDataError):  # the disk took none of it
        return


class _Sampler:
    """Keeps of each stage the requests with the least hashes, piece by piece."""

    def __init__(self) -> None:
        self._kept: dict[str, pd.DataFrame] = {}
        self._seen: dict[str, int] = {}

    def add(self, chunk: pd.DataFrame) -> None:
        """Take a piece of requests.csv."""
        ok = (chunk["outcome"] == Outcome.OK.value) & (chunk["phase"] == STEADY) & chunk["e2e_ms"].notna()
        good = chunk[ok].copy()
        keys = zip(good["worker"], good["request_id"], strict=True)
        good["hash"] = np.fromiter((crc32(f"{worker}:{number}".encode()) for worker, number in keys), np.int64)
        for name, rows in good.groupby("stage", observed=True, sort=False):
            stage = str(name)
            self._seen[stage] = self._seen.get(stage, 0) + len(rows)
            kept = [self._kept[stage], rows] if stage in self._kept else [rows]
            self._kept[stage] = pd.concat(kept).nsmallest(PER_STAGE, "hash")

    def told(self) -> list[SampledStage]:
        """Give each stage's sample; with many stages each has an equal share."""
        share = min(PER_STAGE, MOST // max(len(self._kept), 1))
        return [
            SampledStage(stage, self._seen[stage], [_told(row) for row in kept.head(share).to_dict("records")])
            for stage, kept in self._kept.items()
        ]


def _told(row: dict[Any, Any]) -> list[float | int | None]:
    """E2E, TTFT and TPOT in ms, input and output tokens; from the schedule where there is one."""
    at = "_scheduled_ms" if _number(row["scheduled_epoch_s"]) is not None else "_ms"
    e2e_ms = _rounded(row[f"e2e{at}"])
    return [
        (_rounded(row["e2e_ms"]) if e2e_ms is None else e2e_ms) or 0.0,
        _rounded(row[f"ttft{at}"]),
        _rounded(row["tpot_ms"]),
        _whole(row["input_tokens"]),
        _whole(row["output_tokens"]),
    ]


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)


def _rounded(value: Any) -> float | None:
    number = _number(value)
    return None if number is None else round(number, 3)


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)
