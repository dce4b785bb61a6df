"""Where the suite joins Locust: `begin` runs in `init`, once per process, and gives the process its role.

What is wrong is told here, all of it, before any load: exit code 1.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, NoReturn

import gevent
import msgspec
import psutil  # type: ignore[import-untyped]  # ships no types
from locust.runners import MasterRunner, WorkerRunner

from llm_locust.load.options import DEFAULT_DIALECT
from llm_locust.load.plan import OPEN_LOOP_USERS, plain_stage
from llm_locust.load.preflight import Preflight, measure_lengths, preflight
from llm_locust.load.shape_names import shape_names
from llm_locust.load.stage import Stage
from llm_locust.load.staged import StagedShape
from llm_locust.outputs.console import Screen
from llm_locust.prompts.source import PromptError

from . import ahead, ctrl_c, equip, messages, secrets, settings
from .announce import plan_lines
from .checks import (
    host_problems,
    ignored_proxies,
    llm_classes,
    sender_problems,
    shape_named,
    shown_problems,
    start_problems,
)
from .lead import Lead
from .listener_errors import ListenerErrors
from .local import LocalTeam
from .master import MasterTeam
from .settings import Settings
from .state import LLM
from .swarm import PICKED, SwarmCheck
from .team import Team
from .web import Board, register
from .worker import Worker

logger = logging.getLogger(__name__)

OPTIONAL_FIELDS = ("ignore_eos", "temperature")
PATIENCE_S = 10.0
_UNHEARD = (lambda **_: None, False)
"""Listens to the hellos of workers before the master's team does: they are said again until they are answered."""


def begin(environment: Any) -> None:
    """Give this process its part: worker, master or local runner."""
    parsed = environment.parsed_options
    key = secrets.take_out(parsed, os.environ)
    found, problems = settings.read(parsed)
    problems += key.problems
    logging.getLogger("httpx").setLevel(logging.WARNING)  # it logs URLs, keys in their queries included
    listener_errors = ListenerErrors()
    logging.getLogger().addHandler(listener_errors)
    runner = environment.runner
    if isinstance(runner, WorkerRunner):
        if problems:
            _leave(environment, problems, quietly=bool(parsed.processes))
        environment.llm = LLM(found, key, runner)
        Worker(environment, environment.llm, listener_errors).start()
        return
    if isinstance(runner, MasterRunner):  # Locust (2.47) warns of messages that nobody listens to
        runner.custom_messages[messages.HELLO] = _UNHEARD
    interrupts = ctrl_c.install()
    problems += _choose_shape(environment, found)
    if parsed.headless or parsed.autostart:
        problems += host_problems(found, environment.user_classes)
    if environment.web_ui is not None or parsed.html_file:
        problems += shown_problems(found)
    problems += start_problems(found, environment.user_classes, environment.shape_class)
    problems = problems or sender_problems(runner, found, environment.shape_class)
    if problems:
        _leave(environment, problems)
    _set_locusts_options(parsed, found)
    environment.llm = LLM(found, key, runner)
    screen = Screen(sys.stdout)
    if found.dry_run:
        library, classes = environment.llm.library_for(found), llm_classes(environment.user_classes)
        lengths = partial(library.lengths, classes=classes)
        screen.plan(plan_lines(_stages(found, environment.shape_class), found.run_time_s, lengths))
        for sentence in library.unused(_stages(found, environment.shape_class), classes):
            screen.say(sentence)
        _leave(environment, [], code=0)
    board = None if environment.web_ui is None else Board()  # what pages draw takes some MB: only where there are pages
    lead = _make_lead(environment, listener_errors, screen, board)
    if isinstance(runner, MasterRunner):
        del runner.custom_messages[messages.HELLO]  # Locust (2.47) refuses a second handler
    lead.start()  # workers say hello while the server is tried
    if board is not None:
        SwarmCheck(environment, lead, try_server).hook()
        register(environment, board, _shape_names(environment))
    if parsed.headless or parsed.autostart:
        try:
            with ctrl_c.terminable():
                lead.found = try_server(environment, found, environment.shape_class, screen)
        except KeyboardInterrupt:
            _leave(environment, ["interrupted before any load was sent"])
        if lead.found is not None and lead.found.problems:
            _leave(environment, lead.found.problems)
    lead.adopt(environment.shape_class)
    ahead.look_at_stack()
    interrupts.cancel()
    ctrl_c.install(lambda: not lead.ending.over)
    # The loop's own time stood still while all this was imported and made: Locust's --run-time would begin in the past.
    gevent.get_hub().loop.update_now()


def _make_lead(environment: Any, listener_errors: ListenerErrors, screen: Screen, board: Board | None) -> Lead:
    llm = environment.llm

    def asked() -> tuple[int | None, float | None]:
        """Users and rate as they stand in the form now."""
        now, _ = settings.read(environment.parsed_options)
        return now.users, now.rate_per_s

    team: Team
    if isinstance(environment.runner, MasterRunner):
        team = MasterTeam(environment, llm, lambda: llm.clock.now_ns() / 1e9, asked)
    else:
        team = LocalTeam(environment, llm, asked)
    return Lead(environment, llm, team, listener_errors, screen, board)


