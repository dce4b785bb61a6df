"""Traps of the host, with real masters and workers against the embedded server.

Ends of a run, lost workers and the web page are in tests/contract; README.md beside this file says where.
"""

from __future__ import annotations

import csv
import json
import os
import signal
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import gevent
import msgspec
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from benchmarks.rig.locusts import Lab, until
from benchmarks.rig.mock_process import MockProcess, start_mock
from llm_locust.load.flight import Flight, count_tokens
from llm_locust.load.options import AskOptions
from llm_locust.measure.judge import AskFacts
from llm_locust.plugin.reports import Outbox
from llm_locust.prompts.tokenizers import open_tokenizer
from llm_locust.protocol import get_dialect
from tests.load.around import client_for
from tests.plugin.test_collector import Desk

from .real_run import LLM, SHORT, assert_booked_once, end_of, run, table

FAST = ("--profile", "fast", "--ttft-ms", "20", "--itl-ms", "5")
ALL = ("--llm-warmup", "0")
FOUR = ("-u", "4", "-r", "4")


def real(server: MockProcess) -> tuple[str, ...]:
    """Options of a process that asks this server."""
    return ("--host", server.url, "--llm-model", "m", *SHORT, *ALL)


# ---- statistics ----


@pytest.mark.parametrize("forked", [False, True], ids=["local", "two workers"])
def test_reset_at_full_load_forgets_nothing_that_was_measured(lab: Lab, forked: bool) -> None:
    """C08: --reset-stats: what ended while users came is in no number; of the measured requests none is missing."""
    with start_mock("--profile", "fast", "--ttft-ms", "50", "--itl-ms", "10") as mock:
        args = ("-u", "4", "-r", "1", "--llm-requests", "40", "--reset-stats")
        ended = run(lab, mock.url, *args, *ALL, forked=forked)
        asked = mock.truth()["requests"]
    counted = sum(ended.stage_outcomes.values())
    steady = [row for row in ended.rows if row["phase"] == "steady"]
    assert ended.code == 0, ended.output
    measured = [row for row in ended.stages if row["phase"] == "steady" and row["stage"] == "run"]
    assert len(steady) == 40 == sum(int(row["requests_ok"]) for row in measured) / 2
    assert 40 <= counted <= len(ended.rows) <= asked
    assert counted < asked  # the first users ask for seconds before the others are there
    assert [found for found in ended.summary["verdict"]["findings"] if "the numbers were reset after" in found]
    assert not [reason for reason in ended.summary["verdict"]["reasons"] if "differ" in reason]


def test_csv_options_of_locust_work_beside_ours(lab: Lab) -> None:
    """C15: --processes, --csv and --csv-full-history: every file whole, as many cells in each line."""
    csv_options = ("--csv", str(lab.folder / "out"), "--csv-full-history")
    with start_mock(*FAST) as mock:
        ended = run(lab, mock.url, *FOUR, "--llm-requests", "60", *csv_options, *ALL, forked=True)
    assert ended.code == 0, ended.output
    assert "Traceback" not in ended.output
    assert_booked_once(ended)
    for name in ("stats", "stats_history", "failures", "exceptions"):
        assert_rectangular(lab.folder / f"out_{name}.csv")
    for name in ("requests", "stages", "timeline"):
        assert_rectangular(lab.runs[-1] / f"{name}.csv")
    (aggregated,) = [row for row in table(lab.folder / "out_stats.csv") if row["Name"] == "Aggregated"]
    assert int(aggregated["Request Count"]) == len(ended.rows)


