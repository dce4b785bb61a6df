"""The right answer of every stream in `streams.py`, worked out by hand: times in ms since the request was sent.

None is "absent". What a number means stands in docs/metrics.md; where a report behind a case and that page differ,
the page decides (a stream with an undecodable event is `malformed`, finish reasons are kept raw).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """One stream's record and text. ``itl_ms`` is None where per-token gaps must not be claimed."""

    outcome: str = "ok"
    dialect: str = "openai-chat"
    stream: bool = True
    ttft_ms: float | None = None
    ttfa_ms: float | None = None
    e2e_ms: float | None = None
    stream_end_ms: float | None = None
    tpot_ms: float | None = None
    icl_ms: tuple[float, ...] = ()
    itl_ms: tuple[float, ...] | None = ()
    chunks: int = 0
    output_tokens: int | None = None
    source: str | None = "chunks"
    input_tokens: int | None = None
    reasoning_tokens: int | None = None
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[tuple[str, str], ...] = ()
    finish_reason: str | None = "stop"
    error: str = ""
    status: int | None = 200
    malformed_events: int = 0


# One row a case, its times together:
# fmt: off
_A01 = Expected(
    ttft_ms=220, ttfa_ms=220, e2e_ms=260, stream_end_ms=300, tpot_ms=40, icl_ms=(40,), itl_ms=None, chunks=2,
    output_tokens=2, text="Hi there",
)

