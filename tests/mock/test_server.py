"""The server as a process: connections, what it refuses, keys, TLS, its start and its end."""

from __future__ import annotations

import signal
import socket
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import trustme

from benchmarks.rig.mock_process import MockProcess, start_mock
from llm_locust.mock.http import listen
from tests.mock.client import FAST, Answer, Client, ask, chat


def text_of(answer: Answer) -> str:
    return "".join(o["choices"][0]["delta"].get("content", "") for o in answer.objects if o["choices"])


def test_connection_is_kept_and_pipelined_requests_are_answered_in_order(mock: MockProcess) -> None:
    with Client(mock.port) as client:
        for tokens in (2, 3):
            assert client.ask("/v1/chat/completions", chat(max_tokens=tokens)).objects[-1]["usage"]["total_tokens"] > 0
        client.send("/v1/completions", {"prompt": "a", "max_tokens": 3})
        client.send("/health")
        first = client.read()
        second = client.read()
        assert first.json["usage"]["completion_tokens"] == 3
        assert (second.status, second.json) == (200, {})


def test_many_pipelined_requests_are_answered_after_a_stream(mock: MockProcess) -> None:
    """2000 requests queued behind a stream: all are answered, none recurses."""
    with Client(mock.port) as client:
        client.send("/v1/completions", {"prompt": "a", "max_tokens": 20})
        for _ in range(2000):
            client.send("/health")
        assert client.read().json["usage"]["completion_tokens"] == 20
        assert {client.read().status for _ in range(2000)} == {200}


def test_connection_closes_when_asked(mock: MockProcess) -> None:
    with Client(mock.port) as client:
        client.ask("/v1/completions", {"prompt": "a", "max_tokens": 2}, {"Connection": "close"})
        assert client.sock.recv(10) == b""


def test_generation_stops_when_the_client_goes_away(mock: MockProcess) -> None:
    """It is neither completed nor in flight afterwards, and no tokens are made for it."""
    before = mock.truth()
    with Client(mock.port) as client:
        client.send("/v1/chat/completions", chat(max_tokens=5000, ignore_eos=True), {"X-Request-Id": "gone"})
        assert client.sock.recv(10)
    deadline = time.monotonic() + 5
    while mock.truth()["client_gone"] == before["client_gone"]:
        assert time.monotonic() < deadline
    after = mock.truth()
    told = next(line for line in mock.lines() if line["request_id"] == "gone")
    assert (told["client_gone"], told["completed"]) == (True, False)
    assert len(told["token_send_ns"]) < 5000
    assert after["in_flight"] == 0
    assert after["completed"] == before["completed"]


def test_slow_reader_is_told(mock: MockProcess) -> None:
    """A client that does not read: the answer waits, nothing is lost, the truth says so."""
    with Client(mock.port) as client:
        body = {"text": "a", "stream": True, "sampling_params": {"max_new_tokens": 1500, "ignore_eos": True}}
        client.send("/generate", body, {"X-Request-Id": "slow"})
        deadline = time.monotonic() + 15
        while not any(line["request_id"] == "slow" for line in mock.lines()):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        answer = client.read()
    told = next(line for line in mock.lines() if line["request_id"] == "slow")
    assert told["blocked"]
    assert len(answer.objects) == 1500
    assert answer.ended == "last-chunk"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/chat/completions", b"{", 400),
        ("/v1/chat/completions", b"[]", 400),
        ("/v1/chat/completions", {"messages": []}, 400),
        ("/v1/chat/completions", {"messages": "x"}, 400),
        ("/v1/chat/completions", chat(max_tokens=0), 400),
        ("/v1/chat/completions", chat(max_tokens="many"), 400),
        ("/v1/chat/completions", chat(max_tokens=200_000), 400),
        ("/v1/chat/completions", chat(stream_options=[1]), 400),
        ("/v1/completions", {"prompt": ""}, 400),
        ("/v1/completions", {"prompt": {"a": 1}}, 400),
        ("/generate", {"text": "a", "sampling_params": [1]}, 400),
        ("/v1/messages", {"messages": [{"role": "user", "content": "a"}]}, 400),
        ("/v1/nothing", {}, 404),
        ("/v1/chat/completions", None, 405),
    ],
)
def test_bad_request_is_refused(mock: MockProcess, path: str, body: Any, status: int) -> None:
    """A JSON error with the status, never a stream, and the server lives on."""
    answer = ask(mock.port, path, body)
    assert answer.status == status
    assert answer.json["error"]["message"]
    assert ask(mock.port, "/health").status == 200


def test_what_is_not_http_is_refused(mock: MockProcess) -> None:
    with Client(mock.port) as client:
        client.sock.sendall(b"\x16\x03\x01 this is TLS\r\n\r\n")
        answer = client.read()
    assert (answer.status, answer.body) == (400, b"")