def _shape_names(environment: Any) -> list[str]:
    """What --llm-shape takes: the locustfile's own shapes, then the suite's and other packages'."""
    return shape_names(environment.available_shape_classes or {})


def _choose_shape(environment: Any, found: Settings) -> list[str]:
    """Set the shape that `--llm-shape` names.

    With the class picker Locust would drop it silently (2.47): there every shape stands among those to be picked.
    """
    own = list((environment.available_shape_classes or {}).values())
    if environment.parsed_options.class_picker:
        if "shape" in found.given:
            return [f"--llm-shape: {PICKED}"]
        known = environment.available_shape_classes or {}
        others = {name: shape_named(name, own) for name in _shape_names(environment) if name not in known}
        environment.available_shape_classes = {**known, **others}
        return []
    if "shape" not in found.given:
        return []
    if found.shape is None:
        environment.shape_class = None
        return []
    try:
        shape = shape_named(found.shape, own)
    except ValueError as error:
        return [f"--llm-shape: {error}"]
    environment.shape_class = shape
    return []


def _set_locusts_options(parsed: Any, found: Settings) -> None:
    """Locust's own options where the suite knows better: rebalancing, the cap on users, its periodic table."""
    parsed.enable_rebalancing = True
    if found.rate_per_s is not None and parsed.num_users is None:
        parsed.num_users = OPEN_LOOP_USERS
        parsed.spawn_rate = parsed.spawn_rate or float(OPEN_LOOP_USERS)
    if not parsed.print_stats:
        parsed.only_summary = True


def try_server(environment: Any, found: Settings, shape: Any, screen: Screen) -> Preflight | None:
    """Run the pre-flight for every dialect and address of the user classes; None where there is nothing to try.

    Then words are measured there, where the run makes prompts of a given length.
    """
    classes = llm_classes(environment.user_classes)
    if found.no_preflight or not classes:
        return None
    llm: LLM = environment.llm
    try:
        library = llm.open_library(found)
        wanted_tokens = library.wanted_tokens(_stages(found, shape), classes)
    except PromptError as error:
        return Preflight(problems=(str(error),))
    options = equip.ask_options(found, llm.secrets, library.tokenizer)
    if hint := ignored_proxies(found, os.environ):
        screen.say(hint)
    asked = dict.fromkeys((cls.dialect or found.dialect or DEFAULT_DIALECT, cls.host) for cls in classes)
    patience = gevent.spawn_later(
        PATIENCE_S, screen.say, "the server takes its time over one short request; nothing else has been sent yet"
    )
    results = []
    for dialect, host in asked:
        result = preflight(
            options,
            dialect,
            llm.transport_for(found),
            host=host,
            explicit=[name for name in OPTIONAL_FIELDS if name in found.given],
            wait_ready_s=found.wait_ready_s,
            tell=screen.say,
        )
        if wanted_tokens is not None and not result.problems:
            result = measure_lengths(result, options, dialect, llm.transport_for(found), wanted_tokens, host=host)
        results.append(result)
    patience.kill(block=False)
    for note in dict.fromkeys(note for result in results for note in result.notes):
        screen.say(note)
    return _joined(results)


def _stages(found: Settings, shape: Any) -> Sequence[Stage]:
    """The plan, as far as it is the suite's."""
    return shape.plan(found) if isinstance(shape, StagedShape) else [plain_stage(found, found.users or 1)]


def _joined(results: Sequence[Preflight]) -> Preflight:
    """What holds for all of them: refused by one is left out everywhere."""
    return msgspec.structs.replace(
        results[0],
        refused=tuple(sorted({name for result in results for name in result.refused})),
        continuous_usage=all(result.continuous_usage for result in results),
        eos_ignored=all(result.eos_ignored for result in results),
        usage=all(result.usage for result in results),
        rulers=tuple(yardstick for result in results for yardstick in result.rulers),
        notes=tuple(dict.fromkeys(note for result in results for note in result.notes)),
        problems=tuple(dict.fromkeys(problem for result in results for problem in result.problems)),
    )


def _leave(environment: Any, problems: Sequence[str], *, code: int = 1, quietly: bool = False) -> NoReturn:
    """Tell everything that is wrong and end this process, and workers that were forked with it."""
    if not quietly:
        for problem in problems:
            print(f"llm-locust: {problem}", file=sys.stderr)
    if environment.parsed_options.processes:
        # A forked worker that finds no master tries for five minutes; Locust (2.47) leaves it to that.
        for forked in psutil.Process().children():
            forked.terminate()
    if isinstance(environment.runner, MasterRunner):
        environment.runner.quit()
    sys.exit(code)
