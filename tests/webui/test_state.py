"""The page is told states that last: it stays for good with what it hears of one that passes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from locust import User
from locust.argument_parser import parse_options
from locust.env import Environment
from locust.runners import STATE_CLEANUP, STATE_INIT, STATE_RUNNING, STATE_SPAWNING, STATE_STOPPED, STATE_STOPPING

from llm_locust.plugin.web_state import BEGINS_WITHIN_S, StateTold


class Nobody(User):
    """Never runs."""

    host = "http://127.0.0.1:1"


class Host:
    """Locust's web application, whose runner is in the state that a test puts it in."""

    def __init__(self) -> None:
        self.now_s = 100.0
        environment: Any = Environment(user_classes=[Nobody], parsed_options=parse_options(["-f", "-"]))
        self.runner = environment.create_local_runner()
        self.runner.start = lambda *args, **kwargs: None  # the state is the test's
        self.events = environment.events
        web_ui = environment.create_web_ui("127.0.0.1", 0, delayed_start=True)
        StateTold(environment, lambda: self.now_s).hook()
        self.client = web_ui.app.test_client()

    def accept(self) -> None:
        """Send a form that Locust takes."""
        answer = self.client.post("/swarm", data={"user_count": "1", "spawn_rate": "1", "host": "http://127.0.0.1:1"})
        assert answer.get_json()["success"] is True

    def told(self, state: str) -> tuple[str, str]:
        """Put the runner into a state; return what a page hears that asks, and one that is opened."""
        self.runner.update_state(state)
        opened = self.client.get("/").text.split('"state": "')[1].split('"')[0]
        return self.client.get("/stats/requests").get_json()["state"], opened


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """Give it; Locust reads its own command line again for the form."""
    monkeypatch.setattr(sys, "argv", ["locust"])
    made = Host()
    yield made
    made.runner.quit()


def both(state: str) -> tuple[str, str]:
    """What both kinds of page hear."""
    return state, state


@pytest.mark.parametrize(
    ("passing", "lasting"), [(STATE_STOPPING, STATE_RUNNING), (STATE_CLEANUP, STATE_RUNNING)], ids=lambda state: state
)
def test_end_is_told_when_it_has_come(host: Host, passing: str, lasting: str) -> None:
    """A page that hears "stopping" asks no more, and shows a Stop button for good."""
    assert host.told(STATE_RUNNING) == both(STATE_RUNNING)
    assert host.told(passing) == both(lasting)
    assert host.told(STATE_STOPPED) == both(STATE_STOPPED)


def test_state_is_never_that_of_two_seconds_ago(host: Host) -> None:
    """A page that is opened in the first seconds of a run is no form: Locust remembers "ready" that long."""
    assert host.told(STATE_INIT) == both(STATE_INIT)
    assert host.told(STATE_SPAWNING) == both(STATE_SPAWNING)
    assert host.told(STATE_RUNNING) == both(STATE_RUNNING)


@pytest.mark.parametrize("before", [STATE_INIT, STATE_STOPPED])
def test_accepted_run_is_told_before_its_first_users(host: Host, before: str) -> None:
    """Locust itself is still ready, or stopped, until its listeners have prepared the run."""
    assert host.told(before) == both(before)
    host.accept()
    assert host.told(before) == both(STATE_SPAWNING)
    assert host.told(STATE_SPAWNING) == both(STATE_SPAWNING)
    assert host.told(STATE_RUNNING) == both(STATE_RUNNING)
    assert host.told(STATE_STOPPED) == both(STATE_STOPPED), "what was accepted is over"


def test_run_that_ended_unseen_is_over(host: Host) -> None:
    """Nobody asked between its beginning and its end."""
    host.accept()
    host.events.test_stopping.fire(environment=None)
    assert host.told(STATE_STOPPED) == both(STATE_STOPPED)


def test_accepted_run_that_never_begins_is_given_up(host: Host) -> None:
    """Its workers have gone: the form must be there for the next."""
    host.accept()
    host.now_s += BEGINS_WITHIN_S
    assert host.told(STATE_INIT) == both(STATE_INIT)


def test_refused_form_is_no_run(host: Host) -> None:
    """The page stays where it is."""
    answer = host.client.post("/swarm", data={"user_count": "many", "spawn_rate": "1"})
    assert answer.get_json()["success"] is False
    assert host.told(STATE_INIT) == both(STATE_INIT)
