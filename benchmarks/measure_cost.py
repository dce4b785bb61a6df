"""What measuring costs: microseconds per token on the hot path, per request at its end, per harvest and report.

Run: python benchmarks/measure_cost.py [--json]. The load is that of a busy worker: 400 streams of 200 tokens.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

from llm_locust.measure.aggregate import Aggregate
from llm_locust.measure.finish import Identity, Samples, finish_record
from llm_locust.measure.judge import Answer, AskFacts
from llm_locust.measure.ledger import Ledger
from llm_locust.measure.record import RequestRecord
from llm_locust.measure.snapshot import snapshot
from llm_locust.measure.timeline import Timeline
from llm_locust.protocol import get_dialect
from llm_locust.protocol.types import ANSWER, Usage
from llm_locust.wire.types import End, Exchange

STREAMS = 400
TOKENS = 200
GAP_NS = 20_000_000
S = 1_000_000_000
ARRIVALS = ((0, ANSWER),)
IDENTITY = Identity(
    run_id="run", worker="w", request_id=1, user_class="Chat", name="chat", dialect="openai-chat", stage="s",
    phase="steady", epoch_offset_ns=0,
)  # fmt: skip


def timelines(*, counted: bool) -> list[Timeline]:
    """Make the arrivals of all streams; `counted` with running counts of two tokens an event."""
    made = []
    for stream in range(STREAMS):
        timeline = Timeline()
        for token in range(TOKENS):
            timeline.add(ARRIVALS, S + stream * 50_000 + token * GAP_NS, 2 * token + 2 if counted else None)
        made.append(timeline)
    return made


def answer_of(timeline: Timeline, tokens: int) -> Answer:
    """Make the answer of a stream that went well."""
    reader = get_dialect("openai-chat").reader(stream=True)
    reader.usage = Usage(input_tokens=1024, output_tokens=tokens)
    reader.finish_reason, reader.terminal = "length", True
    last_ns = timeline.last_ns or 0
    exchange = Exchange(
        start_ns=S - 50_000_000, sent_ns=S - 49_900_000, headers_ns=S - 10_000_000, end_ns=last_ns + 100_000,
        status=200, headers=[(b"content-type", b"text/event-stream")], end=End.COMPLETE, reads=TOKENS,
        stamped_reads=TOKENS,
    )  # fmt: skip
    return Answer(exchange, reader, timeline)


def seconds(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one run: others may be busy on the same machine."""
    began = time.process_time()
    work()
    return time.process_time() - began


def longest_piece(pieces: Iterator[None]) -> float:
    """Run a harvest; return its longest piece in seconds."""
    longest = 0.0
    while True:
        began = time.process_time()
        done = next(pieces, StopIteration) is StopIteration
        longest = max(longest, time.process_time() - began)
        if done:
            return longest


def measure(*, counted: bool) -> dict[str, float]:
    """Return the costs in microseconds."""
    made: list[Timeline] = []
    cost = {"add_per_token_us": seconds(lambda: made.extend(timelines(counted=counted))) / STREAMS / TOKENS * 1e6}
    answers = [answer_of(timeline, TOKENS * (2 if counted else 1)) for timeline in made]
    results: list[tuple[RequestRecord, Samples]] = []

    def finish() -> None:
        results.extend(finish_record(answer, AskFacts(output_tokens=TOKENS), IDENTITY) for answer in answers)

    cost["finish_per_request_us"] = seconds(finish) / STREAMS * 1e6
    book = Aggregate()

    def add() -> None:
        for result in results:
            book.add(*result)

    cost["book_per_request_us"] = seconds(add) / STREAMS * 1e6
    ledger = Ledger(book, 0)
    ledger.mark(0, "s", "steady")
    streams = [ledger.open("chat", S - 50_000_000, timeline) for timeline in made]
    # 3 s of 50 tokens a second each, then the rest with the ends.
    pieces = [longest_piece(ledger.harvest(S)), longest_piece(ledger.harvest(4 * S))]
    cost["longest_piece_running_us"] = max(pieces) * 1e6
    for stream, (record, samples) in zip(streams, results, strict=True):
        ledger.close(stream, record, samples)
    ending: list[float] = []
    cost["harvest_ended_per_request_us"] = (
        seconds(lambda: ending.append(longest_piece(ledger.harvest(10 * S)))) / STREAMS * 1e6
    )
    cost["longest_piece_ended_us"] = ending[0] * 1e6
    master = Aggregate()
    deltas: list[Any] = []
    cost["take_delta_us"] = seconds(lambda: deltas.append(book.take_delta())) * 1e6
    cost["merge_delta_us"] = seconds(lambda: master.merge(deltas[0])) * 1e6
    cost["snapshot_us"] = seconds(lambda: snapshot(master, 0)) * 1e6
    cost["per_request_us"] = sum(cost[key] for key in cost if key.endswith("per_request_us"))
    return cost


def main() -> None:
    """Print the costs, the least of five runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    table = {}
    for title, counted in (("one token a chunk", False), ("running counts", True)):
        runs = [measure(counted=counted) for _ in range(5)]
        table[title] = {key: min(run[key] for run in runs) for key in runs[0]}
    if as_json:
        print(json.dumps(table))
        return
    for title, costs in table.items():
        print(f"{title} ({STREAMS} streams of {TOKENS} events):")
        for key, value in costs.items():
            print(f"  {key:32s} {value:10.2f}")


if __name__ == "__main__":
    main()
