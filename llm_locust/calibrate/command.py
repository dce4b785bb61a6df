"""`llm-locust calibrate`: how much one worker of this machine times rightly, and how many workers a load needs.

Plays streams of known times at rising rates to a real `locust` with the suite's own user, over loopback, in under a
minute. A level is carried when the error against the sender's own clock stays below 1 ms at p99, at most 1 % of the
tokens came in late reads and no request failed.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from time import monotonic as now_s

from llm_locust.calibrate.level import GAP_MS, TOKENS, CalibrationError, play
from llm_locust.calibrate.verdict import HEADROOM, Level, best_of, limit_of, next_streams, workers_for

FIRST_STREAMS = 400
MOST_STREAMS = 3200
MOST_TRIES = 3
BUDGET_S = 50.0
"""No further level is begun when it would end later than this."""


def calibrate_main(argv: Sequence[str]) -> int:
    """Run the command; return its exit code: 1 where not even the lowest level is carried."""
    parser = argparse.ArgumentParser(prog="llm-locust calibrate", description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--want-tokens-per-s", type=positive, metavar="N", help="a load: how many workers does it need?"
    )
    parser.add_argument("--want-streams", type=positive, metavar="N", help="the same by concurrent requests")
    given = parser.parse_args(argv)
    print(f"Streams of {TOKENS} tokens, one every {GAP_MS:.0f} ms, one worker on one core; under a minute.")
    try:
        levels = climb()
    except CalibrationError as error:
        print(f"llm-locust calibrate: {error}")
        return 1
    for line in advice(levels, given.want_tokens_per_s, given.want_streams):
        print(line)
    return 0 if best_of(levels) is not None else 1


def positive(text: str) -> float:
    """Read a number above 0. Raises ArgumentTypeError."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def climb() -> list[Level]:
    """Play rising levels until one is not carried, then between. Raises CalibrationError.

    A level that failed on a core with rest is played again, twice at most: it is the worker that is asked about, not
    what its neighbours did in those seconds.
    """
    levels: list[Level] = []
    began_s = now_s()
    longest_s = 0.0
    while (streams := next_streams(levels, FIRST_STREAMS, MOST_STREAMS)) is not None:
        level: Level | None = None
        for _ in range(MOST_TRIES):
            level_began_s = now_s()
            if level_began_s - began_s + longest_s > BUDGET_S:
                break
            level = play(streams)
            longest_s = max(longest_s, now_s() - level_began_s)
            print(shown(level), flush=True)
            if not level.doubtful:
                break
        if level is None:
            break
        levels.append(level)
    return levels


def shown(level: Level) -> str:
    """Show one level in a line."""
    verdict = "carried" if level.carried else "not carried: " + "; ".join(level.faults)
    return (
        f"{level.streams:6,} streams {level.tokens_per_s:9,.0f} tokens/s  error p50 {level.error_p50_ms:.3f} "
        f"p99 {level.error_p99_ms:.3f} ms  CPU {level.cpu_ratio:4.0%}  {verdict}"
    )


def advice(levels: Sequence[Level], want_tokens_per_s: float | None, want_streams: float | None) -> Iterator[str]:
    """Say what one worker carries, what limits it, and how many workers the wanted load needs."""
    best = best_of(levels)
    if best is None:
        yield f"One worker does not carry even {min(level.streams for level in levels)} streams here."
        yield f"Limited by {limit_of(levels)}."
        return
    yield f"One worker carries {best.tokens_per_s:,.0f} tokens/s on {best.streams:,} streams (times: {best.source})."
    yield f"Limited by {limit_of(levels)}."
    if want_tokens_per_s is None and want_streams is None:
        return
    workers = workers_for(best, want_tokens_per_s, want_streams)
    wanted = [f"{want_tokens_per_s:,.0f} tokens/s"] if want_tokens_per_s is not None else []
    wanted += [f"{want_streams:,.0f} streams"] if want_streams is not None else []
    yield f"{' and '.join(wanted)}: {workers} worker{'s' if workers > 1 else ''}, each at {HEADROOM:.0%} of that."
    cores = os.cpu_count() or 1
    if workers > cores - 1:
        yield f"This machine has {cores} cores: spread the workers over several machines."
