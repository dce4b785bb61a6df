"""The comparison with peers: what a report is judged by, and what a process tree used."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.lab import Sent
from benchmarks.peers import PEERS
from benchmarks.peers.__main__ import missed, times
from benchmarks.peers.compare import TAIL_NS, Comparison, ToolFailedError, compared, read
from benchmarks.peers.environments import bin_of, install, install_all
from benchmarks.peers.peer import Asked, Said
from benchmarks.peers.tree import Ended, TreeUsage, run_tree
from benchmarks.truth import Answer, expected_of, sent_ttft_ms
from benchmarks.venvs import NotInstallableError

MS = 1_000_000
EMPTY = "A02/V1 DONE only"
USAGE_ONLY = "A02/V3 server says one token (EOS only)"
BUNDLED = "A31/V2 same times, only final usage"


@pytest.mark.parametrize(
    ("case", "told", "right"),
    [
        pytest.param(EMPTY, {"ok": 0}, True, id="a failure told as one"),
        pytest.param(EMPTY, {"ok": None}, True, id="no report claims no success"),
        pytest.param(EMPTY, {"ok": 2}, False, id="a failure told as success"),
        pytest.param(EMPTY, {"ok": 1}, False, id="one failure of two told as success"),
        pytest.param(EMPTY, {"ok": 0, "played": 0}, False, id="never asked"),
        pytest.param(USAGE_ONLY, {"ok": 2, "tokens": 2}, True, id="no first token, none claimed"),
        pytest.param(USAGE_ONLY, {"ok": 2, "tokens": 2, "ttft_ms": 0.0}, False, id="no first token, 0 claimed"),
        pytest.param(BUNDLED, {"ok": 2, "tokens": 32, "ttft_ms": 519.0, "sent_ttft_ms": 500.0}, True, id="all right"),
        pytest.param(BUNDLED, {"ok": 2, "tokens": 6, "ttft_ms": 500.0, "sent_ttft_ms": 500.0}, False, id="tokens"),
        pytest.param(BUNDLED, {"ok": 2, "tokens": 32, "ttft_ms": 521.0, "sent_ttft_ms": 500.0}, False, id="time"),
        pytest.param(BUNDLED, {"ok": None}, False, id="no report of a success"),
    ],
)
def test_an_answer_is_right_when_outcome_tokens_and_time_are(case: str, told: dict[str, Any], right: bool) -> None:
    """Each of the three alone makes it wrong."""
    answer = Answer(**{"case": case, "tool": "t", "requests": 2, "played": 2, **told})
    assert answer.right(expected_of(case)) is right
    assert answer.cell(expected_of(case)).startswith("**") is not right


def test_the_time_sent_is_that_of_the_first_tokens_segment() -> None:
    """A02/V3 has none; in A31/V2 it is the first segment after the head, late by what the server says."""
    played = [{"arrival_ns": 5, "segment_send_ns": [6, 5 + 503 * MS, 5 + 580 * MS]}]
    assert sent_ttft_ms(BUNDLED, played) == 503.0
    assert sent_ttft_ms(USAGE_ONLY, played) is None
    assert sent_ttft_ms(BUNDLED, []) is None
    assert sent_ttft_ms("A12/V1 RAW no zero chunk, FIN", [{"arrival_ns": 5, "segment_send_ns": [6, 5 + MS]}]) == 1.0


def test_what_was_sent_is_judged_without_warm_up_and_unfinished_requests() -> None:
    """The last complete requests by arrival are the measured ones, whatever order the file has."""
    sent = [
        Sent("b", 200 * MS, np.array([260 * MS, 290 * MS, 300 * MS], np.int64)),
        Sent("warm", 0, np.array([90 * MS, 100 * MS, 110 * MS], np.int64)),
        Sent("cut", 250 * MS, np.array([290 * MS, 310 * MS], np.int64)),
        Sent("a", 100 * MS, np.array([150 * MS, 170 * MS, 190 * MS], np.int64)),
    ]
    usage = TreeUsage(rows=[(0, 1.0), (90 * MS, 1.5), (310 * MS, 2.25), (900 * MS, 4.0)], total_cpu_s=4.5)
    one = compared("t", Said(2), sent, 2, Ended(0, "", usage, False))
    assert (one.requests_sent, one.tokens_sent, one.load_s, one.cpu_s) == (2, 6, 0.2, 4.5)
    cpu_s = usage.cpu_s(100 * MS, 300 * MS + TAIL_NS)
    assert (one.tokens_under_load, one.cpu_load_s) == (6 + 2 + 1, cpu_s)
    assert one.cpu_us_a_token == pytest.approx(cpu_s / 9 * 1e6)
    assert one.sent["ttft_ms"] == {"mean": 55.0, "p50": 50.0, "p99": 60.0, "max": 60.0}
    assert one.sent["itl_ms"]["max"] == 30.0
    assert one.sent["tpot_ms"]["mean"] == 20.0


def test_cpu_is_taken_evenly_between_samples() -> None:
    """Samples each 100 ms: half a core at first, then a whole one; nothing is known after the last."""
    usage = TreeUsage(rows=[(0, 0.0), (100 * MS, 0.05), (200 * MS, 0.15)])
    assert usage.cpu_s(50 * MS, 150 * MS) == pytest.approx(0.025 + 0.05)
    assert usage.cpu_s(100 * MS, 900 * MS) == pytest.approx(0.10)


def test_the_products_cpu_is_held_against_each_tools_of_the_same_round(capsys: pytest.CaptureFixture[str]) -> None:
    """1.25 × the Rust client's is allowed, of any other less than once; medians of ratios, not of CPU."""

    def used(tool: str, number: int, us: float) -> Comparison:
        return Comparison(tool, Said(), {}, 1, 1, 1_000_000, 1.0, us, us, 1.0, 1.0, 1, {"round": number})

    rust, python = (PEERS[name].name for name in ("sglang-rust", "sglang"))
    found = [used(tool, number, us * slow) for number, slow in enumerate((1.0, 3.0, 1.5))
             for tool, us in (("llm-locust", 12.4), (rust, 10.0), (python, 20.0))]  # fmt: skip
    assert times(found, "llm-locust", rust) == pytest.approx(1.24)
    assert times(found, "llm-locust", PEERS["vllm"].name) is None
    assert not missed(found)
    cold = [used("llm-locust, no warm-up", number, 12.6) for number in range(3)]
    rusty = [one for one in found if one.tool == rust and one.notes["round"] == 0]
    assert missed([*cold, *rusty])
    assert f"no warm-up: 1.26 × the CPU a token of {rust} (1.25)" in capsys.readouterr().out
    assert missed([*cold, used(python, 0, 12.0)])


