"""Mistakes of metrics, through real runs: what the files say of a server whose behaviour is known.

Times are the server's; upper bounds leave room for a busy machine. The arithmetic of the same cases is in
tests/measure; README.md beside this file says where.
"""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from benchmarks.rig.locusts import Lab
from benchmarks.rig.mock_process import start_mock

from .real_run import RealRun, run, table

FAST = ("--profile", "fast", "--ttft-ms", "20", "--itl-ms", "5")
ALL = ("--llm-warmup", "0")
CHAT = "/v1/chat/completions"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
ROLE = b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
TOKEN = b'data: {"choices":[{"index":0,"delta":{"content":" a"},"finish_reason":null}]}\n\n'
STOP = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\ndata: [DONE]\n\n'
ROOM_MS = 150.0
"""How late a busy machine may be."""


def script(folder: Path, *segments: tuple[float, bytes]) -> Path:
    """Write a raw stream that answers every chat request."""
    encoded = [[at_ms, base64.b64encode(piece).decode()] for at_ms, piece in segments]
    path = folder / "script.json"
    path.write_text(json.dumps({CHAT: {"segments": encoded, "encoding": "base64", "raw": True}}))
    return path


def measured(ended: RealRun) -> dict[str, str]:
    """The row `all` of the one stage."""
    whole, stage = ("whole run", "all", "steady"), ("run", "all", "steady")
    found = {(row["stage"], row["name"], row["phase"]): row for row in ended.stages}
    assert len(found) == len(ended.stages)
    assert found[whole]["requests_ok"] == found[stage]["requests_ok"]
    assert found[stage]["users"]
    return found[stage]


def floats(ended: RealRun, column: str) -> list[float]:
    """A column of requests.csv; its empty cells are left out."""
    return [float(row[column]) for row in ended.rows if row[column]]


def about(values: list[float], wanted_ms: float, room_ms: float = ROOM_MS) -> bool:
    """Whether all are as wanted or a little late."""
    return bool(values) and all(wanted_ms - 5 <= value <= wanted_ms + room_ms for value in values)


def test_first_token_is_not_taken_at_the_headers(lab: Lab) -> None:
    """B01: headers at 12 ms, a role at 15, 41 tokens from 820 to 2400: TTFT 820, E2E 2400, TPOT 39.5; no row of 12."""
    tokens = [(820 + 40 * i if i < 40 else 2400, TOKEN) for i in range(41)]
    path = script(lab.folder, (12, HEAD), (15, ROLE), *tokens, (2405, STOP))
    with start_mock("--profile", "fast", "--script", str(path)) as mock:
        ended = run(lab, mock.url, "-u", "2", "-r", "2", "--llm-requests", "2", "--no-llm-ignore-eos", *ALL)
    assert set(ended.outcomes) == {"ok"}
    assert about(floats(ended, "headers_ms"), 12)
    assert about(floats(ended, "ttft_ms"), 820)
    assert about(floats(ended, "e2e_ms"), 2400)
    assert floats(ended, "tpot_ms") == pytest.approx([39.5] * len(ended.rows), abs=4)
    assert 2390 <= ended.locust.median_ms <= 2700
    assert ended.code == 0, ended.output


@pytest.mark.slow
def test_run_of_single_tokens_has_no_tpot(lab: Lab) -> None:
    """B02: a report with TTFT and E2E, TPOT absent in every file, exit code 0; no cell is 0, nan, inf or -1 for it."""
    with start_mock(*FAST) as mock:
        ended = run(lab, mock.url, "-u", "2", "-r", "2", "--llm-requests", "5", "--llm-output-tokens", "1", *ALL)
    row = measured(ended)
    assert ended.code == 0, ended.output
    assert (row["ttft_ms_count"], row["tpot_ms_count"], row["tpot_ms_mean"], row["output_speed_tok_per_s_p50"]) == (
        row["requests_ok"], "0", "", "",
    )  # fmt: skip
    assert floats(ended, "tpot_ms") == []
    assert ended.summary["totals"]["tpot_ms_mean"] is None
    cells = {value.lower() for line in (*ended.rows, *ended.stages) for value in line.values()}
    assert not cells & {"nan", "inf", "-inf", "-1", "-1.0", "none", "null"}