def assert_rectangular(path: Path) -> None:
    """One header, and as many cells in each line."""
    with open(path, newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    assert {len(line) for line in lines} == {len(lines[0])}, path
    assert lines.count(lines[0]) == 1


def test_report_of_three_seconds_is_small() -> None:
    """C16: 75 requests of 50 users in a report of 3 s: under 64 KB, whatever the number of tokens."""
    sizes = [size_of_a_report(tokens) for tokens in (10, 100, 1000)]
    assert max(sizes) < 64 * 1024
    assert max(sizes) < 1.1 * min(sizes)


def size_of_a_report(tokens: int) -> int:
    """Book 75 requests of so many tokens, and encode the report."""
    desk = Desk()
    for _ in range(75):
        desk.request(tokens=tokens)
    outbox = Outbox("run")
    for delta in desk.deltas():
        outbox.add(delta)
    assert len(outbox) == 1
    return len(msgspec.msgpack.encode(outbox.message()))


# ---- users and workers ----


def test_fewer_users_than_workers(lab: Lab) -> None:
    """C18: one user on two workers: the idle worker takes part in nothing, and holds nothing up."""
    with start_mock(*FAST) as mock:
        ended = run(lab, mock.url, "-u", "1", "--llm-requests", "5", forked=True)
    assert ended.code == 0, ended.output
    assert len({row["worker"] for row in ended.rows}) == 1
    assert sum(row["phase"] == "steady" for row in ended.rows) == 5
    assert_booked_once(ended)


@pytest.mark.parametrize("law", [(), ("--llm-rate", "20", "--llm-arrivals", "constant")], ids=["closed", "open"])
def test_users_that_come_one_after_the_other_share_the_requests(lab: Lab, law: tuple[str, ...]) -> None:
    """C18: the first user is on one worker alone; when measuring begins, four on two issue as many on each."""
    with start_mock("--profile", "fast", "--ttft-ms", "50", "--itl-ms", "20") as mock:
        ended = run(lab, mock.url, "-u", "4", "-r", "2", "--llm-requests", "40", *law, forked=True)
    assert ended.code == 0, ended.output
    steady = [row for row in ended.rows if row["phase"] == "steady"]
    assert sorted(Counter(row["worker"] for row in steady).values()) == [20, 20]
    (row,) = [row for row in ended.stages if (row["stage"], row["name"], row["phase"]) == ("run", "all", "steady")]
    assert float(row["concurrency_mean"]) > 0.75 * 4
    assert_booked_once(ended)


def test_users_that_do_not_divide_evenly(lab: Lab) -> None:
    """C18: 7 users on 2 workers are 7 streams in flight, at the server too."""
    with start_mock("--profile", "fast", "--ttft-ms", "300", "--itl-ms", "5") as mock:
        ended = run(lab, mock.url, "-u", "7", "-r", "7", "--llm-requests", "28", "--llm-start", "together", forked=True)
    (row,) = [
        row for row in ended.stages if row["name"] == "all" and row["phase"] == "steady" and row["stage"] == "run"
    ]
    assert row["users"] == "7"
    assert int(row["concurrency_peak"]) == 7
    assert sum(line["phase"] == "steady" for line in ended.rows) == 28
    assert_booked_once(ended)


def test_stage_shorter_than_its_ramp_is_refused_in_both_modes(lab: Lab) -> None:
    """C17: 20 users at 2 a second in a stage of 3 s: refused before any load, with the arithmetic."""
    args = ("--llm-shape", "concurrency-steps", "--llm-levels", "20", "--llm-hold", "3s", "--llm-spawn-rate", "2")
    with start_mock(*FAST) as mock:
        local = lab.local(*real(mock), *args, file=LLM)
        forked = lab.forked(*real(mock), *args, file=LLM)
        codes = [process.wait() for process in (local, forked)]
        assert mock.truth()["requests"] == 0
    assert codes == [1, 1]
    for process in (local, forked):
        assert "10" in process.output
        assert "3s" in process.output.replace("3 s", "3s")
    assert lab.runs == []


@pytest.mark.slow
def test_killed_worker_that_is_replaced(lab: Lab) -> None:
    """C09: one of two workers is killed, a third joins: nothing subtracted, nothing twice, the lost one is named."""
    with start_mock("--profile", "fast", "--ttft-ms", "100", "--itl-ms", "50") as mock:
        master = lab.master(*real(mock), *FOUR, "-t", "16", file=LLM)
        workers = [lab.worker(*real(mock), file=LLM) for _ in range(2)]
        master.wait_for("All users spawned")
        time.sleep(4)
        os.kill(workers[1].process.pid, signal.SIGKILL)
        time.sleep(2)
        lab.worker(*real(mock), file=LLM)
        code = master.wait(60)
        ended = end_of(lab, code, master.output)
        sent = Counter(line["request_id"] for line in mock.lines())
    assert ended.code == 0, ended.output
    assert len({row["request_id"] for row in ended.rows}) == len(ended.rows)
    assert max(sent.values()) == 1
    assert {row["client_request_id"] for row in ended.rows} <= set(sent)
    assert sorted(worker["lost"] for worker in ended.summary["workers"]) == [False, False, True]
    assert any("lost: last report at" in finding for finding in ended.summary["verdict"]["findings"])
    assert not [reason for reason in ended.summary["verdict"]["reasons"] if "differ" in reason]
    # At most what the lost worker had not reported (3 s of 2 users) is missing from the server's account.
    assert len(sent) - len(ended.rows) <= 2 * 3 / 0.45 + 2
    last = [
        float(second["in_flight"]) for second in table(lab.runs[-1] / "timeline.csv") if second["phase"] == "steady"
    ]
    assert max(last[-3:]) <= 4.01  # the lost worker's streams are in flight no more


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_killed_master_leaves_readable_files(lab: Lab) -> None:
    """C12: kill -9 on the master: whole lines up to the last flush; a new master counts nothing of the old run.

    The old workers go on reporting to the new master's port until Locust's limit of 60 s without heartbeat.
    """
    with start_mock(*FAST) as mock:
        master = lab.master(*real(mock), *FOUR, file=LLM)
        orphans = [lab.worker(*real(mock), file=LLM) for _ in range(2)]
        master.wait_for("All users spawned")
        time.sleep(9)
        master.signal(signal.SIGKILL)
        killed_s = time.time()
        master.process.wait()
        old = lab.runs[-1]
        for name in ("requests.csv", "timeline.csv"):
            assert_rectangular(old / name)
        assert max(float(row["start_epoch_s"]) for row in table(old / "requests.csv")) > killed_s - 10
        assert json.loads((old / "summary.json").read_text())["state"] == "running"
        before = (old / "requests.csv").read_bytes()
        again = lab.master(*real(mock), *FOUR, "-t", "8", file=LLM)
        for _ in range(2):
            lab.worker(*real(mock), file=LLM)
        code = again.wait(60)
        ended = end_of(lab, code, again.output)
        assert ended.code == 0, ended.output
        assert {row["run_id"] for row in ended.rows} == {ended.summary["run_id"]}
        assert len({row["worker"] for row in ended.rows}) == 2
        assert not [reason for reason in ended.summary["verdict"]["reasons"] if "differ" in reason]
        assert (old / "requests.csv").read_bytes() == before
        assert_booked_once(ended)
        for orphan in orphans:
            orphan.wait(90)
        until(lambda: mock.truth()["in_flight"] == 0, 5, lambda: "streams of workers without a master")


# ---- the receive path ----


def test_stream_is_read_as_it_comes(tmp_path: Path) -> None:
    """C20: 20 small events, one each 100 ms, then 700 CJK characters: first token at 100 ms, no U+FFFD.

    Blocks of 1024 bytes (FastHttpSession.iter_lines, Locust 2.47) give the first line at 1.8 s.
    """
    event = 'data: {{"choices":[{{"index":0,"delta":{{"content":"{}"}}}}]}}\n\n'
    wide = "a" + "語" * 700
    segments = [[100 * (i + 1), event.format("x")] for i in range(20)] + [[2100, event.format(wide)]]
    stop = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    for segment in (*segments, [2110, stop]):
        segment[1] = str(segment[1]).encode().decode("latin1")
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"/v1/chat/completions": [*segments, [2110, stop]]}))
    with start_mock("--profile", "fast", "--script", str(path)) as mock:
        seen = client_for(AskOptions(host=mock.url))
        answer = seen.client.chat("Hi")
        seen.client.close()
    record = seen.record
    assert (record.outcome.value, record.chunks, answer.text) == ("ok", 21, "x" * 20 + wide)
    assert record.ttft_ns is not None
    assert 99 <= record.ttft_ns / 1e6 < 200
    gaps_ms = sorted(gap / 1e6 for gap in seen.samples.icl_ns)
    assert gaps_ms[10] == pytest.approx(100, abs=20)
    assert len(seen.events) == 1
    assert seen.events[0]["response_time"] > 2000


