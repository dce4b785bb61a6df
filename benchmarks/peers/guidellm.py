"""GuideLLM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.peers.peer import Asked, Peer, Said, load_json


def _command(programs: Path, asked: Asked) -> list[str]:
    given: dict[str, dict[str, Any]] = {
        "backend": {
            "kind": "openai_http", "target": asked.url, "model": asked.model,
            "request_format": "/v1/chat/completions",
        },
        "profile": {"kind": "concurrent", "streams": [asked.streams]},
        "constraint": {"kind": "max_requests", "count": asked.requests},
        "tokenizer": {"kind": "huggingface_auto", "model": str(asked.tokenizer)},
        "data": {
            "kind": "synthetic_text", "prompt_tokens": asked.input_tokens, "output_tokens": asked.output_tokens,
        },
        "output": {"kind": "json", "path": str(asked.folder / "told.json")},
    }  # fmt: skip
    options = [word for name, value in given.items() for word in (f"--{name}", json.dumps(value))]
    return [str(programs / "guidellm"), "run", "--disable-console-interactive", *options]


def _read(folder: Path) -> Said:
    benchmark = load_json(folder / "told.json")["benchmarks"][-1]
    metrics = benchmark["metrics"]
    totals = metrics["request_totals"]

    def spread(metric: str) -> dict[str, Any]:
        told = metrics[metric]["successful"] or {}
        percentiles = told.get("percentiles") or {}
        return {"mean": told.get("mean"), "p50": percentiles.get("p50"), "p99": percentiles.get("p99")}

    tokens = (metrics["output_token_count"]["successful"] or {}).get("total_sum")
    return Said(
        totals["successful"], totals["errored"] + totals["incomplete"], tokens, spread("time_to_first_token_ms"),
        tpot_ms=spread("inter_token_latency_ms"),
    )  # fmt: skip


PEER = Peer(
    "GuideLLM", "guidellm", (("guidellm==0.8.1",),), _command, _read,
    remark="its inter-token latency is one value a request: TPOT here; its own TPOT counts in the first token's wait",
)  # fmt: skip
