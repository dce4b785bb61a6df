"""How steady is the embedded server? Tokens per second, CPU and lateness against its own nominal schedule.

    taskset -c 1 python benchmarks/mock_pace.py --server-core 0 [--streams 400] [--itl-ms 20]

All streams start together, so that each step is nearly one batch: the worst case. The reader throws away what
it reads. Lateness is taken from the server's truth file: the clock before each send against arrival + TTFT + i * ITL.
With ``--itl-ms 0.001`` the rate printed is the most that the server can send.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

READY = "llm-locust mock ready on "
LAST_CHUNK = b"0\r\n\r\n"
GOALS = {64: 2.0, 400: 6.0}  # streams -> p99 in ms


def main() -> int:
    """Run one load and print what came of it; 1 if a stated goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=400)
    parser.add_argument("--tokens", type=int, default=200)
    parser.add_argument("--ttft-ms", type=float, default=200.0)
    parser.add_argument("--itl-ms", type=float, default=20.0)
    parser.add_argument("--server-core", type=int)
    parser.add_argument("--path", choices=("/v1/chat/completions", "/v1/completions", "/generate"),
                        default="/v1/chat/completions")  # fmt: skip
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        truth = Path(folder, "truth.jsonl")
        command = [sys.executable, "-m", "llm_locust.mock", "--port", "0", "--profile", "fast", "--truth", str(truth),
                   "--ttft-ms", str(options.ttft_ms), "--itl-ms", str(options.itl_ms)]  # fmt: skip
        pin = ["taskset", "-c", str(options.server_core)] if options.server_core is not None else []
        process = subprocess.Popen([*pin, *command], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        port = int(process.stdout.readline().removeprefix(READY).rpartition(":")[2])
        before_s, before_waited_s = cpu_s(process.pid)
        read_all(port, options.path, options.streams, options.tokens)
        after_s, after_waited_s = cpu_s(process.pid)
        process.terminate()
        process.wait(10)
        requests = [json.loads(line) for line in truth.read_text().splitlines()]
    return report(requests, options, after_s - before_s, after_waited_s - before_waited_s)


def read_all(port: int, path: str, streams: int, tokens: int) -> None:
    """Open all streams at once and read them to their ends."""
    prompt = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": tokens}
    if path == "/v1/completions":
        prompt = {"prompt": "hi", "max_tokens": tokens}
    elif path == "/generate":
        prompt = {"text": "hi", "sampling_params": {"max_new_tokens": tokens, "ignore_eos": True}}
    body = json.dumps({**prompt, "stream": True, "ignore_eos": True}).encode()
    request = b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (path.encode(), len(body)) + body
    selector = selectors.DefaultSelector()
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(streams)]
    for one in sockets:
        selector.register(one, selectors.EVENT_READ)
    for one in sockets:
        one.sendall(request)
    left = streams
    while left:
        for key, _ in selector.select():
            received = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
            if not received or received.endswith(LAST_CHUNK):
                selector.unregister(key.fileobj)
                left -= 1


def cpu_s(pid: int) -> tuple[float, float]:
    """CPU time that a process has used, and the time it was ready but waited for a core."""
    used_ns, waited_ns, _ = map(int, Path(f"/proc/{pid}/schedstat").read_text().split())
    return used_ns / 1e9, waited_ns / 1e9


def report(requests: list[dict[str, list[int]]], options: argparse.Namespace, used_s: float, waited_s: float) -> int:
    """Print the figures; 1 if a stated goal was missed."""
    late = []
    for request in requests:
        sent = np.asarray(request["token_send_ns"])
        due = request["arrival_ns"] + (options.ttft_ms + options.itl_ms * np.arange(len(sent))) * 1e6
        late.append((sent - due) / 1e6)
    late_ms = np.concatenate(late)
    first = min(request["token_send_ns"][0] for request in requests)
    last = max(request["token_send_ns"][-1] for request in requests)
    rate = late_ms.size / (last - first) * 1e9
    p50, p99 = np.quantile(late_ms, [0.5, 0.99])
    print(f"{len(requests)} streams, {late_ms.size} tokens, {rate:,.0f} tokens/s, "
          f"CPU {used_s:.2f} s = {used_s / late_ms.size * 1e6:.1f} us a token")  # fmt: skip
    print(f"lateness ms: p50 {p50:.2f}  p99 {p99:.2f}  max {late_ms.max():.2f}")
    print(f"the server was ready but waited for its core {waited_s * 1e3:.0f} ms: other work's share of the lateness")
    goal = GOALS.get(options.streams)
    return 1 if goal is not None and p99 > goal else 0


if __name__ == "__main__":
    sys.exit(main())
