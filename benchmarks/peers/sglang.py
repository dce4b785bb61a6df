"""sglang.bench_serving: the Python client, and the client in Rust that the same wheel holds."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.peers.peer import Asked, Peer, Said, load_json

PARTS = (
    "aiohttp", "datasets", "jinja2", "msgspec", "numpy", "orjson", "pillow", "psutil", "pybase64", "pydantic", "pyzmq",
    "requests", "tqdm", "transformers==5.19.0",
)  # fmt: skip
STEPS = (("--no-deps", "sglang==0.5.23"), PARTS)
RUNNER = Path(__file__).with_name("run_sglang.py")


def _command(client: str, programs: Path, asked: Asked) -> list[str]:
    given = [
        str(programs / "python"), str(RUNNER), client, "--backend", "sglang-oai-chat", "--base-url", asked.url,
        "--model", asked.model, "--tokenizer", str(asked.tokenizer), "--dataset-name", "random-ids",
        "--random-input-len", str(asked.input_tokens), "--random-output-len", str(asked.output_tokens),
        "--random-range-ratio", "1.0", "--num-prompts", str(asked.requests), "--max-concurrency", str(asked.streams),
        "--warmup-requests", "0", "--seed", "1", "--disable-tqdm", "--output-file", str(asked.folder / "told.jsonl"),
    ]  # fmt: skip
    return given if asked.ignore_eos else [*given, "--disable-ignore-eos"]


def _read(folder: Path) -> Said:
    told = load_json(folder / "told.jsonl")
    spreads = {
        metric: {kind: told.get(f"{name}_{metric}_ms") for kind, name in KINDS.items()}
        for metric in ("ttft", "itl", "tpot")
    }
    return Said(
        told["completed"], None, told["total_output_tokens"], spreads["ttft"], spreads["itl"], spreads["tpot"]
    )  # fmt: skip


KINDS = {"mean": "mean", "p50": "median", "p99": "p99"}
PYTHON = Peer("sglang bench_serving", "sglang", STEPS, partial(_command, "python"), _read)
RUST = Peer("sglang bench_serving, Rust client", "sglang", STEPS, partial(_command, "rust"), _read)
