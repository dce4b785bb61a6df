"""What must be right before any load: the options together with the user classes, the shape and the machine.

Every problem is one sentence that names the option; all are told at once.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import urlsplit

import msgspec
from locust import LoadTestShape
from locust.runners import MasterRunner

from llm_locust.load.arrivals import trace_instants_ns
from llm_locust.load.class_checks import class_problems
from llm_locust.load.plan import OPEN_LOOP_USERS, plain_stage
from llm_locust.load.shape_names import find_shape
from llm_locust.load.stage import Stage
from llm_locust.load.staged import StagedShape
from llm_locust.load.users import LLMUser
from llm_locust.measure.slo_grammar import SloError
from llm_locust.prompts.registry import TOKEN_IDS
from llm_locust.prompts.source import PromptError
from llm_locust.prompts.token_ids import FIRST_ID
from llm_locust.protocol import BodyOptions, PromptRequest, get_dialect

from .library import NOTHING, Library
from .objectives import objectives
from .settings import Settings

OPEN_FILES_BESIDE_USERS = 100
NO_TRACE = "--llm-prompts: a trace is to be played, and these have no instants; right is mooncake:PATH or burstgpt:PATH"


def llm_classes(user_classes: Iterable[type[Any]]) -> list[type[LLMUser]]:
    """The user classes that ask a language model."""
    return [found for found in user_classes if issubclass(found, LLMUser)]


def start_problems(settings: Settings, user_classes: Iterable[type[Any]], shape: Any) -> list[str]:
    """Name everything that is wrong before a run, in the order of the option table."""
    classes = llm_classes(user_classes)
    if not classes:
        return []
    if of_classes := [problem for owner in classes for problem in class_problems(owner)]:
        return of_classes  # what they say of themselves is read below
    library, of_prompts = _library(settings)
    problems = [*_dialect(settings, classes), *_users(settings), *of_prompts]
    problems += _token_ids(settings, classes)
    problems += _objectives(settings, classes)
    if isinstance(shape, StagedShape):
        of_shape = shape.problems(settings)
        problems += of_shape or _of_plan(library, shape.plan(settings))
    elif "levels" in settings.given or "rates_per_s" in settings.given or "hold_s" in settings.given:
        problems.append("--llm-levels, --llm-rates and --llm-hold vary a shape's stages: add --llm-shape")
    elif "arrivals" in settings.given and settings.arrivals.law != "trace" and settings.rate_per_s is None:
        problems.append("--llm-arrivals says how the requests of a rate arrive: add --llm-rate 10")
    elif settings.requests is not None and len(settings.requests) > 1:
        problems.append("--llm-requests: a list has one number per stage of a shape: add --llm-shape")
    else:
        problems += _of_plan(library, [plain_stage(settings, spawn_rate=1.0)])
    return [*problems, *_out(settings)]


def host_problems(settings: Settings, user_classes: Iterable[type[Any]]) -> list[str]:
    """Name the classes without an address: wrong before a run, not before a page whose form has a field for it."""
    if settings.hosts:
        return []
    return [
        f"--host: {found.__name__} has no address to ask; give --host http://server:30000"
        for found in llm_classes(user_classes)
        if not found.host
    ]


def shown_problems(settings: Settings) -> list[str]:
    """Refuse an address with a password before a page: Locust (2.47) shows it there, in its answers and its report."""
    if any(urlsplit(host).password for host in settings.hosts):
        return [
            "--host: the page would show the password in it; leave it out and give "
            '--llm-header "Authorization: Basic …" instead'
        ]
    return []


def sender_problems(runner: Any, settings: Settings, shape: Any) -> list[str]:
    """Name what this process lacks for all users; those of a master run on its workers, which look for themselves."""
    if isinstance(runner, MasterRunner):
        return []
    problem = open_files_problem(most_users(settings, shape))
    return [problem] if problem else []


def most_users(settings: Settings, shape: Any) -> int:
    """Give the largest number of users that the run is to have."""
    if isinstance(shape, StagedShape):
        return max((stage.users for stage in shape.plan(settings)), default=0)
    return settings.users or (OPEN_LOOP_USERS if settings.rate_per_s is not None else 1)


def open_files_problem(users: int) -> str:
    """Say that this process may not open as many files as its users need; "" where it may."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = users + OPEN_FILES_BESIDE_USERS
    if allowed == resource.RLIM_INFINITY or allowed >= needed:
        return ""
    return (
        f"--users: {users} users need {needed} open files, `ulimit -n` allows {allowed} (process {os.getpid()}); "
        "raise it or use more workers"
    )


