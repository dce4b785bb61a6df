"""NVIDIA Dynamo's front end with its mocker: a production HTTP front end that installs in seconds.

    python -m tests.real.dynamo --install FOLDER --run

The engine behind the front end is a scheduler model: token ids are random, timing is not.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.real.comparison import Line, time_line
from tests.real.counters import Counters
from tests.real.environment import make_environment
from tests.real.exam import Exam, Served, Subject, compared, main, mean_ms
from tests.real.process import running, wait_until_ready
from tests.real.quickstart import Load, Run
from tests.real.tiny_model import make_model

VERSION = "1.6.1"
PLANES = ("--discovery-backend", "file", "--request-plane", "tcp", "--event-plane", "zmq")
CONTEXT_TOKENS = 8192
LOAD = Load(users=8, requests=64)
_READY_S = 60.0


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
    """The quickstart, as the README has it."""
    yield LOAD.title, compared(served, work, LOAD, judge)


def judge(run: Run, counted: Counters) -> Sequence[Line]:
    """Compare with the front end's own counters and histograms."""
    front = "dynamo_frontend_"
    steady = [row for row in run.rows if row["phase"] == "steady"]
    by_usage = [row for row in run.rows if row["output_tokens_source"] == "usage"]
    ours_ms = run.mean("ttft_ms")
    return (
        Line("requests", len(run.rows), counted[f"{front}requests_total"]),
        Line("measured requests, and asked for", len(steady), LOAD.requests),
        Line("output tokens", run.total("output_tokens"), counted[f"{front}output_tokens_total"]),
        Line("output tokens, and asked for", run.total("output_tokens", by_usage), len(run.rows) * LOAD.output_tokens),
        time_line("TTFT mean", ours_ms, mean_ms(counted, f"{front}time_to_first_token_seconds"),
                  least_ms=10.0, share=0.25, why="HTTP before, the event's way after"),
        time_line("TPOT mean, token gap mean", run.mean("tpot_ms"),
                  mean_ms(counted, f"{front}inter_token_latency_seconds"),
                  least_ms=0.5, share=0.1, why="first and last event's ways differ"),
    )  # fmt: skip


SUBJECT = Subject("dynamo", install, serving, exams)

if __name__ == "__main__":
    sys.exit(main(SUBJECT))
