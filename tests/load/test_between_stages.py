"""What happens between two stages: an errand while nothing is in flight, and rows of a file that go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from llm_locust.load.conductor import Conductor
from llm_locust.load.stage import Stage

from .ensemble import Ensemble, closed
from .stand import S


@dataclass
class Flush:
    """An errand that takes a few steps."""

    steps: int
    value: Sequence[str] | None
    asked: int = 0

    def ready(self) -> bool:
        self.asked += 1
        return self.asked > self.steps


@dataclass
class Cache:
    """Begins an errand per stage, and looks whether anything is in flight meanwhile."""

    ensemble: Ensemble
    says: Sequence[str] | None = ()
    begun: list[Flush] = field(default_factory=list)
    busy: list[int] = field(default_factory=list)

    def __call__(self) -> Flush:
        self.busy.append(sum(stand.gate.in_flight for stand in self.ensemble.stands.values()))
        self.ensemble.log.append(("flush",))
        self.begun.append(Flush(3, self.says))
        return self.begun[-1]


def test_cache_is_emptied_before_each_stage_while_nothing_is_in_flight() -> None:
    """SGLang refuses it while requests run; the stage is sent when it is over."""
    ensemble = Ensemble(service_ns=lambda _: 2 * S)
    cache = Cache(ensemble, says=["the cache of x was not emptied"])
    conductor = Conductor([closed("one", 2), closed("two", 3)], ensemble, seed=1, before_stage=cache)
    ensemble.run(conductor)
    assert [entry[0] for entry in ensemble.log if entry[0] != "mark"] == ["flush", "stage", "open"] * 2
    assert cache.busy == [0, 0]
    assert [flush.asked for flush in cache.begun] == [4, 4]
    assert [row.notes for row in conductor.applied] == [["the cache of x was not emptied"]] * 2
    ensemble.close()


def test_errand_that_fails_holds_nothing_up() -> None:
    """Its greenlet's error is logged; the load goes on."""
    ensemble = Ensemble()
    conductor = Conductor([closed("one", 2)], ensemble, seed=1, before_stage=Cache(ensemble, says=None))
    ensemble.run(conductor)
    assert [(row.ended_by, row.notes) for row in conductor.applied] == [("hold", [])]
    ensemble.close()


def test_rows_of_a_file_go_on_from_stage_to_stage() -> None:
    """Every place is taken once, and the second stage begins where the first ended."""
    ensemble = Ensemble()
    plan = [Stage(label=label, users=4, requests=40) for label in ("one", "two")]
    ensemble.run(Conductor(plan, ensemble, seed=1))
    places = {
        label: sorted(r.ticket.place or 0 for r in ensemble.started if r.ticket.stage == label)
        for label in ("one", "two")
    }
    assert min(places["one"]) == 0
    assert len(set(places["one"] + places["two"])) == len(ensemble.started)
    assert min(places["two"]) == max(places["one"]) + 1
    ensemble.close()
