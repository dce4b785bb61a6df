"""The clients that are compared on one load: the product, the C limit, bare loops. Each gives a ``Reading``.

Every stream asks once to open its connection; what follows is measured. The CPU of a client is what its process used
from the first measured request on until the last token was sent; the product's also to the end of the process,
with its last files and tables.
"""

from __future__ import annotations

import csv
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lab import Finished, Instants, Sent, TruthServer, run_client, serving, spread
from benchmarks.native import limit_client
from benchmarks.venvs import python_of

TOKENS = 200
GAP_MS = 20.0
TAIL_NS = 100_000_000
"""After the last token: the work that it causes."""
METRICS = ("ttft_ms", "itl_ms")
KINDS = ("mean", "p50", "p99", "max")


@dataclass(frozen=True, slots=True)
class Load:
    """How many streams ask how often for how many tokens."""

    streams: int
    requests: int
    tokens: int = TOKENS
    ttft_ms: float = 50.0
    gap_ms: float = GAP_MS


@dataclass(slots=True)
class Reading:
    """What one client did and said about it; durations in ms."""

    client: str
    streams: int
    tokens: int
    cpu_s: float
    sent: dict[str, dict[str, float]]
    reported: dict[str, dict[str, float]]
    error_ms: dict[str, float]
    cpu_to_exit_s: float | None = None
    peak_mb: float = 0.0
    waited_s: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def tokens_per_cpu_s(self) -> float:
        """The rate that one core could carry."""
        return self.tokens / self.cpu_s

    def as_dict(self) -> dict[str, Any]:
        """All of it for a JSON file."""
        return {**asdict(self), "tokens_per_cpu_s": self.tokens_per_cpu_s}


class ClientFailedError(Exception):
    """A client did not come to its end; the text is its own."""


def run_limit(server: TruthServer, load: Load) -> Finished:
    """Run the C limit."""
    command = [str(limit_client()), "--port", str(server.port), "--streams", str(load.streams)]
    command += ["--requests", str(load.requests), "--tokens", str(load.tokens)]
    return run_client(command)


def run_loop(name: str, server: TruthServer, load: Load) -> Finished:
    """Run a bare loop, "aiohttp" or "aiohttp raw", in its own environment. Raises NotInstallableError."""
    package, *raw = name.split()
    script = Path(__file__).parent / "loops" / f"{package}_loop.py"
    command = [str(python_of("loops")), str(script), "--url", server.url, "--streams", str(load.streams)]
    command += ["--requests", str(load.requests), "--tokens", str(load.tokens), *(f"--{word}" for word in raw)]
    return run_client(command)


def run_product(
    server_url: str, load: Load, folder: Path, *options: str, environment: Mapping[str, str] | None = None
) -> Finished:
    """Run `locust` with the whole product; its files go to ``folder``, every arrival to ``folder/arrivals``."""
    command = [
        str(Path(sys.executable).with_name("locust")), "-f", "benchmarks/locustfile.py", "--headless",
        "--host", server_url, "-u", str(load.streams), "-r", str(load.streams),
        "--llm-requests", f"{load.requests}x", "--llm-input-tokens", "16", "--llm-output-tokens", str(load.tokens),
        "--llm-out", str(folder / "reports"), *options,
    ]  # fmt: skip
    wanted = {"LLM_BENCH_ARRIVALS": str(folder / "arrivals"), **(environment or {})}
    return run_client(command, environment=wanted)


def measure(client: str, load: Load, **settings: Any) -> Reading:
    """Start a server of its own, run the client against it, and say what came of both."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(folder, ttft_ms=load.ttft_ms, gap_ms=load.gap_ms, **settings) as server:
            if client == "llm-locust":
                ended = run_product(server.url, load, folder, *(["--llm-insecure"] if settings else []))
            elif client == "C limit":
                ended = run_limit(server, load)
            else:
                ended = run_loop(client, server, load)
        if ended.exit_code != 0:
            raise ClientFailedError(f"{client}: exit code {ended.exit_code}: {(ended.errors or ended.output)[-500:]}")
        if client == "llm-locust":
            return read_product(load, ended, server.sent, folder)
        return read_other(client, load, ended, server.sent)


def read_other(client: str, load: Load, ended: Finished, sent: list[Sent]) -> Reading:
    """Read the JSON line of a loop or of the C limit."""
    told = json.loads(ended.output.splitlines()[-1])
    ordered = sorted(sent, key=lambda one: one.arrival_ns)
    measured = ordered[load.streams :]
    began_ns = min(one.arrival_ns for one in measured)
    ended_ns = max(int(one.token_send_ns[-1]) for one in measured)
    used = told.get("cpu_s") or ended.usage.cpu_s(began_ns, ended_ns + TAIL_NS)
    return Reading(
        client, load.streams, tokens_after(sent, began_ns), used, sent_spread(measured),
        {metric: told[metric] for metric in METRICS}, told["error_ms"], peak_mb=ended.usage.peak_bytes / 1e6,
        waited_s=ended.usage.waited_s(began_ns, ended_ns),
    )  # fmt: skip


def read_product(load: Load, ended: Finished, sent: list[Sent], folder: Path) -> Reading:
    """Compare the files of a run with what the server sent."""
    arrivals = read_arrivals(folder / "arrivals")
    by_id = {one.request_id: one for one in sent}
    measured = [(line, by_id[line["request_id"]]) for line in arrivals if line["phase"] == "steady"]
    began_ns = min(line["start_ns"] for line, _ in measured)
    ended_ns = max(int(one.token_send_ns[-1]) for _, one in measured)
    errors = [np.array(line["arrivals_ns"], np.int64) - one.token_send_ns for line, one in measured]
    from_start: Instants = np.array([one.token_send_ns[0] - line["start_ns"] for line, one in measured])
    sent_ms = {**sent_spread([one for _, one in measured]), "ttft_from_start_ms": spread(from_start)}
    row = steady_row(folder / "reports")
    return Reading(
        "llm-locust", load.streams, tokens_after(sent, began_ns),
        ended.usage.cpu_s(began_ns, ended_ns + TAIL_NS), sent_ms,
        {metric: {kind: float(row[f"{metric}_{kind}"]) for kind in KINDS} for metric in METRICS},
        spread(np.concatenate(errors)), ended.usage.cpu_s(began_ns), ended.usage.peak_bytes / 1e6,
        ended.usage.waited_s(began_ns, ended_ns),
        {key: row[key] for key in ("requests_ok", "requests_failed", "late_tokens_ratio", "stamped_by_kernel",
                                   "validity", "validity_reasons")},
    )  # fmt: skip


def read_arrivals(file: Path) -> list[dict[str, Any]]:
    """Read what the benchmark's locustfile kept."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def steady_row(reports: Path) -> dict[str, str]:
    """Return the row of all names, steady phase, of the last run in a folder."""
    with (reports / "latest" / "stages.csv").open(newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if row["phase"] == "steady"]
    return next((row for row in rows if row["name"] == "all"), rows[-1])


def tokens_after(sent: list[Sent], began_ns: int) -> int:
    """Count the tokens sent from an instant on."""
    return int(sum(np.count_nonzero(one.token_send_ns >= began_ns) for one in sent))


def sent_spread(sent: list[Sent]) -> dict[str, dict[str, float]]:
    """Say what the server sent: first tokens after the request reached its kernel, and gaps."""
    firsts: Instants = np.array([one.token_send_ns[0] - one.arrival_ns for one in sent if one.token_send_ns.size])
    gaps = np.concatenate([np.diff(one.token_send_ns) for one in sent])
    return {"ttft_ms": spread(firsts), "itl_ms": spread(gaps)}