EXPECTED: dict[str, Expected] = {
    "A01/V1 content empty": _A01,
    "A01/V2 content null": _A01,
    "A02/V1 DONE only": Expected(outcome="empty", stream_end_ms=30, finish_reason=None, source=None),
    "A02/V2 role + stop": Expected(outcome="empty", stream_end_ms=60, source=None),
    "A02/V3 server says one token (EOS only)": Expected(
        stream_end_ms=141, output_tokens=1, source="usage", input_tokens=7
    ),
    "A03/V1 `reasoning`": Expected(
        ttft_ms=120, ttfa_ms=900, e2e_ms=940, stream_end_ms=980, tpot_ms=205, icl_ms=(40, 740, 40), itl_ms=None,
        chunks=4, output_tokens=5, source="usage", input_tokens=7, reasoning_tokens=3, text="\n\n42",
        reasoning="Well, so",
    ),
    "A03/V2 `reasoning_content`": Expected(
        ttft_ms=120, ttfa_ms=900, e2e_ms=900, stream_end_ms=940, tpot_ms=780, icl_ms=(780,), itl_ms=None, chunks=2,
        output_tokens=2, text="No", reasoning="Well",
    ),
    "A03/V3 both keys, content empty": Expected(
        ttft_ms=120, ttfa_ms=400, e2e_ms=400, stream_end_ms=410, tpot_ms=140, icl_ms=(30, 250), itl_ms=None, chunks=3,
        output_tokens=3, text="Yes", reasoning=" help.",
    ),
    "A03/V4 reasoning_details": Expected(
        ttft_ms=130, ttfa_ms=500, e2e_ms=500, stream_end_ms=510, tpot_ms=370, icl_ms=(370,), itl_ms=None, chunks=2,
        output_tokens=2, text="A", reasoning="Let",
    ),
    "A03/V5 one chunk holds both": Expected(
        ttft_ms=100, ttfa_ms=200, e2e_ms=240, stream_end_ms=250, tpot_ms=70, icl_ms=(100, 40), itl_ms=None, chunks=3,
        output_tokens=3, text="Go!", reasoning="x end",
    ),
    "A05/V1": Expected(
        ttft_ms=100, ttfa_ms=100, e2e_ms=200, stream_end_ms=701, tpot_ms=50, icl_ms=(50, 50), itl_ms=(50, 50),
        chunks=3, output_tokens=3, source="usage", input_tokens=7, text="abc",
    ),
    "A06/V1 cumulative 1,4,5": Expected(
        ttft_ms=100, ttfa_ms=100, e2e_ms=180, stream_end_ms=185, tpot_ms=20, icl_ms=(60, 20), itl_ms=(20, 20, 20, 20),
        chunks=3, output_tokens=5, source="usage", input_tokens=7, text="abcde",
    ),
    "A06/V2 constant 5 everywhere": Expected(
        ttft_ms=100, ttfa_ms=100, e2e_ms=180, stream_end_ms=185, tpot_ms=20, icl_ms=(60, 20), itl_ms=None,
        chunks=3, output_tokens=5, source="usage", input_tokens=7, text="abcde",
    ),
    "A06/V3 usage:null until the end": Expected(
        ttft_ms=100, ttfa_ms=100, e2e_ms=180, stream_end_ms=185, tpot_ms=80, icl_ms=(80,), itl_ms=(80,),
        chunks=2, output_tokens=2, source="usage", input_tokens=7, text="ae",
    ),
    "A09/V1": Expected(
        ttft_ms=400, ttfa_ms=400, e2e_ms=450, stream_end_ms=621, tpot_ms=50, icl_ms=(50,), itl_ms=None, chunks=2,
        output_tokens=2, text="Ok.",
    ),
    "A10/clean end of body at 130": Expected(
        ttft_ms=100, ttfa_ms=100, e2e_ms=120, stream_end_ms=125, tpot_ms=20, icl_ms=(20,), itl_ms=None, chunks=2,
        output_tokens=2, text="ab",
    ),
    "A11/proper zero chunk at 160": Expected(
        outcome="truncated", ttft_ms=100, ttfa_ms=100, e2e_ms=150, stream_end_ms=150, tpot_ms=50, icl_ms=(50,),
        itl_ms=None, chunks=2, output_tokens=2, text="ab", finish_reason=None,
    ),
    "A12/V1 RAW no zero chunk, FIN": Expected(
        outcome="cut", ttft_ms=100, ttfa_ms=100, e2e_ms=100, stream_end_ms=200, chunks=1, output_tokens=1, text="a",
        finish_reason=None,
    ),
    "A12/V2 RAW cut inside a chunk": Expected(
        outcome="cut", stream_end_ms=200, source=None, finish_reason=None
    ),
    "A12/V3 RAW Content-Length 50 too long": Expected(
        outcome="cut", ttft_ms=0, ttfa_ms=0, e2e_ms=0, stream_end_ms=200, chunks=1, output_tokens=1, text="a",
        finish_reason=None,
    ),
    "A14/V1 before the first token": Expected(
        ttft_ms=1500, ttfa_ms=1500, e2e_ms=1500, stream_end_ms=1530, chunks=1, output_tokens=1, text="a",
    ),
    "A14/V2 comments glued to [DONE]": Expected(
        ttft_ms=10, ttfa_ms=10, e2e_ms=10, stream_end_ms=30, chunks=1, output_tokens=1, text="a"
    ),
    "A14/V3 empty data lines": Expected(
        ttft_ms=40, ttfa_ms=40, e2e_ms=40, stream_end_ms=50, chunks=1, output_tokens=1, text="a"
    ),
    "A14/V4 comment wrapped as data (broken gateway)": Expected(
        outcome="malformed", ttft_ms=40, ttfa_ms=40, e2e_ms=40, stream_end_ms=50, chunks=1, output_tokens=1, text="a",
        malformed_events=1,
    ),
    "A15/V1": Expected(
        ttft_ms=120, ttfa_ms=120, e2e_ms=160, stream_end_ms=160, tpot_ms=40, icl_ms=(40,), itl_ms=None, chunks=2,
        output_tokens=2, text=" ab",
    ),
    "A16/V1 CRLF split inside a multi-line event": Expected(
        ttft_ms=40, ttfa_ms=40, e2e_ms=40, stream_end_ms=50, chunks=1, output_tokens=1, text="a"
    ),
    "A16/V2 bare CR": Expected(
        ttft_ms=10, ttfa_ms=10, e2e_ms=10, stream_end_ms=20, chunks=1, output_tokens=1, text="a"
    ),
    "A16/V3 mixed": Expected(
        ttft_ms=10, ttfa_ms=10, e2e_ms=20, stream_end_ms=30, tpot_ms=10, icl_ms=(10,), itl_ms=None, chunks=2,
        output_tokens=2, text="ab",
    ),
    "A18/V1 3-byte char": Expected(
        ttft_ms=130, ttfa_ms=130, e2e_ms=130, stream_end_ms=150, chunks=1, output_tokens=1, text="語"
    ),
    "A18/V2 4-byte emoji, one byte per segment": Expected(
        ttft_ms=200, ttfa_ms=200, e2e_ms=200, stream_end_ms=220, chunks=1, output_tokens=1, text="🚀"
    ),
    "A21/header: Content-Type: text/event-stream": Expected(
        ttft_ms=10, ttfa_ms=10, e2e_ms=10, stream_end_ms=20, chunks=1, output_tokens=1, text="国内 Å"
    ),
    "A23/V1": Expected(
        dialect="anthropic-messages", ttft_ms=210, ttfa_ms=210, e2e_ms=260, stream_end_ms=270, tpot_ms=50 / 18,
        icl_ms=(50,), itl_ms=None, chunks=2, output_tokens=19, source="usage", input_tokens=31, text="Good day",
        finish_reason="end_turn",
    ),
    "A23/V2 two message_delta": Expected(
        dialect="anthropic-messages", ttft_ms=210, ttfa_ms=210, e2e_ms=260, stream_end_ms=270, tpot_ms=50 / 30,
        icl_ms=(50,), itl_ms=None, chunks=2, output_tokens=31, source="usage", input_tokens=31, text="Good day",
        finish_reason="end_turn",
    ),
    "A25/V1 completed": Expected(
        dialect="openai-responses", ttft_ms=200, ttfa_ms=200, e2e_ms=240, stream_end_ms=250, tpot_ms=40, icl_ms=(40,),
        itl_ms=(40,), chunks=2, output_tokens=2, source="usage", input_tokens=9, text="Hi you",
        finish_reason="completed",
    ),
    "A25/V2 incomplete": Expected(
        dialect="openai-responses", ttft_ms=200, ttfa_ms=200, e2e_ms=240, stream_end_ms=250, tpot_ms=40, icl_ms=(40,),
        itl_ms=(40,), chunks=2, output_tokens=2, source="usage", input_tokens=9, text="Hi you",
        finish_reason="length",
    ),
    "A25/V3 failed": Expected(
        dialect="openai-responses", outcome="server_error", ttft_ms=200, ttfa_ms=200, e2e_ms=200, stream_end_ms=250,
        chunks=1, output_tokens=1, text="Hi", finish_reason="failed", error="x",
    ),
    "A25/V4 EOF after deltas": Expected(
        dialect="openai-responses", outcome="truncated", ttft_ms=200, ttfa_ms=200, e2e_ms=200, stream_end_ms=200,
        chunks=1, output_tokens=1, text="Hi", finish_reason=None,
    ),
    "A26/V1 before any token": Expected(
        outcome="server_error", stream_end_ms=40, source=None, finish_reason=None, error="engine died"
    ),
    "A26/V2 after two tokens": Expected(
        outcome="server_error", ttft_ms=100, ttfa_ms=100, e2e_ms=120, stream_end_ms=130, tpot_ms=20, icl_ms=(20,),
        itl_ms=None, chunks=2, output_tokens=2, text="ab", finish_reason=None, error="engine died",
    ),
    "A26/V3 error + choices with finish_reason error": Expected(
        outcome="server_error", ttft_ms=100, ttfa_ms=100, e2e_ms=100, stream_end_ms=150, chunks=1, output_tokens=1,
        text="a", finish_reason="error", error="upstream gone",
    ),
    "A26/V4 string form (TGI)": Expected(
        dialect="tgi-generate", outcome="server_error", stream_end_ms=40, source=None, finish_reason=None,
        error="worker lost",
    ),
    "A26/V5 error: null is not an error": Expected(
        ttft_ms=100, ttfa_ms=100, e2e_ms=100, stream_end_ms=120, chunks=1, output_tokens=1, text="a"
    ),
    "A28/V1 abort": Expected(
        outcome="aborted", ttft_ms=100, ttfa_ms=100, e2e_ms=100, stream_end_ms=120, chunks=1, output_tokens=1,
        text="a", finish_reason="abort",
    ),
    "A28/V2 content_filter": Expected(
        ttft_ms=100, ttfa_ms=100, e2e_ms=100, stream_end_ms=120, chunks=1, output_tokens=1, text="a",
        finish_reason="content_filter",
    ),
    "A28/V3 length": Expected(
        ttft_ms=100, ttfa_ms=100, e2e_ms=120, stream_end_ms=120, tpot_ms=20, icl_ms=(20,), itl_ms=None, chunks=2,
        output_tokens=2, text="ab", finish_reason="length",
    ),
    "A28/V4 unknown value": Expected(
        ttft_ms=100, ttfa_ms=100, e2e_ms=100, stream_end_ms=120, chunks=1, output_tokens=1, text="a",
        finish_reason="eos_token_x",
    ),
    "A29/V1": Expected(
        ttft_ms=180, e2e_ms=260, stream_end_ms=281, tpot_ms=5, icl_ms=(40, 40), itl_ms=None, chunks=3,
        output_tokens=17, source="usage", input_tokens=7, tool_calls=(("get_time", '{"tz":"Oslo"}'),),
        finish_reason="tool_calls",
    ),
    "A31/V1 with continuous usage": Expected(
        ttft_ms=500, ttfa_ms=500, e2e_ms=660, stream_end_ms=661, tpot_ms=20, icl_ms=(80, 80), itl_ms=(20,) * 8,
        chunks=3, output_tokens=16, source="usage", input_tokens=7, text="eight tokens here four more last four",
    ),
    "A31/V2 same times, only final usage": Expected(
        ttft_ms=500, ttfa_ms=500, e2e_ms=660, stream_end_ms=661, tpot_ms=160 / 15, icl_ms=(80, 80), itl_ms=None,
        chunks=3, output_tokens=16, source="usage", input_tokens=7, text="eight tokens here four more last four",
    ),
    "A33/V1": Expected(
        dialect="sglang-generate", ttft_ms=80, ttfa_ms=80, e2e_ms=140, stream_end_ms=140, tpot_ms=15,
        icl_ms=(20, 20, 20), itl_ms=(20, 20, 10, 10), chunks=4, output_tokens=5, source="usage", input_tokens=4,
        text="Hello🙂",
    ),
    "A33/V2 abort": Expected(
        dialect="sglang-generate", outcome="aborted", ttft_ms=80, ttfa_ms=80, e2e_ms=80, stream_end_ms=90, chunks=1,
        output_tokens=1, source="usage", text="He", finish_reason="abort", error="abort",
    ),
    "A34/V1": Expected(
        dialect="tgi-generate", ttft_ms=50, ttfa_ms=50, e2e_ms=90, stream_end_ms=90, tpot_ms=40, icl_ms=(40,),
        itl_ms=(40,), chunks=2, output_tokens=2, source="usage", text="Hi", finish_reason="eos_token",
    ),
    "A34/V2 non-stream body from the same server": Expected(
        dialect="tgi-generate", stream=False, e2e_ms=90, stream_end_ms=90, source=None, text="Hi", finish_reason=None,
    ),
    "A35/V1": Expected(
        dialect="ollama-chat", ttft_ms=60, ttfa_ms=60, e2e_ms=90, stream_end_ms=120, tpot_ms=15, icl_ms=(30,),
        itl_ms=None, chunks=2, output_tokens=3, source="usage", input_tokens=5, text="ab",
    ),
    "A35/V2 error line at 200": Expected(
        dialect="ollama-chat", outcome="server_error", ttft_ms=60, ttfa_ms=60, e2e_ms=60, stream_end_ms=80, chunks=1,
        output_tokens=1, text="a", finish_reason=None, error="runner gone",
    ),
    "A35/V3 last line without LF": Expected(
        dialect="ollama-chat", ttft_ms=60, ttfa_ms=60, e2e_ms=60, stream_end_ms=80, chunks=1, output_tokens=1,
        source="usage", text="a", finish_reason=None,
    ),
    "A37/Content-Encoding: gzip, sync-flushed per event": Expected(
        ttft_ms=100, ttfa_ms=100, e2e_ms=150, stream_end_ms=200, tpot_ms=50, icl_ms=(50,), itl_ms=None, chunks=2,
        output_tokens=2, text="ab",
    ),
    "A40/V1 RAW": Expected(
        outcome="rejected", status=429, source=None, finish_reason=None, error="slow", stream_end_ms=12
    ),
    "A40/V2 RAW": Expected(outcome="rejected", status=503, source=None, finish_reason=None, stream_end_ms=12),
    "A40/V3 RAW 200 with HTML (login page)": Expected(
        outcome="http_error", source=None, finish_reason=None, error="text/html", stream_end_ms=12
    ),
}
