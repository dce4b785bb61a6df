"""SGLang on a CPU with a tiny model: its HTTP layer, tokenizer manager, scheduler and detokenizer, unmodified.

    python -m tests.real.sglang --install FOLDER --run

The build of torch that SGLang pins comes from pip's index (several GB, runs without a GPU). A stand-in takes the
place of one package of kernels that no index carries for CPUs: trust the order of what happens here, not its speed.
The server's levers make it the best witness of stalls and aborts: they do to real streams what we must notice.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.rig.tiny_model import make_model
from tests.real.comparison import Line, gap_line, way_line
from tests.real.counters import Counters, growth
from tests.real.environment import make_environment
from tests.real.exam import Exam, Served, Subject, all_failed, compared, main, mean_ms, settled, struck
from tests.real.process import running, wait_until_ready
from tests.real.quickstart import WITHOUT_WARMUP, Load, Run

HERE = Path(__file__).resolve().parent
VERSION = "0.5.23"
TORCH = ("torch==2.14.1", "torchvision==0.29.1")
PAUSE_S = 3.0
_READY_S = 240.0
_STEPS_MS = 150.0
"""A step of the engine before the pause and one after it belong to the gap."""
_ONE_BY_ONE = (("openai-chat", 1), ("sglang-generate", 1))
_TOGETHER = (("openai-chat", 4), ("openai-completions", 4), ("sglang-generate", 4))
_LONG = Load(users=4, requests=4, output_tokens=600, more=WITHOUT_WARMUP)
_RUNNING = "sglang:num_running_reqs"


def install(folder: Path, wheels: Path | None) -> None:
    """Make the environment, without the packages that only a GPU needs, and the model."""
    needed = (HERE / "sglang_requirements.txt").read_text().split()
    make_environment(folder, [["--no-deps", f"sglang=={VERSION}"], [*TORCH, *needed]], wheels)
    make_model(folder / "model")


@contextmanager
def serving(folder: Path, work: Path, port: int) -> Iterator[Served]:
    """Run the server on 127.0.0.1 until the end of the block."""
    command = [str(folder / "bin" / "python"), "-m", "sglang.launch_server", "--model-path", str(folder / "model")]
    command += ["--served-model-name", "tiny", "--device", "cpu", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--dtype", "float32", "--mem-fraction-static", "0.1", "--max-total-tokens", "16384"]
    command += ["--max-running-requests", "16", "--attention-backend", "torch_native", "--sampling-backend", "pytorch"]
    command += ["--disable-cuda-graph", "--disable-overlap-schedule", "--skip-server-warmup"]
    command += ["--enable-metrics", "--enable-cache-report"]
    variables = {"SGLANG_USE_CPU_ENGINE": "1", "PYTHONPATH": str(HERE / "stand_in")}
    log, url = work / "sglang.log", f"http://127.0.0.1:{port}"
    with running(command, log, folder=work, variables=variables) as process:
        wait_until_ready(process, f"{url}/health", log, _READY_S)
        yield Served(url, process)


def exams(served: Served, work: Path) -> Iterator[Exam]:
    """Three dialects, then the levers on open streams."""
    for dialect, users in (*_ONE_BY_ONE, *_TOGETHER):
        load = Load(dialect, users=users, requests=16 * users, output_tokens=64, more=WITHOUT_WARMUP)
        yield load.title, compared(served, work, load, judge)
    yield f"paused for {PAUSE_S:.0f} s in mid-stream", paused(served, work / "paused")
    yield f"paused for {PAUSE_S:.0f} s, stall limit 1 s", paused_beyond_limit(served, work / "stalled")
    yield "aborted in mid-stream", aborted(served, work / "aborted")


def judge(run: Run, counted: Counters) -> Sequence[Line]:
    """Compare with SGLang's own histograms; its clock starts when the request is taken up."""
    gap_ms = run.gap_mean_ms()
    return (
        Line("requests", len(run.rows), counted["sglang:num_requests_total"]),
        Line("input tokens", run.total("input_tokens"), counted["sglang:prompt_tokens_total"]),
        Line("output tokens", run.total("output_tokens"), counted["sglang:generation_tokens_total"]),
        Line("cached input tokens", run.total("cached_tokens"), counted.get("sglang:cached_tokens_total", 0.0)),
        way_line("TTFT mean", run.mean("ttft_ms"), mean_ms(counted, "sglang:time_to_first_token_seconds"), gap_ms),
        way_line("E2E mean", run.mean("e2e_ms"), mean_ms(counted, "sglang:e2e_request_latency_seconds"), gap_ms),
        gap_line("TPOT mean", run.mean("tpot_ms"), mean_ms(counted, "sglang:request_time_per_output_token_seconds")),
        gap_line("token gap mean", gap_ms, mean_ms(counted, "sglang:inter_token_latency_seconds")),
        gap_line("ITL mean", run.itl_mean_ms(), mean_ms(counted, "sglang:inter_token_latency_seconds")),
    )