@pytest.mark.slow
def test_burst_has_no_speed(lab: Lab) -> None:
    """B03: all tokens in one segment: no TPOT, no speed of millions; a burst is counted, with its tokens."""
    with start_mock(*FAST, "--fault", "bundle_events", "--bundle", "64") as mock:
        ended = run(lab, mock.url, "-u", "2", "-r", "2", "--llm-requests", "6", "--llm-output-tokens", "32", *ALL)
    row = measured(ended)
    assert {line["burst"] for line in ended.rows} == {"true"}
    assert (row["bursts"], row["output_speed_tok_per_s_count"], row["tpot_ms_count"]) == (row["requests_ok"], "0", "0")
    assert int(row["output_tokens"]) == 32 * int(row["requests_ok"])
    assert float(row["output_tok_per_s"]) > 0


@pytest.mark.slow
def test_sources_of_token_counts_are_told(lab: Lab) -> None:
    """B05: usage where it came, else chunks; how many of which is in the files; mixing is a reason of doubt."""
    with start_mock(*FAST, "--fault", "no_usage=0.4") as mock:
        ended = run(lab, mock.url, "-u", "4", "-r", "4", "--llm-requests", "40", *ALL)
    sources = [line["output_tokens_source"] for line in ended.rows if line["phase"] == "steady"]
    row = measured(ended)
    assert set(sources) == {"usage", "chunks"}
    assert (int(row["tokens_from_usage"]), int(row["tokens_from_chunks"])) == (
        sources.count("usage"), sources.count("chunks"),
    )  # fmt: skip
    assert "mixed sources" in row["validity_reasons"]
    assert {line["output_tokens"] for line in ended.rows} == {"8"}


