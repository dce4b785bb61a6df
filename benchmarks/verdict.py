"""Does a run say of itself what is true, below what one worker carries and far beyond it?

    python -m benchmarks.verdict [--carries N] [--calibrations 3] [--shares 0.8,3]

`llm-locust calibrate` says how many streams one worker carries (`--carries` takes that as given). The whole product
then plays 80 % and 300 % of it against the truth server, on one core. Where allowed, all of it goes before other
processes. Every row of requests.csv is compared with the sender's own instants: a request whose first token or any of
whose gaps is more than 1 ms off must say so by `ttft_upper_bound` or `late_tokens`. At 80 % the run must be VALID with
an error of at most 0.05 ms at p99, at 300 % SUSPECT.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clients import Load, read_arrivals, run_product
from benchmarks.lab import ROOT, Sent, raise_priority, save, serving, spread, table

TOKENS = 100
OFF_NS = 1_000_000
CARRIES = re.compile(r"One worker carries .* on ([\d,]+) streams")
CALIBRATION_LIMIT_S = 120.0
MOST_ERROR_MS = 0.05
MOST_SPREAD = 0.15
"""By so much the calibrations may differ from their median."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One run beside the truth; shares are of its measured requests."""

    share: float
    streams: int
    requests: int
    failed: int
    error_ms: dict[str, float]
    late_tokens_ratio: float
    ttft_off: int
    ttft_off_marked: int
    gaps_off: int
    gaps_off_marked: int
    marked: int
    worst_unmarked_ms: float
    validity: str
    reasons: list[str]

    @property
    def unmarked(self) -> int:
        """Requests that are off and do not say so."""
        return self.ttft_off - self.ttft_off_marked + self.gaps_off - self.gaps_off_marked

    @property
    def right(self) -> bool:
        """Whether the run says of itself what it should."""
        if self.failed:
            return False
        if self.share < 1:
            return self.validity == "VALID" and self.error_ms["p99"] <= MOST_ERROR_MS
        return self.validity == "SUSPECT" and not self.unmarked


def main() -> int:
    """Calibrate, run, print, save; 1 if a run or the calibrations are not right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--carries", type=int, help="streams; calibrate where not given")
    parser.add_argument("--calibrations", type=int, default=3)
    parser.add_argument("--shares", default="0.8,3")
    parser.add_argument("--requests", type=int, default=4, help="measured requests a stream")
    given = parser.parse_args()
    carried = [given.carries] if given.carries else [calibrated() for _ in range(given.calibrations)]
    carries = sorted(carried)[len(carried) // 2]
    apart = max(abs(one / carries - 1) for one in carried)
    told = f"One worker carries {', '.join(map(str, carried))} streams: at most {apart:.0%} from the median."
    print(told, flush=True)
    judged = [judge(float(share), round(float(share) * carries), given.requests) for share in given.shares.split(",")]
    save("verdict", {"carried": carried, "runs": [asdict(one) for one in judged]}, told, shown(judged))
    return int(apart > MOST_SPREAD or not all(one.right for one in judged))


def calibrated() -> int:
    """Run `llm-locust calibrate`; return the streams that one worker carries. Raises RuntimeError if it tells none."""
    command = [sys.executable, "-m", "llm_locust.cli", "calibrate"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, start_new_session=True)
    raise_priority(process.pid)
    began_s = time.monotonic()
    told, _ = process.communicate(timeout=CALIBRATION_LIMIT_S)
    print(f"{told}Took {time.monotonic() - began_s:.0f} s.", flush=True)
    found = CARRIES.search(told)
    if found is None:
        raise RuntimeError("llm-locust calibrate does not say what one worker carries")
    return int(found[1].replace(",", ""))


def judge(share: float, streams: int, requests: int) -> Judged:
    """Play one load and compare every row with what was sent. Raises RuntimeError where the run went wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(folder) as server:
            ended = run_product(server.url, Load(streams, requests, TOKENS), folder)
        if ended.exit_code != 0:
            raise RuntimeError(f"{streams} streams: exit code {ended.exit_code}: {ended.errors[-1000:]}")
        run = folder / "reports" / "latest"
        with (run / "requests.csv").open(newline="") as lines:
            rows = {row["client_request_id"]: row for row in csv.DictReader(lines) if row["phase"] == "steady"}
        arrivals = {line["request_id"]: line for line in read_arrivals(folder / "arrivals")}
        verdict = json.loads((run / "summary.json").read_text())["verdict"]
        sent = {one.request_id: one for one in server.sent}
    good = [(row, arrivals[key], sent[key]) for key, row in rows.items() if row["outcome"] == "ok"]
    return compared(share, streams, good, len(rows) - len(good), verdict)


