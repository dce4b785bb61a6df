"""The pre-flight: one clear line for everything that is wrong, and bodies adapted to what a server lacks."""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import gevent
import pytest
import trustme
from gevent.server import StreamServer
from gevent.ssl import SSLContext

from benchmarks.rig.mock_process import start_mock
from llm_locust.load.options import AskOptions
from llm_locust.load.preflight import Preflight, preflight
from llm_locust.load.trial import PROMPT
from llm_locust.protocol import BodyOptions, PromptRequest, get_dialect
from llm_locust.wire.tls import TLSOptions
from llm_locust.wire.transport import WireTransport
from llm_locust.wire.types import Limits

NOBODY = "http://127.0.0.1:9"  # discard: nothing listens
FAST = ("--profile", "fast", "--ttft-ms", "2", "--itl-ms", "0.5")
MODEL = "deepseek-r1"


def look(url: str, *, dialect: str = "openai-chat", explicit: tuple[str, ...] = (), **changes: object) -> Preflight:
    """Run the pre-flight with a run's usual options."""
    body = BodyOptions(model=MODEL, ignore_eos=True)
    options = replace(AskOptions(host=url, body=body), **changes)  # type: ignore[arg-type]
    return preflight(options, dialect, WireTransport(TLSOptions()), explicit=explicit)


@contextmanager
def mock(*arguments: str) -> Iterator[str]:
    """A server; its address."""
    with start_mock(*FAST, *arguments) as process:
        yield process.url


def the_problem(found: Preflight) -> str:
    """The one line, and it is one line."""
    (problem,) = found.problems
    assert "\n" not in problem
    return problem


def test_nothing_is_wrong_with_a_good_server() -> None:
    """All that it can do is used: usage with every event, and its own name for the model."""
    with mock("--model", MODEL) as url:
        found = look(url, body=BodyOptions(ignore_eos=True))
    assert found == Preflight(
        model=MODEL, continuous_usage=True, notes=(f"model {MODEL}, the one that the server names",)
    )
    applied = found.applied_to(AskOptions(body=BodyOptions(ignore_eos=True))).body
    sent = get_dialect("openai-chat").body(PromptRequest(text=PROMPT, output_tokens=5), applied)
    assert (sent["model"], sent["stream_options"]) == (MODEL, {"include_usage": True, "continuous_usage_stats": True})


@pytest.mark.parametrize("dialect", ["openai-completions", "sglang-generate", "anthropic-messages", "tgi-generate",
                                     "ollama-chat", "openai-responses"])  # fmt: skip
def test_other_dialects_pass(dialect: str) -> None:
    """Each in its own words."""
    with mock() as url:
        found = look(url, dialect=dialect, body=BodyOptions(model=MODEL))
    assert (found.problems, found.usage, found.refused) == ((), True, ())


def test_unreachable_host_says_so() -> None:
    """Nobody listens."""
    problem = the_problem(look(NOBODY))
    assert problem.startswith(f"{NOBODY}/v1/chat/completions: cannot connect to 127.0.0.1:9: Connection refused")
    assert "Is the server running, and its address right?" in problem


def test_unknown_name_says_so() -> None:
    """A name that no resolver knows (RFC 6761)."""
    assert "cannot resolve nobody.invalid" in the_problem(look("http://nobody.invalid:1"))


@pytest.mark.parametrize(
    ("key", "told"),
    [(None, "HTTP 401: it asks for an API key"), ("sk-wrong-canary", "HTTP 401: it refuses the API key")],
    ids=["no key", "wrong key"],
)
def test_key_is_named_when_it_is_refused(key: str | None, told: str) -> None:
    """What to set, and never the key itself."""
    with mock("--api-key", "sk-right-canary") as url:
        problem = the_problem(look(url, api_key=key))
        assert look(url, api_key="sk-right-canary").problems == ()
    assert told in problem
    assert "OPENAI_API_KEY" in problem
    assert "canary" not in problem


def test_model_is_named_when_the_server_has_another() -> None:
    """With the names that there are."""
    with mock("--model", "llama-3") as url:
        problem = the_problem(look(url))
    assert "HTTP 404: there is no model 'deepseek-r1'" in problem
    assert problem.endswith("It serves llama-3: --llm-model")


def test_dialect_is_doubted_when_the_path_is_missing() -> None:
    """A 404 with the right model is about the path."""
    with mock() as url:
        problem = the_problem(look(url, path="/v2/chat"))
    assert "it has no such endpoint. Is --llm-dialect openai-chat right, or --llm-path needed?" in problem


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("html", "unexpected content type text/html"),
        ("not_streamed", "a stream was asked for, a body of application/json came. Add --no-llm-stream"),
        ("rejected", "HTTP 429"),
        ("unavailable", "a run waits for it with --llm-wait-ready 10m"),
        ("http_error", "HTTP 500"),
        ("server_error", "server_error: "),
        ("aborted", "aborted: "),
        ("malformed", "malformed: 1 event could not be decoded"),
        ("cut", "cut: incomplete body"),
        ("empty", "HTTP 200, but no token came"),
        ("truncated", "HTTP 200, but no finish reason"),
        ("connect_error", "onnection reset"),
    ],
)
def test_faults_are_told_in_one_line(fault: str, told: str) -> None:
    """Each in words of its own, with the address."""
    with mock("--fault", fault) as url:
        problem = the_problem(look(url))
        assert problem.startswith(url)
    assert told in problem  # a reset may come during the connect, or right after it
    assert problem.count("event by event") == problem.count(f"event by event: llm-locust probe {url}")


