"""The pure parts of the server: fixed pace, faults, lengths, tokens, script files, options."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from llm_locust.mock.faults import FAULTS, draw_fault, parse_faults
from llm_locust.mock.generation import Generation
from llm_locust.mock.metrics import Histogram
from llm_locust.mock.options import Options, parse
from llm_locust.mock.pace import FixedPace, Sequence
from llm_locust.mock.plan import check_context, plan_length
from llm_locust.mock.script import Script, read_scripts
from llm_locust.mock.tokens import JSON_TEXTS, TEXTS, token_id, words_of
from llm_locust.mock.truth import Truth
from llm_locust.mock.voices import voice_for
from llm_locust.mock.voices.voice import Ask, BadRequestError


class Leaving:
    """A connection whose client is found gone at its n-th send."""

    blocked = False

    def __init__(self, at_send: int) -> None:
        self._left = at_send

    def begin(self, answer: Generation) -> None:
        self._answer = answer

    def send(self, payload: bytes) -> None:
        self._left -= 1
        if not self._left:
            self._answer.ended_early(by_client=True)

    def finish(self) -> None:
        pass


@pytest.mark.parametrize(("at_send", "gone"), [(2, 1), (3, 1), (4, 1), (5, 0)])
def test_request_is_over_once_when_the_client_goes(at_send: int, gone: int) -> None:
    """Head, two tokens, the end: found gone at the last of them it was booked as gone and as completed."""
    truth = Truth(None)
    quiet = SimpleNamespace(submit=lambda *_: None, cancel=lambda *_: None, wake=lambda: None)
    app: Any = SimpleNamespace(truth=truth, options=Options(), pace=quiet, pacer=quiet)
    ask = voice_for("/v1/chat/completions", {}).parse(
        {"messages": [{"role": "user", "content": "a"}], "stream": True, "max_tokens": 2, "ignore_eos": True}
    )
    connection: Any = Leaving(at_send)
    voice = voice_for("/v1/chat/completions", {})(ask, "mock-1", 0, False)
    answer = Generation(app, connection, voice, truth.begin("", "/v1/chat/completions", 0))
    answer.start()
    for _ in range(2):
        answer.token(voice.sequences[0])
    told = truth.summary()
    assert (told["client_gone"], told["completed"], told["in_flight"]) == (gone, 1 - gone, 0)
    assert len(truth.write_pending()) == 1


def sequence(limit: int) -> Sequence:
    return Sequence(None, 0, (), 1, limit)


def test_fixed_pace_keeps_each_stream_on_its_own_schedule() -> None:
    """First token after TTFT, then every ITL, whoever else is there and however late it is asked."""
    pace = FixedPace(ttft_ns=50, itl_ns=20)
    a, b = sequence(3), sequence(2)
    pace.submit(a, 0)
    pace.submit(b, 10)
    assert (pace.next_ns(), pace.running) == (50, 2)
    assert pace.advance(49) == []
    assert pace.advance(60) == [a, b]
    assert pace.advance(200) == [a, b, a]
    assert [s.due_ns for s in (a, b)] == [90, 80]
    assert (pace.next_ns(), pace.running, a.done, b.done) == (None, 0, True, True)


def test_fixed_pace_shifts_the_schedule_when_a_stream_is_held() -> None:
    """After a stall the stream goes on with its own gap, not with a burst."""
    pace = FixedPace(ttft_ns=50, itl_ns=20)
    held = sequence(3)
    pace.submit(held, 0)
    pace.advance(50)
    held.hold_until_ns = 500
    assert pace.advance(499) == []
    assert pace.advance(500) == [held]
    assert pace.next_ns() == 520


def test_fixed_pace_forgets_when_cancelled() -> None:
    pace = FixedPace(ttft_ns=50, itl_ns=20)
    gone = sequence(3)
    pace.submit(gone, 0)
    pace.cancel(gone)
    assert (pace.advance(1000), pace.next_ns(), pace.running) == ([], None, 0)


def test_faults_are_drawn_with_their_probabilities_and_repeat_with_the_seed() -> None:
    """10 % and 30 % of many; the same numbers for the same seed, others for another."""
    faults = parse_faults("cut=0.1,stall=0.3")
    drawn = [draw_fault(faults, 1, number) for number in range(4000)]
    counts = Counter(drawn)
    assert counts["cut"] == pytest.approx(400, abs=60)
    assert counts["stall"] == pytest.approx(1200, abs=90)
    assert drawn == [draw_fault(faults, 1, number) for number in range(4000)]
    assert drawn != [draw_fault(faults, 2, number) for number in range(4000)]


@pytest.mark.parametrize("text", ["nosuch=0.1", "cut=2", "cut=-1", "cut=x", "cut=0.6,stall=0.6"])
def test_faults_are_refused_when_wrong(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_faults(text)


def test_fault_name_alone_is_always() -> None:
    assert parse_faults("cut") == (("cut", 1.0),)
    assert {draw_fault(parse_faults("cut"), 0, number) for number in range(50)} == {"cut"}


def test_faults_cover_every_outcome_that_a_server_can_cause() -> None:
    """Timeouts are stall or slow_first under a client's limit; the rest has a fault of its own."""
    assert {fault.outcome for fault in FAULTS.values()} == {
        "connect_error", "http_error", "rejected", "not_streamed", "server_error", "aborted", "malformed", "cut",
        "empty", "truncated", "ok",
    }  # fmt: skip


