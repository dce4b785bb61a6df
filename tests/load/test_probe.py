"""`llm-locust probe URL`: the answer event by event, then what a run would do."""

from __future__ import annotations

import re

import pytest

from benchmarks.rig.mock_process import start_mock
from llm_locust.cli import main
from llm_locust.load import trial
from llm_locust.load.endpoint import endpoints_of
from llm_locust.load.options import AskOptions
from llm_locust.load.probe import Tap
from llm_locust.protocol import BodyOptions, get_dialect
from llm_locust.wire.transport import WireTransport

FAST = ("--profile", "fast", "--ttft-ms", "20", "--itl-ms", "1")


def test_probe_shows_every_event_and_what_the_server_can_do(capsys: pytest.CaptureFixture[str]) -> None:
    """With the time of each, on a server that can do everything."""
    with start_mock(*FAST, "--model", "m1") as mock:
        assert main(["probe", mock.url]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"POST {mock.url}/v1/chat/completions (openai-chat)"
    tokens = [line for line in lines if re.match(r" +\d+\.\d ms  token    answer: \{", line)]
    assert len(tokens) == 32
    assert float(tokens[0].split()[0]) == pytest.approx(20, abs=15)
    assert any(line.endswith("event    [DONE]") for line in lines)
    shown = {name: value.strip() for name, _, value in (line.partition(": ") for line in lines) if value}
    wanted = {
        "outcome": "ok",
        "output tokens": "32 (usage) in 32 chunks",
        "finish reason": "length",
        "model": "m1, the one that the server names",
        "usage": "yes, with every event",
        "left out": "nothing",
    }
    assert {name: shown.get(name) for name in wanted} == wanted
    assert sum("the one that the server names" in line for line in lines) == 1


@pytest.mark.parametrize(("lag_ns", "late"), [(900_000, False), (5_000_000, True)])
def test_tokens_of_one_late_read_are_told_as_upper_bounds(lag_ns: int, late: bool) -> None:
    """TCP merged them: the kernel's stamp is that of the last. Sent together they are as they came."""
    options = AskOptions(host="http://127.0.0.1:9", body=BodyOptions(model="m"))
    dialect = get_dialect("openai-chat")
    endpoint = endpoints_of("http://127.0.0.1:9", dialect.path)[0]
    with trial.tester(options, dialect, endpoint, WireTransport()) as server:
        flight, _ = server.take_off(options.body, server.prompt())
    token = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
    tap = Tap(flight)
    tap.on_head(200, [(b"content-type", b"text/event-stream")], 1)
    tap.on_read(token, 2, lag_ns)
    tap.on_read(token * 2, 3, lag_ns)
    told = [tap.seen.get(block=False) for _ in range(4)]
    assert [(seen[0], seen[2]) for seen in told if seen is not None] == [(1, False), (2, False), (3, late), (3, late)]


@pytest.mark.parametrize(
    ("arguments", "fault", "told"),
    [
        ([], "html", "unexpected content type text/html"),
        ([], "server_error", "server_error: "),
        (["--llm-model", "other"], "", "there is no model 'other'"),
        (["--llm-path", "/nowhere"], "", "it has no such endpoint"),
    ],
)
def test_probe_ends_with_one_line_when_no_run_can_start(
    arguments: list[str], fault: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1, the reason last."""
    with start_mock(*FAST, "--model", "m1", *(("--fault", fault) if fault else ())) as mock:
        assert main(["probe", mock.url, *arguments]) == 1
    assert told in capsys.readouterr().out.splitlines()[-1]


def test_probe_never_shows_the_key(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither one that fits nor one that is refused; nor what a header holds."""
    with start_mock(*FAST, "--api-key", "sk-canary-right") as mock:
        for key, code in (("sk-canary-right", 0), ("sk-canary-wrong", 1)):
            monkeypatch.setenv("OPENAI_API_KEY", key)
            assert main(["probe", mock.url, "--llm-header", "X-Team: canary-header"]) == code
    assert "canary" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["ftp://x"], "ftp://x/v1/chat/completions is not an address"),
        (["x:30000"], "is not an address: right is http://SERVER:PORT"),
        (["http://x", "--llm-header", "nonsense"], "--llm-header 'nonsense' is not NAME: VALUE"),
        (["http://x", "--llm-extra-body", "[1]"], "--llm-extra-body is not a JSON object"),
        (["https://x", "--llm-ca-file", "/nowhere.pem"], "/nowhere.pem"),
    ],
)
def test_probe_names_a_wrong_option(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is sent."""
    assert main(["probe", *arguments]) == 1
    assert told in capsys.readouterr().out
