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
_COLOURS = ("#0072b2", "#c77800", "#00805e", "#d55e00", "#a8508a", "#6b7280")  # Okabe and Ito 2008
_CIVIDIS_FROM_WHITE = ("#ffffff", "#e5cf62", "#b9a86f", "#848079", "#4a5a76", "#00204d")
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
    look: Any = {"font.family": fonts, "svg.fonttype": "path", "axes.prop_cycle": cycler(color=_COLOURS)}
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
        for name, title, unit, lines in _OVER_TIME:
            if any(point[history["columns"].index(lines[0][0])] is not None for point in history["points"]):
                yield f"time-{name}", partial(_over_time, history=history, title=title, unit=unit, lines=lines)
        for metric, title in (("ttft_ms", "TTFT, share of requests"), ("itl_ms", "ITL, share of tokens")):
            yield f"heat-{metric[:-3]}", partial(_heat_map, history=history, metric=metric, title=title)
    if stages:
        for place, name, title in ((_TTFT, "ttft", "TTFT"), (_TPOT, "tpot", "TPOT"), (_E2E, "e2e", "E2E latency")):
            yield f"cdf-{name}", partial(_cdf, stages=stages, place=place, title=title)
        yield "ttft-input", partial(_against, stages=stages, x=_INPUT, y=_TTFT, title="TTFT", length="input")
        yield "e2e-output", partial(_against, stages=stages, x=_OUTPUT, y=_E2E, title="E2E", length="output")


_OVER_TIME: tuple[tuple[str, str, str, tuple[tuple[str, str], ...]], ...] = (
    ("ttft", "TTFT", "ms", (("ttft_ms_p50", "p50"), ("ttft_ms_p90", "p90"), ("ttft_ms_p99", "p99"))),
    (
        "ttft-scheduled",
        "TTFT from schedule",
        "ms",
        (("ttft_scheduled_ms_p50", "p50"), ("ttft_scheduled_ms_p90", "p90"), ("ttft_scheduled_ms_p99", "p99")),
    ),
    ("tpot", "TPOT", "ms", (("tpot_ms_p50", "p50"), ("tpot_ms_p99", "p99"))),
    ("tokens", "Tokens", "tok/s", (("output_tok_per_s", "output"), ("input_tok_per_s", "input"))),
    ("requests", "Requests by outcome", "req/s", (("ok_per_s", "ok"), ("failed_per_s", "failed"))),
    ("load", "Requests in flight and users", "", (("in_flight", "in flight"), ("users", "users"))),
)


def _curve(axes: Any, document: Document, metric: str, title: str) -> None:
    columns = document["now"]["columns"]
    rows = [dict(zip(columns, r["values"], strict=True)) | r for r in document["now"]["rows"] if r["name"] == "all"]
    for statistic, style in (("p50", "o-"), ("p99", "^--")):
        latency = metric.replace("_ms", "_scheduled_ms") if _is_open(rows) and metric == "ttft_ms" else metric
        places = [(row["output_tok_per_s"], row[f"{latency}_{statistic}"], row["stage"]) for row in rows]
        places = [place for place in places if None not in place]
        axes.plot([x for x, _, _ in places], [y for _, y, _ in places], style, label=f"{title} {statistic}")
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


def _over_time(axes: Any, history: Mapping[str, Any], title: str, unit: str, lines: Sequence[tuple[str, str]]) -> None:
    _, middles = _times(history)
    for column, label in lines:
        place = history["columns"].index(column)
        values = np.array([np.nan if point[place] is None else point[place] for point in history["points"]], float)
        if not np.isnan(values).all():
            axes.plot(middles, values, label=label, linewidth=1.4)
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


def _heat_map(axes: Any, history: Mapping[str, Any], metric: str, title: str) -> None:
    from matplotlib.colors import ListedColormap

    place = history["columns"].index(f"{metric}_heat")
    edges, _ = _times(history)
    most = max((point[place][0] + len(point[place]) - 1 for point in history["points"] if point[place]), default=1)
    least = min((point[place][0] for point in history["points"] if point[place]), default=0)
    steps = np.zeros((most - least, len(history["points"])))
    for column, point in enumerate(history["points"]):
        if point[place]:
            first, *counts = point[place]
            shares = np.array(counts) / sum(counts)
            # Each step of colour stands for half of the share above it, as on the page.
            levels = np.clip(5 + np.ceil(np.log2(np.maximum(shares, 1e-6))), 1, 5) * (shares > 0)
            steps[first - least : first - least + len(counts), column] = levels
    scale = history["heat"]["lowest_ms"] * history["heat"]["ratio"] ** np.arange(least, most + 1)
    bounds = np.append(edges[:, 0], edges[-1, 1])
    axes.pcolormesh(bounds, scale, steps, cmap=ListedColormap(_CIVIDIS_FROM_WHITE), vmin=0, vmax=5, rasterized=True)
    axes.set_yscale("log")
    _finish(axes, title, "minutes since the start", "ms (log)", legend=False)


def _cdf(axes: Any, stages: Sequence[Mapping[str, Any]], place: int, title: str) -> None:
    for stage in stages:
        values = np.sort([request[place] for request in stage["requests"] if request[place] is not None])
        if values.size:
            axes.step(values, np.arange(1, values.size + 1) / values.size * 100, where="post", label=stage["stage"])
    axes.set_xscale("log")
    _finish(axes, f"{title} by stage", "ms (log)", "% of requests")


def _against(axes: Any, stages: Sequence[Mapping[str, Any]], x: int, y: int, title: str, length: str) -> None:
    for stage in stages:
        places = [(r[x], r[y] / 1000) for r in stage["requests"] if r[x] is not None and r[y] is not None]
        axes.scatter([a for a, _ in places], [b for _, b in places], s=9, alpha=0.6, label=stage["stage"])
    _finish(axes, f"{title} against {length} length", f"{length} tokens", "s")


def _finish(axes: Any, title: str, x: str, y: str, *, legend: bool = True) -> None:
    from matplotlib.ticker import NullFormatter

    axes.set_title(title, loc="left", fontweight="bold", pad=16)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(color="#e5e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    for axis, scale in ((axes.xaxis, axes.get_xscale()), (axes.yaxis, axes.get_yscale())):
        axis.set_major_formatter("{x:,g}")
        if scale == "log":
            axis.set_minor_formatter(NullFormatter())
    if axes.get_yscale() == "linear":
        axes.set_ylim(bottom=0)
    if legend and axes.get_legend_handles_labels()[0]:
        for text in axes.legend(fontsize=8, frameon=False).get_texts():
            text.set_parse_math(False)