def test_silent_server_is_told_after_its_limit() -> None:
    """No data at all: the connection stands, the server says nothing."""
    with serving(lambda sock, _: gevent.sleep(60)) as url:
        problem = the_problem(look(url, limits=Limits(first_token_s=0.2)))
    assert "no answer at all" in problem


@contextmanager
def serving(answer: Any) -> Iterator[str]:
    """A server of the test's own; its address."""
    server = StreamServer(("127.0.0.1", 0), answer)
    server.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.stop(timeout=0)


@pytest.mark.parametrize("status", ["400", "422"])
@pytest.mark.parametrize(
    "refused", ["ignore_eos", "min_tokens", "stream_options", "continuous_usage_stats", "ignore_eos,min_tokens"]
)
def test_refused_optional_field_is_left_out(refused: str, status: str) -> None:
    """It is listed as refused, and nothing else is given up."""
    names = refused.split(",")
    with mock("--refuse", refused, "--refuse-status", status) as url:
        found = look(url)
    assert found.problems == ()
    assert found.refused == tuple(sorted(names))
    assert [f"server refused {name}: left out" in found.notes for name in names] == [True] * len(names)
    assert found.eos_ignored == ("ignore_eos" not in names)
    assert found.usage == ("stream_options" not in names)


def test_refused_field_is_an_error_when_it_was_asked_for() -> None:
    """`--llm-ignore-eos` given, and the server has none."""
    with mock("--refuse", "ignore_eos") as url:
        problem = the_problem(look(url, explicit=("ignore_eos",)))
    assert "refuses ignore_eos, which --llm-ignore-eos asks for" in problem


def test_limit_is_sent_in_the_other_spelling_when_one_is_refused() -> None:
    """`max_completion_tokens`, where `max_tokens` is refused."""
    with mock("--refuse", "max_tokens") as url:
        found = look(url)
    assert (found.problems, found.max_completion_tokens) == ((), True)


@pytest.mark.parametrize(
    ("fault", "note"),
    [
        ("eos", "ignore_eos is not honoured: lengths are free, short outputs are counted"),
        ("no_usage", "no usage comes with the answer: tokens are counted by chunks, an estimate"),
        ("overrun", "the output limit is not obeyed: more than 32 tokens came"),
    ],
)
def test_what_a_server_lacks_is_noted(fault: str, note: str) -> None:
    """It is no reason not to start."""
    with mock("--fault", fault) as url:
        found = look(url)
    assert (found.problems, found.notes) == ((), (note,))
    assert found.eos_ignored == (fault != "eos")


def test_every_host_is_tried() -> None:
    """The second of two is dead."""
    with mock() as url:
        assert the_problem(look(f"{url},{NOBODY}")).startswith(NOBODY)
        assert look(f"{url},{url}/v1").problems == ()


def test_certificate_is_named_when_nobody_vouches_for_it(tmp_path: Path) -> None:
    """With the two ways out; with the authority's file it passes."""
    authority = trustme.CA()
    certificate = authority.issue_cert("127.0.0.1")
    chain, key, ca = tmp_path / "chain.pem", tmp_path / "key.pem", tmp_path / "ca.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(str(key))
    authority.cert_pem.write_to_path(str(ca))
    options = AskOptions(body=BodyOptions(model=MODEL))
    with mock("--tls-cert", str(chain), "--tls-key", str(key)) as url:
        problem = the_problem(look(url))
        trusting = WireTransport(TLSOptions(ca_file=str(ca)))
        assert preflight(replace(options, host=url), "openai-chat", trusting).problems == ()
    assert "--llm-ca-file" in problem


