"""Locust's web form: the whole of it is checked before a test starts, and the shape chosen there is set.

Locust (2.47) hands form values back as strings and turns a bad number into a 500; a check of our own before
the request answers `{success: false, message}`, which the page shows beside the form.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from typing import Any

import gevent
from flask import Response, jsonify, request
from locust.runners import STATE_RUNNING, STATE_SPAWNING
from werkzeug.datastructures import ImmutableMultiDict

from llm_locust.load.preflight import Preflight
from llm_locust.outputs.console import Screen

from . import settings
from .checks import host_problems, of_form, sender_problems, shape_named, shown_problems, start_problems
from .lead import Lead
from .options import BY_DEST
from .settings import Settings

PICKED = "with --class-picker the shape is chosen in the page, under Shape Class; leave the option out"
LAST_RUN_STEP_S = 0.1
LAST_RUN_STEPS = 50
"""A shape sees the end of its run at its next tick, within a second."""

TryServer = Callable[[Any, Settings, Any, Screen], Preflight | None]


class SwarmCheck:
    """Checks POST /swarm."""

    def __init__(self, environment: Any, lead: Lead, try_server: TryServer) -> None:
        self._environment = environment
        self._lead = lead
        self._try_server = try_server

    def hook(self) -> None:
        """Stand before Locust's own handler."""
        self._environment.web_ui.app.before_request(self.check)

    def check(self) -> Response | None:
        """Answer a form that cannot be run; let everything else through."""
        if request.method != "POST" or not request.path.rstrip("/").endswith("/swarm"):
            return None
        typed = typed_options(self._environment.parsed_options, request.form.to_dict())
        found, problems = settings.read(typed)
        problems += shown_problems(found)
        if self._environment.runner.state in (STATE_RUNNING, STATE_SPAWNING):
            streams = self._lead.streams_left()
            if streams is not None:  # users of an edit would never start
                return self._refusal([f"the run is ending, {streams} streams are still open; Stop ends them at once"])
            self._keep_choice()
            return self._refusal(problems)  # an edit: the run goes on under its shape
        if not self._last_run_is_over():
            return self._refusal(["the run before has not ended yet; try again in a moment"])
        try:
            shape = self._shape(found)
        except ValueError as error:
            return self._refusal([*problems, f"--llm-shape: {error}"])
        found = of_form(found, shape)
        problems += host_problems(found, self._environment.user_classes)
        problems += start_problems(found, self._environment.user_classes, shape)
        problems = problems or sender_problems(self._environment.runner, found, shape)
        if not problems:
            self._lead.found = self._try_server(self._environment, found, shape, self._lead.screen)
            problems += self._lead.found.problems if self._lead.found is not None else ()
        if problems:
            return self._refusal(problems)
        self._environment.shape_class = shape
        if not typed.run_time:  # Locust (2.47) keeps that of the run before
            self._environment.parsed_options.run_time = None
        return None

    def _keep_choice(self) -> None:
        """Let an edit keep what the class picker chose: its form does not say it.

        Locust (2.47) takes no shape for none, which ends the run, and no class for all, where users still come.
        """
        environment = self._environment
        if not environment.parsed_options.class_picker:
            return
        form = request.form.copy()
        shapes = {id(shape): name for name, shape in (environment.available_shape_classes or {}).items()}
        if name := shapes.get(id(environment.shape_class)):
            form["shape_class"] = name
        if not form.getlist("user_classes"):
            form.setlist("user_classes", [found.__name__ for found in environment.user_classes])
        request.form = ImmutableMultiDict(form)

    def _last_run_is_over(self) -> bool:
        """Wait for the shape of the run before: until then Locust (2.47) begins no run, and says that it did."""
        runner = self._environment.runner
        for _ in range(LAST_RUN_STEPS):
            if not runner.shape_greenlet:
                return True
            gevent.sleep(LAST_RUN_STEP_S)
        return False

    def _shape(self, found: Settings) -> Any:
        """The shape that is chosen: in the form, by the class picker, or the locustfile's first."""
        environment = self._environment
        own = environment.available_shape_classes or {}
        if environment.parsed_options.class_picker:
            if "shape" in found.given:
                raise ValueError(PICKED)
            shape = own.get(request.form.get("shape_class", "Default"))
        elif "shape" not in found.given:
            shape = next(iter(own.values()), None)
        else:
            shape = None if found.shape is None else shape_named(found.shape, own.values())
        self._lead.adopt(shape)
        return shape

    def _refusal(self, problems: list[str]) -> Response | None:
        if not problems:
            return None
        answer: Response = jsonify({"success": False, "message": "\n".join(problems), "host": self._environment.host})
        return answer


def typed_options(parsed: Namespace, form: Mapping[str, str]) -> Namespace:
    """The options as they will be when Locust has taken the form, without taking it."""
    typed = Namespace(**vars(parsed))
    for name, text in form.items():
        if name in BY_DEST and hasattr(typed, name):
            setattr(typed, name, text == "true" if isinstance(getattr(typed, name), bool) else text)
    if form.get("host"):
        typed.host = form["host"]
    if "run_time" in form:
        typed.run_time = form["run_time"] or None
    if form.get("user_count", "").strip().isdigit():
        typed.num_users = int(form["user_count"])
    return typed