def paused(served: Served, work: Path) -> Sequence[Line]:
    """Hold the engine: every open stream has one gap as long as the pause, and ends well."""
    run, (least_s, most_s) = struck(served, work, _LONG, _RUNNING, lambda: _pause(served))
    least_ms, spread_ms = 1000 * least_s, 1000 * (most_s - least_s) + _STEPS_MS
    why = "the lever's ways, the steps before and after"
    gaps_ms = [float(row["icl_max_ms"]) for row in run.rows]
    return (
        Line("exit code", run.code, 0),
        Line("ok", run.outcomes().get("ok", 0), _LONG.users),
        Line("longest gap, least of the streams (ms)", min(gaps_ms), least_ms, spread_ms, why, early=0.0),
        Line("longest gap, most of the streams (ms)", max(gaps_ms), least_ms, spread_ms, why, early=0.0),
    )


def paused_beyond_limit(served: Served, work: Path) -> Sequence[Line]:
    """Hold the engine for longer than the stall limit: every stream is given up as a stall, none is a success."""
    load = Load(users=4, requests=4, output_tokens=600, more=(*WITHOUT_WARMUP, "--llm-stall-timeout", "1s"))
    run, _ = struck(served, work, load, _RUNNING, lambda: _pause(served))
    return all_failed(run, load, "timeout_stall")


def aborted(served: Served, work: Path) -> Sequence[Line]:
    """Abort what runs: status 200, usage, [DONE], a clean end; and no success."""
    run, _ = struck(served, work, _LONG, _RUNNING, lambda: _pull(served, "abort_request", {"abort_all": True}))
    counted = growth(run.before, settled(served.url, work / "after.txt"))
    reasons = {row["finish_reason"] for row in run.rows}
    return (
        *all_failed(run, _LONG, "aborted"),
        Line("aborted, abort calls", run.outcomes().get("aborted", 0), counted["sglang:num_aborted_requests_total"],
             None, "the server counts the calls, not the requests"),
        Line('finish reason is "abort"', int(reasons == {"abort"}), 1),
    )  # fmt: skip


def _pause(served: Served) -> tuple[float, float]:
    """Hold the engine; return for how many seconds it was held, at least and at most."""
    asked = time.monotonic()
    _pull(served, "pause_generation", {"mode": "in_place"})
    held = time.monotonic()
    time.sleep(PAUSE_S)
    released = time.monotonic()
    _pull(served, "continue_generation", {})
    return released - held, time.monotonic() - asked


def _pull(served: Served, lever: str, body: dict[str, Any]) -> None:
    content = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{served.url}/{lever}", json.dumps(body).encode(), content, method="POST")
    urllib.request.urlopen(request, timeout=30).close()


if __name__ == "__main__":
    sys.exit(main(Subject("sglang", install, serving, exams)))
