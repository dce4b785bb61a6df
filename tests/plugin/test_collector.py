"""What one process books: each request once, for its own run; deltas that add up to the whole."""

from __future__ import annotations

from typing import Any

from llm_locust.load.gate_types import Ticket
from llm_locust.load.stage import STEADY, Tally
from llm_locust.measure.aggregate import Aggregate
from llm_locust.measure.finish import Samples
from llm_locust.measure.record import Outcome, RequestRecord
from llm_locust.measure.timeline import Timeline
from llm_locust.plugin.collector import Collector, unpacked
from llm_locust.plugin.reports import MOST_ROWS
from llm_locust.protocol.types import ANSWER

SECOND_NS = 1_000_000_000


class Desk:
    """A collector on a clock of its own, and requests of 10 tokens or others."""

    def __init__(self, run_id: str = "run") -> None:
        self.at_ns = 100 * SECOND_NS
        self.collector = Collector(run_id, lambda: self.at_ns, 0)
        self.collector.mark(self.at_ns, "a", STEADY)
        self._index = 0

    def request(
        self, *, run_id: str = "run", outcome: Outcome = Outcome.OK, opened: bool = True, tokens: int = 10
    ) -> None:
        """A request of 0.1 s."""
        ticket = Ticket(index=self._index, stage="a", phase=STEADY)
        self._index += 1
        timeline, start_ns = Timeline(), self.at_ns
        if opened:
            self.collector.opened(ticket, "n", timeline, start_ns)
        gap_ns = 100_000_000 // tokens
        for _ in range(tokens):
            self.at_ns += gap_ns
            timeline.add(((0, ANSWER),), self.at_ns)
        found = timeline.analyse(1)
        record = RequestRecord(
            run_id=run_id, worker="w", request_id=ticket.index, user_class="U", name="n", dialect="d", stage="a",
            phase=STEADY, start_epoch_ns=start_ns, ttft_ns=gap_ns, e2e_ns=100_000_000, stream_end_ns=100_000_000,
            output_tokens=tokens, output_tokens_source="usage", chunks=tokens, outcome=outcome,
        )  # fmt: skip
        self.collector.book(record, Samples(found.gaps_ns, found.gaps_ns, tokens))

    def deltas(self, *, final: bool = False) -> list[dict[str, Any]]:
        """Harvest and take."""
        self.collector.harvest(final=final)
        return self.collector.take_deltas()


def test_deltas_add_up_to_the_whole() -> None:
    """Whatever the reports' instants: the master's sums are the worker's totals."""
    desk, master, rows = Desk(), Aggregate(), 0
    for n in range(7):
        for _ in range(n):
            desk.request()
        for delta in desk.deltas(final=n == 6):
            master.merge(delta["numbers"])
            rows += len(unpacked(delta["rows"]))
    assert {**master.totals(), "rows": rows} == desk.collector.totals()
    assert rows == 21
    assert master.totals()["window:output_tokens"] == 210


def test_delta_has_a_bounded_number_of_rows() -> None:
    """Many rows go in several deltas; the numbers go once."""
    desk = Desk()
    for _ in range(MOST_ROWS + 5):
        desk.request()
    deltas = desk.deltas(final=True)
    assert [len(unpacked(delta["rows"])) for delta in deltas] == [MOST_ROWS, 5]
    assert [delta["numbers"] is None for delta in deltas] == [False, True]
    assert desk.deltas(final=True) == []


def test_rows_cross_the_wire_unchanged() -> None:
    """A row comes out as it went in."""
    desk = Desk()
    desk.request(outcome=Outcome.UNFINISHED)
    booked = list(desk.collector.rows)
    assert unpacked(desk.deltas()[0]["rows"]) == booked


def test_record_of_another_run_is_not_booked() -> None:
    """A request that outlived its run belongs nowhere in the next one."""
    desk = Desk()
    desk.request(run_id="the run before")
    desk.request(opened=False)
    assert desk.collector.totals()["rows"] == 0
    assert desk.collector.foreign_records == 2


def test_reset_keeps_streams_in_flight() -> None:
    """What ended before the reset is gone; what ends after it counts, as Locust counts it."""
    desk = Desk()
    desk.request()
    desk.collector.opened(Ticket(index=99, stage="a", phase=STEADY), "n", Timeline(), desk.at_ns)
    desk.collector.reset()
    assert desk.collector.totals()["rows"] == 0
    assert desk.collector.in_flight == 1
    desk.request()
    totals = desk.collector.totals()
    assert (totals["rows"], totals["cell:outcome:ok"]) == (1, 1)


def test_schedule_is_counted_once_whatever_is_told_how_often() -> None:
    """The gate tells totals; the numbers take what is new."""
    desk = Desk()
    for due, started in ((3, 2), (3, 3), (5, 4)):
        tally = Tally(number=0, label="a", steady_due=due, steady_issued=started, cap_reached_ns=due * 10)
        desk.collector.note_tallies([tally], scheduled=True)
    desk.collector.note_tallies([Tally(number=0, label="b", steady_due=9)], scheduled=False)
    totals = desk.collector.totals()
    assert (totals["cell:arrivals_due"], totals["cell:arrivals_started"]) == (5, 4)
    assert totals["window:cap_reached_ns"] == 50
