"""What is kept of an error body."""

from __future__ import annotations

import pytest

from llm_locust.measure.errortext import body_message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(b'{"error":{"message":"slow","code":1}}', "slow", id="error.message"),
        pytest.param(b'{"error":"worker lost","error_type":"generation"}', "worker lost", id="error as a text"),
        pytest.param(b'{"object":"error","message":"too long","code":400}', "too long", id="message"),
        pytest.param(
            b'{"detail":[{"loc":["body"],"msg":"Field required","input":"my secret prompt"},{"msg":"Too long"}]}',
            "Field required; Too long", id="detail[].msg without the echoed input",
        ),
        pytest.param(b'{"detail":"Not Found"}', "Not Found", id="detail as a text"),
        pytest.param(b'{"input":"my secret prompt"}', "", id="unknown JSON may be an echo"),
        pytest.param(b'{"error":{"message":"my secr', "", id="JSON that was cut"),
        pytest.param(b'["my secret prompt"]', "", id="a list"),
        pytest.param(b'{"error":null,"message":"m"}', "m", id="error: null"),
        pytest.param(
            b"<!doctype html><html><head><TITLE>502 Bad\n Gateway</TITLE></head><body>no</body></html>",
            "502 Bad Gateway", id="a page's title",
        ),
        pytest.param(b"<html><script>run()</script><p>Sign <b>in</b></p></html>", "Sign in", id="a page's text"),
        pytest.param(b" upstream\r\nconnect error ", "upstream connect error", id="plain text"),
        pytest.param(b"x" * 300, "x" * 200, id="200 characters"),
        pytest.param("中文".encode() + b"\xff", "中文\ufffd", id="bytes that are no text"),
        pytest.param(b"", "", id="nothing"),
    ],
)  # fmt: skip
def test_message_of_a_body(body: bytes, message: str) -> None:
    """Only what a server says for people, never what it repeats of the request."""
    assert body_message(body) == message
