"""What must be right of the machine before a run: the open files of the process that sends."""

from __future__ import annotations

import resource
from argparse import Namespace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from llm_locust.load.conversation import ConversationUser
from llm_locust.load.shapes import ConcurrencySteps
from llm_locust.load.users import LLMUser
from llm_locust.plugin.checks import (
    most_users,
    open_files_problem,
    sender_problems,
    shape_named,
    shown_problems,
    start_problems,
)
from llm_locust.plugin.settings import from_raw
from llm_locust.prompts import synthetic


def _settings(**raw: Any) -> Any:
    found, problems = from_raw({f"llm_{name}": text for name, text in raw.items()})
    assert not problems
    return found


@pytest.mark.parametrize(("allowed", "refused"), [(149, True), (150, False), (resource.RLIM_INFINITY, False)])
def test_users_need_as_many_open_files_and_some(monkeypatch: pytest.MonkeyPatch, allowed: int, refused: bool) -> None:
    """50 users need 150."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (allowed, allowed))
    assert bool(open_files_problem(50)) is refused


def test_most_users_are_those_of_the_largest_stage() -> None:
    """A shape's levels count, not -u; with a rate and no -u the cap."""
    shape = shape_named("ConcurrencySteps", [])
    assert isinstance(shape, ConcurrencySteps)
    assert most_users(_settings(levels="8,64,16"), shape) == 64
    assert most_users(_settings(rate="5"), None) == 512
    assert most_users(_settings(), None) == 1


def test_password_in_an_address_is_refused_where_a_page_would_show_it() -> None:
    """Locust writes the address into its page, its answers and its report."""
    found = msgspec.structs.replace(_settings(), hosts=("http://a:1", "http://user:canary@b:2"))
    (problem,) = shown_problems(found)
    assert problem.startswith("--host: the page would show the password in it")
    assert "canary" not in problem
    assert shown_problems(msgspec.structs.replace(found, hosts=("http://user@b:2",))) == []


def test_prompts_of_a_shape_are_there_before_the_load() -> None:
    """A file that is not there, a length that is none: told by stage, however many have it."""

    class Lost(ConcurrencySteps):
        levels = (2, 4)
        prompts = "lines:nowhere.txt"

    class Backwards(ConcurrencySteps):
        levels = (2,)
        input_tokens = "9-3"

    assert start_problems(_settings(), [LLMUser], Lost()) == [
        "prompts of stage users-2, users-4: nowhere.txt is not a file"
    ]
    (problem,) = start_problems(_settings(), [LLMUser], Backwards())
    assert problem == "prompts of stage users-2: '9-3' runs backwards: write 3-9"


def test_wrong_objective_of_a_class_names_the_class() -> None:
    """Of several classes the one that says it."""

    class Fine(LLMUser):
        slo = "ttft p99 < 2s"
        name = "fine"

    class Mistyped(LLMUser):
        slo = "tftt p99 < 1s"
        name = "mistyped"

    (problem,) = start_problems(_settings(), [Fine, Mistyped], None)
    assert problem.startswith("slo of Mistyped: unknown metric tftt")


def test_law_of_arrivals_needs_a_rate() -> None:
    """Without one nothing would come by it; a shape has rates of its own, or says that it has none."""
    (problem,) = start_problems(_settings(arrivals="gamma:0.5"), [LLMUser], None)
    assert problem == "--llm-arrivals says how the requests of a rate arrive: add --llm-rate 10"
    assert start_problems(_settings(arrivals="gamma:0.5", rate="2"), [LLMUser], None) == []


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        (
            {"prompts": "jsonl:a.jsonl"},
            "prompts of Mine: 'jsonl:a.jsonl' is a text; open it: prompts = open_prompts(",
        ),
        ({"prompts": 5}, "prompts of Mine: 5 has no prompt(index)"),
        ({"dialect": "openai"}, "dialect of Mine: no dialect 'openai'; there are "),
        ({"name": 5}, "name of Mine: 5 is no text"),
        ({"slo": 5}, "slo of Mine: 5 is no text"),
        ({"host": "localhost:80"}, "host of Mine: "),
        ({"turns": "a"}, "turns of Mine: 'a'; right is a number"),
        ({"turns": (6, 2)}, "turns of Mine: (6, 2); right is a number"),
        ({"turns": 0}, "turns of Mine: 0; right is a number"),
    ],
)
def test_wrong_attribute_of_a_class_is_told_before_the_load(attributes: dict[str, Any], says: str) -> None:
    """One sentence, not an error of every request; what is right is no problem."""
    (problem,) = start_problems(_settings(), [type("Mine", (ConversationUser,), attributes)], None)
    assert problem.startswith(says)
    right = {"turns": 3, "name": "chat", "slo": "ttft p99 < 2s", "host": "http://a:1", "prompts": synthetic(9)}
    assert start_problems(_settings(), [type("Mine", (ConversationUser,), right)], None) == []


def test_process_that_sends_looks_at_its_own_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A local runner runs all users itself."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (200, 200))
    local = Namespace()
    assert sender_problems(local, _settings(levels="8,100"), shape_named("ConcurrencySteps", [])) == []
    problems = sender_problems(local, _settings(levels="8,101"), shape_named("ConcurrencySteps", []))
    assert [problem.split(",")[0] for problem in problems] == ["--users: 101 users need 201 open files"]


def test_wrong_tokenizer_hides_no_wrong_prompts(tmp_path: Path) -> None:
    """Both are named at once, those of a shape's stage too."""
    wrong = {"tokenizer": "nosuch", "out": str(tmp_path)}
    problems = start_problems(_settings(prompts="lines:/nowhere", **wrong), [LLMUser], None)
    assert [problem.partition(":")[0] for problem in problems] == ["--llm-tokenizer", "--llm-prompts"]
    problems = start_problems(_settings(shape="TraceReplay", **wrong), [LLMUser], shape_named("TraceReplay", []))
    assert [problem.partition(":")[0] for problem in problems] == ["--llm-tokenizer", "--llm-prompts"]


def test_folder_of_the_runs_has_room(tmp_path: Path) -> None:
    """A disk that is all but full is told before the load, not by a run whose files are empty."""
    found = _settings(out=str(tmp_path / "reports"))
    assert start_problems(found, [LLMUser], None) == []
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * 1024, before[1]))  # the kernel takes 1 MB and no more
    try:
        problems = start_problems(found, [LLMUser], None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert problems == [f"--llm-out: {tmp_path} has no room for the files of a run (No space left on device)"]


@pytest.mark.parametrize(
    ("raw", "refused"),
    [
        ({"shape": "TraceReplay"}, True),
        ({"arrivals": "trace"}, True),
        ({"arrivals": "trace", "prompts": "text:x"}, True),
        ({"shape": "TraceReplay", "prompts": "mooncake:{trace}"}, False),
        ({"arrivals": "trace", "prompts": "mooncake:{trace}"}, False),
        ({}, False),
    ],
)
def test_trace_to_play_is_there_before_the_load(tmp_path: Path, raw: dict[str, str], refused: bool) -> None:
    """Without one the schedule of every worker would fail when the gate opens, and the run would never end."""
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"timestamp": 0, "input_length": 8, "output_length": 4, "hash_ids": [1]}\n')
    found = _settings(**{name: text.format(trace=trace) for name, text in raw.items()}, out=str(tmp_path))
    shape = shape_named(found.shape, []) if found.shape else None
    problems = start_problems(found, [LLMUser], shape)
    assert [problem.split(":")[0] for problem in problems] == (["--llm-prompts"] if refused else [])
