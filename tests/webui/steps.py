"""What a person does and reads on the page, for several tests."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from playwright.sync_api import expect

from llm_locust.measure.snapshot import RUN
from tests.webui.browser import Watched

CHARTS = (
    "TTFT",
    "TPOT and ITL",
    "Tokens",
    "Requests by outcome",
    "Requests in flight and users",
    "Lags of the generator",
    "TTFT, share of requests",
    "ITL, share of tokens",
)
TILES = ("Output", "OK requests", "In flight", "TTFT", "TPOT", "Goodput")
REFRESHED_MS = 15_000
SCROLLBAR_PX = 15


def start(seen: Watched) -> None:
    """Start a run from the form."""
    page = seen.page
    page.get_by_label("Number of users").fill("8")
    page.get_by_label("Host").fill("http://sglang:30000")
    page.get_by_label("Shape", exact=True).fill("ConcurrencySteps")
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("tab", name="LLM", exact=True)).to_be_visible(timeout=REFRESHED_MS)


def until_stage(seen: Watched, stage: str) -> None:
    """Wait until a stage is in the table."""
    row = seen.page.locator('table[aria-label="Stages"] tbody tr', has_text=stage).first
    expect(row).to_be_visible(timeout=60_000)


def three_digits(text: str) -> str:
    """Show a number of stages.csv as the page does; written from docs, not from the page's code."""
    if not text:
        return "–"
    value = float(text)
    size = abs(value)
    decimals = 0 if size >= 99.95 or value == 0 else 1 if size >= 9.995 else 2 if size >= 0.9995 else 3
    return f"{value:,.{decimals}f}"


COUNTS = ("requests_ok", "requests_failed", "short_outputs")
LATENCIES = (
    *(f"{name}_ms_{statistic}" for name in ("ttft", "tpot") for statistic in ("mean", "p50", "p99")),
    *("itl_ms_p99", "e2e_ms_mean", "e2e_ms_p99"),
)
RATES = ("request_throughput_per_s", "output_tok_per_s", "input_tok_per_s", "concurrency_mean")
GOODPUT = ("goodput_per_s", "attainment_ratio")


def numbers_are_those_of_the_file(seen: Watched, folder: Path) -> None:
    """Compare the stage table and the tiles with stages.csv, digit by digit, in the same order."""
    table = seen.cells("Stages")
    stages = stages_of(folder)
    optional = {name: any(row[name] for row in stages) for name in ("rate_requested_per_s", *GOODPUT)}
    optional["short_outputs"] = any(row["short_outputs"] != "0" for row in stages)
    columns = ["users", "rate_requested_per_s", "window_s", *COUNTS, *LATENCIES, *RATES, *GOODPUT]
    columns = [column for column in columns if optional.get(column, True)]
    wanted = []
    for row in stages:
        wanted.append([row["stage"], row["validity"], *(in_table(row, column) for column in columns)])
        if row["load"] == "open loop":
            wanted.append(["from schedule", "", *(from_schedule(row, column) for column in columns)])
    head = seen.page.locator('table[aria-label="Stages"] thead th').all_inner_texts()
    first = 3 if head[2].startswith("SLO") else 2
    validity = str.maketrans("", "", "✓?✕ +0123456789")
    shown = [[cells[0], cells[1].translate(validity), *cells[first : first + len(columns)]] for cells in table]
    assert shown == wanted
    last = stages[-1]
    assert seen.tile("Output") == three_digits(last["output_tok_per_s"])
    title, show = ("TTFT from schedule", from_schedule) if last["load"] == "open loop" else ("TTFT", in_table)
    both = [show(last, f"ttft_ms_{statistic}").rstrip("*") for statistic in ("p50", "p99")]
    assert seen.tile(title) == " / ".join(both)


def stages_of(folder: Path) -> list[dict[str, str]]:
    """Read the measured window of each stage from stages.csv."""
    with open(folder / "stages.csv", newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if (row["phase"], row["name"]) == ("steady", "all")]
    return [row for row in rows if row["stage"] != RUN]


def in_table(row: dict[str, str], column: str) -> str:
    """Return what the stage table shows of a column."""
    text = row[column]
    if not text:
        return "–"
    if column == "users" or column in COUNTS:
        return f"{int(text):,}"
    if column == "attainment_ratio":
        return f"{three_digits(str(float(text) * 100))} %"
    shown = three_digits(str(float(text) / 1000) if column.startswith("e2e_") else text)
    few = column.endswith("_p99") and int(row[column.replace("_p99", "_count")]) < 100
    return shown + ("*" if few else "")


def from_schedule(row: dict[str, str], column: str) -> str:
    """Return what the line from the schedule shows: latencies only, with ≥ where arrivals were dropped."""
    if not column.startswith(("ttft_ms_", "e2e_ms_")):
        return ""
    shown = in_table(row, column.replace("_ms_", "_scheduled_ms_"))
    return f"≥{shown}" if row["scheduled_lower_bounds"] == "1" and shown != "–" else shown


def files_are_those_of_the_master(seen: Watched, folder: Path) -> None:
    """Download each file from the LLM tab and from Locust's own download tab."""
    page = seen.page
    for name in ("requests.csv", "stages.csv", "timeline.csv", "summary.json", "run.conf"):
        with page.expect_download() as download:
            page.get_by_role("link", name=re.compile(f"^{re.escape(name)}")).click()
        assert Path(download.value.path()).read_bytes() == (folder / name).read_bytes(), name
    page.get_by_role("tab", name="Download Data").click()
    link = page.get_by_role("link", name="LLM: stages.csv")
    with page.expect_download() as download:
        link.click()
    assert Path(download.value.path()).read_bytes() == (folder / "stages.csv").read_bytes()
