"""Which workers take part in a master's runs: each says hello and is welcomed, or is named and sent away.

Locust (2.47) gives users to whatever connects: a worker without this suite, of another locustfile, of another test that
lost its master. Their requests would load the server and be in no number, or users would be theirs that never start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import gevent
import msgspec
from locust.exception import RPCError
from locust.runners import STATE_MISSING, STATE_RUNNING

from . import messages
from .account import Account, refusal_of
from .messages import Hello
from .state import LLM, sources_of

logger = logging.getLogger(__name__)

HELLO_WAIT_S = 10.0
"""How long a worker may take from connecting to its hello."""


class Roster:
    """The workers of a master, by Locust's name for them. An account is kept when its worker goes: it may come back."""

    def __init__(self, environment: Any, llm: LLM, now_s: Callable[[], float]) -> None:
        self._runner = environment.runner
        self._llm = llm
        self._now_s = now_s
        self._stranger_since_s: dict[str, float] = {}
        self._sent_away: dict[str, str] = {}
        self.accounts: dict[str, Account] = {}
        picked = environment.parsed_options.class_picker
        may_run = environment.available_user_classes.values() if picked else environment.user_classes
        self._own_sources = sources_of(may_run)

    def begin_run(self) -> None:
        """Forget what was said of other workers in the last run."""
        self._sent_away.clear()

    def sent_away(self) -> tuple[str, ...]:
        """What is to be said of workers that did not belong to this run."""
        return tuple(self._sent_away.values())

    def strangers(self) -> list[str]:
        """Workers that Locust knows, and that have not said hello."""
        known = self._runner.clients
        return [key for key in known if known[key].state != STATE_MISSING and key not in self.accounts]

    def greet(self, client_id: str, data: dict[str, Any]) -> Account | None:
        """Answer a hello: the account of a worker that is new here, None of one that is known or refused."""
        try:
            hello = msgspec.convert(data, Hello)
        except msgspec.ValidationError as error:
            self.refuse(client_id, client_id, f"it does not introduce itself as this version does: {error}")
            return None
        known = self.accounts.get(client_id)
        name = known.name if known is not None else self._name_for(hello)
        refusal = refusal_of(hello, self._llm.secrets, self._own_sources)
        if refusal:
            self.refuse(client_id, name, refusal)
            return None
        self._send(client_id, messages.WELCOME, {"name": name, "refused": ""})
        if known is not None:
            return None
        account = self.accounts[client_id] = Account(name, client_id, hello, self._runner, self._now_s)
        return account

    def refuse(self, client_id: str, name: str, reason: str) -> None:
        """Say why a worker cannot take part, and have its users run elsewhere; it ends itself."""
        logger.error("llm-locust: worker %s refused: %s", name, reason)
        self._send(client_id, messages.WELCOME, {"name": name, "refused": reason})
        self.accounts.pop(client_id, None)
        self._take_from_locust(client_id)

    def watch(self) -> None:
        """Send away who has not said hello in time."""
        strangers = self.strangers()
        since_s = self._stranger_since_s
        self._stranger_since_s = {key: since_s.get(key, self._now_s()) for key in strangers}
        for client_id in strangers:
            if self._now_s() - self._stranger_since_s[client_id] >= HELLO_WAIT_S:
                self._send_away(client_id, "it never said that it runs llm-locust")

    def mend(self) -> None:
        """Give users to workers that Locust hears and has forgotten.

        It (2.47) takes a worker that misses heartbeats out of its dispatcher. The next heartbeat brings it back, except
        where a message about users comes first: that one marks it as there, and it keeps the users that it had.
        """
        dispatcher = self._runner._users_dispatcher  # no public way (2.47)
        if dispatcher is None or self._runner.state != STATE_RUNNING or not self._runner.spawning_completed:
            return
        dealt = {node.id for node in dispatcher._worker_nodes}
        here = (node for node in list(self._runner.clients.values()) if node.state != STATE_MISSING)
        forgotten = [node for node in here if node.id in self.accounts and node.id not in dealt]
        for node in forgotten:
            logger.warning(
                "llm-locust: worker %s was out of sight and gets its users back", self.accounts[node.id].name
            )
            dispatcher.add_worker(node)
        if forgotten:
            self._deal_users()

    def unknown(self, client_id: str, run_id: str) -> None:
        """A worker that nobody here knows speaks of a run: it is another master's, and may load the same server."""
        if client_id not in self._sent_away and client_id not in self._runner.clients:
            self._send_away(client_id, f"it is of another test, {run_id}, whose master it has lost")

    def dismiss(self, client_id: str) -> None:
        """Have its users run elsewhere, and end it by Locust's own word, which a worker without this suite knows."""
        self._take_from_locust(client_id)
        self._send(client_id, "quit", None)

    def _take_from_locust(self, client_id: str) -> None:
        """Have Locust give it no users, and those that it has to others.

        It must not count as ready, and Locust's master ends itself when the last worker it knows quits (2.47).
        """
        node = self._runner.clients.pop(client_id, None)
        dispatcher = self._runner._users_dispatcher  # no public way (2.47)
        if node is None or dispatcher is None:
            return
        dispatcher.remove_worker(node)
        if self._runner.state == STATE_RUNNING and self._runner.spawning_completed and self._runner.clients:
            self._deal_users()

    def _deal_users(self) -> None:
        """Have Locust deal the users anew. (Its `dispatch_in_progress` stays true after a rebalancing, 2.47.)"""
        gevent.spawn(self._runner.start, self._runner.target_user_count, self._runner.spawn_rate)

    def _send_away(self, client_id: str, reason: str) -> None:
        host, _, _ = client_id.rpartition("_")
        self._sent_away[client_id] = f"worker {client_id} on {host or 'an unknown host'} sent away: {reason}"
        logger.error("llm-locust: %s", self._sent_away[client_id])
        self._send(client_id, messages.WELCOME, {"name": client_id, "refused": reason})
        self.dismiss(client_id)

    def _send(self, client_id: str, message: str, data: dict[str, Any] | None) -> None:
        try:
            self._runner.send_message(message, data, client_id)
        except RPCError as error:
            logger.warning("llm-locust: %s could not be sent to %s: %s", message, client_id, error)

    def _name_for(self, hello: Hello) -> str:
        name = f"{hello.host}-{hello.pid}"
        taken = {account.name for account in self.accounts.values()}
        return next(candidate for n in range(1, 10_000) if (candidate := f"{name}-{n}" if n > 1 else name) not in taken)