@pytest.mark.parametrize(
    ("server", "scheme", "told"),
    [
        ("expired", "https", "certificate has expired. Renew it, or give --llm-insecure"),
        ("other name", "https", "certificate is not valid for '127.0.0.1'. Ask by a name that it holds, or give"),
        ("other authority", "https", "unable to get local issuer certificate. Give the authority with --llm-ca-file"),
        ("wants a certificate", "https", "certificate required. Give the client's certificate with --llm-client-cert"),
        ("plain", "https", "TLS: wrong version number. Is it plain HTTP? Then its address begins with http://"),
        ("good", "http", "If it speaks TLS, its address begins with https://"),
        ("no http", "http", "Is --host an HTTP server? If it speaks TLS, its address begins with https://"),
    ],
)
def test_what_helps_against_a_failure_of_tls_is_told(tmp_path: Path, server: str, scheme: str, told: str) -> None:
    """Each in its own words: an authority's file helps only where the authority is at fault."""
    authority, context = trustme.CA(), SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issuer = trustme.CA() if server == "other authority" else authority
    name = "example.org" if server == "other name" else "127.0.0.1"
    issued = datetime(2020, 1, 1, tzinfo=UTC)
    ends = issued + timedelta(days=1 if server == "expired" else 100_000)
    issuer.issue_cert(name, not_before=issued, not_after=ends).configure_cert(context)
    if server == "wants a certificate":
        context.verify_mode = ssl.CERT_REQUIRED
        authority.configure_trust(context)

    def answer(sock: Any, _: Any) -> None:
        if server in ("plain", "no http"):
            sock.sendall(b"220 mail.example.org ESMTP\r\n")
            gevent.sleep(0.1)
            return
        try:
            context.wrap_socket(sock, server_side=True)
        except OSError:
            sock.close()

    with serving(answer) as url:
        transport = WireTransport(TLSOptions(ca_file=str(tmp_path / "ca.pem")))
        options = AskOptions(host=url.replace("http://", f"{scheme}://"), body=BodyOptions(model=MODEL))
        problem = the_problem(preflight(options, "openai-chat", transport))
    assert told in problem
    assert "None" not in problem
    assert ".." not in problem


def test_server_that_is_not_ready_is_waited_for() -> None:
    """It is asked again until the time is over."""
    lines: list[str] = []
    options = AskOptions(host=NOBODY, body=BodyOptions(model=MODEL))
    found = preflight(options, "openai-chat", WireTransport(), wait_ready_s=0.2, tell=lines.append)
    assert len(found.problems) == 1
    assert lines
    assert "is not ready" in lines[0]


def test_findings_are_builtins() -> None:
    """A master tells them to its workers."""
    import msgspec

    found = Preflight(model="m", refused=("min_tokens",), notes=("n",))
    carried = json.loads(json.dumps(msgspec.to_builtins(found)))
    assert msgspec.convert(carried, Preflight) == found


@pytest.mark.parametrize("dialect", ["openai-chat", "tgi-generate", "ollama-chat"])
def test_whole_answers_are_tried_when_no_stream_is_asked_for(dialect: str) -> None:
    """At the dialect's path for them, with usage."""
    with mock() as url:
        found = look(url, dialect=dialect, body=BodyOptions(model=MODEL, stream=False))
    assert (found.problems, found.usage, found.continuous_usage) == ((), True, False)


@contextmanager
def picky_server() -> Iterator[str]:
    """A server that refuses any temperature, as OpenAI's reasoning models do."""
    refusal = b'{"error":{"message":"Unsupported value: \'temperature\' does not support 0 with this model."}}'
    stream = b'data: {"choices":[{"index":0,"delta":{"content":"OK"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

    def answer(sock: Any, _: Any) -> None:
        while request := sock.recv(65536):
            status, kind, body = b"200 OK", b"text/event-stream", stream
            if b'"temperature"' in request:
                status, kind, body = b"400 Bad Request", b"application/json", refusal
            sock.sendall(
                b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (status, kind, len(body), body)
            )

    with serving(answer) as url:
        yield url


def test_temperature_is_left_out_when_the_server_wants_its_own() -> None:
    """Explicitly asked for, it is an error."""
    with picky_server() as url:
        found = look(url, body=BodyOptions(model=MODEL))
        assert (found.problems, found.refused) == ((), ("temperature",))
        problem = the_problem(look(url, body=BodyOptions(model=MODEL), explicit=("temperature",)))
    assert "refuses temperature, which --llm-temperature asks for" in problem


def test_load_begins_when_the_server_becomes_ready() -> None:
    """Loading (503), then up without a model (404), then ready."""
    answers = [
        (b"503 Service Unavailable", b"application/json", b'{"error":{"message":"loading"}}'),
        (b"404 Not Found", b"application/json", b'{"message":"no model"}'),
    ]
    stream = b'data: {"choices":[{"index":0,"delta":{"content":"OK"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

    def answer(sock: Any, _: Any) -> None:
        while request := sock.recv(65536):
            status, kind, body = (b"200 OK", b"text/event-stream", stream)
            if request.startswith(b"GET"):
                status, kind, body = b"200 OK", b"application/json", b'{"data":[]}'
            elif answers:
                status, kind, body = answers.pop(0)
            sock.sendall(
                b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (status, kind, len(body), body)
            )

    lines: list[str] = []
    with serving(answer) as url:
        options = AskOptions(host=url, body=BodyOptions(model=MODEL))
        found = preflight(options, "openai-chat", WireTransport(), wait_ready_s=30, tell=lines.append)
    assert (found.problems, len(lines)) == ((), 2)
