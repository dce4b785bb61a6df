"""The directory of a run: a name that sorts by time, never one that is taken."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from llm_locust.outputs.rundir import find_run_directory, make_run_directory, point_latest, safe_name

NOW = datetime(2026, 3, 1, 10, 15, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("deepseek-ai/DeepSeek-R1", "deepseek-ai-DeepSeek-R1", id="slash"),
        pytest.param("../../etc/passwd", "..-..-etc-passwd", id="climbing"),
        pytest.param('a b:c*?"<>|\\\n\x00d', "a-b-c-d", id="unsafe"),
        pytest.param("通义千问 72B", "通义千问-72B", id="cjk"),
        pytest.param("bad\ud83e", "bad", id="lone-surrogate"),
        pytest.param("///", "", id="nothing-left"),
        pytest.param("m" * 500, "m" * 120, id="long"),
        pytest.param("模" * 500, "模" * 40, id="long-cjk"),
    ],
)
def test_safe_name_when_text_is_hostile(text: str, expected: str) -> None:
    """A part of a file name on any file system, of at most 120 bytes."""
    assert safe_name(text) == expected


def test_make_run_directory_when_the_name_is_taken(tmp_path: Path) -> None:
    """Never overwritten: the second run of the same second gets its own directory."""
    made = [make_run_directory(tmp_path / "reports", "org/model", "ConcurrencySteps", NOW) for _ in range(3)]
    assert [path.relative_to(tmp_path).as_posix() for path in made] == [
        "reports/20260301-101500_org-model_ConcurrencySteps",
        "reports/20260301-101500_org-model_ConcurrencySteps-2",
        "reports/20260301-101500_org-model_ConcurrencySteps-3",
    ]
    assert all(path.is_dir() for path in made)


def test_make_run_directory_when_there_is_no_name_and_no_shape(tmp_path: Path) -> None:
    """Plain users against a model without a name."""
    assert make_run_directory(tmp_path, "", None, NOW).name == "20260301-101500_run_users"


def test_point_latest_when_run_follows_run(tmp_path: Path) -> None:
    """`latest` is a relative link, so that the reports can be moved, and goes to the newest."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        point_latest(tmp_path / name)
    assert (tmp_path / "latest").readlink() == Path("two")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["latest", "one", "two"]


def test_point_latest_when_links_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without symbolic links `latest` is a file with the name; both are found."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "summary.json").write_text("{}")
    monkeypatch.setattr(Path, "symlink_to", _no_links)
    point_latest(tmp_path / "one")
    assert (tmp_path / "latest").read_text() == "one\n"
    assert find_run_directory(tmp_path / "latest") == (tmp_path / "one").resolve()


def _no_links(_link: Path, _target: str, *, target_is_directory: bool) -> None:
    assert target_is_directory
    raise OSError(1314, "A required privilege is not held by the client")


def test_point_latest_when_latest_is_somebodys_directory(tmp_path: Path) -> None:
    """A directory of that name is left alone."""
    (tmp_path / "one").mkdir()
    (tmp_path / "latest").mkdir()
    with pytest.raises(FileExistsError):
        point_latest(tmp_path / "one")
    assert (tmp_path / "latest").is_dir()


def test_find_run_directory_when_user_names_anything_of_it(tmp_path: Path) -> None:
    """The directory, the link and a file in it all mean the run; another directory means none."""
    run = tmp_path / "one"
    run.mkdir()
    (run / "summary.json").write_text("{}")
    point_latest(run)
    named = [run, tmp_path / "latest", run / "summary.json"]
    assert [find_run_directory(path) for path in named] == [run.resolve()] * 3
    with pytest.raises(FileNotFoundError):
        find_run_directory(tmp_path)
