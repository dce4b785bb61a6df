"""Files that break tools, through real runs: refused before any load, or used and counted.

The reading itself is tested in tests/prompts; README.md beside this file says where.
"""

from __future__ import annotations

import json

import pytest

from benchmarks.rig.locusts import Lab
from benchmarks.rig.mock_process import start_mock
from llm_locust.outputs.readers import read_requests
from llm_locust.outputs.requests_csv import REQUEST_COLUMNS
from llm_locust.outputs.stages_csv import STAGES_COLUMNS
from llm_locust.outputs.timeline_csv import TIMELINE_COLUMNS
from tests.prompts.test_datasets import JSONL, SHAREGPT

from .real_run import LLM, run, table

FAST = ("--profile", "fast", "--ttft-ms", "20", "--itl-ms", "5")
ONE = ("-u", "1", "--llm-warmup", "0")
SHORT = ("--llm-output-tokens", "4")

REFUSED = {
    "D01 nothing usable": ("sharegpt:", b'[{"id":"1","conversations":[]}, null]', "no usable prompt"),
    "D01 an empty array": ("sharegpt:", b"[]", "no usable prompt"),
    "D02 a bad line": ("jsonl:", JSONL, "line 3"),
    "D02 a bad last line": ("jsonl:", b'{"prompt":"one"}\n{"prompt":', "line 2"),
    "D03 UTF-16": ("csv:", "prompt\r\nGrüße\r\n".encode("utf-16"), "is UTF-16"),
    "D03 UTF-16 without a mark": ("lines:", "Grüße\n".encode("utf-16-le"), "iconv -f UTF-16LE"),
    "D05 a lone surrogate": ("jsonl:", b'{"prompt":"bad \\ud83e end"}\n', "line 1"),
    "D07 more blocks than tokens": (
        "mooncake:",
        b'{"timestamp":0,"input_length":20,"output_length":8,"hash_ids":[0,1]}\n',
        "line 1: 20 tokens have 1 blocks of 512; hash_ids has 2",
    ),
}


EVERY_DAY = ("D01 nothing usable", "D02 a bad line", "D03 UTF-16 without a mark", "D07 more blocks than tokens")


@pytest.mark.parametrize(
    ("kind", "content", "says"),
    [pytest.param(*row, id=name, marks=() if name in EVERY_DAY else pytest.mark.slow) for name, row in REFUSED.items()],
)
def test_file_is_refused_before_any_load(lab: Lab, kind: str, content: bytes, says: str) -> None:
    """One clear line with the file's name, exit code 1, no request, no folder of a run."""
    path = lab.folder / "file"
    path.write_bytes(content)
    with start_mock(*FAST) as mock:
        process = lab.local("--host", mock.url, "--llm-model", "m", "--llm-prompts", f"{kind}{path}", *ONE, file=LLM)
        code = process.wait()
        sent = mock.truth()["requests"]
    assert (code, sent, lab.runs) == (1, 0, []), process.output
    (line,) = [line for line in process.output.splitlines() if line.startswith("llm-locust: ") and "file" in line]
    assert says in line
    assert "Traceback" not in process.output


def test_rows_that_were_skipped_are_told(lab: Lab) -> None:
    """D01, D02: five of nine conversations are asked, never the model's first turn; skipped ones are told."""
    path = lab.folder / "chats.json"
    path.write_bytes(SHAREGPT)
    with start_mock(*FAST) as mock:
        args = (*ONE, "--llm-requests", "5", "--llm-prompts", f"sharegpt:{path}")
        ended = run(lab, mock.url, *args, lengths=SHORT)
        asked = [line["prompt_tokens"] for line in mock.lines()]
    assert ended.code == 0, ended.output
    assert len(ended.rows) == 5
    # One word and the template's 4 tokens a message: Q2, S+Q3, Q4, Q5, a+b.
    assert asked[:5] == [5, 10, 5, 5, 10]
    told = [found for found in ended.summary["verdict"]["findings"] if " skipped: " in found]
    assert sum(int(found.split(": ")[1].split()[0]) for found in told) == 4, ended.output


