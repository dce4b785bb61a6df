"""`import llm_locust`: light, lazy, and hooked into Locust exactly once."""

from __future__ import annotations

import subprocess
import sys

import locust
import pytest

import llm_locust


def run_python(code: str) -> str:
    """Run code in a fresh interpreter; return what it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


def test_import_is_light_outside_locust() -> None:
    """No Locust, no gevent, no HTTP: only the room of the name that was asked for."""
    code = (
        "import sys, llm_locust; llm_locust.synthetic; "
        "print(sorted({'locust', 'gevent', 'httpx', 'httptools', 'boost_histogram'} & set(sys.modules)))"
    )
    assert run_python(code) == "[]"


def test_a_worker_loads_nothing_that_only_some_files_need() -> None:
    """pandas alone is 35 MB and half a second in each process of a run."""
    code = (
        "import gevent.monkey; gevent.monkey.patch_all(); import sys, locust, llm_locust.plugin.listeners; "
        "print(sorted({'pandas', 'tokenizers', 'tiktoken', 'matplotlib', 'xlsxwriter'} & set(sys.modules)))"
    )
    assert run_python(code) == "[]"


def test_import_makes_nothing_that_a_fork_would_share() -> None:
    """`--processes` forks after the imports: no socket, TLS context, client or greenlet is made by them."""
    code = """
import gc, os, locust
def made():
    import socket, ssl, httpx, greenlet
    kinds = (socket.socket, ssl.SSLContext, httpx.Client, greenlet.greenlet)
    return [sum(isinstance(o, kind) for o in gc.get_objects()) for kind in kinds], len(os.listdir("/proc/self/fd"))
before = made()
from llm_locust import *
import llm_locust.load.users, llm_locust.load.preflight, llm_locust.plugin.options
print(before == made())
"""
    assert run_python(code) == "True"


@pytest.mark.parametrize(
    "order",
    ["import locust, llm_locust", "import llm_locust, locust; from llm_locust import OpenAIChatUser, llm_events"],
    ids=["locust first", "locust second"],
)
def test_plugin_is_hooked_once(order: str) -> None:
    """However often and in whatever order it is imported."""
    code = (
        f"{order}; from llm_locust import LLMUser; import llm_locust.load.users; "
        "print(sum(h.__module__ == 'llm_locust' for h in locust.events.init._handlers), "
        "sum(h.__module__ == 'llm_locust' for h in locust.events.init_command_line_parser._handlers))"
    )
    assert run_python(code) == "1 1"


def test_all_names_are_there() -> None:
    """Every public name resolves."""
    for name in llm_locust.__all__:
        assert getattr(llm_locust, name).__name__ if name != "llm_events" else llm_locust.llm_events


def test_unknown_name_is_an_attribute_error() -> None:
    """As for any module."""
    with pytest.raises(AttributeError, match="no attribute 'OpenAIUser'"):
        _ = llm_locust.OpenAIUser


def test_no_user_class_of_the_suite_is_concrete() -> None:
    """Locust runs every concrete class that a locustfile imports."""
    users = [getattr(llm_locust, name) for name in llm_locust.__all__ if name.endswith("User")]
    assert len(users) == 9
    assert all(user.abstract and not user.tasks and issubclass(user, locust.User) for user in users)
