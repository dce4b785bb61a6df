"""The state of the test as Locust's page may be told it.

The page (locust-ui 2.43, and Locust's own of 2.47) asks for the state only as long as it is "spawning" or "running",
and shows its form at "ready". Locust answers from a memo of two seconds, is still "ready" between an accepted form and
the first users, and is "stopping" or "cleanup" for some seconds at the end. A page that hears one of these stays with
it: at the form while a run goes on, or with a Stop button after the end. So the memo is dropped when the state has
changed, and a state that only passes is told as the one that the page goes on asking in.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from flask import Response, request
from locust.runners import (
    STATE_CLEANUP,
    STATE_INIT,
    STATE_RUNNING,
    STATE_SPAWNING,
    STATE_STOPPED,
    STATE_STOPPING,
)

BEGINS_WITHIN_S = 120.0
"""An accepted run that has not begun by then never will: its workers have gone."""


class StateTold:
    """Tells states that last. `clock` gives seconds that never go back."""

    def __init__(self, environment: Any, clock: Callable[[], float] = time.monotonic) -> None:
        self._environment = environment
        self._clock = clock
        self._accepted_s: float | None = None
        self._last: str | None = None

    def hook(self) -> None:
        """Stand before and behind Locust's answers; call it once the routes are there."""
        web_ui = self._environment.web_ui
        update = web_ui.update_template_args

        def updated() -> None:
            update()
            web_ui.template_args["state"] = self.now()

        web_ui.update_template_args = updated
        web_ui.app.before_request(self._drop_what_is_over)
        web_ui.app.after_request(self._correct)
        self._environment.events.test_stopping.add_listener(self._end)

    def now(self) -> str:
        """The state to tell."""
        state: str = self._environment.runner.state
        if state in (STATE_STOPPING, STATE_CLEANUP):
            return STATE_RUNNING
        if state not in (STATE_INIT, STATE_STOPPED):
            self._accepted_s = None  # what was accepted has begun
            return state
        begins = self._accepted_s is not None and self._clock() - self._accepted_s < BEGINS_WITHIN_S
        return STATE_SPAWNING if begins else state

    def _drop_what_is_over(self) -> None:
        """Let Locust answer anew after a change; its memo has a state of before."""
        if not _asks(request.path, "/stats/requests"):
            return
        now = self.now()
        if now != self._last:
            forget = getattr(
                self._environment.web_ui.app.view_functions.get("locust.request_stats"), "clear_cache", None
            )
            if forget is not None:
                forget()
            self._last = now

    def _correct(self, response: Response) -> Response:
        """Note an accepted form; put the state that lasts into the numbers' answer."""
        if not response.is_json:
            return response
        told: dict[str, Any] = response.get_json()
        if request.method == "POST" and _asks(request.path, "/swarm"):
            if told.get("success") and self._environment.runner.state in (STATE_INIT, STATE_STOPPED):
                self._accepted_s = self._clock()
        elif _asks(request.path, "/stats/requests") and self._environment.runner.state != self.now():
            response.set_data(json.dumps({**told, "state": self.now()}))
        return response

    def _end(self, **_: Any) -> None:
        """The run that was accepted is over, however short it was."""
        self._accepted_s = None


def _asks(path: str, route: str) -> bool:
    return path.rstrip("/").endswith(route)
