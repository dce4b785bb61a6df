"""The main charts of a report as PNG and SVG files, without a browser: for documents and slides.

Needs matplotlib (extra `png`). Figures are made by its own classes, never by pyplot: no display, no global state.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

Document = Mapping[str, Any]
"""What `report.report_document` returns."""

CJK_PACKAGE = "fonts-noto-cjk"
_CJK_FONTS = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei",
    "SimHei", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Droid Sans Fallback", "Noto Sans CJK JP", "Arial Unicode MS",
)  # fmt: skip
_BLUE, _ORANGE, _GREEN, _RED = "#0072b2", "#c77800", "#00805e", "#d55e00"
_COLOURS = (_BLUE, _ORANGE, _GREEN, _RED, "#a8508a", "#6b7280")  # Okabe and Ito 2008
_DASHES = ("-", "--", ":", "-.")
_MARKS = ("o", "^", "s", "D")
"""Beside the colours, for every kind of sight; both as on the page."""
_CIVIDIS = ("#f4f1d0", "#e5cf62", "#b9a86f", "#848079", "#4a5a76", "#00204d")
_MOST_TIMES = 120
"""A time of a heat map is wide enough to have samples that say something."""
_E2E, _TTFT, _TPOT, _INPUT, _OUTPUT = range(5)


def write_charts(directory: Path, document: Document, warn: Callable[[str], None]) -> list[Path]:
    """Write each chart as .png and .svg; return the paths.

    ``warn`` is told once where a text has characters for which no font is found. Raises OSError; ModuleNotFoundError
    where matplotlib is not installed.
    """
    import matplotlib as mpl
    from cycler import cycler
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    fonts = _fonts(document, warn)
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    look: Any = {
        "font.family": fonts,
        "svg.fonttype": "path",
        "axes.prop_cycle": cycler(linestyle=_DASHES) * cycler(color=_COLOURS),
    }
    with mpl.rc_context(look), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # told once already, with what to do
        for name, draw in _charts(document):
            figure = Figure(figsize=(8, 4.5), layout="constrained")
            FigureCanvasAgg(figure)
            draw(figure.add_subplot())
            for kind in ("png", "svg"):
                paths.append(directory / f"{name}.{kind}")
                figure.savefig(paths[-1], dpi=160)
    return paths


def _fonts(document: Document, warn: Callable[[str], None]) -> list[str]:
    """Return the font families to draw with: matplotlib's own, and a CJK one behind it where one is found."""
    from matplotlib import font_manager

    known = {font.name for font in font_manager.fontManager.ttflist}
    cjk = next((name for name in _CJK_FONTS if name in known), None)
    cjk = cjk or next((name for name in sorted(known) if "CJK" in name), None)
    if cjk is not None:
        return ["DejaVu Sans", cjk]
    if any(ord(character) >= 0x2E80 for row in document["now"]["rows"] for character in row["stage"]):
        warn(f"no font for Chinese, Japanese or Korean was found: install the package {CJK_PACKAGE}")
    return ["DejaVu Sans"]


def _charts(document: Document) -> Iterator[tuple[str, Callable[[Any], None]]]:
    history, stages = document["history"], document["distributions"]
    for metric, title in (("ttft_ms", "TTFT"), ("tpot_ms", "TPOT")):
        yield f"throughput-{metric[:4]}", partial(_curve, document=document, metric=metric, title=title)
    if history["points"]:
        for name, title, unit, lines in (*_OVER_TIME, _load(document)):
            if any(point[history["columns"].index(lines[0][0])] is not None for point in history["points"]):
                yield f"time-{name}", partial(_over_time, history=history, title=title, unit=unit, lines=lines)
        for metric, title in (("ttft_ms", "TTFT, share of requests"), ("itl_ms", "ITL, share of tokens")):
            yield f"heat-{metric[:-3]}", partial(_heat_map, history=history, metric=metric, title=title)
    if stages:
        for place, name, title in ((_TTFT, "ttft", "TTFT"), (_TPOT, "tpot", "TPOT"), (_E2E, "e2e", "E2E latency")):
            yield f"cdf-{name}", partial(_cdf, stages=stages, place=place, title=title)
        yield "ttft-input", partial(_against, stages=stages, x=_INPUT, y=_TTFT, title="TTFT", length="input")
        yield "e2e-output", partial(_against, stages=stages, x=_OUTPUT, y=_E2E, title="E2E", length="output")


_PERCENTILES = (("p50", _BLUE, "-"), ("p90", _GREEN, "--"), ("p99", _RED, "-"))


def _percentiles(metric: str, *left_out: str) -> tuple[tuple[str, str, str, str], ...]:
    shown = (percentile for percentile in _PERCENTILES if percentile[0] not in left_out)
    return tuple((f"{metric}_{name}", name, colour, dash) for name, colour, dash in shown)