def test_a_tool_without_a_report_says_its_last_words(tmp_path: Path) -> None:
    """The reason is kept for the table."""
    with pytest.raises(ToolFailedError, match=r"exit code 3, FileNotFoundError\): it broke"):
        read(PEERS["vllm"], tmp_path, Ended(3, "it\nbroke\n", TreeUsage(), False))


def test_a_tool_that_cannot_be_installed_keeps_its_reason(tmp_path: Path) -> None:
    """The reason of the last try, else that there was none."""
    with pytest.raises(NotInstallableError, match="not installed"):
        bin_of(tmp_path, PEERS["vllm"])
    (tmp_path / "vllm.reason").write_text("pip: no wheel\n")
    with pytest.raises(NotInstallableError, match="pip: no wheel"):
        bin_of(tmp_path, PEERS["vllm"])


def test_a_failed_install_leaves_pips_reason_and_nothing_that_looks_installed(tmp_path: Path) -> None:
    """A package that pip does not find, without asking any index."""
    peer = replace(PEERS["vllm"], steps=(("--no-index", "--no-deps", "no-such-load-generator"),))
    with pytest.raises(NotInstallableError, match="No matching distribution found for no-such-load-generator"):
        install(tmp_path, peer)
    with pytest.raises(NotInstallableError, match="No matching distribution found"):
        bin_of(tmp_path, peer)
    reasons = install_all(tmp_path, [peer, replace(peer, name="ours", environment="")])
    assert list(reasons) == [peer.name]
    assert "No matching distribution found" in reasons[peer.name]


def test_commands_name_only_the_address_they_were_given(tmp_path: Path) -> None:
    """Every tool is asked for the same load, of this server."""
    asked = Asked("http://127.0.0.1:9", tmp_path, tmp_path, 4, 8, 20)
    for peer in PEERS.values():
        line = " ".join(peer.command(Path("/env/bin"), asked))
        assert {found.split("/")[2] for found in re.findall(r"https?://[^\s\"]+", line)} == {"127.0.0.1:9"}


CHILD = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"


def test_a_trees_cpu_holds_that_of_its_children(tmp_path: Path) -> None:
    """A process that only waits for a busy child has used the child's time."""
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}]); print('done')"
    ended = run_tree([sys.executable, "-c", parent], tmp_path, environment={}, limit_s=30, pin=False)
    assert (ended.exit_code, ended.output.strip(), ended.late) == (0, "done", False)
    assert 0.3 <= ended.usage.total_cpu_s < 3
    assert ended.usage.processes >= 1


