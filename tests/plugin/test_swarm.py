"""What the web form is answered before Locust takes it."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

import pytest
from flask import Flask
from locust.runners import STATE_RUNNING, STATE_SPAWNING, STATE_STOPPED

from llm_locust.plugin.swarm import SwarmCheck


def answer(state: str, streams_left: int | None, **form: str) -> Any:
    """Submit a form while a run is in this state; None: Locust takes it."""
    options = Namespace(class_picker=False, host="http://h", num_users=2, run_time=None)
    runner = Namespace(state=state, shape_greenlet=None)
    environment: Any = Namespace(
        parsed_options=options, runner=runner, host="http://h", user_classes=[], available_shape_classes={}
    )
    lead: Any = Namespace(streams_left=lambda: streams_left, adopt=lambda shape: None, found=None, screen=None)
    check = SwarmCheck(environment, lead, lambda *_: None)
    with Flask(__name__).test_request_context("/swarm", method="POST", data={"user_count": "3", **form}):
        response = check.check()
        return None if response is None else response.get_json()


@pytest.mark.parametrize("state", [STATE_SPAWNING, STATE_RUNNING])
def test_form_is_refused_while_the_run_is_ending(state: str) -> None:
    """Locust would say that it started: the users would be taken from it when the last stream has ended."""
    assert answer(state, 4) == {
        "success": False,
        "message": "the run is ending, 4 streams are still open; Stop ends them at once",
        "host": "http://h",
    }


@pytest.mark.parametrize("state", [STATE_RUNNING, STATE_STOPPED], ids=["an edit", "a new run"])
def test_form_is_left_to_locust_where_nothing_is_wrong(state: str) -> None:
    """A run that goes on is edited, a new one begins."""
    assert answer(state, None) is None
