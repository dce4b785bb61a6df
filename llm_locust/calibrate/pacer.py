"""A server that only keeps time: chat streams of equal gaps, as fast as one core of plain Python can send them.

Run as a process of its own: ``python -m llm_locust.calibrate.pacer --ttft-ms 50 --gap-ms 20 --truth FILE``. It answers
``POST /v1/chat/completions`` with as many tokens as ``max_tokens`` asks for, each a segment of its own, and on SIGTERM
writes what it sent when: one JSON line a request, instants of CLOCK_MONOTONIC read right before each send. It knows no
model and no faults; the embedded server (`llm-locust mock`) has those, at a fifth of the rate.
"""

from __future__ import annotations

import argparse
import heapq
import json
import re
import selectors
import signal
import socket
from collections.abc import Sequence
from pathlib import Path
from time import monotonic_ns

READY = "pacer ready on "
MOST_PER_TURN = 256
_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
_REQUEST_ID = re.compile(rb"(?i)\r\nx-request-id: *([^\r\n]+)")
_LIMIT = re.compile(rb'"max(?:_completion)?_tokens": *(\d+)')
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_CHUNK = '{"id":"chatcmpl-pacer","object":"chat.completion.chunk","created":1764500000,"model":"pacer","choices":'
_TOKEN = '[{"index":0,"delta":{"content":" tok"},"logprobs":null,"finish_reason":%s}]}'
_USAGE = '[],"usage":{"prompt_tokens":16,"completion_tokens":%d,"total_tokens":%d}}'
_MODELS = b'{"object":"list","data":[{"id":"pacer","object":"model","created":1,"owned_by":"llm-locust"}]}'


def _chunk(payload: str) -> bytes:
    event = f"data: {payload}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(event), event)


MIDDLE = _chunk(_CHUNK + _TOKEN % "null")
LAST = _chunk(_CHUNK + _TOKEN % '"length"')
DONE = _chunk("[DONE]") + b"0\r\n\r\n"


class Stream:
    """One connection, and the answer that is under way on it."""

    __slots__ = ("arrival_ns", "due_ns", "received", "request_id", "send_ns", "sock", "tokens", "unsent")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.received = b""
        self.unsent = b""
        self.request_id = ""
        self.arrival_ns = self.due_ns = self.tokens = 0
        self.send_ns: list[int] = []

    def __lt__(self, other: Stream) -> bool:
        return self.due_ns < other.due_ns

    def send(self, data: bytes) -> None:
        """Give bytes to the kernel; what it does not take waits for the next time. Raises OSError."""
        if self.unsent:
            data, self.unsent = self.unsent + data, b""
        try:
            sent = self.sock.send(data)
        except BlockingIOError:
            sent = 0
        self.unsent = data[sent:]


class Pacer:
    """Accepts, reads requests, sends each token when it is due."""

    def __init__(self, ttft_ns: int, gap_ns: int) -> None:
        self.told: list[str] = []
        self.stopped = False
        self._ttft_ns, self._gap_ns = ttft_ns, gap_ns
        self._due: list[Stream] = []
        self._selector = selectors.DefaultSelector()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self.port: int = self._listener.getsockname()[1]

    def run(self) -> None:
        """Serve until told to stop."""
        while not self.stopped:
            wait_s = (self._due[0].due_ns - monotonic_ns()) / 1e9 if self._due else 0.5
            for key, _ in self._selector.select(max(wait_s, 0.0)):
                if key.data is None:
                    self._accept()
                else:
                    self._read(key.data)
            self._send_due()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(sock, selectors.EVENT_READ, Stream(sock))

    def _read(self, stream: Stream) -> None:
        try:
            data = stream.sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(stream)
            return
        stream.received += data
        head, found, body = stream.received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if found and len(body) >= (int(length[1]) if length else 0):
            stream.received = b""
            self._answer(stream, head, body)

    def _answer(self, stream: Stream, head: bytes, body: bytes) -> None:
        now_ns = monotonic_ns()
        try:
            if not head.startswith(b"POST /v1/chat/completions"):
                status = b"200 OK" if head.startswith(b"GET /v1/models") else b"404 Not Found"
                stream.send(b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
                            % (status, len(_MODELS), _MODELS))  # fmt: skip
                return
            stream.send(_HEAD)
        except OSError:
            self._drop(stream)
            return
        limit, request_id = _LIMIT.search(body), _REQUEST_ID.search(head)
        stream.tokens = max(int(limit[1]), 1) if limit else 16
        stream.request_id = request_id[1].decode("latin-1") if request_id else ""
        stream.arrival_ns, stream.due_ns, stream.send_ns = now_ns, now_ns + self._ttft_ns, []
        heapq.heappush(self._due, stream)

    def _send_due(self) -> None:
        due, now_ns = self._due, monotonic_ns()
        for _ in range(MOST_PER_TURN):
            if not due or due[0].due_ns > now_ns:
                return
            stream = due[0]
            number = len(stream.send_ns) + 1
            stream.send_ns.append(monotonic_ns())
            try:
                if number < stream.tokens:
                    stream.send(MIDDLE)
                    stream.due_ns += self._gap_ns
                    heapq.heapreplace(due, stream)
                else:
                    heapq.heappop(due)
                    self._end(stream)
            except OSError:
                self._drop(stream)

    def _end(self, stream: Stream) -> None:
        """Send the last token, then the rest as an event of its own: two segments."""
        stream.send(LAST)
        usage = _chunk(_CHUNK + _USAGE % (stream.tokens, stream.tokens + 16))
        stream.send(usage + DONE)
        line = {"request_id": stream.request_id, "arrival_ns": stream.arrival_ns, "token_send_ns": stream.send_ns}
        self.told.append(json.dumps(line))

    def _drop(self, stream: Stream) -> None:
        if stream in self._due:
            self._due.remove(stream)
            heapq.heapify(self._due)
        self._selector.unregister(stream.sock)
        stream.sock.close()


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM, then write the truth."""
    parser = argparse.ArgumentParser(description="keeps time: see the module's docstring")
    parser.add_argument("--ttft-ms", type=float, default=50.0)
    parser.add_argument("--gap-ms", type=float, default=20.0)
    parser.add_argument("--truth", type=Path, required=True)
    given = parser.parse_args(argv)
    pacer = Pacer(int(given.ttft_ms * 1e6), int(given.gap_ms * 1e6))

    def stop(*_: object) -> None:
        pacer.stopped = True

    signal.signal(signal.SIGTERM, stop)
    print(f"{READY}{pacer.port}", flush=True)
    pacer.run()
    given.truth.write_text("".join(line + "\n" for line in pacer.told))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
