"""The product on the same load as its peers, as it comes and without its warm-up."""

from __future__ import annotations

import csv
import sys
from functools import partial
from pathlib import Path

from benchmarks.lab import ROOT
from benchmarks.peers.peer import Asked, Peer, Said

KINDS = ("mean", "p50", "p99")
STALL_S = 5


def _command(warmup: bool, programs: Path, asked: Asked) -> list[str]:
    given = [
        str(Path(sys.executable).with_name("locust")), "-f", str(ROOT / "benchmarks" / "locustfile.py"), "--headless",
        "--host", asked.url, "-u", str(asked.streams), "-r", str(asked.streams),
        "--llm-requests", str(asked.requests), "--llm-input-tokens", str(asked.input_tokens),
        "--llm-output-tokens", str(asked.output_tokens), "--llm-out", str(asked.folder / "reports"),
        "--llm-model", asked.model,
    ]  # fmt: skip
    given += [] if warmup else ["--llm-warmup", "0"]
    return given if asked.ignore_eos else [*given, "--no-llm-ignore-eos"]


def _plain(programs: Path, asked: Asked) -> list[str]:
    """Scripts are played to the pre-flight too: it would refuse them before any load."""
    return [*_command(False, programs, asked), "--llm-no-preflight", "--llm-stall-timeout", str(STALL_S)]


def _read(folder: Path) -> Said:
    with (folder / "reports" / "latest" / "stages.csv").open(newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["phase"] == "steady"]
    row = next((row for row in rows if row["name"] == "all"), rows[-1])

    def spread(metric: str) -> dict[str, float | None]:
        return {kind: float(row[f"{metric}_{kind}"]) if row[f"{metric}_{kind}"] else None for kind in KINDS}

    with (folder / "reports" / "latest" / "requests.csv").open(newline="") as lines:
        tokens = [int(one["output_tokens"] or 0) for one in csv.DictReader(lines) if one["phase"] == "steady"]
    return Said(
        int(row["requests_ok"]), int(row["requests_failed"]), sum(tokens), spread("ttft_ms"), spread("itl_ms"),
        spread("tpot_ms"), row["validity"],
    )  # fmt: skip


WARM = Peer("llm-locust", "", (), partial(_command, True), _read)
COLD = Peer("llm-locust, no warm-up", "", (), partial(_command, False), _read)
PLAIN = Peer("llm-locust", "", (), _plain, _read)
