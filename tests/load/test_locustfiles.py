"""The ready-made locustfiles run as they stand, each in under 40 lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rig.mock_process import MockProcess, start_mock
from llm_locust.cli import locustfiles_root

LINES = 40
SHORT = ("--llm-input-tokens", "32", "--llm-output-tokens", "8")
FEW = ("-u", "2", "-r", "100", "--llm-requests", "4")


def run(name: str, mock: MockProcess, folder: Path, *arguments: str) -> dict[str, Any]:
    """Run a locustfile headless to its end, every request a success; return the summary."""
    path = locustfiles_root() / name
    assert len(path.read_text().splitlines()) < LINES
    done = subprocess.run(
        [sys.executable, "-m", "locust", "-f", str(path), "--host", mock.url, "--headless", *arguments],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert set(mock.truth()["outcomes"]) == {"ok"}
    summary: dict[str, Any] = json.loads((folder / "reports" / "latest" / "summary.json").read_text())
    assert summary["totals"]["requests_ok"] >= 4
    return summary


def of_rows(summary: dict[str, Any], metric: str) -> dict[str, Any]:
    """A metric of each row of the one stage."""
    return {row["name"]: row["metrics"][metric] for row in summary["stages"]}


def test_all_locustfiles_are_tested() -> None:
    """A new one needs a test here."""
    names = {path.name for path in locustfiles_root().glob("*.py")}
    assert names == {"llm.py", "chat.py", "conversation.py", "mixed_classes.py", "soak.py", "custom_dataset.py"}


@pytest.fixture
def mock() -> Any:
    with start_mock("--profile", "fast", "--ttft-ms", "5", "--itl-ms", "1") as process:
        yield process


@pytest.mark.parametrize("name", ["llm.py", "chat.py"])
def test_locustfile_runs_against_the_embedded_server(name: str, mock: MockProcess, tmp_path: Path) -> None:
    """Headless, to its end, with exit code 0 and every request a success."""
    run(name, mock, tmp_path, *FEW, *SHORT)


def test_conversation_grows_and_its_prefix_is_cached(tmp_path: Path) -> None:
    """Prompts become longer turn by turn; most of each was said before."""
    with start_mock("--time-scale", "100") as mock:
        summary = run(
            "conversation.py", mock, tmp_path, "-u", "2", "-r", "100", "--llm-requests", "24", "--llm-warmup", "0",
            "--llm-think-time", "0", *SHORT,
        )  # fmt: skip
        longest = max(line["prompt_tokens"] for line in mock.lines()[-24:])
    assert longest >= 4 * (32 + 8)
    assert summary["totals"]["cached_ratio"] > 0.3


def test_classes_have_rows_and_objectives_of_their_own(mock: MockProcess, tmp_path: Path) -> None:
    """Three of four users chat; each class is judged by its own row."""
    summary = run("mixed_classes.py", mock, tmp_path, "-u", "8", "-r", "100", "-t", "8", "--llm-warmup", "0")
    requests = of_rows(summary, "requests_ok")
    assert set(requests) == {"all", "chat", "digest"}
    assert requests["all"] == requests["chat"] + requests["digest"]
    assert of_rows(summary, "input_tokens_mean")["digest"] > 4000
    assert of_rows(summary, "input_length_error_ratio")["digest"] < 0.001
    told = {clause["clause"]: clause["passed"] for clause in summary["slo"]}
    assert told == {
        "Chat: ttft p95 < 2s": True,
        "Chat: tpot p95 < 60ms": True,
        "Chat: error_rate < 1%": True,
        "Digest: e2e p95 < 60s": True,
        "Digest: goodput(e2e < 90s) > 99%": True,
    }


def test_soak_lasts_as_long_as_the_run_time_says(tmp_path: Path) -> None:
    """Its own rate, for 6 s instead of an hour; answers so long that a busy machine makes no burst of them."""
    with start_mock("--profile", "fast", "--ttft-ms", "5", "--itl-ms", "10") as mock:
        summary = run("soak.py", mock, tmp_path, "--run-time", "6s", "--llm-output-tokens", "24")
    assert (summary["shape"], of_rows(summary, "rate_requested_per_s")["all"]) == ("Night", 8)
    assert 512 <= summary["totals"]["input_tokens_mean"] <= 1536
    assert all(clause["passed"] for clause in summary["slo"])


def test_own_dataset_is_asked_in_order_and_repeats_are_counted(mock: MockProcess, tmp_path: Path) -> None:
    """25 prompts, 50 requests: half of them came again."""
    summary = run("custom_dataset.py", mock, tmp_path, "-u", "1", "--llm-requests", "50", "--llm-warmup", "0")
    assert summary["totals"]["prompts_repeated_ratio"] == pytest.approx(0.5)
