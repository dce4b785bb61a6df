"""An answer on its way: open in the account until it is sent to its end, or its connection ended before."""

from __future__ import annotations

from time import monotonic_ns

from llm_locust.mock.http import Connection
from llm_locust.mock.truth import Told, Truth


class AnswerUnderWay:
    """What a generated answer and a played script have in common: one connection, one account, one end."""

    def __init__(self, connection: Connection, truth: Truth, told: Told) -> None:
        self._connection = connection
        self._truth = truth
        self._told = told
        self._over = False

    def ended_early(self, by_client: bool) -> None:
        """The connection ended: send nothing more."""
        if not self._over:
            self._told.client_gone = by_client
            self._close_books()

    def _close_books(self) -> None:
        self._over = True
        self._told.blocked = self._connection.blocked
        self._truth.end(self._told, monotonic_ns())