def test_a_tree_is_ended_at_the_limit(tmp_path: Path) -> None:
    """With its children."""
    ended = run_tree([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, environment={}, limit_s=0.3,
                     pin=False)  # fmt: skip
    assert ended.late
    assert ended.usage.wall_s < 20


VLLM_LIKE = {
    f"{kind}_{metric}_ms": number
    for metric, base in (("ttft", 50.0), ("itl", 20.0), ("tpot", 21.0))
    for kind, number in (("mean", base), ("median", base + 1), ("p99", base + 2))
}


def test_reports_of_sglang_and_vllm_are_read(tmp_path: Path) -> None:
    """Made-up reports in their forms; sglang appends a line a run and does not count failures."""
    ttft, itl, tpot = ({"mean": base, "p50": base + 1, "p99": base + 2} for base in (50.0, 20.0, 21.0))
    told = {"completed": 7, "failed": 1, "total_output_tokens": 140, **VLLM_LIKE}
    (tmp_path / "told.json").write_text(json.dumps(told))
    (tmp_path / "told.jsonl").write_text(json.dumps({**told, "completed": 1}) + "\n" + json.dumps(told) + "\n")
    assert PEERS["vllm"].read(tmp_path) == Said(7, 1, 140, ttft, itl, tpot)
    assert PEERS["sglang"].read(tmp_path) == PEERS["sglang-rust"].read(tmp_path) == Said(7, None, 140, ttft, itl, tpot)


def write(folder: Path, name: str, told: Any) -> None:
    """Write a made-up report."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(told))


def test_reports_of_the_other_tools_are_read(tmp_path: Path) -> None:
    """Made-up reports in their forms: other names, percentiles in rows, seconds, one ITL a request."""
    one, two = {"mean": 50.0, "p50": 51.0, "p99": 52.0}, {"mean": 20.0, "p50": 21.0, "p99": 22.0}
    avg = [{"avg": each["mean"], "p50": each["p50"], "p99": each["p99"]} for each in (one, two)]
    counts = {"request_count": {"avg": 7.0}, "error_request_count": {"avg": 1.0}}
    write(tmp_path, "a/profile_export_aiperf.json", {
        **counts, "total_usage_completion_tokens": {"avg": 140.0}, "time_to_first_token": avg[0],
        "inter_chunk_latency": avg[1], "inter_token_latency": avg[1],
    })  # fmt: skip
    assert PEERS["aiperf"].read(tmp_path / "a") == Said(7, 1, 140.0, one, two, two)

    rows = [{"Percentiles": f"{rank}%", **{f"{metric} (ms)": each[f"p{rank}"] for metric, each in
             (("TTFT", one), ("ITL", two), ("TPOT", two))}} for rank in (50, 99)]  # fmt: skip
    means = {"Avg TTFT (ms)": 50.0, "Avg ITL (ms)": 20.0, "Avg TPOT (ms)": 20.0, "Avg Output Tokens": 20.0}
    write(tmp_path, "e/benchmark_summary.json", {"Success Requests": 7, "Failed Requests": 1, **means})
    write(tmp_path, "e/benchmark_percentile.json", rows)
    assert PEERS["evalscope"].read(tmp_path / "e") == Said(7, 1, 140.0, one, two, two)

    seconds = [{kind: value / 1000 for kind, value in each.items()} for each in (one, two)]
    write(tmp_path, "g/told/run/D16_20_time_1s.json", {"aggregated_metrics": {
        "num_completed_requests": 7, "num_error_requests": 1,
        "stats": {"ttft": seconds[0], "tpot": seconds[1], "num_output_tokens": {"sum": 140.0}},
    }})  # fmt: skip
    assert PEERS["genai-bench"].read(tmp_path / "g") == Said(7, 1, 140.0, one, {}, two)

    successes = [{"successful": {"mean": each["mean"], "percentiles": each}} for each in (one, two)]
    write(tmp_path, "u/told.json", {"benchmarks": [{"metrics": {
        "request_totals": {"successful": 7, "errored": 1, "incomplete": 0},
        "output_token_count": {"successful": {"total_sum": 140.0}},
        "time_to_first_token_ms": successes[0], "inter_token_latency_ms": successes[1],
    }}]})  # fmt: skip
    assert PEERS["guidellm"].read(tmp_path / "u") == Said(7, 1, 140.0, one, tpot_ms=two)