def compared(
    share: float,
    streams: int,
    requests: Sequence[tuple[dict[str, str], dict[str, Any], Sent]],
    failed: int,
    verdict: dict[str, Any],
) -> Judged:
    """Compare requests that ended well, each as (row, arrivals, what was sent)."""
    errors, worst = [], 0.0
    found = dict.fromkeys(("ttft_off", "ttft_off_marked", "gaps_off", "gaps_off_marked", "marked"), 0)
    for row, arrived, sent in requests:
        error = np.array(arrived["arrivals_ns"], np.int64) - sent.token_send_ns
        errors.append(error)
        late, bound = int(row["late_tokens"]) > 0, row["ttft_upper_bound"] == "true"
        took = np.zeros_like(error) + sent.token_took_ns  # when in this time a token left is not known
        ttft_error_ns = abs(float(row["ttft_ms"]) * 1e6 - (sent.token_send_ns[0] - arrived["start_ns"]))
        ttft_off = bool(ttft_error_ns > OFF_NS + took[0])
        gaps_off = bool((np.abs(np.diff(error)) > OFF_NS + took[1:] + took[:-1]).any())
        found["ttft_off"] += ttft_off
        found["ttft_off_marked"] += ttft_off and bound
        found["gaps_off"] += gaps_off
        found["gaps_off_marked"] += gaps_off and late
        found["marked"] += late or bound
        if (gaps_off and not late) or (ttft_off and not bound):
            worst = max(worst, float(np.abs(error).max()) / 1e6)
    tokens = sum(error.size for error in errors)
    return Judged(
        share, streams, len(requests), failed, spread(np.abs(np.concatenate(errors))),
        sum(int(row["late_tokens"]) for row, _, _ in requests) / tokens, **found, worst_unmarked_ms=worst,
        validity=verdict["validity"], reasons=verdict["reasons"],
    )  # fmt: skip


def shown(judged: Sequence[Judged]) -> str:
    """Make the table."""
    heads = ("of what is carried", "streams", "failed", "error p50 / p99 / max ms", "late tokens",
             "TTFT off by > 1 ms (marked)", "a gap off by > 1 ms (marked)", "off and not marked",
             "worst of these ms", "run", "reasons")  # fmt: skip
    rows = [
        (
            f"{one.share:.0%}", f"{one.streams:,}",
            str(one.failed), " / ".join(f"{one.error_ms[kind]:.3f}" for kind in ("p50", "p99", "max")),
            f"{one.late_tokens_ratio:.1%}", of(one.ttft_off, one.ttft_off_marked, one.requests),
            of(one.gaps_off, one.gaps_off_marked, one.requests), f"{one.unmarked:,}", f"{one.worst_unmarked_ms:.1f}",
            one.validity, "; ".join(one.reasons) or "–",
        )
        for one in judged
    ]  # fmt: skip
    return table(heads, rows)


def of(off: int, marked: int, requests: int) -> str:
    """Show how many requests are off, and how many of those say so."""
    return f"{off / requests:.1%}" + (f" ({marked / off:.1%})" if off else "")


if __name__ == "__main__":
    raise SystemExit(main())
