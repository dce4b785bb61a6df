"""The headless quickstart against a production front end: our counts and times beside its own."""

from __future__ import annotations

import csv
import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real.dynamo import figures, install, serving
from tests.real.tiny_model import make_model

ROOT = Path(__file__).resolve().parents[2]
USERS, REQUESTS, OUTPUT_TOKENS = 8, 64, 32


@pytest.mark.network
@pytest.mark.timeout(240)
def test_quickstart_counts_what_dynamo_counts_and_times_what_it_times(tmp_path: Path) -> None:
    """Requests and tokens are equal to the last one; mean TTFT and ITL differ by the network's part only."""
    environment = ROOT / ".venv-dynamo"
    install(environment)
    with serving(environment, make_model(tmp_path / "tiny"), tmp_path, free_port()) as url:
        before = figures_or_zero(url)
        run = quickstart(url, tmp_path)
        after = figures(url)
    summary = json.loads((run / "summary.json").read_text())
    with (run / "requests.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    counted = {key: after[key] - before[key] for key in after}
    asked_before_load = counted["requests"] - len(rows)
    assert {row["outcome"] for row in rows} == {"ok"}
    assert {row["output_tokens_source"] for row in rows} == {"usage"}
    assert sum(int(row["output_tokens"]) for row in rows) == len(rows) * OUTPUT_TOKENS
    assert len([row for row in rows if row["phase"] == "steady"]) == REQUESTS
    assert 1 <= asked_before_load <= 8, "the pre-flight and the calibration, no request beside them"
    ttft_ms = sum(float(row["ttft_ms"]) for row in rows) / len(rows)
    theirs_ms = 1000 * counted["ttft_s"] / counted["ttft_count"]
    assert abs(ttft_ms - theirs_ms) < max(5.0, 0.25 * theirs_ms), (ttft_ms, theirs_ms)
    tpot_ms = sum(float(row["tpot_ms"]) for row in rows) / len(rows)
    gap_ms = 1000 * counted["itl_s"] / counted["itl_count"]
    assert abs(tpot_ms - gap_ms) < max(0.5, 0.1 * gap_ms), (tpot_ms, gap_ms)
    assert summary["state"] == "finished"


def quickstart(url: str, folder: Path) -> Path:
    """Run the README's first command, bounded by its number of requests; return the run's folder."""
    command = [sys.executable, "-m", "locust", "-f", str(ROOT / "locustfiles" / "llm.py"), "--headless"]
    command += ["--host", url, "--llm-model", "tiny", "-u", str(USERS), "-r", str(USERS)]
    command += ["--llm-requests", str(REQUESTS), "--llm-input-tokens", "64", "--llm-output-tokens", str(OUTPUT_TOKENS)]
    command += ["--llm-out", str(folder / "reports")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return (folder / "reports" / "latest").resolve()


def figures_or_zero(url: str) -> dict[str, float]:
    """The counters before the first request, when most of them do not exist yet."""
    try:
        return figures(url)
    except KeyError:
        return dict.fromkeys(("requests", "output_tokens", "ttft_s", "ttft_count", "itl_s", "itl_count"), 0.0)


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
