"""Plays one level: the pacer on one core, a real `locust` with the whole product on another; compares their times."""

from __future__ import annotations

import csv
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import psutil  # type: ignore[import-untyped]  # ships no types
from numpy.typing import NDArray

from llm_locust.calibrate.pacer import READY
from llm_locust.calibrate.verdict import Level

TTFT_MS, GAP_MS = 50.0, 20.0
TOKENS = 64
REQUESTS = 2
START_LIMIT_S = 20.0
LEVEL_LIMIT_S = 90.0
SAMPLE_S = 0.1

Instants = NDArray[np.int64]


class CalibrationError(Exception):
    """A level could not be played; the text says why."""


def play(streams: int) -> Level:
    """Play one level (some 8 s). Raises CalibrationError."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        truth = folder / "truth.jsonl"
        with _pacer(truth) as port:
            samples = _run_worker(f"http://127.0.0.1:{port}", streams, folder)
        return read_level(streams, folder, truth, samples)


def _cores() -> tuple[int, int] | None:
    """Return a core for the server and one for the worker; None where there are no two, or no way to choose."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    cores = sorted(os.sched_getaffinity(0))
    return (cores[0], cores[-1]) if len(cores) > 1 else None


def _pin(pid: int, which: int) -> None:
    cores = _cores()
    if cores is not None:
        with suppress(OSError):
            os.sched_setaffinity(pid, {cores[which]})


@contextmanager
def _pacer(truth: Path) -> Iterator[int]:
    command = [sys.executable, "-m", "llm_locust.calibrate.pacer", "--truth", str(truth)]
    command += ["--ttft-ms", str(TTFT_MS), "--gap-ms", str(GAP_MS)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    _pin(process.pid, 0)
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], START_LIMIT_S)
        line = process.stdout.readline() if ready else ""
        if not line.startswith(READY):
            raise CalibrationError("the calibration's own server did not start")
        yield int(line.removeprefix(READY))
    finally:
        process.terminate()
        process.wait(START_LIMIT_S)
        if process.stdout is not None:
            process.stdout.close()


def _run_worker(url: str, streams: int, folder: Path) -> list[tuple[int, float, float]]:
    """Run `locust` to its end; return samples of (instant, CPU s used, s waited for a core)."""
    command = [
        sys.executable, "-m", "locust", "-f", str(_locustfile()), "--headless", "--host", url,
        "-u", str(streams), "-r", str(streams), "--llm-requests", f"{REQUESTS}x", "--llm-input-tokens", "16",
        "--llm-output-tokens", str(TOKENS), "--llm-out", str(folder), "--llm-save-arrivals", "--llm-drain", "20s",
    ]  # fmt: skip
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LOCUST_")}
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=log, env=environment, cwd=folder)
        _pin(process.pid, 1)
        samples: list[tuple[int, float, float]] = []
        until_ns = time.monotonic_ns() + int(LEVEL_LIMIT_S * 1e9)
        while process.poll() is None:
            if time.monotonic_ns() > until_ns:
                process.send_signal(signal.SIGKILL)
                raise CalibrationError(f"{streams} streams did not end within {LEVEL_LIMIT_S:.0f} s")
            with suppress(psutil.Error, OSError):
                samples.append(_used(process.pid))
            time.sleep(SAMPLE_S)
        log.seek(0)
        if process.returncode not in (0, 1):  # 1: some requests failed, which is a result
            raise CalibrationError(f"locust ended with {process.returncode}: {log.read()[-500:]}")
    return samples


def _locustfile() -> Path:
    return Path(str(resources.files("llm_locust"))) / "calibrate" / "locustfile.py"


def _used(pid: int) -> tuple[int, float, float]:
    cpu = psutil.Process(pid).cpu_times()
    waited = 0.0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        waited += int(task.read_text().split()[1]) / 1e9
    return time.monotonic_ns(), cpu.user + cpu.system, waited


def read_level(streams: int, folder: Path, truth: Path, samples: list[tuple[int, float, float]]) -> Level:
    """Compare what the run's files say with what the pacer sent. Raises CalibrationError where there is nothing."""
    run = folder / "latest"
    try:
        with (run / "requests.csv").open(newline="") as lines:
            rows = {int(row["request_id"]): row for row in csv.DictReader(lines) if row["phase"] == "steady"}
        (saved,) = run.glob("arrivals-*.jsonl")
        arrivals = {line["request_id"]: line for line in map(json.loads, saved.read_text().splitlines())}
        sent = {line["request_id"]: line for line in map(json.loads, truth.read_text().splitlines())}
    except (OSError, ValueError) as error:
        raise CalibrationError(f"the run of {streams} streams left no files: {error}") from None
    offset_ns = time.time_ns() - time.monotonic_ns()
    good = [row for row in rows.values() if row["outcome"] == "ok" and row["client_request_id"] in sent]
    if not good:
        raise CalibrationError(f"no request of {streams} streams succeeded")
    pairs = [(_arrived(row, arrivals[int(row["request_id"])]), sent[row["client_request_id"]]) for row in good]
    errors = np.concatenate([arrived - offset_ns - np.array(one["token_send_ns"], np.int64) for arrived, one in pairs])
    from_ns = min(one["token_send_ns"][0] for _, one in pairs)
    until_ns = max(one["token_send_ns"][-1] for _, one in pairs)
    at, cpu_s, waited_s = (np.array(column) for column in zip(*samples, strict=True))

    def share(column: NDArray[Any]) -> float:
        used = np.interp([from_ns, until_ns], at, column)
        return float((used[1] - used[0]) / (until_ns - from_ns) * 1e9)

    error_p50_ms, error_p99_ms = np.quantile(np.abs(errors), [0.5, 0.99]) / 1e6
    return Level(
        streams=streams,
        tokens_per_s=errors.size / (until_ns - from_ns) * 1e9,
        error_p50_ms=float(error_p50_ms),
        error_p99_ms=float(error_p99_ms),
        late_tokens_ratio=sum(int(row["late_tokens"]) for row in good) / errors.size,
        cpu_ratio=share(cpu_s),
        stolen_ratio=share(waited_s),
        server_late_p99_ms=_server_late_p99_ms([one for _, one in pairs]),
        failed_requests=len(rows) - len(good),
        source=good[0]["timestamp_source"],
    )


def _arrived(row: dict[str, str], saved: dict[str, Any]) -> Instants:
    """Return the arrivals of a request as epoch ns."""
    whole, _, fraction = row["start_epoch_s"].partition(".")
    start_ns = int(whole) * 1_000_000_000 + int(fraction.ljust(9, "0"))
    return start_ns + np.rint(np.array(saved["arrivals_ms"]) * 1e6).astype(np.int64)


def _server_late_p99_ms(sent: list[dict[str, Any]]) -> float:
    late = []
    for one in sent:
        sent_ns = np.array(one["token_send_ns"], np.int64)
        late.append(sent_ns - one["arrival_ns"] - (TTFT_MS + GAP_MS * np.arange(sent_ns.size)) * 1e6)
    return float(np.quantile(np.concatenate(late), 0.99) / 1e6)
