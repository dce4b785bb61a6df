"""What does TLS cost, and are times under it as true?

    python -m benchmarks.tls [--streams 400] [--rounds 3]

The whole product against the truth server, plain and under TLS, one after the other in each round; figures are medians
over the rounds. Asked for is at most twice the CPU, and an error of at most 0.05 ms at p99.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

import trustme

from benchmarks.clients import Load, Reading, measure
from benchmarks.lab import save, table

AUTHORITY = "authority.pem"
MOST_CPU, MOST_ERROR_MS = 2.0, 0.05


def certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate and its key, and beside them the authority's own certificate."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    chain, key = folder / "chain.pem", folder / "key.pem"
    chain.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(str(key))
    authority.cert_pem.write_to_path(str(folder / AUTHORITY))
    return chain, key


def main() -> int:
    """Measure, print, save; 1 if what is asked for is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    load = Load(given.streams, requests=2)
    with tempfile.TemporaryDirectory() as name:
        pem = certificate(Path(name))
        rounds = [
            (measure("llm-locust", load), measure("llm-locust", load, certificate=pem)) for _ in range(given.rounds)
        ]
    plain, secured = zip(*rounds, strict=True)
    ratio = statistics.median(with_tls.cpu_s / without.cpu_s for without, with_tls in rounds)
    heads = ("llm-locust", "tokens/CPU-s", "CPU of plain", "error p50 / p99 / max ms",
             "TTFT p50 / p99 ms (sent after the start)", "ITL p99 ms (sent)", "peak RSS MB")  # fmt: skip
    shown = table(heads, [row("plain", plain, 1.0), row("TLS", secured, ratio)])
    told = [[one.as_dict() for one in pair] for pair in rounds]
    save("tls", {"rounds": told}, f"{given.streams} streams, {given.rounds} rounds", shown)
    return int(ratio > MOST_CPU or middle(one.error_ms["p99"] for one in secured) > MOST_ERROR_MS)


def row(name: str, readings: Sequence[Reading], ratio: float) -> tuple[str, ...]:
    """Make a line of the table. Under TLS the server knows only when it has decrypted a request: starts are ours."""
    return (
        name, f"{middle(one.tokens_per_cpu_s for one in readings):,.0f}", f"{ratio:.2f}",
        " / ".join(f"{middle(one.error_ms[kind] for one in readings):.3f}" for kind in ("p50", "p99", "max")),
        beside(readings, "ttft_ms", "ttft_from_start_ms", ("p50", "p99")),
        beside(readings, "itl_ms", "itl_ms", ("p99",)), f"{middle(one.peak_mb for one in readings):.0f}",
    )  # fmt: skip


def beside(readings: Sequence[Reading], metric: str, truth: str, kinds: Sequence[str]) -> str:
    """Show what was reported, and in brackets what was sent."""
    reported = [f"{middle(one.reported[metric][kind] for one in readings):.2f}" for kind in kinds]
    sent = [f"{middle(one.sent[truth][kind] for one in readings):.2f}" for kind in kinds]
    return f"{' / '.join(reported)} ({' / '.join(sent)})"


middle = statistics.median


if __name__ == "__main__":
    raise SystemExit(main())
