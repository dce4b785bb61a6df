"""genai-bench."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.peers.peer import Asked, Peer, Said, load_json, newest, spread_of

MINUTES = 2


def _command(programs: Path, asked: Asked) -> list[str]:
    return [
        str(programs / "genai-bench"), "benchmark", "--api-backend", "openai", "--api-base", asked.url,
        "--api-key", "none", "--api-model-name", asked.model, "--model-tokenizer", str(asked.tokenizer),
        "--task", "text-to-text", "--max-time-per-run", str(MINUTES),
        "--max-requests-per-run", str(asked.requests), "--num-concurrency", str(asked.streams),
        "--traffic-scenario", f"D({asked.input_tokens},{asked.output_tokens})",
        "--experiment-base-dir", str(asked.folder / "told"), "--experiment-folder-name", "run",
        "--log-dir", str(asked.folder),
    ]  # fmt: skip


def _read(folder: Path) -> Said:
    told = load_json(newest(folder / "told", "*_time_*s.json"))["aggregated_metrics"]
    stats: dict[str, Any] = told["stats"]

    def spread(metric: str) -> dict[str, Any]:
        return spread_of(stats[metric], scale=1000.0, mean="mean", p50="p50", p99="p99")

    return Said(
        told["num_completed_requests"], told["num_error_requests"], stats["num_output_tokens"]["sum"],
        spread("ttft"), {}, spread("tpot"),
    )  # fmt: skip


PEER = Peer("genai-bench", "genai-bench", (("genai-bench==0.0.5",),), _command, _read)