# ---- exit codes ----

CODES = {
    "a: one failure": ((), 1),
    "b: within the limit": (("--llm-slo", "error_rate <= 10%"), 0),
    "b: over the limit": (("--llm-slo", "error_rate <= 1%"), 3),
    "a: Locust's own option": (("--exit-code-on-error", "0"), 0),
}


@pytest.mark.parametrize(("args", "code"), CODES.values(), ids=CODES.keys())
def test_exit_code_of_few_failures(lab: Lab, args: tuple[str, ...], code: int) -> None:
    """C24: few of 60 requests fail: 1 as Locust has it; with an SLO the SLO alone decides."""
    with start_mock(*FAST, "--fault", "http_error=0.04", "--seed", "9") as mock:
        ended = run(lab, mock.url, "-u", "2", "-r", "2", "--llm-requests", "60", *args, *ALL)
    assert 1 <= ended.outcomes["http_error"] <= 6
    assert ended.code == code, ended.output
    assert_booked_once(ended)


def test_exit_code_when_an_slo_has_no_sample(lab: Lab) -> None:
    """C24: TTFT p95 of no success: no data is no pass."""
    with start_mock(*FAST, "--fault", "http_error") as mock:
        ended = run(lab, mock.url, "-u", "1", "--llm-requests", "2", "--llm-slo", "ttft p95 < 500ms", *ALL)
    assert ended.code == 3, ended.output


