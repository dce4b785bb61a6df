"""TLS over the same sockets: stamps, trust, client certificates, ends."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from llm_locust.wire.client import UserClient
from llm_locust.wire.tls import TLSOptions
from llm_locust.wire.transport import WireTransport
from llm_locust.wire.types import End
from tests.wire.scripted import FIN, GOODBYE, HEAD, LAST, RST, Script, ScriptedServer, Sink, ask, chunk, user, whole

TOKEN = chunk(b"data: x\n\n")
STREAM: Script = [(0, HEAD), (10, TOKEN), (20, TOKEN + TOKEN), (30, LAST)]
OPEN = b"HTTP/1.1 200 OK\r\n\r\ndata: x\n\n"
"""A response that the connection's end ends."""
CA = trustme.CA()
NAMES = ("localhost", "127.0.0.1", "::1")


def tls_server(*names: str, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = context.maximum_version = version
    CA.issue_cert(*(names or NAMES)).configure_cert(context)
    return context


def trusting(ca_file: str) -> AbstractContextManager[UserClient]:
    return user(WireTransport(TLSOptions(ca_file=ca_file)))


@pytest.fixture
def ca_file(tmp_path: Path) -> str:
    CA.cert_pem.write_to_path(tmp_path / "ca.pem")
    return str(tmp_path / "ca.pem")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_stream_is_read_over_tls(ca_file: str, version: ssl.TLSVersion, host: str) -> None:
    transport = WireTransport(TLSOptions(ca_file=ca_file))
    with ScriptedServer([STREAM], host=host, tls=tls_server(version=version)) as server, user(transport) as client:
        sink = Sink()
        first = ask(client, server.url, sink)
        second = ask(client, server.url)
        assert server.connections == 1, "session tickets do not spoil a kept connection"
    assert (first.end, first.error, first.status) == (End.COMPLETE, "", 200)
    assert sink.body == b"data: x\n\n" * 3
    assert len(sink.reads) == first.reads == 2
    assert first.connect_ns is not None
    assert second.connect_ns is None
    assert (second.end, second.resent) == (End.COMPLETE, False)


@pytest.mark.linux
def test_reads_keep_their_stamps_over_tls(ca_file: str) -> None:
    with (
        ScriptedServer([STREAM], tls=tls_server()) as server,
        trusting(ca_file) as client,
    ):
        for _ in range(5):
            exchange = ask(client, server.url)
            assert exchange.stamped_reads == exchange.reads == 2


def test_name_is_sent_to_the_server(ca_file: str) -> None:
    names: list[str | None] = []
    context = tls_server()
    context.sni_callback = lambda sock, name, _: names.append(name)
    with ScriptedServer([STREAM], tls=context) as server, trusting(ca_file) as client:
        exchange = ask(client, server.url.replace("127.0.0.1", "localhost"))
    assert (exchange.end, names) == (End.COMPLETE, ["localhost"])


@pytest.mark.parametrize(
    ("options", "names", "reason"),
    [
        pytest.param(lambda _: TLSOptions(), NAMES, "unable to get local issuer certificate", id="unknown authority"),
        pytest.param(
            lambda ca: TLSOptions(ca_file=ca),
            ("example.org",),
            "IP address mismatch, certificate is not valid for '127.0.0.1'.",
            id="another name",
        ),
    ],
)
def test_server_that_cannot_be_trusted_is_a_connect_error(
    ca_file: str, options: Callable[[str], TLSOptions], names: tuple[str, ...], reason: str
) -> None:
    with (
        ScriptedServer([STREAM], tls=tls_server(*names)) as server,
        user(WireTransport(options(ca_file))) as client,
    ):
        exchange = ask(client, server.url)
    assert (exchange.end, exchange.status) == (End.CONNECT_ERROR, None)
    assert exchange.error.endswith(f": TLS: the server's certificate is not trusted: {reason}")


def test_any_server_is_taken_when_verification_is_off() -> None:
    with (
        ScriptedServer([STREAM], tls=tls_server("example.org")) as server,
        user(WireTransport(TLSOptions(verify=False))) as client,
    ):
        assert ask(client, server.url).end is End.COMPLETE


def test_client_certificate_is_shown_when_the_server_asks(ca_file: str, tmp_path: Path) -> None:
    context = tls_server()
    context.verify_mode = ssl.CERT_REQUIRED
    CA.configure_trust(context)
    CA.issue_cert("user@example.org").private_key_and_cert_chain_pem.write_to_path(tmp_path / "client.pem")
    with ScriptedServer([STREAM], tls=context) as server:
        with user(WireTransport(TLSOptions(ca_file=ca_file, client_cert=str(tmp_path / "client.pem")))) as client:
            assert ask(client, server.url).end is End.COMPLETE
        with trusting(ca_file) as client:
            refused = ask(client, server.url)
    assert refused.end is End.CONNECT_ERROR
    assert refused.error == "TLS: tlsv13 alert certificate required"


def test_files_at_fault_are_named() -> None:
    with pytest.raises(ValueError, match=r"CA file /nowhere/ca\.pem: No such file or directory"):
        TLSOptions(ca_file="/nowhere/ca.pem").context()
    with pytest.raises(ValueError, match=r"client certificate /nowhere/c\.pem: No such file or directory"):
        TLSOptions(client_cert="/nowhere/c.pem").context()
    with pytest.raises(ValueError, match=f"CA file {__file__}: "):
        TLSOptions(ca_file=__file__).context()


def test_encrypted_key_is_refused_instead_of_asking_the_terminal(tmp_path: Path) -> None:
    certificate = CA.issue_cert("user@example.org")
    key = serialization.load_pem_private_key(certificate.private_key_pem.bytes(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"passphrase"),
    )
    (tmp_path / "client.pem").write_bytes(locked + certificate.cert_chain_pems[0].bytes())
    with pytest.raises(ValueError, match=r"client\.pem: its key is encrypted; give it without a passphrase"):
        TLSOptions(client_cert=str(tmp_path / "client.pem")).context()


def test_plain_server_is_a_connect_error_when_tls_is_asked_for() -> None:
    with ScriptedServer([[]], greeting=b"HTTP/1.1 400 Bad Request\r\n\r\n") as server, user() as client:
        exchange = ask(client, server.url.replace("http://", "https://"))
    assert exchange.end is End.CONNECT_ERROR
    assert "TLS: wrong version number" in exchange.error


@pytest.mark.parametrize(
    ("script", "end", "error"),
    [
        pytest.param([(0, HEAD), (10, TOKEN), (30, FIN)], End.CUT, "incomplete body", id="FIN in a chunked body"),
        pytest.param([(0, HEAD), (10, TOKEN), (30, RST)], End.CUT, "connection reset", id="RST in a chunked body"),
        pytest.param([(0, OPEN), (30, FIN)], End.CUT, "incomplete body", id="no close_notify"),
        pytest.param([(10, FIN)], End.CUT, "closed before a response", id="FIN before the head"),
    ],
)
def test_stream_is_cut_over_tls(ca_file: str, script: Script, end: End, error: str) -> None:
    sink = Sink()
    with (
        ScriptedServer([script], tls=tls_server()) as server,
        trusting(ca_file) as client,
    ):
        exchange = ask(client, server.url, sink)
    assert (exchange.end, exchange.error) == (end, error)


@pytest.mark.parametrize("size", [100_000, 5_000_000])
def test_big_body_goes_out_over_tls(ca_file: str, size: int) -> None:
    body = b"0123456789" * (size // 10)
    with (
        ScriptedServer([[(0, whole(b"x"))]], tls=tls_server()) as server,
        trusting(ca_file) as client,
    ):
        exchange = ask(client, server.url, body=body)
        assert server.requests[0][2] == body
    assert exchange.end is End.COMPLETE
    assert exchange.sent_ns is not None


def test_open_ended_body_is_complete_when_tls_says_goodbye(ca_file: str) -> None:
    sink = Sink()
    with (
        ScriptedServer([[(0, OPEN), (20, GOODBYE), (30, FIN)]], tls=tls_server()) as server,
        trusting(ca_file) as client,
    ):
        exchange = ask(client, server.url, sink)
    assert (exchange.end, sink.body) == (End.COMPLETE, b"data: x\n\n")
