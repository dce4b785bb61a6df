"""The run over time for a report: the points of the live page, made of timeline.csv and requests.csv.

Rates and counts are timeline.csv's. Percentiles are computed from the requests that ended in a point's time, never from
other percentiles; a short point looks back over 10 s, as timeline.csv does. Single ITLs are in no file: a point has the
greatest of its seconds' 10 s values. Knows no Locust.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from llm_locust.measure.seconds import SLIDING_S
from llm_locust.outputs.heat import HEAT_BINS, HEAT_LOWEST_MS, HEAT_RATIO, heat_bins_ms, read_heat, told
from llm_locust.outputs.history import MOST_POINTS, POINT_COLUMNS, RATES, four_digits
from llm_locust.outputs.report_requests import EndedRequests

_MOST = {
    "users": "users",
    "in_flight_peak": "in_flight_peak",
    "loop_lag_ms_max": "loop_lag_ms_max",
    "itl_ms_p50": "itl_ms_p50",
    "itl_ms_p99": "itl_ms_p99",
}
_LATER = ("late_input_tokens",)
"""Columns that runs of older versions lack."""
_QUANTILES = {name: float(name[-2:]) / 100 for name in POINT_COLUMNS if name[-4:-2] == "_p"}


def history(timeline: pd.DataFrame, ended: EndedRequests, most_points: int = MOST_POINTS) -> dict[str, Any]:
    """Return columns, heat scale, points and bands as `live.LiveHistory` tells them."""
    timeline = timeline.sort_values("epoch_s", kind="stable", ignore_index=True)
    timeline = timeline.assign(**{column: 0 for column in _LATER if column not in timeline})
    points = [list(point.values()) for point in _points(timeline, ended, most_points)]
    return {
        "columns": POINT_COLUMNS,
        "heat": {"lowest_ms": HEAT_LOWEST_MS, "ratio": HEAT_RATIO},
        "points": points,
        "bands": list(_bands(timeline)),
    }


def _points(timeline: pd.DataFrame, ended: EndedRequests, most_points: int) -> Iterator[dict[str, Any]]:
    seconds = timeline["epoch_s"].to_numpy(np.int64)
    for first, end in pairwise(_bounds(timeline, most_points)):
        part = timeline.iloc[first:end]
        sums = {name: part[list(columns)].sum(axis=1) for name, columns in RATES.items()}
        from_s, until_s = int(seconds[first]), int(seconds[end - 1]) + 1
        found = {
            "from_s": from_s,
            "until_s": until_s,
            **{name: _drawn(sum_.sum() / len(part)) for name, sum_ in sums.items()},
            **{name: _drawn(part[column].max()) for name, column in _MOST.items()},
            "output_tok_per_s_min": _drawn(sums["output_tok_per_s"].min()),
            "output_tok_per_s_max": _drawn(sums["output_tok_per_s"].max()),
            **_quantiles(ended, min(from_s, until_s - SLIDING_S), until_s),
            "ttft_ms_heat": _heat_of_requests(ended, from_s, until_s),
            "itl_ms_heat": _heat_of_seconds(part),
        }
        yield {name: found[name] for name in POINT_COLUMNS}


def _bounds(timeline: pd.DataFrame, most_points: int) -> list[int]:
    """Return the rows at which points start, and the end: equal lengths, never two stages or phases in one."""
    length = max(-(-len(timeline) // most_points), 1)
    place = timeline[["stage", "phase"]]
    change = (place != place.shift()).any(axis=1).to_numpy()
    runs = [*map(int, np.flatnonzero(change)), len(timeline)]
    return [*(row for first, end in pairwise(runs) for row in range(first, end, length)), len(timeline)]


def _bands(timeline: pd.DataFrame) -> Iterator[Sequence[Any]]:
    seconds = timeline["epoch_s"].to_numpy(np.int64)
    for first, end in pairwise(_bounds(timeline, 1)):
        stage, phase = timeline["stage"].iloc[first], timeline["phase"].iloc[first]
        yield [stage or None, phase or None, int(seconds[first]), int(seconds[end - 1]) + 1]


def _slice(ended: EndedRequests, name: str, from_s: int, until_s: int) -> NDArray[np.float32]:
    first, end = np.searchsorted(ended.end_s, [from_s, until_s])
    values = ended.latencies_ms[name][first:end]
    return values[~np.isnan(values)]


def _quantiles(ended: EndedRequests, from_s: int, until_s: int) -> Mapping[str, float | int | None]:
    """Return the nearest-rank percentiles of the requests that ended in this time."""
    found: dict[str, float | int | None] = {}
    values: dict[str, NDArray[np.float32]] = {}
    for name, q in _QUANTILES.items():
        latency = name[:-4]
        if latency not in ended.latencies_ms:
            continue
        if latency not in values:
            values[latency] = np.sort(_slice(ended, latency, from_s, until_s))
        n = values[latency].size
        found[name] = _drawn(values[latency][max(int(np.ceil(q * n - 1e-9)) - 1, 0)]) if n else None
    return found


def _heat_of_requests(ended: EndedRequests, from_s: int, until_s: int) -> list[int] | None:
    values = _slice(ended, "ttft_ms", from_s, until_s)
    return told(np.bincount(heat_bins_ms(values.astype(np.float64)), minlength=HEAT_BINS))


def _heat_of_seconds(part: pd.DataFrame) -> list[int] | None:
    if "itl_ms_heat" not in part:  # a run of an older version
        return None
    counts = np.zeros(HEAT_BINS, np.int64)
    for cell in part["itl_ms_heat"]:
        if cell:
            counts += read_heat(cell)
    return told(counts)


def _drawn(number: Any) -> float | int | None:
    return None if pd.isna(number) else four_digits(float(number))
