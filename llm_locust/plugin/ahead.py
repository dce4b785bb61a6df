"""Work of Locust's that would hold the hub under load, done ahead of it.

**Default options.** Locust (2.47) looks them up for every option of every message about users, and makes a whole
command-line parser for each look: a worker with this suite's options stood still for 0.4 to 0.7 s in every second of a
ramp, for 8 s on a busy machine. Its tokens were read late, its heartbeats failed, its master took it for lost.

**The first look at the stack.** Locust (2.47) asks who stops a test: Python reads where all modules are from, once, in
some 60 ms, in which the open streams of a local run were read late. Afterwards it takes 0.1 ms.
"""

from __future__ import annotations

import inspect
from functools import cache

from locust import argument_parser


def remember_defaults() -> None:
    """Have Locust keep the default options that it works out. Calling it again changes nothing."""
    if not hasattr(argument_parser.default_args_dict, "cache_info"):
        argument_parser.default_args_dict = cache(argument_parser.default_args_dict)
    argument_parser.default_args_dict()


def look_at_stack() -> None:
    """Have Python know where the modules are from that are loaded by now."""
    inspect.stack()