_OverTime = tuple[str, str, str, tuple[tuple[str, str, str, str], ...]]
_OVER_TIME: tuple[_OverTime, ...] = (
    ("ttft", "TTFT", "ms", _percentiles("ttft_ms")),
    ("ttft-scheduled", "TTFT from schedule", "ms", _percentiles("ttft_scheduled_ms")),
    ("tpot", "TPOT", "ms", _percentiles("tpot_ms", "p90")),
    (
        "tokens",
        "Tokens",
        "tok/s",
        (("output_tok_per_s", "output", _BLUE, "-"), ("input_tok_per_s", "input", _ORANGE, "--")),
    ),
    (
        "requests",
        "Requests by outcome",
        "req/s",
        (("ok_per_s", "ok", _BLUE, "-"), ("failed_per_s", "failed", _RED, "-")),
    ),
)
"""Name, title, unit, and for each line its column, its words, its colour and its dashes: those of the page."""


_FAR_ABOVE = 8
"""So many times the requests in flight, a line of the users would press all others flat."""


def _load(document: Document) -> _OverTime:
    """Return the chart of the load: of an open loop's users, which are but a limit, only what it comes near."""
    columns, points = document["history"]["columns"], document["history"]["points"]
    users, in_flight = (
        max(point[columns.index(name)] or 0 for point in points) for name in ("users", "in_flight_peak")
    )
    line = ("in_flight", "in flight", _BLUE, "-")
    if _is_open(_measured(document)) and users >= _FAR_ABOVE * in_flight:
        return "load", f"Requests in flight, of at most {users:,}", "count", (line,)
    return "load", "Requests in flight and users", "count", (line, ("users", "users", _ORANGE, "--"))


def _measured(document: Document) -> list[dict[str, Any]]:
    """Return the rows of the stages, with each value under its column's name."""
    columns, rows = document["now"]["columns"], document["now"]["rows"]
    return [dict(zip(columns, row["values"], strict=True)) | row for row in rows if row["name"] == "all"]


def _curve(axes: Any, document: Document, metric: str, title: str) -> None:
    rows = _measured(document)
    for statistic, style, colour in (("p50", "o-", _BLUE), ("p99", "^--", _RED)):
        latency = metric.replace("_ms", "_scheduled_ms") if _is_open(rows) and metric == "ttft_ms" else metric
        places = [(row["output_tok_per_s"], row[f"{latency}_{statistic}"], row["stage"]) for row in rows]
        places = [place for place in places if None not in place]
        axes.plot(
            [x for x, _, _ in places], [y for _, y, _ in places], style, color=colour, label=f"{title} {statistic}"
        )
        if statistic == "p99":
            for x, y, stage in places:
                axes.annotate(
                    stage, (x, y), (0, 6), textcoords="offset points", ha="center", fontsize=8, parse_math=False
                )
    _finish(axes, f"{title} against throughput", "output tok/s", "ms")


def _is_open(rows: Sequence[Mapping[str, Any]]) -> bool:
    return any(row["load"] == "open loop" for row in rows)


