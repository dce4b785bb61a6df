"""The web UI: start, stop, start again, reset, a form that is wrong, and no secret anywhere.

Locust (2.47) hands form values back as strings, writes an option's value into its page in clear, and sends all of its
options to the workers in clear.
"""

from __future__ import annotations

import json
import re
import time
import urllib.parse
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rig.locusts import Lab, Locust, until
from benchmarks.rig.ports import free_port

from .lab import FAKE, STREAMING

KEY = "sk-canary-7f3a"
HEADER = "header-canary-51c8"


def _has_runs(lab: Lab, number: int) -> bool:
    return len(lab.runs) == number


def _has_streams(run: Locust, number: int) -> bool:
    return run.output.count(STREAMING) >= number


class Page:
    """A browser's part: forms and answers."""

    def __init__(
        self, lab: Lab, *args: str, forked: bool, env: dict[str, str] | None = None, file: Path = FAKE
    ) -> None:
        port = free_port()
        self.base = f"http://127.0.0.1:{port}"
        binding = (*lab.binding, "--processes", "2") if forked else ()
        self.locust: Locust = lab.locust(
            "--web-host", "127.0.0.1", "--web-port", str(port), "--llm-no-preflight", *binding, *args,
            env=env, file=file,
        )  # fmt: skip
        until(self._answers, 20, lambda: self.locust.output)
        if forked:
            until(lambda: self.locust.output.count("reported as ready") == 2, 20, lambda: self.locust.output)

    def _answers(self) -> bool:
        try:
            self.get("/")
        except OSError:
            return False
        return True

    def get(self, path: str) -> str:
        """The text of a page."""
        with urllib.request.urlopen(self.base + path, timeout=30) as answer:
            text: str = answer.read().decode()
            return text

    def swarm(self, **form: str) -> dict[str, Any]:
        """Submit the form."""
        body = urllib.parse.urlencode({"user_count": "2", "spawn_rate": "2", "host": "http://127.0.0.1:1", **form})
        with urllib.request.urlopen(self.base + "/swarm", body.encode(), timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
            return found

    def press(self, path: str) -> None:
        """Press a button: /stop, /stats/reset."""
        urllib.request.urlopen(urllib.request.Request(self.base + path, method="POST"), timeout=60).read()

    def now(self) -> tuple[str, int]:
        """Locust's state, and its users."""
        stats = json.loads(self.get("/stats/requests"))
        return stats["state"], stats["user_count"]

    def locusts_count(self) -> int:
        """Requests of Locust's own aggregated row."""
        stats = json.loads(self.get("/stats/requests"))
        return int(next(row["num_requests"] for row in stats["stats"] if row["name"] == "Aggregated"))


@pytest.mark.parametrize("forked", [pytest.param(False, marks=pytest.mark.slow), True], ids=["local", "two workers"])
def test_second_run_makes_a_second_set_of_files(lab: Lab, forked: bool) -> None:
    """Start, stop, start, stop: two runs with their own ids and rows; streams open at the stop are counted."""
    page = Page(lab, forked=forked, env={"FAKE_STREAM_S": "1"})
    for run in (1, 2):
        assert page.swarm()["success"]
        until(partial(_has_runs, lab, run), 20, lambda: page.locust.output)
        until(partial(_has_streams, page.locust, 6 * run), 60, lambda: page.locust.output)
        page.press("/stop")
        until(lambda: lab.state() == "stopped", 60, lambda: page.locust.output)
    assert len({lab.summary(run)["run_id"] for run in (0, 1)}) == 2
    for run in (0, 1):
        rows = lab.rows(run)
        assert {row["run_id"] for row in rows} == {lab.summary(run)["run_id"]}
        assert {row["outcome"] for row in rows} == {"ok"}
        assert len(rows) >= 4
        assert not [reason for reason in lab.summary(run)["verdict"]["reasons"] if "differ" in reason]


@pytest.mark.parametrize("forked", [pytest.param(False, marks=pytest.mark.slow), True], ids=["local", "two workers"])
def test_reset_starts_all_numbers_again(lab: Lab, forked: bool) -> None:
    """After the reset button exactly those requests count that ended after it.

    Locust's own table takes in what its workers had not reported by then: up to 3 s of old requests.
    """
    page = Page(lab, "--llm-warmup", "0", forked=forked, env={"FAKE_STREAM_S": "0.25"})
    page.swarm()
    until(lambda: page.locusts_count() >= 12, 20, lambda: page.locust.output)
    page.press("/stats/reset")
    reset_s = time.time()
    time.sleep(3)
    page.press("/stop")
    until(lambda: lab.state() == "stopped", 20, lambda: page.locust.output)
    summary = lab.summary()
    shown = [row for row in (*summary["stages"], *summary["excluded"]) if row["name"] == "all"]
    ours = sum(row["metrics"]["requests_ok"] for row in shown)
    ended_after = [
        row for row in lab.rows() if float(row["start_epoch_s"]) + float(row["stream_end_ms"]) / 1000 >= reset_s - 0.1
    ]
    assert 16 <= ours <= len(ended_after) <= ours + 2  # two may have ended in the 0.1 s of doubt
    assert any(found.startswith("the numbers were reset after") for found in summary["verdict"]["findings"])
    assert not [reason for reason in summary["verdict"]["reasons"] if "differ" in reason]


def test_empty_run_time_of_the_form_is_none(lab: Lab) -> None:
    """Locust keeps that of the run before where the field is empty; a shape's plan and its end would be made of it."""
    page = Page(lab, forked=False)
    assert page.swarm(run_time="2s")["success"]
    until(lambda: lab.state() == "finished", 20, lambda: page.locust.output)
    assert page.swarm(run_time="")["success"]
    page.locust.wait_for("it runs until it is stopped", 10)
    until(partial(_has_runs, lab, 2), 20, lambda: page.locust.output)
    assert "run-time" not in (lab.runs[-1] / "run.conf").read_text()
    page.press("/stop")


def test_wrong_form_is_answered_beside_it_with_everything_that_is_wrong(lab: Lab) -> None:
    """Two wrong fields, one message, no test started; a right form starts afterwards."""
    page = Page(lab, forked=False)
    answer = page.swarm(llm_rate="fast", llm_levels="8-", llm_slo="ttft p99 <")
    assert not answer["success"]
    for option in ("--llm-rate", "--llm-levels", "--llm-slo"):
        assert option in answer["message"]
    assert not page.swarm(llm_shape="ConcurencySteps")["success"]
    assert lab.runs == []
    assert page.swarm(llm_shape="concurrency-steps", llm_levels="2,3", llm_requests="4", llm_start="together")[
        "success"
    ]
    until(lambda: lab.state() == "finished", 30, lambda: page.locust.output)
    assert {row["stage"] for row in lab.rows()} == {"users-2", "users-3"}
    assert page.swarm(llm_shape="none", llm_levels="", llm_requests="")["success"]  # back to plain users
    until(lambda: len(lab.runs) == 2 and lab.state() == "running", 20, lambda: page.locust.output)
    assert lab.summary()["shape"] is None
    page.press("/stop")


def test_no_secret_is_in_the_page_or_in_a_message(lab: Lab) -> None:
    """Key and header values: not in the page, not in an answer, not in a log, not in a file."""
    page = Page(lab, "--llm-api-key", KEY, "--llm-header", f"X-Team: {HEADER}", forked=False)
    seen = page.get("/") + json.dumps(page.swarm(llm_api_key="typed-canary"))
    time.sleep(1)
    page.press("/stop")
    until(lambda: lab.state() == "stopped", 20, lambda: page.locust.output)
    seen += page.get("/stats/requests") + page.get("/logs") + page.get("/tasks") + page.get("/llm/live")
    files = b"".join(path.read_bytes() for path in lab.runs[-1].glob("*"))
    for secret in (KEY, HEADER, "typed-canary"):
        assert secret not in seen
        assert secret.encode() not in files
        assert secret not in page.locust.output


def test_our_options_are_in_the_form(lab: Lab) -> None:
    """Options of a group reach the form; what may hold a secret does not."""
    page = Page(lab, forked=False).get("/")
    assert re.search(r"llm_model", page)
    assert re.search(r"llm_shape", page)
    assert "llm_api_key" not in page
    assert "llm_extra_body" not in page


PICKED = """
from llm_locust import ConcurrencySteps, MixedLoad
from tests.contract.fake_llm import FakeUser


class Other(FakeUser):
    pass


class Few(ConcurrencySteps):
    levels = (1,)


class Held(MixedLoad):
    rate, users, hold, warmup = 5, 4, "9s", 0
"""


def test_class_picker_chooses_shape_and_classes_for_a_run_and_its_edits(lab: Lab) -> None:
    """A shape of the suite, then one of the locustfile's right behind it; an edit, whose form says neither, keeps both.

    The repeat has the shape, the class, and begins at once.
    """
    file = lab.folder / "picked.py"
    file.write_text(PICKED)
    page = Page(lab, "--class-picker", forked=True, file=file, env={"FAKE_STREAM_S": "0.05"})
    assert {"Few", "Held", "FullPlan", "Soak"} <= set(re.findall(r"\w+", page.get("/")))
    refused = page.swarm(shape_class="Few", user_classes="Other", llm_shape="soak")
    assert refused["message"].startswith("--llm-shape: with --class-picker the shape is chosen in the page")
    given = {"llm_levels": "1", "llm_requests": "2", "llm_warmup": "0"}
    assert page.swarm(shape_class="ConcurrencySteps", user_classes="Other", **given)["success"]
    until(lambda: page.now()[0] == "stopped" and _has_runs(lab, 1), 40, lambda: page.locust.output)
    nothing = dict.fromkeys(given, "")
    assert page.swarm(shape_class="Held", user_classes="Other", user_count="4", **nothing)["success"]
    until(partial(_has_runs, lab, 2), 20, lambda: page.locust.output)
    until(lambda: page.now()[1] == 4, 20, lambda: page.locust.output)
    time.sleep(3)
    assert page.swarm(user_count="6")["success"]
    until(lambda: lab.state() == "finished", 40, lambda: page.locust.output)
    assert [(s["stage"], s["users"], s["ended_by"]) for s in lab.summary()["applied"]] == [
        ("mixed", 4, "edit"), ("mixed-2", 6, "hold"),
    ]  # fmt: skip
    assert {row["user_class"] for row in lab.rows()} == {"Other"}
    lines = (lab.runs[-1] / "run.conf").read_text().splitlines()
    assert lines[0].endswith("locust Other --config run.conf repeats this run")
    assert {"headless = true", "llm-shape = Held"} <= set(lines)


def test_class_picker_takes_the_shape_from_the_page(lab: Lab) -> None:
    """With --class-picker Locust drops a shape by option silently: so the option is refused, with the reason."""
    run = lab.locust("--class-picker", "--llm-shape", "Baseline", "--web-port", str(free_port()))
    assert run.wait() == 1
    assert "--llm-shape: with --class-picker the shape is chosen in the page" in run.output
