"""AIPerf."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.peers.peer import TOKENIZER_ID, Asked, Peer, Said, load_json, newest, spread_of


def _command(programs: Path, asked: Asked) -> list[str]:
    given = [
        str(programs / "aiperf"), "profile", "--model", asked.model, "--url", asked.url, "--endpoint-type", "chat",
        "--streaming", "--tokenizer", TOKENIZER_ID, "--concurrency", str(asked.streams),
        "--request-count", str(asked.requests), "--isl", str(asked.input_tokens), "--isl-stddev", "0",
        "--osl", str(asked.output_tokens), "--osl-stddev", "0", "--random-seed", "1", "--ui", "simple",
        "--use-server-token-count", "--no-gpu-telemetry", "--no-server-metrics",
        "--artifact-dir", str(asked.folder / "told"),
    ]  # fmt: skip
    return [*given, "--extra-inputs", "ignore_eos:true"] if asked.ignore_eos else given


def _variables(asked: Asked) -> dict[str, str]:
    """Offline it takes a tokenizer by its name in the cache alone."""
    return {"HF_HUB_CACHE": str(asked.hub_cache)}


def _read(folder: Path) -> Said:
    told = load_json(newest(folder, "profile_export_aiperf.json"))

    def count(metric: str) -> float | None:
        return (told.get(metric) or {}).get("avg")

    def spread(metric: str) -> dict[str, Any]:
        return spread_of(told.get(metric) or {}, mean="avg", p50="p50", p99="p99")

    return Said(
        int(count("request_count") or 0), int(count("error_request_count") or 0),
        count("total_usage_completion_tokens") or count("total_output_tokens"), spread("time_to_first_token"),
        spread("inter_chunk_latency"), spread("inter_token_latency"),
    )  # fmt: skip


PEER = Peer(
    "AIPerf", "aiperf", (("aiperf==0.13.0",),), _command, _read, variables=_variables,
    remark="its inter-token latency is one value a request (TPOT here); its chunk gaps stand for ITL",
)  # fmt: skip
