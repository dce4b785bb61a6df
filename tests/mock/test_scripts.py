"""The script player over a real socket: bytes, times, segments, ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.rig.mock_process import MockProcess, start_mock
from tests.mock.client import Answer, Client

EVENT = 'data: {"choices":[{"index":0,"delta":{"content":"\xe8\xaa\x9e"}}]}\n\n'  # latin1 of UTF-8 bytes
SCRIPTS = {
    "plain": [[20, EVENT], [60, EVENT], [61, "data: [DONE]\n\n"]],
    "/v1/models": {"segments": [[0, '{"data":[]}']], "headers": {"Content-Type": "application/json"}, "status": 503},
    "raw cut": {"raw": True, "segments": [[0, "HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\nab"], [30, "<FIN>"]]},
    "reset": [[0, "data: a\n\n"], [30, "<RST>"]],
    "hold": [[0, "data: a\n\n"], [1, "<HOLD>"]],
    "long": [[0, "data: a\n\n"], [20_000, "data: b\n\n"]],
}
MS = 1_000_000


@pytest.fixture(scope="module")
def mock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MockProcess]:
    path = tmp_path_factory.mktemp("scripts") / "scripts.json"
    path.write_text(json.dumps(SCRIPTS))
    with start_mock("--profile", "fast", "--script", str(path)) as process:
        yield process


def play(mock: MockProcess, name: str, mode: str = "whole", request_id: str = "") -> Answer:
    headers = {"X-Mock-Script": name, "X-Mock-Mode": mode, "X-Request-Id": request_id}
    with Client(mock.port) as client:
        return client.ask("/v1/chat/completions", {}, headers)


@pytest.mark.parametrize("mode", ["whole", "bytes", "joined"])
def test_bytes_are_the_same_in_every_mode(mock: MockProcess, mode: str) -> None:
    """Exactly the script's bytes, a proper end; one send a segment, a byte, or in all."""
    answer = play(mock, "plain", mode, f"plain {mode}")
    body = (EVENT + EVENT + "data: [DONE]\n\n").encode("latin-1")
    told = next(line for line in mock.lines() if line["request_id"] == f"plain {mode}")
    assert (answer.body, answer.ended, answer.status) == (body, "last-chunk", 200)
    assert len(told["segment_send_ns"]) == {"whole": 5, "bytes": len(body) + 2, "joined": 1}[mode]
    assert (told["outcome"], told["completed"]) == ("script", True)
    assert told["sent_bytes"] == sum(len(piece) for _, piece in answer.reads)


def test_segments_come_at_their_times(mock: MockProcess) -> None:
    """Head at once, then 20, 60, 61 ms after the request was read; each its own read."""
    answer = play(mock, "plain", request_id="times")
    told = next(line for line in mock.lines() if line["request_id"] == "times")
    sent_ms = [(at - told["arrival_ns"]) / MS for at in told["segment_send_ns"]]
    assert sent_ms[0] < 5
    assert sent_ms[1:4] == pytest.approx([20, 60, 61], abs=5)
    assert all(sent >= at for sent, at in zip(sent_ms[1:4], [20, 60, 61], strict=True))
    assert len(answer.reads) >= 3
    assert answer.reads[-1][0] > told["segment_send_ns"][-1]


def test_all_in_one_comes_at_the_last_time(mock: MockProcess) -> None:
    """Head, body and end in one read."""
    answer = play(mock, "plain", "joined", "joined once")
    told = next(line for line in mock.lines() if line["request_id"] == "joined once")
    assert len(answer.reads) == 1
    assert (told["segment_send_ns"][0] - told["arrival_ns"]) / MS == pytest.approx(61, abs=5)


def test_raw_script_ends_with_fin(mock: MockProcess) -> None:
    answer = play(mock, "raw cut")
    assert (answer.status, answer.body, answer.ended) == (200, b"ab", "eof")


def test_script_ends_with_reset(mock: MockProcess) -> None:
    answer = play(mock, "reset")
    assert (answer.body, answer.ended) == (b"data: a\n\n", "reset")


def test_script_of_a_path_answers_without_being_named(mock: MockProcess) -> None:
    with Client(mock.port) as client:
        answer = client.ask("/v1/models")
        assert (answer.status, answer.body, answer.headers["content-type"]) == (503, b'{"data":[]}', "application/json")
        assert client.ask("/health").status == 200  # the connection lives on


@pytest.mark.parametrize("name", ["hold", "long"])
def test_held_connection_is_told_as_the_clients_end(mock: MockProcess, name: str) -> None:
    """Nothing more comes; when the client closes, the script is over, not completed."""
    before = mock.truth()["client_gone"]
    with Client(mock.port) as client:
        client.send("/v1/chat/completions", {}, {"X-Mock-Script": name})
        received = b""
        while b"data: a" not in received:
            received += client.sock.recv(1000)
        client.sock.settimeout(0.05)
        with pytest.raises(TimeoutError):
            client.sock.recv(1000)
    for _ in range(1000):
        if mock.truth()["client_gone"] == before + 1:
            break
    assert mock.truth()["client_gone"] == before + 1
    assert mock.truth()["in_flight"] == 0


def test_unknown_script_and_mode_are_refused(mock: MockProcess) -> None:
    assert play(mock, "no such").status == 404
    assert play(mock, "plain", "sideways").status == 400


def test_times_are_scaled(tmp_path: Path) -> None:
    path = tmp_path / "scripts.json"
    path.write_text(json.dumps(SCRIPTS))
    with start_mock("--profile", "fast", "--script", str(path), "--time-scale", "200") as mock:
        answer = play(mock, "long", request_id="scaled")
        told = mock.lines()[0]
    assert answer.ended == "last-chunk"
    assert (told["segment_send_ns"][-1] - told["arrival_ns"]) / MS == pytest.approx(100, abs=10)
