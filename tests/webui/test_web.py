"""The routes, the form's groups and the fallback, against Locust's own web application without a socket."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from locust import User
from locust.argument_parser import parse_options
from locust.env import Environment

from benchmarks.rig.fake_run import HOSTILE, FakeRun, facts
from llm_locust.plugin import web
from llm_locust.plugin.form import FORM_GROUPS, form_args
from llm_locust.plugin.options import OPTIONS


class Nobody(User):
    """Never runs."""

    host = "http://127.0.0.1:1"


@contextmanager
def page(board: web.Board, *args: str, base_path: str | None = None, login: bool = False) -> Iterator[Any]:
    """Give Locust's web application with our pages in it."""
    environment: Any = Environment(user_classes=[Nobody], parsed_options=parse_options(["-f", "-", *args]))
    environment.create_local_runner()
    web_ui = environment.create_web_ui("127.0.0.1", 0, web_base_path=base_path, web_login=login, delayed_start=True)
    web_ui.app.secret_key = "x"
    if login:
        web_ui.login_manager.user_loader(lambda _: None)
    if base_path:
        environment.parsed_options.web_base_path = base_path
    web.register(environment, board, ["ConcurrencySteps"])
    with web_ui.app.test_client() as client:
        yield client
    environment.runner.quit()


@pytest.fixture(autouse=True)
def _command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Locust reads its own command line again for the form."""
    monkeypatch.setattr(sys, "argv", ["locust"])


def shown(directory: Path | None = None, **run: Any) -> web.Board:
    """Return a board with a run on it."""
    board = web.Board()
    fake = FakeRun(**run)
    fake.step(200)
    rows, records = fake.take()
    board.begin(facts(), directory).add(fake.picture(), rows, fake.crew(), records)
    board.picture = fake.picture()
    return board


def test_every_option_of_the_form_is_in_one_group() -> None:
    """A new option shows up; none shows up twice; none that may be secret shows up at all."""
    layout = form_args(["Soak"])
    grouped = [dest for _, dests in layout["groups"] for dest in dests]
    assert sorted(grouped) == sorted(option.dest for option in OPTIONS if option.form)
    assert sum(len(names) for _, names in FORM_GROUPS) == len(grouped), "put the new option into a group"
    assert not {"llm_api_key", "llm_api_key_file", "llm_header"} & layout["options"].keys()
    assert list(layout["options"]["llm_shape"]["suggested"]) == ["none", "Soak"]


def test_page_is_ours_with_locusts_arguments() -> None:
    """Locust's page carries the groups of the form, and its login page stays its own."""
    with page(web.Board()) as client:
        text = client.get("/").text
        assert '"groups": [["Model"' in text
        script = text.split('src="./assets/')[1].split('"')[0]
        for asset in (script, "favicon-light.png"):  # ours, and Locust's own
            with client.get(f"/assets/{asset}") as answer:
                assert answer.status_code == 200
        assert client.get("/llm/live").get_json() == {"token": "", "whole": True, "now": None}


def test_names_with_html_do_not_end_the_pages_script() -> None:
    """What is written into the page is escaped."""
    with page(web.Board(), "--host", HOSTILE) as client:
        assert "<script>window.hacked" not in client.get("/").text


def test_live_answers_only_what_changed() -> None:
    """The second refresh is tiny."""
    with page(shown()) as client:
        token = client.get("/llm/live").get_json()["token"]
        assert len(client.get(f"/llm/live?token={token}").data) < 100
        assert client.get("/llm/distributions").get_json()["stages"][0]["stage"] == "8 users"


def test_routes_stand_under_the_base_path() -> None:
    """A proxy that hands on /locust only finds them."""
    with page(shown(), base_path="/locust") as client:
        assert client.get("/locust/llm/live").get_json()["whole"] is True
        assert client.get("/llm/live").status_code == 404


def test_routes_and_downloads_stand_behind_the_login(tmp_path: Path) -> None:
    """Nobody reads numbers or files without it."""
    (tmp_path / "requests.csv").write_text("secret")
    with page(shown(tmp_path), login=True) as client:
        for path in ("/llm/live", "/llm/distributions", "/llm/files", "/llm/files/requests.csv"):
            answer = client.get(path)
            assert (answer.status_code, b"secret" in answer.data) == (302, False), path
        assert client.get("/login").status_code == 200


def test_download_is_the_file_as_it_was(tmp_path: Path) -> None:
    """A file that grows while it is sent is sent as long as it was, so that its length holds."""
    path = tmp_path / "requests.csv"
    path.write_bytes(b"abc" * 100_000)
    with page(shown(tmp_path)) as client:
        answer = client.get("/llm/files/requests.csv", buffered=False)
        with open(path, "ab") as file:
            file.write(b"later")
        assert (answer.data, answer.headers["Content-Length"]) == (b"abc" * 100_000, "300000")
        assert answer.headers["Content-Disposition"] == "attachment; filename=requests.csv"
        assert client.get("/llm/files").get_json() == [{"name": "requests.csv", "bytes": 300_005}]


@pytest.mark.parametrize("name", ["report.html", "other.txt", "..%2frun.conf", ".hidden"])
def test_download_of_what_is_not_there_is_404(tmp_path: Path, name: str) -> None:
    """Only the run's own files can be fetched."""
    (tmp_path / "other.txt").write_text("x")
    with page(shown(tmp_path)) as client:
        assert client.get(f"/llm/files/{name}").status_code == 404


def test_stage_table_is_in_locusts_page_where_ours_does_not_fit(caplog: pytest.LogCaptureFixture) -> None:
    """--build-path names another front end: the numbers come by Locust's own tables, and the log says so once."""
    with caplog.at_level(logging.WARNING), page(shown(), "--build-path", str(web.BUNDLE)) as client:
        client.get("/stats/requests")
        data = client.get("/stats/requests").get_json()["extended_stats"]
        text = client.get("/").text
    assert [table["key"] for table in data] == ["llm"], "once, also in an answer that Locust kept for the next who asks"
    assert [row["name"] for row in data[0]["data"]] == ["8 users", "16 users", "32 users", "64 users"]
    assert data[0]["data"][0]["users"] == "8"
    assert '"title": "LLM"' in text
    assert [record.message for record in caplog.records if "llm-locust" in record.message] == [
        "llm-locust: --build-path names another front end; the stage table is in Locust's own page, without charts"
    ]


def test_stage_table_is_in_locusts_page_where_its_arguments_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Locust whose page is told other things than those our front end reads."""
    monkeypatch.setattr(web, "_NEEDED_ARGS", frozenset({"state", "new_in_9"}))
    with page(web.Board()) as client:
        assert '"extended_tables": [{"key": "llm"' in client.get("/").text
        assert client.get("/stats/requests").get_json().get("extended_stats") is None, "no run yet"


def test_downloads_are_in_locusts_download_tab() -> None:
    """Beside Locust's own files."""
    with page(web.Board()) as client:
        assert '{"href": "llm/files/stages.csv", "title": "LLM: stages.csv"}' in client.get("/").text
