"""Real requests over sockets to the embedded server: what it says it completed is what the run says.

The server is a process of its own, with a truth of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from benchmarks.rig.locusts import ROOT, Lab
from benchmarks.rig.mock_process import MockProcess, start_mock

LLM = ROOT / "locustfiles" / "llm.py"
SHORT = ("--llm-input-tokens", "16", "--llm-output-tokens", "10", "--llm-model", "m")


@pytest.fixture
def mock() -> Iterator[MockProcess]:
    """A quick server."""
    with start_mock("--profile", "fast", "--ttft-ms", "20", "--itl-ms", "20") as running:
        yield running


def run_on(lab: Lab, server: MockProcess, *args: str, forked: bool = False) -> str:
    """Run to the end; return what was printed."""
    binding = (*lab.binding, "--processes", "2") if forked else ()
    run = lab.locust("--headless", "--host", server.url, *SHORT, *binding, *args, file=LLM)
    code = run.wait()
    return f"{run.output}\nexit code {code}"


@pytest.mark.parametrize("forked", [pytest.param(False, marks=pytest.mark.slow), True], ids=["local", "two workers"])
def test_rows_are_what_the_server_completed(lab: Lab, mock: MockProcess, forked: bool) -> None:
    """Stop by run-time in mid-stream: the master's rows are the server's requests, tokens and all."""
    output = run_on(lab, mock, "-u", "6", "-r", "6", "-t", "4", forked=forked)
    assert "exit code 0" in output, output
    rows = {row["client_request_id"]: row for row in lab.rows()}
    sent = {line["request_id"]: line for line in mock.lines() if line["request_id"] in rows}
    assert len(rows) == len(lab.rows()) == len(sent)
    assert {row["outcome"] for row in rows.values()} == {"ok"}
    assert all(int(row["output_tokens"]) == sent[name]["output_tokens"] for name, row in rows.items())
    assert not [reason for reason in lab.summary()["verdict"]["reasons"] if "differ" in reason]


def test_raw_failures_and_arrivals_are_kept_beside_the_process(lab: Lab) -> None:
    """The first N raw answers of an outcome, and every arrival; a cut stream's bytes are what came."""
    with start_mock(
        "--profile", "fast", "--ttft-ms", "5", "--itl-ms", "2", "--fault", "cut=1", "--fault-after", "5"
    ) as m:
        args = ("--llm-save-failures", "2", "--llm-save-arrivals", "--llm-requests", "4", "--llm-no-preflight")
        output = run_on(lab, m, "-u", "2", "-r", "2", *args)
    assert "exit code 1" in output, output
    folder = lab.runs[-1]
    kept = sorted((folder / "failures").glob("cut-*.bin"))
    assert len(kept) == 2
    assert all(path.read_bytes().startswith(b"data: {") for path in kept)
    lines = [json.loads(line) for line in next(folder.glob("arrivals-*.jsonl")).read_text().splitlines()]
    assert len(lines) == len(lab.rows())
    by_id = {row["request_id"]: row for row in lab.rows()}
    for line in lines:
        row = by_id[str(line["request_id"])]
        assert len(line["arrivals_ms"]) == int(row["chunks"])
        assert line["arrivals_ms"][0] == pytest.approx(float(row["ttft_ms"]), abs=1e-4)
        assert sum(line["tokens"]) == int(row["output_tokens"])


BAD = {
    "unreachable host": (("--host", "http://127.0.0.1:9"), "cannot connect"),
    "wrong key": (("--llm-api-key", "wrong"), "401"),
    "wrong model": (("--llm-model", "other"), "404"),
}


@pytest.mark.parametrize(("args", "says"), BAD.values(), ids=BAD.keys())
def test_bad_server_gives_one_clear_line_and_no_load(lab: Lab, args: tuple[str, ...], says: str) -> None:
    """The pre-flight finds it: exit code 1, no folder of a run."""
    with start_mock("--profile", "fast", "--api-key", "right", "--model", "m") as server:
        key = () if "--llm-api-key" in args else ("--llm-api-key", "right")
        run = lab.locust("--headless", "--host", server.url, *SHORT, *key, "-t", "2", *args, file=LLM)
        assert run.wait() == 1, run.output
    told = [line for line in run.output.splitlines() if line.startswith("llm-locust: ")]
    assert len(told) == 1, run.output
    assert says in told[0]
    assert lab.runs == []


def test_importing_the_suite_makes_nothing() -> None:
    """No socket, hub, clock, generator, tokenizer or TLS context before `init`: `--processes` forks after imports."""
    code = (
        "import gc, socket, ssl\n"
        "import locust, gevent.hub, numpy\n"
        "kinds = (socket.socket, ssl.SSLContext, numpy.random.Generator)\n"
        "def made(): return {id(found) for found in gc.get_objects() if isinstance(found, kinds)}\n"
        "hub = gevent.hub._get_hub()\n"
        "before = made()  # requests, which Locust imports, makes a TLS context\n"
        "from llm_locust import *\n"
        "import llm_locust.plugin.listeners\n"
        "from llm_locust.wire import clock\n"
        "assert not clock._of_process\n"
        "assert not made() - before\n"
        "assert gevent.hub._get_hub() is hub\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
