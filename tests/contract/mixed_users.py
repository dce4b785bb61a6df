"""A locustfile of a user that asks, one that dies of its task's own time limit, and one that asks no model."""

from __future__ import annotations

import gevent
from locust import User, constant, task

from tests.contract.fake_llm import FakeUser


class Mortal(FakeUser):
    """A gevent.Timeout is no Exception: Locust (2.47) lets the user die of it."""

    fixed_count = 2

    @task
    def stream(self) -> None:
        """Take longer than it may, once all users are there."""
        gevent.sleep(1.5)
        with gevent.Timeout(0.05):
            FakeUser.stream(self)


class Walker(User):
    """Asks nothing."""

    fixed_count = 2
    wait_time = constant(0.2)

    @task
    def walk(self) -> None:
        """Do nothing."""
