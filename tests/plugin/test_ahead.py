"""What Locust does under load, and that it does not hold the hub."""

from __future__ import annotations

import inspect
import subprocess
import sys
from argparse import Namespace
from typing import Any

import pytest
from locust import argument_parser
from locust.rpc import Message
from locust.runners import STATE_RUNNING, Runner, WorkerRunner

from llm_locust.plugin import ahead


class Counter:
    """Counts the parsers that Locust makes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.parsers = 0
        self._make = argument_parser.get_empty_argument_parser
        monkeypatch.setattr(argument_parser, "get_empty_argument_parser", self.make)

    def make(self, *args: Any, **options: Any) -> Any:
        self.parsers += 1
        return self._make(*args, **options)


def take_spawn_message() -> dict[str, Any]:
    """Let a worker that runs take one message about users; return its options after it."""
    ignored = Namespace(send=lambda *_: None, spawn=lambda *_: Namespace(link_exception=lambda *_: None))
    environment = Namespace(host=None, stop_timeout=0.0, parsed_options=Namespace(own=1, run_time=None))
    worker = Namespace(
        client=ignored,
        client_id="w",
        greenlet=ignored,
        environment=environment,
        worker_state=STATE_RUNNING,
        last_received_spawn_timestamp=0,
        spawning_greenlet=None,
    )
    job = {
        "timestamp": 1.0,
        "host": "http://h",
        "stop_timeout": None,
        "parsed_options": {"own": 2, "run_time": 9, "tags": ["t"], **{f"llm_{number}": number for number in range(60)}},
        "user_classes_count": {},
    }
    message: Any = Message("spawn", job, "w")  # type: ignore[no-untyped-call]  # locust's
    handle: Any = WorkerRunner.handle_message
    handle(worker, message)
    found: dict[str, Any] = vars(environment.parsed_options)
    return found


def test_spawn_message_makes_no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    """Left alone Locust makes one per option (2.47): should that end, this module can go."""
    look = argument_parser.default_args_dict
    monkeypatch.setattr(argument_parser, "default_args_dict", getattr(look, "__wrapped__", look))
    counter = Counter(monkeypatch)
    wanted = take_spawn_message()
    left_alone, counter.parsers = counter.parsers, 0
    ahead.remember_defaults()
    ahead.remember_defaults()
    assert counter.parsers == 1
    assert take_spawn_message() == wanted
    assert (left_alone, counter.parsers) == (63, 1)
    assert (wanted["own"], wanted["run_time"], wanted["tags"]) == (2, None, ["t"])


def test_stop_of_a_run_looks_at_a_stack_that_is_known() -> None:
    """In a process of its own: 60 ms for the first look, which Locust (2.47) takes while streams are open."""
    assert "inspect.stack()" in inspect.getsource(Runner.stop)
    code = (
        "import inspect, time, llm_locust.plugin.listeners\n"
        "from llm_locust.plugin import ahead\n"
        "times = [time.perf_counter()]\n"
        "for look in (ahead.look_at_stack, inspect.stack):\n"
        "    look()\n"
        "    times.append(time.perf_counter())\n"
        "print(times[1] - times[0], times[2] - times[1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first_s, second_s = map(float, done.stdout.split())
    assert second_s < first_s / 5
