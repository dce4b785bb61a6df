"""Locust's own default options, worked out once in a process.

Locust (2.47) looks them up for every option of every message about users, and makes a whole command-line parser for
each look: a worker with this suite's options stood still for 0.4 to 0.7 s in every second of a ramp, for 8 s on a busy
machine. Its tokens were read late, its heartbeats failed, and its master took it for lost.
"""

from __future__ import annotations

from functools import cache

from locust import argument_parser


def remember() -> None:
    """Have Locust keep what it works out; to be called before any load. Calling it again changes nothing."""
    if not hasattr(argument_parser.default_args_dict, "cache_info"):
        argument_parser.default_args_dict = cache(argument_parser.default_args_dict)
    argument_parser.default_args_dict()
