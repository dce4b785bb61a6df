"""Measure what reading one event costs: decoder and reader, in memory, without sockets.

Run: ``python benchmarks/protocol_cost.py``. Each line is the best of several rounds, in
microseconds an event, beside ``json.loads`` of the same payload.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from functools import partial

from llm_locust.protocol import get_dialect, make_decoder

EVENTS = 2000
ROUNDS = 7

_HEAD = '"id":"chatcmpl-0000000000000007","object":"chat.completion.chunk","created":1764500000,"model":"deepseek-r1",'
_USAGE = ',"usage":{"prompt_tokens":1024,"completion_tokens":%d,"total_tokens":2048}'
_TEXT = '"choices":[{"index":0,"text":" tok%d","logprobs":null,"finish_reason":null,"stop_reason":null}]'
_DELTA = '"choices":[{"index":0,"delta":{"content":" tok%d"},"logprobs":null,"finish_reason":null}]'
_THOUGHT = '"choices":[{"index":0,"delta":{"role":"assistant","content":null,"reasoning_content":" tok%d"}}]'
_BLOCK = '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" tok%d"}}'


def streams() -> dict[str, tuple[str, list[bytes]]]:
    """Return (dialect, payloads) by name."""
    meta = '"meta_info":{"id":"0123456789abcdef","finish_reason":null,"prompt_tokens":1024,"completion_tokens":%d}'
    texts = ["".join(f" tok{i}" for i in range(min(n, 199) + 1)) for n in range(EVENTS)]
    return {
        "chat": ("openai-chat", [("{" + _HEAD + _DELTA % i + "}").encode() for i in range(EVENTS)]),
        "chat, reasoning": ("openai-chat", [("{" + _HEAD + _THOUGHT % i + "}").encode() for i in range(EVENTS)]),
        "chat, usage in each": (
            "openai-chat",
            [("{" + _HEAD + _DELTA % i + _USAGE % (i + 1) + "}").encode() for i in range(EVENTS)],
        ),
        "completions": ("openai-completions", [("{" + _HEAD + _TEXT % i + "}").encode() for i in range(EVENTS)]),
        "generate, 200 tokens of text": (
            "sglang-generate",
            [f'{{"text":"{text}",{meta % (i + 1)}}}'.encode() for i, text in enumerate(texts)],
        ),
        "messages": ("anthropic-messages", [(_BLOCK % i).encode() for i in range(EVENTS)]),
    }


def best_us(run: Callable[[], object]) -> float:
    """Return the best time of a round, in microseconds an event."""
    best_ns = min(_timed_ns(run) for _ in range(ROUNDS))
    return best_ns / EVENTS / 1000


def _timed_ns(run: Callable[[], object]) -> int:
    started = time.perf_counter_ns()
    run()
    return time.perf_counter_ns() - started


def read_all(name: str, segments: list[bytes]) -> int:
    """Feed segments as a sink does; return the arrivals."""
    dialect = get_dialect(name)
    decoder, reader = make_decoder(dialect.framing), dialect.reader(stream=True)
    feed, event = decoder.feed, reader.event
    arrivals = 0
    for segment in segments:
        for event_type, payload in feed(segment):
            arrivals += len(event(payload, event_type))
    return arrivals


def _load_all(payloads: list[bytes]) -> None:
    for payload in payloads:
        json.loads(payload)


def main() -> None:
    """Print the table."""
    print(f"{'stream':28} {'one a read':>11} {'ten a read':>11} {'half reads':>11} {'json.loads':>11}   us/event")
    for label, (name, payloads) in streams().items():
        single = [b"data: " + payload + b"\n\n" for payload in payloads]
        tens = [b"".join(single[i : i + 10]) for i in range(0, EVENTS, 10)]
        halves = [part for segment in single for part in (segment[:90], segment[90:])]
        assert read_all(name, single) == read_all(name, tens) == read_all(name, halves) == EVENTS
        times = [best_us(partial(read_all, name, segments)) for segments in (single, tens, halves)]
        loads = best_us(partial(_load_all, payloads))
        print(f"{label:28} " + " ".join(f"{us:11.2f}" for us in (*times, loads)) + f"   {loads / times[0]:.1f} x")


if __name__ == "__main__":
    main()
