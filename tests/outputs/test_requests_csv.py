"""requests.csv: known records give known lines, and come back as they were."""

from __future__ import annotations

import csv
from pathlib import Path

import pandas as pd
import pytest

from llm_locust.measure.record import Outcome, RequestRecord
from llm_locust.outputs.appendfile import AppendFile
from llm_locust.outputs.readers import read_requests
from llm_locust.outputs.requests_csv import REQUEST_COLUMNS, REQUEST_TEXT_COLUMNS, REQUESTS_HEADER, request_line
from tests.outputs.records import BARE, WHOLE, changed

HOSTILE = changed(
    WHOLE,
    request_id=3,
    name="=cmd|' /C calc'!A0",
    stage="-1",
    outcome=Outcome.SERVER_ERROR,
    error='模型 "x" 🤖,\r\nnext line; bad \ud83e\x00',
    finish_reason="NA",
    server_request_id="'007",
    tpot_ns=float("nan"),
    ttft_upper_bound=True,
    slo_good=False,
)

WHOLE_FILE = (
    "run_id,worker,request_id,user_class,name,dialect,stage,phase,start_epoch_s,scheduled_epoch_s,user_wait_ms,"
    "dispatch_lag_ms,send_lag_ms,connect_ms,headers_ms,ttft_ms,ttfa_ms,e2e_ms,stream_end_ms,ttft_scheduled_ms,"
    "e2e_scheduled_ms,tpot_ms,second_token_ms,icl_max_ms,input_tokens,input_tokens_requested,cached_tokens,"
    "output_tokens,output_tokens_requested,reasoning_tokens,output_tokens_source,chunks,reads,late_tokens,"
    "ttft_upper_bound,outcome,http_status,finish_reason,error,malformed_events,timestamp_source,slo_good,endpoint,"
    "peer,server_request_id,client_request_id,bundled_tokens,burst,clock_step\r\n"
    "20260301-101500_m_users,w1,1,Chat,chat,openai-chat,8 users,steady,1772359200.123456789,1772359200.000000001,"
    "120.000000,3.456788,0.041000,0.250001,9.000000,300.000000,350.000000,1250.000001,1260.000000,423.456788,"
    "1373.456789,50.000000,61.000000,99.000000,1024,1024,0,20,20,3,usage,20,19,0,false,ok,200,length,,0,kernel,true,"
    "http://127.0.0.1:8000,127.0.0.1:8000,chatcmpl-1,r-1,2,false,false\r\n"
    "20260301-101500_m_users,w1,2,Chat,chat,openai-chat,8 users,warmup,1772359201.000000000,,,,,,,,,,,,,,,,,,,,,,,"
    "0,0,0,false,connect_error,,,ConnectionRefusedError,0,,,,,,,0,false,false\r\n"
    "20260301-101500_m_users,w1,3,Chat,'=cmd|' /C calc'!A0,openai-chat,'-1,steady,1772359200.123456789,"
    "1772359200.000000001,120.000000,3.456788,0.041000,0.250001,9.000000,300.000000,350.000000,1250.000001,"
    "1260.000000,423.456788,1373.456789,,61.000000,99.000000,1024,1024,0,20,20,3,usage,20,19,0,true,server_error,200,"
    'NA,"模型 ""x"" 🤖,␍␊next line; bad \ufffd␀",0,kernel,false,http://127.0.0.1:8000,127.0.0.1:8000,\'\'007,r-1,'
    "2,false,false\r\n"
)


@pytest.fixture
def requests_csv(tmp_path: Path) -> Path:
    """A file of three records: a whole one, a bare one, a hostile one."""
    file = AppendFile(tmp_path / "requests.csv")
    for line in (REQUESTS_HEADER, *map(request_line, (WHOLE, BARE, HOSTILE))):
        file.append(line)
    file.close()
    return file.path


def test_requests_csv_when_records_are_known(requests_csv: Path) -> None:
    """The whole file, byte by byte: absent is empty, ns are kept, a text is one harmless cell."""
    assert requests_csv.read_bytes() == WHOLE_FILE.encode()


def test_requests_csv_when_any_csv_reader_reads_it(requests_csv: Path) -> None:
    """RFC 4180: each line has the same columns; one line is one record."""
    with open(requests_csv, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, strict=True))
    assert [len(row) for row in rows] == [len(REQUEST_COLUMNS)] * 4
    assert len(requests_csv.read_text(encoding="utf-8").splitlines()) == 4


def test_columns_when_the_record_grows() -> None:
    """Every field of the record has its column, and no column is without a field."""
    fields = {name.replace("_ns", "_s" if "epoch" in name else "_ms") for name in RequestRecord.__struct_fields__}
    assert set(REQUEST_COLUMNS) == fields
    text_fields = {name for name, kind in RequestRecord.__annotations__.items() if str(kind).startswith("str")}
    assert text_fields | {"outcome"} == REQUEST_TEXT_COLUMNS


def test_read_requests_when_file_is_whole(requests_csv: Path) -> None:
    """Texts come back as they were (less what cannot be written), absent numbers as NaN."""
    frame = read_requests(requests_csv)
    assert frame["name"].tolist() == ["chat", "chat", HOSTILE.name]
    assert frame["stage"].tolist() == ["8 users", "8 users", "-1"]
    assert frame["finish_reason"].tolist() == ["length", "", "NA"]
    assert frame["server_request_id"].tolist() == ["chatcmpl-1", "", "'007"]
    assert frame["error"][2] == '模型 "x" 🤖,␍␊next line; bad \ufffd␀'
    assert (frame["ttft_ms"] * 1e6).round()[0] == WHOLE.ttft_ns
    assert frame["tpot_ms"].isna().tolist() == [False, True, True]
    assert frame["ttft_upper_bound"].tolist() == [False, False, True]
    assert frame["outcome"].tolist() == ["ok", "connect_error", "server_error"]


def test_read_requests_when_last_line_is_half(requests_csv: Path) -> None:
    """A line that a kill cut in two is no line."""
    content = requests_csv.read_bytes()
    requests_csv.write_bytes(content[:-30])
    assert read_requests(requests_csv)["request_id"].tolist() == [1, 2]


def test_read_requests_when_nothing_was_asked(tmp_path: Path) -> None:
    """A file with its header only is an empty frame with all columns."""
    (tmp_path / "requests.csv").write_text(REQUESTS_HEADER + "\r\n", encoding="utf-8", newline="")
    frame = read_requests(tmp_path)
    assert (frame.columns.tolist(), len(frame)) == (list(REQUEST_COLUMNS), 0)


def test_requests_csv_when_pandas_reads_it_without_us(requests_csv: Path) -> None:
    """A plain `read_csv` understands the file: numbers are numbers."""
    frame = pd.read_csv(requests_csv)
    assert frame["ttft_ms"].dropna().tolist() == [300.0, 300.0]
    assert frame["output_tokens"].sum() == 40