@pytest.mark.parametrize("forked", [False, True], ids=["local", "two workers"])
def test_exit_code_when_a_listener_raises(lab: Lab, forked: bool) -> None:
    """C24: no failed request, a broken listener: not 0, and its cause is printed."""
    with start_mock(*FAST) as mock:
        args = ("-u", "2", "-r", "2", "--llm-requests", "4", *ALL)
        ended = run(lab, mock.url, *args, file=Path(__file__).with_name("failing_listener.py"), forked=forked)
    assert set(ended.outcomes) == {"ok"}
    assert ended.code == 2, ended.output
    assert "my dashboard" in ended.output


# ---- tokenizers ----


def test_long_text_is_counted_beside_the_hub(tmp_path: Path) -> None:
    """C23: counting 100,000 tokens without usage leaves the hub free: other users' reads and heartbeats go on."""
    words = Tokenizer(models.WordLevel({"?": 0, "word": 1}, unk_token="?"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    counter = open_tokenizer(str(tmp_path))
    flight = Flight(reader=get_dialect("openai-chat").reader(stream=True), asked=AskFacts())
    text = "word " * 100_000
    chunk = {"choices": [{"index": 0, "delta": {"content": text}}]}
    flight.timeline.add(flight.reader.event(json.dumps(chunk).encode()), 1)
    ticks: list[float] = []

    def tick() -> None:
        while True:
            gevent.sleep(0.001)
            ticks.append(time.perf_counter())

    ticker = gevent.spawn(tick)
    gevent.sleep(0.01)
    began = time.perf_counter()
    count_tokens(flight, counter)
    took_s = time.perf_counter() - began
    ticker.kill()
    inside = [at for at in ticks if at > began]
    longest_s = max(later - earlier for earlier, later in pairwise([began, *inside]))
    assert flight.counted_tokens == 100_000
    assert longest_s < max(0.05, took_s / 3)
