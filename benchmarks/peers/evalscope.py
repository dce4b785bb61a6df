"""EvalScope's `perf`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.peers.peer import Asked, Peer, Said, load_json, newest


def _command(programs: Path, asked: Asked) -> list[str]:
    given = [
        str(programs / "evalscope"), "perf", "--model", asked.model, "--url", f"{asked.url}/v1/chat/completions",
        "--api", "openai", "--dataset", "random", "--tokenizer-path", str(asked.tokenizer),
        "--parallel", str(asked.streams), "--number", str(asked.requests), "--no-test-connection",
        "--min-prompt-length", str(asked.input_tokens), "--max-prompt-length", str(asked.input_tokens),
        "--max-tokens", str(asked.output_tokens), "--outputs-dir", str(asked.folder / "told"),
    ]  # fmt: skip
    if not asked.ignore_eos:
        return given
    return [*given, "--min-tokens", str(asked.output_tokens), "--extra-args", json.dumps({"ignore_eos": True})]


def _read(folder: Path) -> Said:
    told = load_json(newest(folder, "benchmark_summary.json"))
    try:
        rows = {row["Percentiles"]: row for row in load_json(newest(folder, "benchmark_percentile.json"))}
    except FileNotFoundError:
        rows = {}

    def spread(metric: str) -> dict[str, Any]:
        per_kind = {kind: rows.get(name, {}).get(f"{metric} (ms)") for kind, name in (("p50", "50%"), ("p99", "99%"))}
        return {"mean": told.get(f"Avg {metric} (ms)"), **per_kind}

    ok = told["Success Requests"]
    return Said(
        ok, told["Failed Requests"], (told.get("Avg Output Tokens") or 0) * ok, spread("TTFT"), spread("ITL"),
        spread("TPOT"),
    )  # fmt: skip


PEER = Peer("EvalScope perf", "evalscope", (("evalscope[perf]==1.14.1",),), _command, _read)
