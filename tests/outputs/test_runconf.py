"""run.conf is read back by Locust's own parser: value by value what was given, secrets absent."""

from __future__ import annotations

import argparse
from pathlib import Path

import configargparse  # type: ignore[import-untyped]  # it has no types
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llm_locust.outputs.runconf import copy_locustfiles, run_conf


def read_back(text: str, directory: Path) -> dict[str, object]:
    """Parse the text as `locust --config` does."""
    path = directory / "run.conf"
    path.write_text(text, encoding="utf-8")
    parser = configargparse.ArgParser(config_file_parser_class=configargparse.DefaultConfigFileParser)
    parser.add_argument("--config", is_config_file_arg=True)
    for name in ("host", "users", "run-time", "llm-model", "llm-extra-body", "llm-note", "llm-warmup"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--headless", action="store_true")
    parser.add_argument("--llm-stream", action=argparse.BooleanOptionalAction, default=None)
    parser.add_argument("--llm-tag", action="append")
    return {key: value for key, value in vars(parser.parse_args(["--config", str(path)])).items() if key != "config"}


def test_run_conf_when_locust_reads_it(tmp_path: Path) -> None:
    """Each option comes back as it was; a secret is named, not written."""
    text = run_conf(
        {
            "host": "http://127.0.0.1:8000/v1",
            "users": 8,
            "run-time": "5m",
            "headless": True,
            "llm-stream": False,
            "llm-model": "组织/模型 # 1; x",
            "llm-extra-body": '{"a": "b # c",\n "d": [1, 2]}',
            "llm-tag": ["gpu=H100", "deploy=pd, x", "two\nlines # ; \\"],
            "llm-warmup": None,
            "llm-note": "",
        },
        {"llm-api-key": "secret: set LOCUST_LLM_API_KEY"},
        ["run 20260301-101500_m_users", "two\nlines"],
    )
    assert text.splitlines()[:2] == ["# run 20260301-101500_m_users", "# two␊lines"]
    assert "# llm-api-key: secret: set LOCUST_LLM_API_KEY" in text.splitlines()
    assert read_back(text, tmp_path) == {
        "host": "http://127.0.0.1:8000/v1",
        "users": "8",
        "run_time": "5m",
        "headless": True,
        "llm_stream": False,
        "llm_model": "组织/模型 # 1; x",
        "llm_extra_body": '{"a": "b # c", "d": [1, 2]}',
        "llm_tag": ["gpu=H100", "deploy=pd, x", "two\nlines # ; \\"],
        "llm_warmup": None,
        "llm_note": "",
    }


@pytest.mark.parametrize("value", ["two\nlines", "[1, 2]", " padded ", "a\u2028b", "both \"'\" # x '\"' ; y"])
def test_run_conf_when_the_format_cannot_say_it(value: str, tmp_path: Path) -> None:
    """Either the value comes back exactly, or the file says that it is missing: never a wrong one."""
    text = run_conf({"llm-note": value}, {}, [])
    note = read_back(text, tmp_path)["llm_note"]
    assert note == value or (note is None and text.startswith("# llm-note: this value cannot be said"))


@example(" #")
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="{")))
def test_run_conf_when_value_is_anything(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    """The same for any text, alone and in a list."""
    text = run_conf({"llm-note": value, "llm-tag": ["a", value]}, {}, [])
    options = read_back(text, tmp_path_factory.getbasetemp())
    assert options["llm_note"] in (value, None)
    assert options["llm_note"] == value or text.startswith("# llm-note: this value cannot be said")
    assert options["llm_tag"] == ["a", value]


def test_copy_locustfiles_when_two_have_one_name(tmp_path: Path) -> None:
    """Both are kept, each under a name of its own."""
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
        (tmp_path / number / "llm.py").write_text(number)
    (tmp_path / "run").mkdir()
    copies = copy_locustfiles([tmp_path / "1" / "llm.py", tmp_path / "2" / "llm.py"], tmp_path / "run")
    assert [(copy.name, copy.read_text()) for copy in copies] == [("llm.py", "1"), ("llm-2.py", "2")]