def test_key_and_model_are_demanded() -> None:
    with start_mock(*FAST, "--api-key", "secret", "--model", "r1") as mock:
        body = chat(max_tokens=1)
        assert ask(mock.port, "/v1/chat/completions", body).status == 401
        assert ask(mock.port, "/v1/models", None, {"Authorization": "Bearer wrong"}).status == 401
        key = {"Authorization": "Bearer secret"}
        assert ask(mock.port, "/v1/models", None, key).json["data"][0]["id"] == "r1"
        assert ask(mock.port, "/v1/chat/completions", body, key).status == 404
        assert ask(mock.port, "/v1/chat/completions", {**body, "model": "r1"}, {"x-api-key": "secret"}).status == 200
        assert ask(mock.port, "/health").status == 200


def test_optional_fields_are_refused_when_asked() -> None:
    options = ("--refuse", "ignore_eos,continuous_usage_stats", "--refuse-status", "422")
    with start_mock(*FAST, *options) as mock:
        assert ask(mock.port, "/v1/chat/completions", chat(max_tokens=1)).status == 200
        assert ask(mock.port, "/v1/chat/completions", chat(max_tokens=1, ignore_eos=True)).status == 422
        nested = {"text": "a", "sampling_params": {"ignore_eos": True}}
        assert "ignore_eos" in ask(mock.port, "/generate", nested).json["error"]["message"]
        usage = chat(max_tokens=1, stream_options={"continuous_usage_stats": True})
        assert ask(mock.port, "/v1/chat/completions", usage).status == 422


def test_tls_streams_the_same(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1", "localhost")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.cert_chain_pems[0].write_to_path(cert)
    certificate.private_key_pem.write_to_path(key)
    with start_mock(*FAST, "--tls-cert", str(cert), "--tls-key", str(key)) as mock, Client(mock.port, tls=True) as one:
        assert mock.url.startswith("https://")
        for _ in range(2):
            answer = one.ask("/v1/chat/completions", chat("x " * 30_000, max_tokens=6))
            assert answer.objects[-1]["usage"]["prompt_tokens"] == 30_004
            assert len(text_of(answer).split()) == 6
        one.send("/health", None, {"Connection": "close"})
        assert one.read().status == 200
        assert one.sock.recv(10) == b""  # a proper close_notify: SSLEOFError otherwise


def test_tls_request_that_comes_with_the_end_of_the_handshake_is_answered(tmp_path: Path) -> None:
    """A client may send its last word of the handshake and its first request in one segment."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    certificate.cert_chain_pems[0].write_to_path(cert)
    certificate.private_key_pem.write_to_path(key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with (
        start_mock(*FAST, "--tls-cert", str(cert), "--tls-key", str(key)) as mock,
        socket.create_connection(("127.0.0.1", mock.port), timeout=5) as plain,
    ):
        tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                plain.sendall(outgoing.read())
                incoming.write(plain.recv(65536))
        tls.write(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        plain.sendall(outgoing.read())  # Finished and request together
        answer = b""
        while b"200 OK" not in answer:
            incoming.write(plain.recv(65536))
            try:
                answer += tls.read(65536)
            except ssl.SSLWantReadError:
                continue


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop_is_clean_and_tells_streams_in_flight(number: int) -> None:
    """Exit code 0; a stream in flight is neither completed nor the client's doing."""
    with start_mock(*FAST) as mock, Client(mock.port) as client:
        ask(mock.port, "/v1/chat/completions", chat(max_tokens=2))
        client.send("/v1/chat/completions", chat(max_tokens=5000, ignore_eos=True))
        assert client.sock.recv(10, socket.MSG_PEEK)
        mock.process.send_signal(number)
        assert mock.process.wait(10) == 0
        assert client.read().ended == "eof"
        finished, cut_off = mock.lines()
    assert (finished["completed"], cut_off["completed"], cut_off["client_gone"]) == (True, False, False)


def test_start_fails_with_one_line_when_the_port_is_taken(mock: MockProcess) -> None:
    command = [sys.executable, "-m", "llm_locust.mock", "--port", str(mock.port)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("llm-locust mock: ")
    assert len(result.stderr.splitlines()) == 1


def test_nothing_of_the_other_rooms_is_imported() -> None:
    """The server must not share the code that it is the truth for, nor need Locust. An alarm only rings; when what was
    sent is noted by the clock.
    """
    code = (
        "import sys, llm_locust.mock.server as s; "
        "print([m for m in sys.modules if m.startswith(('locust', 'httpx', 'numpy', 'llm_locust.')) "
        "and not m.startswith('llm_locust.mock')])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert result.stdout.strip() == "['llm_locust.alarm']"


def test_port_that_is_taken_is_named_with_a_way_out() -> None:
    """One line; `--port 0` takes a free one."""
    taken = listen("127.0.0.1", 0)
    try:
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=rf"127\.0\.0\.1, port {port}: Address already in use; --port 0 takes"):
            listen("127.0.0.1", port)
    finally:
        taken.close()