@pytest.mark.parametrize("forked", [False, True], ids=["local", "two workers"])
def test_wait_for_a_user_is_in_the_latency_from_schedule(lab: Lab, forked: bool) -> None:
    """B09: an arrival each 50 ms, 2 users, 200 ms each: user wait 0,0,100,100,…,400,400; E2E from start stays 200.

    Two workers of one user each share the one schedule: the same waits.
    """
    path = script(lab.folder, (0, HEAD), (200, TOKEN), (200, STOP))
    args = ("-u", "2", "-r", "10", "--llm-rate", "20", "--llm-arrivals", "constant", "--llm-requests", "10")
    with start_mock("--profile", "fast", "--script", str(path)) as mock:
        ended = run(lab, mock.url, *args, "--no-llm-ignore-eos", *ALL, forked=forked)
    rows = sorted(ended.rows, key=lambda row: float(row["scheduled_epoch_s"]))[:10]
    due = [float(row["scheduled_epoch_s"]) for row in rows]
    assert [later - earlier for earlier, later in pairwise(due)] == pytest.approx([0.05] * 9, abs=1e-3)  # two clocks
    waits = [float(row["user_wait_ms"]) for row in rows]
    for i, (row, wait_ms) in enumerate(zip(rows, waits, strict=True)):
        assert 100 * (i // 2) - 10 <= wait_ms <= 100 * (i // 2) + 40 * (i // 2 + 1)
        late_ms = wait_ms + float(row["dispatch_lag_ms"])
        assert float(row["e2e_scheduled_ms"]) == pytest.approx(float(row["e2e_ms"]) + late_ms, abs=0.01)
    assert about(floats(ended, "e2e_ms"), 200, 60)
    row = measured(ended)
    assert (row["load"], row["saturated"]) == ("open loop", "1")
    assert "SATURATED" in ended.output


@pytest.mark.slow
def test_closed_loop_says_so(lab: Lab) -> None:
    """B09's neighbour: without a schedule nothing from schedule is claimed, and the summary says `closed loop`."""
    with start_mock(*FAST) as mock:
        ended = run(lab, mock.url, "-u", "1", "--llm-requests", "2", *ALL)
    assert measured(ended)["load"] == "closed loop"
    assert "closed loop" in ended.output
    assert floats(ended, "e2e_scheduled_ms") == floats(ended, "user_wait_ms") == []


def test_every_user_has_a_connection(lab: Lab) -> None:
    """B10: 150 users at once are 150 streams at the server; nobody waits for a pool, so no TTFT of two streams."""
    path = script(lab.folder, (0, HEAD), (200, TOKEN), (1500, TOKEN), (1500, STOP))
    args = ("-u", "150", "-r", "150", "--llm-requests", "150", "--llm-start", "together", "--no-llm-ignore-eos")
    with start_mock("--profile", "fast", "--script", str(path)) as mock:
        ended = run(lab, mock.url, *args, *ALL)
        lines = mock.lines()
    assert set(ended.outcomes) == {"ok"}
    assert peak_of(lines) == 150
    assert int(measured(ended)["concurrency_peak"]) == 150
    assert max(floats(ended, "ttft_ms")) < 1500
    assert len(floats(ended, "connect_ms")) == len(ended.rows)  # time for a connection is told apart from TTFT


def peak_of(lines: list[dict[str, Any]]) -> int:
    """Most requests that the server had at one time."""
    changes = sorted([(line["arrival_ns"], 1) for line in lines] + [(line["end_ns"], -1) for line in lines])
    peak = now = 0
    for _, change in changes:
        now += change
        peak = max(peak, now)
    return peak


@pytest.mark.linux
def test_busy_client_does_not_blame_the_server(lab: Lab) -> None:
    """B11: a greenlet holds the hub 50 ms in 100: the lag and the late reads are told, the verdict doubts the run.

    Tokens come each 10 ms. Read late they are merged: their stamps are upper bounds, never times of the callback.
    """
    with start_mock("--profile", "fast", "--ttft-ms", "100", "--itl-ms", "10") as mock:
        args = ("-u", "10", "-r", "10", "--llm-requests", "40", "--llm-output-tokens", "60")
        ended = run(lab, mock.url, *args, *ALL, file=Path(__file__).with_name("burning_users.py"))
        told = {line["request_id"]: line for line in mock.lines()}
    assert set(ended.outcomes) == {"ok"}
    row = measured(ended)
    assert row["validity"] == "SUSPECT"
    assert "late reads" in row["validity_reasons"]
    assert float(row["late_tokens_ratio"]) > 0.2
    seconds = table(lab.runs[-1] / "timeline.csv")
    # A tick comes every 20 ms, and the first that a hold of 50 ms delays may be due up to 20 ms after its beginning.
    assert max(float(second["loop_lag_ms_max"] or 0) for second in seconds) > 30 - 1
    sound = [line for line in ended.rows if line["ttft_upper_bound"] == "false"]
    errors_ms = [float(line["ttft_ms"]) - server_ttft_ms(line, told) for line in sound]
    assert median(errors_ms) < 15  # a clock read in the callback would be 25 ms late in the mean
    assert float(row["tpot_ms_p50"]) == pytest.approx(10, abs=1.5)


def server_ttft_ms(row: dict[str, str], told: dict[str, dict[str, Any]]) -> float:
    """First token's send since the request's arrival, by the server."""
    line = told[row["client_request_id"]]
    return float(line["token_send_ns"][0] - line["arrival_ns"]) / 1e6


@pytest.mark.slow
def test_cached_prompts_are_told(lab: Lab) -> None:
    """B14: one prompt for all, on a server with a prefix cache: its share and the repetition are in the files."""
    args = ("-u", "1", "--llm-requests", "20", "--llm-prompts", "text:" + "word " * 200, "--llm-ignore-eos")
    with start_mock("--time-scale", "200") as mock:
        ended = run(lab, mock.url, *args, *ALL, lengths=("--llm-output-tokens", "4"))
    row = measured(ended)
    assert float(row["prompts_repeated_ratio"]) > 0.9
    assert float(row["cached_ratio"]) > 0.8
    assert "of prompts repeated" in row["validity_reasons"]


def test_workers_do_not_ask_the_same_prompts(lab: Lab) -> None:
    """B14: two workers and 24 rows: each row is asked once before any comes again."""
    dataset = lab.folder / "rows.jsonl"
    dataset.write_text("".join(json.dumps({"prompt": "word " * (i + 1)}) + "\n" for i in range(24)))
    args = ("-u", "4", "-r", "4", "--llm-requests", "24", "--llm-start", "together", "--llm-prompts", str(dataset))
    with start_mock(*FAST) as mock:
        ended = run(lab, mock.url, *args, *ALL, lengths=("--llm-output-tokens", "4"), forked=True)
        lengths = [line["prompt_tokens"] for line in mock.lines()]
    assert ended.code == 0, ended.output
    assert len({row["worker"] for row in ended.rows}) == 2
    assert len(set(lengths[:24])) == 24