def ask(**fields: object) -> Ask:
    return Ask(**{"model": "m", "prefix": (), "prompt_tokens": 10, "limit_tokens": None, "stream": True, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "length"),
    [
        pytest.param(ask(limit_tokens=2000, ignore_eos=True), (2000, "length"), id="ignore_eos runs to the limit"),
        pytest.param(ask(limit_tokens=5), (5, "length"), id="a limit below the natural length"),
        pytest.param(ask(limit_tokens=2000), (30, "stop"), id="ends by itself before the limit"),
        pytest.param(ask(limit_tokens=30), (30, "stop"), id="ends by itself at the limit"),
        pytest.param(ask(), (30, "stop"), id="no limit"),
        pytest.param(ask(limit_tokens=2000, min_tokens=40), (40, "stop"), id="min_tokens"),
        pytest.param(ask(limit_tokens=20, stop=("answers",)), (3, "stop"), id="a stop text"),
        pytest.param(ask(limit_tokens=20, stop=("nowhere",)), (20, "length"), id="a stop text that never comes"),
        pytest.param(ask(limit_tokens=20, stop=("answers",), ignore_eos=True), (20, "length"), id="stop ignored"),
    ],
)
def test_length_is_planned(wanted: Ask, length: tuple[int, str]) -> None:
    """Request 0 starts with the first word of the vocabulary: "the server answers"."""
    assert plan_length(wanted, 0, 0, Options(output_tokens=(30, 30))) == length


def test_context_is_refused_when_too_long() -> None:
    options = Options(max_model_len=100)
    check_context(ask(limit_tokens=90), options)
    with pytest.raises(BadRequestError, match="maximum context length is 100"):
        check_context(ask(limit_tokens=91), options)


def test_each_generated_text_is_one_token_and_safe_in_json() -> None:
    """The toy tokenizer counts the server's own text as what it was generated from."""
    assert len(words_of("".join(TEXTS))) == len(TEXTS)
    assert json.loads(b'"' + b"".join(JSON_TEXTS) + b'"') == "".join(TEXTS)
    assert any(len(text.encode()) > len(text) for text in TEXTS)


def test_token_ids_are_the_same_in_every_process() -> None:
    assert (token_id("hello"), token_id("语言")) == (token_id("hello"), token_id("语言"))
    assert token_id("hello") == 0x3610A686 % (1 << 17)


def test_script_file_is_read(tmp_path: Path) -> None:
    """Lists, objects, both encodings, ends."""
    path = tmp_path / "scripts.json"
    path.write_text(
        json.dumps(
            {
                "plain": [[20, "data: \xe8\xaa\x9e\n\n"], [30, "x"]],
                "cut": {"segments": [[0, base64.b64encode(b"\xff\x00").decode()], [200, "<FIN>"]], "encoding": "base64",
                        "raw": True, "status": 503, "headers": {"A": "b"}},
            }
        )
    )  # fmt: skip
    assert read_scripts(path) == {
        "plain": Script(((20.0, b"data: \xe8\xaa\x9e\n\n"), (30.0, b"x")), 30.0),
        "cut": Script(((0.0, b"\xff\x00"),), 200.0, "<FIN>", True, 503, ((b"A", b"b"),)),
    }


@pytest.mark.parametrize(
    "content",
    ["[]", "{", '{"a": 1}', '{"a": [[10, "x"], [5, "y"]]}', '{"a": [[10, "<FIN>"], [20, "y"]]}', '{"a": {"segs": []}}',
     '{"a": {"segments": [], "encoding": "utf8"}}', '{"a": [["x", "y"]]}'],
)  # fmt: skip
def test_script_file_is_refused_when_wrong(content: str, tmp_path: Path) -> None:
    path = tmp_path / "scripts.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=r"scripts\.json"):
        read_scripts(path)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--fault", "nosuch"], ["--output-tokens", "9-3"], ["--time-scale", "0"], ["--refuse", "model"],
        ["--tls-cert", "x.pem"], ["--ttft-ms", "5"], ["--max-model-len", "9000000"],
    ],
)  # fmt: skip
def test_options_are_refused_when_wrong(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        parse(arguments)
    assert stopped.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_histogram_counts_cumulatively() -> None:
    """A value on a bound belongs to that bucket, as Prometheus has it."""
    histogram = Histogram((0.1, 0.2))
    for value in (0.05, 0.1, 0.15, 9.0):
        histogram.observe(value)
    assert list(histogram.lines("x", 'm="y"')) == [
        "# TYPE x histogram",
        'x_bucket{le="0.1",m="y"} 2',
        'x_bucket{le="0.2",m="y"} 3',
        'x_bucket{le="+Inf",m="y"} 4',
        'x_sum{m="y"} 9.3',
        'x_count{m="y"} 4',
    ]
