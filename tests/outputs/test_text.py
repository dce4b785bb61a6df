"""Cells and JSON strings: exact, on one line, harmless."""

from __future__ import annotations

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_locust.outputs.text import cell, epoch_cell, json_document, ms_cell, text_cell, unescaped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("plain", "plain", id="plain"),
        pytest.param("", "", id="empty"),
        pytest.param("=1+1", "'=1+1", id="formula"),
        pytest.param('=HYPERLINK("x","y")', '"\'=HYPERLINK(""x"",""y"")"', id="formula-with-quotes"),
        pytest.param("+1", "'+1", id="plus"),
        pytest.param("-1", "'-1", id="minus"),
        pytest.param("@SUM(A1)", "'@SUM(A1)", id="at"),
        pytest.param("＝1", "'＝1", id="full-width"),
        pytest.param("'quoted", "''quoted", id="own-apostrophe"),
        pytest.param("\t=1", "␉=1", id="tab-first"),
        pytest.param('say "a", b', '"say ""a"", b"', id="quotes-and-comma"),
        pytest.param("one\r\ntwo\nthree", "one␍␊two␊three", id="line-breaks"),
        pytest.param("a\u2028b\x85c", "a␤b\ufffdc", id="unicode-line-breaks"),
        pytest.param("nul\x00esc\x1b[31m", "nul␀esc␛[31m", id="control"),
        pytest.param("中文 🤖", "中文 🤖", id="cjk-and-emoji"),
        pytest.param("bad \ud83e end", "bad \ufffd end", id="lone-surrogate"),
    ],
)
def test_text_cell_when_text_is_hostile(text: str, expected: str) -> None:
    """One record is one line of UTF-8, and no text is run as a formula."""
    assert text_cell(text) == expected


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])))
def test_text_cell_when_read_back(text: str) -> None:
    """What the writer puts before a text, the reader takes off: exactly."""
    (row,) = csv.reader(io.StringIO(f"{text_cell(text)},x\r\n"), strict=True)
    assert (unescaped(row[0]), row[1]) == (text, "x")


@given(st.text())
def test_text_cell_when_text_is_anything(text: str) -> None:
    """Any text is one line, and can be encoded."""
    written = text_cell(text)
    assert len(written.splitlines()) <= 1
    written.encode("utf-8")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        (0, "0"),
        (0.0, "0.0"),
        (0.1, "0.1"),
        (True, "true"),
        (False, "false"),
        (-3, "-3"),
        (float("nan"), ""),
        (float("inf"), ""),
        ("NA", "NA"),
    ],
)
def test_cell_when_value_is_no_text(value: object, expected: str) -> None:
    """Absent and not finite are empty; a number never gets an apostrophe."""
    assert cell(value) == expected


def test_ms_cell_when_ns_matter() -> None:
    """No nanosecond is lost, up to 6 h and beyond."""
    assert [ms_cell(ns) for ns in (0, 1, 999_999, 400_000, 21_600_000_000_001, -41_000)] == [
        "0.000000",
        "0.000001",
        "0.999999",
        "0.400000",
        "21600000.000001",
        "-0.041000",
    ]


@given(st.integers(min_value=-(2**52), max_value=2**52))
def test_ms_cell_when_read_back(duration_ns: int) -> None:
    """A duration in ms gives back its ns."""
    assert round(float(ms_cell(duration_ns)) * 1e6) == pytest.approx(duration_ns, abs=1)
    whole, _, fraction = ms_cell(abs(duration_ns)).partition(".")
    assert int(whole + fraction) == abs(duration_ns)


def test_epoch_cell_when_ns_matter() -> None:
    """An instant keeps the 200 ns that a float of epoch seconds loses."""
    assert epoch_cell(1_772_359_200_000_000_001) == "1772359200.000000001"


def test_json_document_when_texts_and_numbers_are_hostile() -> None:
    """The document is strict JSON in UTF-8: no NaN, no lone surrogate."""
    document = json_document({"a\udc80": ["\ud83e", "中文 🤖", "line\nbreak", float("nan"), 0.1], 7: None})
    assert json.loads(document.decode("utf-8")) == {
        "a\ufffd": ["\ufffd", "中文 🤖", "line\nbreak", None, 0.1],
        "7": None,
    }
    assert b"NaN" not in document
