"""How long from `locust` to the first request, and how much of it is Locust's own?

    python -m benchmarks.startup [--rounds 5]

A plain Locust user, and the suite's with its pre-flight, each from the start of the process until its first request
reached the server; interleaved, medians. The suite's first request is the pre-flight's, its first measured one comes
after that.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.clients import Load, run_product
from benchmarks.lab import Sent, run_client, save, serving, table

PLAIN = """
from locust import HttpUser, task

class Plain(HttpUser):
    @task
    def ask(self):
        self.client.post("/v1/chat/completions", json={"max_tokens": 1}, headers={"X-Request-Id": "plain"})
        self.environment.runner.quit()
"""


def main() -> int:
    """Measure, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    plain, probed, loaded = zip(*(one_round() for _ in range(rounds)), strict=True)
    rows = [
        ("plain Locust: first request", plain),
        ("llm-locust: first request of the pre-flight", probed),
        ("llm-locust: first request of the load", loaded),
    ]
    heads = ("from the start of the process", "median s", "of plain Locust")
    medians = {name: statistics.median(found) for name, found in rows}
    base = medians[rows[0][0]]
    shown = table(heads, [(name, f"{value:.2f}", f"{value / base:.2f}") for name, value in medians.items()])
    save("startup", {"seconds": {name: list(found) for name, found in rows}}, shown)
    return 0


def one_round() -> tuple[float, float, float]:
    """Return the seconds of a plain Locust, of the pre-flight, and of the load."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        locustfile = folder / "plain.py"
        locustfile.write_text(PLAIN)
        locust = str(Path(sys.executable).with_name("locust"))
        with serving(folder, ttft_ms=1.0, gap_ms=1.0) as server:
            began_ns = time.monotonic_ns()
            run_client([locust, "-f", str(locustfile), "--headless", "--host", server.url, "-u", "1"])
        plain_s = (first(server.sent) - began_ns) / 1e9
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(folder, ttft_ms=1.0, gap_ms=1.0) as server:
            began_ns = time.monotonic_ns()
            run_product(server.url, Load(1, 1, tokens=50), folder)
        load = [one for one in server.sent if len(one.token_send_ns) == 50]
        return plain_s, (first(server.sent) - began_ns) / 1e9, (first(load) - began_ns) / 1e9


def first(sent: list[Sent]) -> int:
    """Return when the first request reached the server."""
    return min(one.arrival_ns for one in sent)


if __name__ == "__main__":
    raise SystemExit(main())