def test_trace_is_played_at_its_milliseconds(lab: Lab) -> None:
    """D07: 0, 200 and 700 ms of a trace are 0, 0.2 and 0.7 s; sorted and told so; its lengths are asked for."""
    path = lab.folder / "trace"
    rows = [(0, 700, 4, [0, 1]), (700, 600, 2, [4294967296, 1]), (200, 20, 3, [0])]
    path.write_text(
        "".join(
            json.dumps({"timestamp": ms, "input_length": n, "output_length": m, "hash_ids": ids}) + "\n"
            for ms, n, m, ids in rows
        )
    )
    with start_mock(*FAST) as mock:
        args = ("-u", "4", "-r", "4", "--llm-warmup", "0", "--llm-arrivals", "trace")
        ended = run(lab, mock.url, *args, "--llm-prompts", f"mooncake:{path}", "--llm-requests", "3", lengths=())
        asked = [(line["prompt_tokens"], line["output_tokens"]) for line in mock.lines()]
    due = sorted(float(row["scheduled_epoch_s"]) for row in ended.rows)
    assert [at - due[0] for at in due] == pytest.approx([0, 0.2, 0.7], abs=0.001)
    assert sorted(asked) == [(24, 3), (604, 2), (704, 4)]
    assert all(row["dispatch_lag_ms"] for row in ended.rows)  # lateness of each request
    assert "out of order" in ended.output + json.dumps(ended.summary)


def test_files_survive_what_a_model_says(lab: Lab) -> None:
    """D05: a lone surrogate, a formula, a quote and a line end in what the server says: every file stays readable."""
    said = '{"error":{"message":"=cmd|\\ud83e, \\"x\\"\\n2","type":"t"}}'
    text = 'data: {"choices":[{"index":0,"delta":{"content":"bad \\ud83e end"},"finish_reason":null}]}\n\n'
    path = lab.folder / "script.json"
    path.write_text(json.dumps({"/v1/chat/completions": [[5, text], [10, f"data: {said}\n\n"]]}))
    with start_mock("--profile", "fast", "--script", str(path)) as mock:
        args = (*ONE, "--llm-requests", "2", "--llm-name", "=1+1", "--llm-tag", "gpu=\u00c4 \u6a21")
        ended = run(lab, mock.url, *args)
    assert set(ended.outcomes) == {"server_error"}
    assert {row["error"][0] for row in ended.rows} == {"'"}
    records = read_requests(lab.runs[-1])
    assert list(records["error"]) == [ended.rows[0]["error"][1:]] * len(ended.rows)
    assert all("=cmd|" in row["error"] and "\n" not in row["error"] for row in ended.rows)
    assert ended.summary["tags"] == {"gpu": "\u00c4 \u6a21"}


def test_files_of_a_run_have_their_columns(lab: Lab) -> None:
    """Every column that docs/metrics.md names for requests.csv comes first and in its order; all files are there."""
    with start_mock(*FAST) as mock:
        ended = run(lab, mock.url, *ONE, "--llm-requests", "2", "--llm-save-arrivals")
    folder = lab.runs[-1]
    names = {path.name for path in folder.iterdir()}
    assert {"requests.csv", "stages.csv", "timeline.csv", "summary.json", "run.conf", "report.html", "llm.py"} <= names
    assert list(ended.rows[0])[: len(COLUMNS)] == COLUMNS
    assert list(ended.rows[0]) == list(REQUEST_COLUMNS)
    assert list(ended.stages[0]) == list(STAGES_COLUMNS)
    assert list(table(folder / "timeline.csv")[0]) == list(TIMELINE_COLUMNS)
    assert (folder.parent / "latest").resolve() == folder.resolve()
    assert len(list(folder.glob("arrivals-*.jsonl"))) == 1


COLUMNS = """run_id worker request_id user_class name dialect stage phase start_epoch_s scheduled_epoch_s user_wait_ms
dispatch_lag_ms send_lag_ms connect_ms headers_ms ttft_ms ttfa_ms e2e_ms stream_end_ms ttft_scheduled_ms
e2e_scheduled_ms tpot_ms second_token_ms icl_max_ms input_tokens input_tokens_requested cached_tokens output_tokens
output_tokens_requested reasoning_tokens output_tokens_source chunks reads late_tokens ttft_upper_bound outcome
http_status finish_reason error malformed_events timestamp_source slo_good endpoint peer server_request_id
client_request_id""".split()
