"""One run of one tool against the truth server: what it reported beside what was sent, and what it used."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.lab import Instants, Sent, serving, spread
from benchmarks.peers.peer import OFFLINE, Asked, Peer, Said
from benchmarks.peers.tree import Ended, run_tree

TAIL_NS = 100_000_000
"""After the last token: the work that it causes."""
TOLD = 300


@dataclass(slots=True)
class Comparison:
    """What one tool reported and what the server had sent to it; durations in ms, CPU in seconds."""

    tool: str
    said: Said
    sent: dict[str, dict[str, float]]
    requests_sent: int
    tokens_sent: int
    tokens_under_load: int
    load_s: float
    cpu_load_s: float
    cpu_s: float
    wall_s: float
    peak_mb: float
    processes: int
    notes: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """All of it for a JSON file."""
        return {**asdict(self), "cpu_us_a_token": self.cpu_us_a_token}

    @property
    def cpu_us_a_token(self) -> float:
        """CPU under load by the tokens that were sent meanwhile: of a warm-up's last requests, too."""
        return self.cpu_load_s / self.tokens_under_load * 1e6


class ToolFailedError(Exception):
    """A tool came to no result; the text is its own last words."""


def compare(peer: Peer, programs: Path, tokenizer: Path, *, streams: int, requests: int, tokens: int) -> Comparison:
    """Run one tool against a server of its own. Raises ToolFailedError."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "tool"
        folder.mkdir()
        with serving(Path(name)) as server:
            asked = Asked(server.url, tokenizer, folder, streams, requests, tokens)
            ended = ask(peer, programs, asked, limit_s=240)
        said = read(peer, folder, ended)
        return compared(peer.name, said, server.sent, requests, ended)


def ask(peer: Peer, programs: Path, asked: Asked, *, limit_s: float, pin: bool = True) -> Ended:
    """Run a tool to its end without a network."""
    return run_tree(
        peer.command(programs, asked), asked.folder, environment={**OFFLINE, **peer.variables(asked)}, limit_s=limit_s,
        pin=pin,
    )  # fmt: skip


def read(peer: Peer, folder: Path, ended: Ended) -> Said:
    """Read what a tool reported. Raises ToolFailedError where it left no report."""
    try:
        return peer.read(folder)
    except (OSError, LookupError, ValueError, TypeError) as why:
        last = " ".join(ended.output.split())[-TOLD:]
        how = "ended by us at the time limit" if ended.late else f"exit code {ended.exit_code}"
        raise ToolFailedError(f"no report ({how}, {type(why).__name__}): {last}") from why


def compared(tool: str, said: Said, sent: list[Sent], requests: int, ended: Ended) -> Comparison:
    """Take the last complete requests for the measured ones.

    What a tool sends to warm up comes before them, and one that stops at a count leaves some unfinished.
    """
    most = max((np.count_nonzero(one.token_send_ns) for one in sent), default=0)
    complete = [one for one in sent if np.count_nonzero(one.token_send_ns) == most > 1]
    measured = sorted(complete, key=lambda one: one.arrival_ns)[-requests:]
    if not measured:
        raise ToolFailedError("the server completed no request")
    began_ns = min(one.arrival_ns for one in measured)
    ended_ns = max(int(one.token_send_ns[-1]) for one in measured)
    firsts: Instants = np.array([one.token_send_ns[0] - one.arrival_ns for one in measured])
    gaps = np.concatenate([np.diff(one.token_send_ns) for one in measured])
    per_token: Instants = np.array([
        (one.token_send_ns[-1] - one.token_send_ns[0]) // (one.token_send_ns.size - 1) for one in measured
    ])  # fmt: skip
    usage = ended.usage
    return Comparison(
        tool, said, {"ttft_ms": spread(firsts), "itl_ms": spread(gaps), "tpot_ms": spread(per_token)}, len(measured),
        int(sum(one.token_send_ns.size for one in measured)),
        int(sum(np.count_nonzero((one.token_send_ns >= began_ns) & (one.token_send_ns <= ended_ns)) for one in sent)),
        (ended_ns - began_ns) / 1e9,
        usage.cpu_s(began_ns, ended_ns + TAIL_NS), usage.total_cpu_s, usage.wall_s, usage.peak_bytes / 1e6,
        usage.processes, {"exit_code": ended.exit_code, "note": said.note},
    )  # fmt: skip
