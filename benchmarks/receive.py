"""How much of what C could do does the product reach, and how true are its times?

    python -m benchmarks.receive [--streams 100,400,800,1600] [--rounds 5] [--quick]

The whole product (a real `locust`, records, events, aggregation, files) on one core against the truth server on
another, interleaved in one run with the least that C can do and with bare loops on aiohttp and httpx. What is to be
compared are the ratios within a round; the figures of a table are medians over the rounds.
"""

from __future__ import annotations

import argparse
import statistics

from benchmarks.clients import GAP_MS, ClientFailedError, Load, Reading, measure
from benchmarks.lab import save, table
from benchmarks.venvs import NotInstallableError

CLIENTS = ("C limit", "llm-locust", "aiohttp", "aiohttp raw", "httpx")
MOST_STREAMS = {"httpx": 400}
"""It carries some 6,000 tokens/s: beyond, a round of it takes minutes."""
BARS = {400: 0.40, 1600: 0.45}
"""Share of the C limit that is asked for, by streams."""
TIMES_AIOHTTP = 1.2
"""How much more than the bare loop is asked for, where the loop keeps up."""
BEHIND = "aiohttp is a gap late in the middle and more: it reads several tokens at once, so its rate sets no bar"


def main() -> int:
    """Measure, print, save; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", default="100,400,800,1600")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=2, help="measured requests a stream")
    parser.add_argument("--clients", default=",".join(CLIENTS), help=f"some of: {', '.join(CLIENTS)}")
    parser.add_argument("--quick", action="store_true", help="one round at 400 streams")
    given = parser.parse_args()
    clients = given.clients.split(",")
    if unknown := set(clients) - set(CLIENTS):
        parser.error(f"--clients: no {', '.join(sorted(unknown))}; there are {', '.join(CLIENTS)}")
    levels = [400] if given.quick else [int(level) for level in given.streams.split(",")]
    readings: list[list[Reading]] = []
    for level in levels:
        for number in range(1 if given.quick else given.rounds):
            readings.append(one_round(clients, Load(level, given.requests), number))
    tables = [level_table(level, [r for r in readings if r and r[0].streams == level]) for level in levels]
    save("receive", {"rounds": [[one.as_dict() for one in found] for found in readings]}, *tables)
    return 1 if any(missed(level, readings) for level in levels) else 0


def one_round(clients: list[str], load: Load, number: int) -> list[Reading]:
    """Run each client once, one after the other."""
    found = []
    for client in clients:
        if load.streams > MOST_STREAMS.get(client, load.streams):
            continue
        try:
            found.append(measure(client, load))
        except (NotInstallableError, ClientFailedError) as why:
            print(f"round {number + 1}, {load.streams} streams: {client} left out: {why}", flush=True)
        else:
            one = found[-1]
            error = f"error p50 {one.error_ms['p50']:.3f} p99 {one.error_ms['p99']:.3f} ms"
            print(f"round {number + 1}, {load.streams} streams: {client}: {one.tokens_per_cpu_s:,.0f} tokens/CPU-s, "
                  f"{error}, core taken by others {one.waited_s:.1f} s", flush=True)  # fmt: skip
    return found


def level_table(level: int, rounds: list[list[Reading]]) -> str:
    """Make the table of one number of streams."""
    heads = ("client", "tokens/CPU-s", "of the C limit", "× aiohttp", "error p50 / p99 / max ms",
             "TTFT p50 / p99 ms (sent)", "ITL p99 / max ms (sent)")  # fmt: skip
    rows = []
    for client in dict.fromkeys(one.client for found in rounds for one in found):
        own = [one for found in rounds for one in found if one.client == client]
        error = [statistics.median(one.error_ms[kind] for one in own) for kind in ("p50", "p99", "max")]
        rows.append((
            client, f"{statistics.median(one.tokens_per_cpu_s for one in own):,.0f}",
            percent(ratio(rounds, client, "C limit")), times(ratio(rounds, client, "aiohttp")),
            " / ".join(f"{value:.3f}" for value in error),
            beside(own, "ttft_ms", ("p50", "p99")), beside(own, "itl_ms", ("p99", "max")),
        ))  # fmt: skip
    behind = "" if keeps_up(rounds) else f"\n\n{BEHIND}"
    return f"{level} streams, {len(rounds)} rounds\n\n{table(heads, rows)}{behind}"


def keeps_up(rounds: list[list[Reading]]) -> bool:
    """Say whether the bare aiohttp loop reads token by token: in the middle it is less than a gap late.

    A loop that is later finds several tokens of a stream at each read. That is cheap and wrong: its rate is not that
    of a client that times tokens.
    """
    late = [one.error_ms["p50"] for found in rounds for one in found if one.client == "aiohttp"]
    return not late or statistics.median(late) < GAP_MS


def beside(own: list[Reading], metric: str, kinds: tuple[str, ...]) -> str:
    """Show what was reported, and in brackets what was sent: medians over the rounds."""
    reported = [statistics.median(one.reported[metric][kind] for one in own) for kind in kinds]
    sent = [statistics.median(one.sent[metric][kind] for one in own) for kind in kinds]
    return f"{' / '.join(f'{ms:.2f}' for ms in reported)} ({' / '.join(f'{ms:.2f}' for ms in sent)})"


def ratio(rounds: list[list[Reading]], client: str, other: str) -> float | None:
    """Return the median over the rounds of one client's rate to the other's in the same round."""
    ratios = []
    for found in rounds:
        rates = {one.client: one.tokens_per_cpu_s for one in found}
        if client in rates and other in rates:
            ratios.append(rates[client] / rates[other])
    return statistics.median(ratios) if ratios else None


def missed(level: int, readings: list[list[Reading]]) -> bool:
    """Say whether the product is below what is asked for at a level."""
    rounds = [found for found in readings if found and found[0].streams == level]
    share, over_aiohttp = ratio(rounds, "llm-locust", "C limit"), ratio(rounds, "llm-locust", "aiohttp")
    below = share is not None and share < BARS.get(level, 0.0)
    return below or (over_aiohttp is not None and keeps_up(rounds) and over_aiohttp < TIMES_AIOHTTP)


def percent(value: float | None) -> str:
    """Show a share."""
    return "–" if value is None else f"{value * 100:.0f} %"


def times(value: float | None) -> str:
    """Show a factor."""
    return "–" if value is None else f"{value:.2f}"


if __name__ == "__main__":
    raise SystemExit(main())
