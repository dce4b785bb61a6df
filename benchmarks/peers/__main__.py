"""What do other load generators make of a load whose times are known?

    python -m benchmarks.peers                                  all, each in an environment made with pip
    python -m benchmarks.peers --run llm-locust-cold,sglang-rust --rounds 3

400 streams at once, two requests each, 200 tokens a request: the truth server sends the first token after 50 ms and
one each 20 ms, and keeps the instants at which it did. Server and tool have a core each. A tool that cannot be
installed stays in the table with the reason.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.lab import save, table
from benchmarks.peers import PEERS, ours
from benchmarks.peers.compare import Comparison, ToolFailedError, compare
from benchmarks.peers.environments import add_install_option, bin_of, install_all
from benchmarks.peers.peer import Peer, Spread, make_tokenizer

OURS = {"llm-locust": ours.WARM, "llm-locust-cold": ours.COLD}
KINDS = ("mean", "p50", "p99")
COSTS = ("CPU µs a token", "CPU-s under load", "CPU-s in all", "memory MB", "load s", "wall s", "processes")
RUST = PEERS["sglang-rust"].name
MOST_TIMES = {RUST: 1.25}
"""How many times a tool's CPU a token the product may take; of every other tool less than once."""


def main() -> int:
    """Install, measure, print, save; 1 where a bar is missed or nothing could be measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_install_option(parser)
    parser.add_argument("--run", default="all", metavar="NAMES", help=f"all, or some of {', '.join((*OURS, *PEERS))}")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--streams", type=int, default=400)
    parser.add_argument("--requests", type=int, default=2, help="requests a stream")
    parser.add_argument("--tokens", type=int, default=200, help="tokens a request")
    given = parser.parse_args()
    folder = given.install.resolve()
    wanted = {**OURS, **PEERS}
    if given.run != "all":
        if unknown := set(given.run.split(",")) - set(wanted):
            parser.error(f"--run: no {', '.join(sorted(unknown))}; there are {', '.join(wanted)}")
        wanted = {name: wanted[name] for name in given.run.split(",")}
    missing = install_all(folder, wanted.values())
    found: list[Comparison] = []
    with tempfile.TemporaryDirectory() as name:
        tokenizer = make_tokenizer(Path(name))
        for number in range(given.rounds):
            for peer in wanted.values():
                if peer.name not in missing:
                    found += one_run(number, peer, folder, tokenizer, given, missing)
    save("peers", {"runs": [one.as_dict() for one in found], "left_out": missing}, *tables(found, missing, given))
    return 0 if found and not missed(found) else 1


def one_run(
    number: int, peer: Peer, folder: Path, tokenizer: Path, given: argparse.Namespace, missing: dict[str, str]
) -> list[Comparison]:
    """Run one tool once; what it fails at is kept as the reason why it is missing, when it never succeeds."""
    programs = bin_of(folder, peer) if peer.environment else Path()
    load = os.getloadavg()[0]
    try:
        one = compare(
            peer, programs, tokenizer, streams=given.streams, requests=given.streams * given.requests,
            tokens=given.tokens,
        )  # fmt: skip
    except ToolFailedError as why:
        print(f"round {number + 1}: {peer.name}: {why}", flush=True)
        missing.setdefault(peer.name, str(why))
        return []
    one.notes.update(round=number, load_average_before=round(load, 1))
    print(
        f"round {number + 1}: {peer.name}: TTFT {three(one.said.ttft_ms)} (sent {three(one.sent['ttft_ms'])}), "
        f"ITL {three(one.said.itl_ms)}, CPU {one.cpu_us_a_token:.1f} µs a token, "
        f"{one.cpu_load_s:.1f} of {one.cpu_s:.1f} s, {one.wall_s:.0f} s",
        flush=True,
    )
    return [one]


def tables(found: list[Comparison], missing: dict[str, str], given: argparse.Namespace) -> tuple[str, str, str]:
    """Make the tables of what was reported and of what it cost: medians over the rounds."""
    tools = list(dict.fromkeys(one.tool for one in found))
    head = (
        f"{given.streams} streams at once, {given.requests} requests each, {given.tokens} tokens a request, "
        f"{given.rounds} rounds. Reported mean / p50 / p99 in ms; in brackets what the server sent."
    )
    reported, cost = list[tuple[str, ...]](), list[tuple[str, ...]]()
    for tool in tools:
        own = [one for one in found if one.tool == tool]
        spreads = [beside(own, metric) for metric in ("ttft_ms", "itl_ms", "tpot_ms")]
        reported.append((tool, *spreads, counted(own)))
        to_rust = times(found, tool, RUST)
        figures = (f"{statistics.median(values):,.1f}" for values in zip(*map(costs, own), strict=True))
        cost.append((tool, "–" if to_rust is None else f"{to_rust:.2f}", *figures))
    left_out = [(tool, why, "", "", "") for tool, why in missing.items() if tool not in tools]
    return (
        head,
        table(("tool", "TTFT", "ITL", "TPOT", "ok / tokens"), [*reported, *left_out]),
        table(("tool", "× Rust client's CPU a token", *COSTS), cost),
    )


def times(found: list[Comparison], tool: str, other: str) -> float | None:
    """Return the median over the rounds of one tool's CPU a token to another's in the same round."""
    rounds: dict[int, dict[str, float]] = {}
    for one in found:
        rounds.setdefault(one.notes["round"], {})[one.tool] = one.cpu_us_a_token
    both = [used[tool] / used[other] for used in rounds.values() if tool in used and other in used]
    return statistics.median(both) if both else None


def missed(found: list[Comparison]) -> bool:
    """Say whether the product takes more of a tool's CPU than it may, with its warm-up or without, and tell it."""
    within = True
    for own in OURS.values():
        for peer in PEERS.values():
            ratio, most = times(found, own.name, peer.name), MOST_TIMES.get(peer.name, 1.0)
            if ratio is not None and ratio > most:
                print(f"missed: {own.name}: {ratio:.2f} × the CPU a token of {peer.name} ({most:g})")
                within = False
    return not within


def costs(one: Comparison) -> tuple[float, ...]:
    """Return the columns of the second table."""
    return one.cpu_us_a_token, one.cpu_load_s, one.cpu_s, one.peak_mb, one.load_s, one.wall_s, one.processes


def counted(own: list[Comparison]) -> str:
    """Show successes and tokens of the last round, each of how many."""
    one = own[-1]
    tokens = "–" if one.said.output_tokens is None else f"{one.said.output_tokens:,.0f}"
    return f"{one.said.ok} / {tokens} (of {one.requests_sent} / {one.tokens_sent:,})"


def beside(own: list[Comparison], metric: str) -> str:
    """Show what was reported and what was sent: medians over the rounds."""
    reported = {kind: _median([getattr(one.said, metric).get(kind) for one in own]) for kind in KINDS}
    sent = {kind: _median([one.sent[metric][kind] for one in own]) for kind in KINDS}
    return f"{three(reported)} ({three(sent)})"


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def three(spread: Spread) -> str:
    """Show mean / p50 / p99."""
    return " / ".join("–" if (value := spread.get(kind)) is None else f"{value:.2f}" for kind in KINDS)


if __name__ == "__main__":
    raise SystemExit(main())
