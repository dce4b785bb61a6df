"""The server's options, read once from the command line into one frozen value."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from llm_locust.mock.faults import FAULTS, parse_faults
from llm_locust.mock.profiles import PROFILES

TOKENIZE_FIELDS = ("prompt", "content")
REFUSABLE = ("ignore_eos", "min_tokens", "stream_options", "continuous_usage_stats", "max_tokens")


@dataclass(frozen=True, slots=True)
class Options:
    """What one server process does; times are as on the command line, before the time scale."""

    host: str = "127.0.0.1"
    port: int = 0
    tls_cert: Path | None = None
    tls_key: Path | None = None
    api_key: str | None = None
    model: str | None = None
    profile: str = "deepseek-r1-32xh100"
    ttft_ms: float | None = None
    itl_ms: float | None = None
    time_scale: float = 1.0
    seed: int = 0
    output_tokens: tuple[int, int] = (256, 1024)
    faults: tuple[tuple[str, float], ...] = ()
    fault_after: int = 3
    stall_ms: float = 3000.0
    slow_first_ms: float = 3000.0
    retry_after_s: float = 1.0
    bundle: int = 4
    refuse: frozenset[str] = frozenset()
    refuse_status: int = 400
    tokenize: str = ""
    without: frozenset[str] = frozenset()
    max_model_len: int = 131072
    script: Path | None = None
    truth: Path | None = None
    stamp: bool = False


DEFAULTS = Options()


def _range(text: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    bounds = int(low), int(high or low)
    if not 1 <= bounds[0] <= bounds[1]:
        raise argparse.ArgumentTypeError(f"{text!r} is not N or A-B with 1 <= A <= B")
    return bounds


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not above 0")
    return value


def _refused(text: str) -> frozenset[str]:
    names = frozenset(filter(None, text.split(",")))
    if unknown := names - set(REFUSABLE):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not one of {', '.join(REFUSABLE)}")
    return names


def _paths(text: str) -> frozenset[str]:
    return frozenset(filter(None, text.split(",")))


def _faults(text: str) -> tuple[tuple[str, float], ...]:
    try:
        return parse_faults(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def build_parser() -> argparse.ArgumentParser:
    """Build the command line."""
    fault_list = "; ".join(f"{name} ({fault.what})" for name, fault in FAULTS.items())
    parser = argparse.ArgumentParser(prog="llm-locust mock", description="An LLM server for tests and demonstrations.")
    add = parser.add_argument
    add("--host", default=DEFAULTS.host)
    add("--port", type=int, default=8000, help="0 takes a free one; the line on stdout names it")
    add("--tls-cert", type=Path, help="serve TLS with this certificate chain (PEM)")
    add("--tls-key", type=Path)
    add("--api-key", help="answer 401 to requests without it (Authorization: Bearer, or x-api-key)")
    add("--model", help="answer 404 to requests for another model")
    add("--profile", choices=(*PROFILES, "fast"), default=DEFAULTS.profile, help="fast: fixed times, no engine")
    add("--ttft-ms", type=_positive, help="time to first token with --profile fast (default 20)")
    add("--itl-ms", type=_positive, help="time between tokens with --profile fast (default 5)")
    add("--time-scale", type=_positive, default=1.0, metavar="K", help="divide all times by K")
    add("--seed", type=int, default=0, help="of output lengths and faults")
    add("--output-tokens", type=_range, default=DEFAULTS.output_tokens, metavar="A-B",
        help="lengths of answers that may end by themselves (no ignore_eos)")  # fmt: skip
    add("--fault", type=_faults, default=(), dest="faults", metavar="NAME=P,...",
        help=f"give this share of the requests a fault: {fault_list}")  # fmt: skip
    add("--fault-after", type=int, default=DEFAULTS.fault_after, metavar="N", help="tokens before a mid-stream fault")
    add("--stall-ms", type=_positive, default=DEFAULTS.stall_ms)
    add("--slow-first-ms", type=_positive, default=DEFAULTS.slow_first_ms)
    add("--retry-after-s", type=float, default=DEFAULTS.retry_after_s)
    add("--bundle", type=int, default=DEFAULTS.bundle, metavar="N", help="tokens per event or events per segment")
    add("--refuse", type=_refused, default=frozenset(), metavar="FIELD,...",
        help=f"refuse requests with these fields: {', '.join(REFUSABLE)}")  # fmt: skip
    add("--refuse-status", type=int, choices=(400, 422), default=400)
    add("--tokenize", choices=TOKENIZE_FIELDS, default="",
        help="the one field that /tokenize takes: prompt (SGLang, vLLM) or content (llama.cpp)")  # fmt: skip
    add("--without", type=_paths, default=frozenset(), metavar="PATH,...", help="answer 404 to these paths")
    add("--max-model-len", type=int, default=DEFAULTS.max_model_len)
    add("--script", type=Path, help="JSON file of byte streams to play, by path or by X-Mock-Script")
    add("--truth", type=Path, help="write what was really sent, one JSON line a request")
    add("--stamp", action="store_true", help="put the send time into each chunk: t, CLOCK_MONOTONIC in ns")
    return parser


def parse(argv: Sequence[str] | None) -> Options:
    """Read the command line; exits with 2 and a message where it is wrong."""
    parser = build_parser()
    given = parser.parse_args(argv)
    if (given.tls_cert is None) != (given.tls_key is None):
        parser.error("--tls-cert and --tls-key belong together")
    if given.profile != "fast" and (given.ttft_ms or given.itl_ms):
        parser.error("--ttft-ms and --itl-ms belong to --profile fast")
    profile = PROFILES.get(given.profile)
    if profile is not None and given.max_model_len > profile.kv_tokens:
        parser.error(f"--max-model-len is more than the KV pool of {profile.kv_tokens} tokens holds")
    return Options(**vars(given))
