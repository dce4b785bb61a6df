"""NVIDIA Dynamo's front end with its mocker: a production HTTP front end that installs in seconds.

`python -m tests.real.dynamo install FOLDER` makes its environment; `serving(...)` runs both
processes. The engine behind the front end is a scheduler model: token ids are random, timing is not.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

VERSION = "1.6.1"
PLANES = ("--discovery-backend", "file", "--request-plane", "tcp", "--event-plane", "zmq")
CONTEXT_TOKENS = 8192
_READY_S = 60


def install(folder: Path) -> None:
    """Make the environment once; the wheels are about 100 MB."""
    stamp = folder / f".dynamo-{VERSION}"
    if stamp.exists():
        return
    venv.create(folder, with_pip=True, clear=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, f"ai-dynamo-runtime=={VERSION}", "packaging", "pyyaml", "msgspec"], check=True)
    subprocess.run([*pip, "--no-deps", f"ai-dynamo=={VERSION}"], check=True)
    stamp.touch()


@contextmanager
def serving(environment: Path, model: Path, work: Path, port: int) -> Iterator[str]:
    """Run front end and mocker on 127.0.0.1; give the URL once the model is listed; end both by pid."""
    python = str(environment / "bin" / "python")
    variables = os.environ | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "DYN_FILE_KV": str(work / "store")}
    (work / "store").mkdir()
    front = [python, "-m", "dynamo.frontend", "--http-host", "127.0.0.1", "--http-port", str(port), *PLANES]
    engine = [python, "-m", "dynamo.mocker", "--model-path", str(model), "--model-name", "tiny", *PLANES]
    engine += ["--max-model-len", str(CONTEXT_TOKENS), "--speedup-ratio", "1"]
    with (work / "dynamo.log").open("w") as log:
        started = [subprocess.Popen(c, env=variables, cwd=work, stdout=log, stderr=log) for c in (front, engine)]
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_listed(url, work / "dynamo.log")
            yield url
        finally:
            for process in started:
                process.terminate()
            for process in started:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                if process.poll() is None:
                    process.kill()
                    process.wait()


def _wait_until_listed(url: str, log: Path) -> None:
    limit = time.monotonic() + _READY_S
    while time.monotonic() < limit:
        with suppress(OSError), urllib.request.urlopen(f"{url}/v1/models", timeout=2) as answer:
            if b'"tiny"' in answer.read():
                return
        time.sleep(0.25)
    raise AssertionError(f"Dynamo lists no model after {_READY_S} s:\n{log.read_text()[-3000:]}")


def figures(url: str) -> dict[str, float]:
    """Read the front end's own counters: requests, output tokens, mean TTFT and mean token gap (ms)."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if not sample.name.endswith("_bucket"):
                sums[sample.name] = sums.get(sample.name, 0.0) + sample.value
    front = "dynamo_frontend_"
    return {
        "requests": sums[f"{front}requests_total"],
        "output_tokens": sums[f"{front}output_tokens_total"],
        "ttft_s": sums[f"{front}time_to_first_token_seconds_sum"],
        "ttft_count": sums[f"{front}time_to_first_token_seconds_count"],
        "itl_s": sums[f"{front}inter_token_latency_seconds_sum"],
        "itl_count": sums[f"{front}inter_token_latency_seconds_count"],
    }


if __name__ == "__main__":
    install(Path(sys.argv[2]))