def of_form(settings: Settings, shape: Any) -> Settings:
    """The settings as the web form means them: it always has a number of users, 1 where nobody chose one.

    A shape that varies the users takes none from it; one that only caps them takes more than 1.
    """
    if isinstance(shape, StagedShape) and ("users" not in shape.takes or settings.users == 1):
        return msgspec.structs.replace(settings, users=None)
    return settings


def shape_named(name: str, own: Iterable[LoadTestShape]) -> LoadTestShape:
    """Make the shape that `--llm-shape` names, one that Locust takes. Raises ValueError naming those there are."""
    found = find_shape(name, [type(shape) for shape in own])
    concrete: type[LoadTestShape] = type(found.__name__, (found,), {"abstract": False, "__doc__": found.__doc__})
    return concrete()


def ignored_proxies(settings: Settings, environ: Mapping[str, str]) -> str:
    """Say which proxy of the environment is not used; "" where there is none."""
    names = [
        name for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY") if environ.get(name) or environ.get(name.lower())
    ]
    return f"{', '.join(names)} of the environment ignored; --llm-proxy env would use it" if names else ""


def _dialect(settings: Settings, classes: list[type[LLMUser]]) -> Iterator[str]:
    if "dialect" in settings.given:
        try:
            get_dialect(settings.dialect)
        except (KeyError, ValueError) as error:
            yield f"--llm-dialect: {error.args[0]}"
        for fixed in (found for found in classes if found.dialect is not None):
            yield f"--llm-dialect: {fixed.__name__} speaks {fixed.dialect} by itself; leave the option out"


def _users(settings: Settings) -> Iterator[str]:
    if settings.users is not None and settings.users < 1:
        yield f"--users: {settings.users}; at least 1 is needed"


def _library(settings: Settings) -> tuple[Library | None, list[str]]:
    """Open the prompts that the options name, or say why they cannot be."""
    try:
        library = Library(settings)
    except PromptError as error:  # a wrong tokenizer must not hide wrong prompts: they can be read without one
        without, problems = _library(msgspec.structs.replace(settings, tokenizer=None))
        return without, [str(error), *problems]
    try:
        library.of_stage(NOTHING)
    except PromptError as error:
        return None, [f"--llm-prompts: {error}"]
    return library, []


def _of_plan(library: Library | None, stages: Sequence[Stage]) -> list[str]:
    """Name prompts and lengths of a shape that are none, and a stage that plays a trace and has none."""
    if library is None:
        return []
    labels: dict[str, list[str]] = {}
    without_trace = []
    for stage in stages:
        try:
            prompts = library.of_stage(stage)
        except ValueError as error:  # a PromptError, or a length that is none
            labels.setdefault(str(error), []).append(stage.label)
            continue
        if stage.arrivals is not None and stage.arrivals.law == "trace" and trace_instants_ns(prompts.named) is None:
            without_trace = [NO_TRACE]
    return [*(f"prompts of stage {', '.join(of_stages)}: {told}" for told, of_stages in labels.items()), *without_trace]


def _token_ids(settings: Settings, classes: list[type[LLMUser]]) -> Iterator[str]:
    """Ids are for the APIs that take them."""
    if settings.prompts != TOKEN_IDS:
        return
    for name in dict.fromkeys(found.dialect or settings.dialect for found in classes):
        try:
            get_dialect(name).body(PromptRequest(token_ids=(FIRST_ID,)), BodyOptions())
        except KeyError:
            continue  # told of by the dialect itself
        except ValueError as error:
            yield f"--llm-prompts {TOKEN_IDS}: {error}; --llm-dialect openai-completions and sglang-generate take them"


def _objectives(settings: Settings, classes: list[type[LLMUser]]) -> Iterator[str]:
    try:
        objectives(settings, classes)
    except SloError as error:
        owners = [owner.__name__ for owner in classes if owner.slo and owner.slo in str(error)]
        yield f"--llm-slo: {error}" if settings.slo else f"slo of {', '.join(owners)}: {error}"


LEAST_ROOM_BYTES = 2 * 1024 * 1024
"""What a run of a minute leaves: report.html has 1 MB by itself."""


def _out(settings: Settings) -> Iterator[str]:
    """The folder of the runs, or the nearest one that is there, must take files."""
    path = Path(settings.out).absolute()
    there = next(folder for folder in (path, *path.parents) if folder.exists())
    try:
        with TemporaryFile(dir=there, buffering=0) as file:  # root is told that it may write where nobody can
            written = file.write(bytes(LEAST_ROOM_BYTES))
    except OSError as error:
        yield f"--llm-out: {there} is not a folder that can be written to ({error.strerror})"
    else:
        if written < LEAST_ROOM_BYTES:
            yield f"--llm-out: {there} has no room for the files of a run (No space left on device)"
