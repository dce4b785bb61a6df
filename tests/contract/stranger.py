"""A locustfile of a worker that has nothing to do with this suite, though its user class has the same name."""

from locust import User, constant, task


class FakeUser(User):
    """Does nothing."""

    wait_time = constant(0.2)

    @task
    def idle(self) -> None:
        """Do nothing."""
