"""NVIDIA Dynamo's front end with its mocker: a production HTTP front end that installs in seconds.

    python -m tests.real.dynamo --install FOLDER --run

The engine behind the front end is a scheduler model: token ids are random, timing is not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from benchmarks.rig.tiny_model import make_model
from tests.real.comparison import Line, gap_line, way_line
from tests.real.counters import Counters
from tests.real.environment import make_environment
from tests.real.exam import Exam, Served, Subject, compared, main, mean_ms
from tests.real.process import running, wait_until_ready
from tests.real.quickstart import WITHOUT_WARMUP, Load, Run

VERSION = "1.6.1"
PLANES = ("--discovery-backend", "file", "--request-plane", "tcp", "--event-plane", "zmq")
CONTEXT_TOKENS = 8192
README = Load(users=8, requests=64)
UNKEPT = Load(users=8, requests=64, more=(*WITHOUT_WARMUP, "--no-llm-keep-alive"))
ACKNOWLEDGEMENT_MS = 40.0
"""How long a Linux client keeps an acknowledgement back on a connection that has been used before.

The front end does not set TCP_NODELAY: the first token of a kept connection waits for that of the head. This is what
every client of it sees, so it is in our TTFT; its own histogram knows nothing of it.
"""
_READY_S = 60.0
_FRONT = "dynamo_frontend_"


def install(folder: Path, wheels: Path | None) -> None:
    """Make the environment (about 100 MB of wheels) and the model."""
    runtime = [f"ai-dynamo-runtime=={VERSION}", "packaging", "pyyaml", "msgspec"]
    make_environment(folder, [runtime, ["--no-deps", f"ai-dynamo=={VERSION}"]], wheels)
    make_model(folder / "model")


@contextmanager
def serving(folder: Path, work: Path, port: int) -> Iterator[Served]:
    """Run front end and mocker on 127.0.0.1 until the end of the block."""
    python, model = str(folder / "bin" / "python"), str(folder / "model")
    (work / "store").mkdir()
    variables = {"DYN_FILE_KV": str(work / "store")}
    front = [python, "-m", "dynamo.frontend", "--http-host", "127.0.0.1", "--http-port", str(port), *PLANES]
    engine = [python, "-m", "dynamo.mocker", "--model-path", model, "--model-name", "tiny", *PLANES]
    engine += ["--max-model-len", str(CONTEXT_TOKENS), "--speedup-ratio", "1"]
    log, url = work / "dynamo.log", f"http://127.0.0.1:{port}"
    with (
        running(front, log, folder=work, variables=variables) as process,
        running(engine, log, folder=work, variables=variables),
    ):
        wait_until_ready(process, f"{url}/v1/models", log, _READY_S, within=b'"tiny"')
        yield Served(url, process)


def exams(served: Served, work: Path) -> Iterator[Exam]:
    """The quickstart as the README has it, and with a new connection for each request."""
    yield README.title, compared(served, work / "kept", README, on_kept_connections)
    yield f"{UNKEPT.title}, no keep-alive", compared(served, work / "unkept", UNKEPT, on_new_connections)


def on_kept_connections(run: Run, counted: Counters) -> Sequence[Line]:
    """Compare the counts; the first tokens may come late by the acknowledgement that is kept back."""
    steady = [row for row in run.rows if row["phase"] == "steady"]
    gap_ms, late_ms = run.gap_mean_ms(), ACKNOWLEDGEMENT_MS / README.output_tokens
    theirs_ms = mean_ms(counted, f"{_FRONT}inter_token_latency_seconds")
    first = way_line("TTFT mean", run.mean("ttft_ms"), _first_ms(counted), gap_ms)
    gap = gap_line("token gap mean", gap_ms, theirs_ms)
    why = "an acknowledgement kept back, see below"
    return (
        Line("measured requests, and asked for", len(steady), README.requests),
        *_counts(run, counted),
        replace(first, allowed=(first.allowed or 0.0) + ACKNOWLEDGEMENT_MS, why=why),
        replace(gap, early=(gap.allowed or 0.0) + late_ms, why=why),
        _whole(run, counted, gap_ms),
    )


def on_new_connections(run: Run, counted: Counters) -> Sequence[Line]:
    """Compare counts and times."""
    gap_ms = run.gap_mean_ms()
    return (
        *_counts(run, counted),
        way_line("TTFT mean", run.mean("ttft_ms"), _first_ms(counted), gap_ms),
        gap_line("token gap mean", gap_ms, mean_ms(counted, f"{_FRONT}inter_token_latency_seconds")),
        _whole(run, counted, gap_ms),
    )


def _counts(run: Run, counted: Counters) -> Sequence[Line]:
    by_usage = [row for row in run.rows if row["output_tokens_source"] == "usage"]
    return (
        Line("requests", len(run.rows), counted[f"{_FRONT}requests_total"]),
        Line("output tokens", run.total("output_tokens"), counted[f"{_FRONT}output_tokens_total"]),
        Line("by usage, and asked for", run.total("output_tokens", by_usage), len(run.rows) * README.output_tokens),
    )


def _first_ms(counted: Counters) -> float:
    return mean_ms(counted, f"{_FRONT}time_to_first_token_seconds")


def _whole(run: Run, counted: Counters, gap_ms: float) -> Line:
    return way_line(
        "whole stream, mean", run.mean("stream_end_ms"), mean_ms(counted, f"{_FRONT}request_duration_seconds"), gap_ms
    )


SUBJECT = Subject("dynamo", install, serving, exams)

if __name__ == "__main__":
    sys.exit(main(SUBJECT))
