"""Arrivals and raw answers of failures, beside requests.csv."""

from __future__ import annotations

import json
from pathlib import Path

from llm_locust.measure.record import Outcome
from llm_locust.outputs.samples import ArrivalsFile, FailureSamples


def test_arrivals_file_when_requests_end(tmp_path: Path) -> None:
    """One line a request; each arrival to the ns; a hostile label does no harm."""
    arrivals = ArrivalsFile(tmp_path, "run-1", "host/1_ab")
    arrivals.add(7, "8 users", [300_000_000, 350_000_001], [1, 2])
    arrivals.flush()
    arrivals.add(8, 'bad "\ud83e"\n', [], [])
    arrivals.close()
    assert arrivals.path.name == "arrivals-host-1_ab.jsonl"
    assert [json.loads(line) for line in arrivals.path.read_text(encoding="utf-8").splitlines()] == [
        {
            "run_id": "run-1",
            "request_id": 7,
            "stage": "8 users",
            "arrivals_ms": [300.0, 350.000001],
            "tokens": [1, 2],
        },
        {"run_id": "run-1", "request_id": 8, "stage": 'bad "\ufffd"\n', "arrivals_ms": [], "tokens": []},
    ]


def test_failure_samples_when_more_fail_than_wanted(tmp_path: Path) -> None:
    """The first N answers of each outcome, byte by byte; nothing of a success or of what the stop ended."""
    samples = FailureSamples(tmp_path, "w1", 2)
    bodies = [b"\x00\xff one", b"two", b"three"]
    saved = [samples.save(Outcome.CUT, body) for body in bodies]
    assert samples.save(Outcome.OK, b"fine") is None
    assert samples.save(Outcome.UNFINISHED, b"half") is None
    assert samples.save(Outcome.SERVER_ERROR, b"oops") is not None
    assert [path and path.name for path in saved] == ["cut-w1-1.bin", "cut-w1-2.bin", None]
    assert {path.name: path.read_bytes() for path in (tmp_path / "failures").iterdir()} == {
        "cut-w1-1.bin": b"\x00\xff one",
        "cut-w1-2.bin": b"two",
        "server_error-w1-1.bin": b"oops",
    }