def _times(history: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the bounds of the points in minutes since the start, and their middles."""
    start = history["points"][0][0]
    edges = np.array([[point[0] - start, point[1] - start] for point in history["points"]]) / 60
    return edges, edges.mean(axis=1)


def _over_time(axes: Any, history: Mapping[str, Any], title: str, unit: str, lines: Sequence[Any]) -> None:
    _, middles = _times(history)
    for column, label, colour, dash in lines:
        place = history["columns"].index(column)
        values = np.array([np.nan if point[place] is None else point[place] for point in history["points"]], float)
        if not np.isnan(values).all():
            axes.plot(middles, values, dash, color=colour, label=label, linewidth=1.4)
    _bands(axes, history)
    _finish(axes, title, "minutes since the start", unit)


def _bands(axes: Any, history: Mapping[str, Any]) -> None:
    """Shade what is outside of the measured windows, and name the stages."""
    start = history["points"][0][0]
    stages: dict[str, list[float]] = {}
    for stage, phase, from_s, until_s in history["bands"]:
        if stage is None:
            continue
        if phase != "steady":
            axes.axvspan((from_s - start) / 60, (until_s - start) / 60, color="#6b7280", alpha=0.16, linewidth=0)
        stages.setdefault(stage, []).extend([(from_s - start) / 60, (until_s - start) / 60])
    if len(stages) <= 8:
        for stage, times in stages.items():
            middle = (min(times) + max(times)) / 2
            axes.text(middle, 1.0, stage, transform=axes.get_xaxis_transform(), ha="center", va="bottom",
                      fontsize=7, color="#6b7280", parse_math=False)  # fmt: skip


def _joined(history: Mapping[str, Any], place: int) -> Iterator[tuple[float, float, dict[int, int]]]:
    """Give times in minutes with their samples by bin; neighbouring points are joined until a time is wide enough."""
    edges, _ = _times(history)
    begun, counts = edges[0, 0], dict[int, int]()
    for (_, until), point in zip(edges, history["points"], strict=True):
        first, *added = point[place] or (0,)
        for number, n in enumerate(added, first):
            counts[number] = counts.get(number, 0) + n
        if until - begun >= edges[-1, 1] / _MOST_TIMES or until == edges[-1, 1]:
            yield begun, until, counts
            begun, counts = until, {}


def _heat_map(axes: Any, history: Mapping[str, Any], metric: str, title: str) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    times = list(_joined(history, history["columns"].index(f"{metric}_heat")))
    bins = [number for *_, counts in times for number in counts] or [0]
    least, most = min(bins), max(bins) + 1
    steps = np.full((most - least, len(times)), np.nan)
    top = len(_CIVIDIS) - 1
    for column, (_, _, counts) in enumerate(times):
        for number, n in counts.items():
            # Each step of colour stands for half of the share above it, as on the page.
            share = n / sum(counts.values())
            steps[number - least, column] = np.clip(top + np.ceil(np.log2(share)), 0, top) if n else np.nan
    scale = history["heat"]["lowest_ms"] * history["heat"]["ratio"] ** np.arange(least, most + 1)
    bounds = [times[0][0], *(until for _, until, _ in times)]
    axes.pcolormesh(bounds, scale, steps, cmap=ListedColormap(_CIVIDIS), vmin=0, vmax=top, rasterized=True)
    axes.set_yscale("log")
    words = ["less", *(f"> {100 / 2 ** (top + 1 - step):.4g} %" for step in range(1, top + 1))]
    patches = [Patch(facecolor=c, edgecolor="#6b7280", label=w) for c, w in zip(_CIVIDIS, words, strict=True)]
    axes.figure.legend(
        handles=patches, title="share of its time", loc="outside right center", fontsize=8, frameon=False
    )
    _finish(axes, title, "minutes since the start", "ms (log)", legend=False)


def _shown_unit(place: int) -> tuple[str, float]:
    """Return the unit of a latency and how much of it a ms is: E2E is shown in s, as in every table."""
    return ("s", 0.001) if place == _E2E else ("ms", 1.0)


def _cdf(axes: Any, stages: Sequence[Mapping[str, Any]], place: int, title: str) -> None:
    unit, per_ms = _shown_unit(place)
    for stage in stages:
        values = np.sort([request[place] * per_ms for request in stage["requests"] if request[place] is not None])
        if values.size:
            axes.step(values, np.arange(1, values.size + 1) / values.size * 100, where="post", label=stage["stage"])
    axes.set_xscale("log")
    _finish(axes, f"{title} by stage", f"{unit} (log)", "% of requests")


def _against(axes: Any, stages: Sequence[Mapping[str, Any]], x: int, y: int, title: str, length: str) -> None:
    unit, per_ms = _shown_unit(y)
    for number, stage in enumerate(stages):
        places = [(r[x], r[y] * per_ms) for r in stage["requests"] if r[x] is not None and r[y] is not None]
        axes.scatter(
            [a for a, _ in places], [b for _, b in places], s=9, alpha=0.6, marker=_mark(number), label=stage["stage"]
        )
    _finish(axes, f"{title} against {length} length", f"{length} tokens", unit)


def _mark(number: int) -> str:
    """Give the shape of a stage's marks: with the colour beside it no two of 24 stages look alike."""
    return _MARKS[(number + number // 12) % len(_MARKS)]


def _label_log(axis: Any, least: float, greatest: float) -> None:
    """Label some five values, whatever the range; the usual ones are powers of ten only."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

    axis.set_minor_formatter(NullFormatter())
    if greatest < 4 * least:
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    elif greatest < 200 * least:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if greatest > 10 * least else (1, 1.5, 2, 3, 4, 5, 7)))


def _finish(axes: Any, title: str, x: str, y: str, *, legend: bool = True) -> None:
    axes.set_title(title, loc="left", fontweight="bold", pad=16)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(color="#e5e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    for axis, scale, bounds in (
        (axes.xaxis, axes.get_xscale(), axes.get_xlim()),
        (axes.yaxis, axes.get_yscale(), axes.get_ylim()),
    ):
        if scale == "log":
            _label_log(axis, *bounds)
        axis.set_major_formatter("{x:,g}")
    if axes.get_yscale() == "linear":
        axes.set_ylim(bottom=0)
    if legend and axes.get_legend_handles_labels()[0]:
        for text in axes.legend(fontsize=8, frameon=False).get_texts():
            text.set_parse_math(False)
