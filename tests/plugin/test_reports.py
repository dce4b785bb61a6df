"""Reports are applied exactly once, whatever the network does to their messages."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from llm_locust.plugin.reports import MOST_DELTAS, Inbox, Outbox


def test_outbox_resends_everything_when_nothing_was_acknowledged() -> None:
    """A delta is kept until acknowledged: LOCUST.md's lost send costs nothing."""
    outbox = Outbox("run-1")
    outbox.add({"n": 1})
    outbox.message()  # this one was lost on its way
    outbox.add({"n": 2})
    assert outbox.message() == {"run": "run-1", "part": 0, "reports": [[1, {"n": 1}], [2, {"n": 2}]]}


def test_outbox_forgets_what_was_acknowledged() -> None:
    """Acknowledged deltas are not sent again, later ones are."""
    outbox = Outbox("run-1")
    for n in (1, 2, 3):
        outbox.add({"n": n})
    outbox.acknowledge("run-1", 0, 2)
    assert outbox.message() == {"run": "run-1", "part": 0, "reports": [[3, {"n": 3}]]}
    outbox.acknowledge("run-1", 0, 3)
    assert outbox.message() is None


def test_outbox_ignores_an_answer_to_another_run_or_part() -> None:
    """An acknowledgement that was under way at a restart or reset must not drop new deltas."""
    outbox = Outbox("run-2")
    outbox.add({"n": 1})
    outbox.acknowledge("run-1", 0, 9)
    outbox.next_part(1)
    outbox.add({"n": 5})
    outbox.acknowledge("run-2", 0, 9)
    assert outbox.message() == {"run": "run-2", "part": 1, "reports": [[1, {"n": 5}]]}


def test_outbox_bounds_a_message() -> None:
    """A message carries a bounded number of deltas, the oldest first."""
    outbox = Outbox("run-1")
    for n in range(MOST_DELTAS + 3):
        outbox.add({"n": n})
    message = outbox.message()
    assert message is not None
    assert [seq for seq, _ in message["reports"]] == list(range(1, MOST_DELTAS + 1))


def test_inbox_applies_a_report_once() -> None:
    """A report that came twice is applied once and counted as a duplicate."""
    inbox = Inbox("run-1")
    message = {"run": "run-1", "part": 0, "reports": [[1, {"n": 1}], [2, {"n": 2}]]}
    assert inbox.take(message) == [{"n": 1}, {"n": 2}]
    assert inbox.take(message) == []
    assert (inbox.applied, inbox.duplicates, inbox.gaps, inbox.foreign) == (2, 2, 0, 0)


def test_inbox_refuses_a_late_report_of_an_earlier_run() -> None:
    """A report of the last run that comes in during the next one is not added to it."""
    inbox = Inbox("run-2")
    assert inbox.take({"run": "run-1", "part": 0, "reports": [[7, {"n": 7}]]}) == []
    assert inbox.take({"run": "run-2", "part": 1, "reports": [[1, {"n": 8}]]}) == []
    assert (inbox.applied, inbox.foreign, inbox.gaps) == (0, 2, 0)


def test_inbox_counts_a_gap_until_it_is_filled() -> None:
    """A number that was passed over is missing; it is applied when it comes after all."""
    inbox = Inbox("run-1")
    inbox.take({"run": "run-1", "part": 0, "reports": [[1, {"n": 1}], [4, {"n": 4}]]})
    assert (inbox.missing, inbox.applied) == ({2, 3}, 1)
    assert inbox.take({"run": "run-1", "part": 0, "reports": [[3, {"n": 3}]]}) == [{"n": 3}]
    assert (inbox.missing, inbox.applied) == ({2}, 1)


def test_inbox_misses_the_last_reports_when_the_worker_says_it_sent_more() -> None:
    """The worker's own total closes the account: what never came is a gap."""
    inbox = Inbox("run-1")
    inbox.take({"run": "run-1", "part": 0, "reports": [[1, {}]]})
    inbox.close(3)
    assert inbox.missing == {2, 3}


@given(
    losses=st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=30),
)
def test_every_delta_is_applied_once_under_any_loss_and_repetition(losses: list[tuple[bool, bool, bool]]) -> None:
    """Messages and answers may be lost or come twice: the sum is right in the end, and never too high before."""
    outbox, inbox = Outbox("run"), Inbox("run")
    applied: list[int] = []

    def exchange(lost: bool, twice: bool, answer_lost: bool) -> None:
        message = outbox.message()
        if message is None or lost:
            return
        for _ in range(2 if twice else 1):
            applied.extend(delta["n"] for delta in inbox.take(copy.deepcopy(message)))
        if not answer_lost:
            outbox.acknowledge("run", 0, inbox.applied)

    for n, loss in enumerate(losses):
        outbox.add({"n": n})
        exchange(*loss)
        assert len(applied) == len(set(applied))
    while len(outbox):
        exchange(False, False, False)
    inbox.close(outbox.last_seq)
    assert sorted(applied) == list(range(len(losses)))
    assert inbox.gaps == 0


def message_of(*numbers: int) -> dict[str, Any]:
    """A message of run "run" with these numbers."""
    return {"run": "run", "part": 0, "reports": [[n, {"n": n}] for n in numbers]}


def test_reset_drops_what_was_missing_before() -> None:
    """A reset starts the account again on both sides."""
    inbox = Inbox("run")
    inbox.take(message_of(3))
    inbox.next_part(1)
    assert (inbox.gaps, inbox.applied) == (0, 0)
    assert inbox.take(message_of(4)) == []
