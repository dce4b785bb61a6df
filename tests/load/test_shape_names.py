"""A shape is found by its name, whoever made it."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import pytest
from locust import LoadTestShape

from llm_locust.load import shape_names
from llm_locust.load.plan import PlanSettings
from llm_locust.load.shape_names import find_shape, kebab
from llm_locust.load.shapes import ConcurrencySteps, FullPlan, Soak
from llm_locust.load.stage import Stage
from llm_locust.load.staged import StagedShape

from .planning import options


class Tides(StagedShape):
    """Another package's."""

    abstract = True

    def stages(self, settings: PlanSettings) -> list[Stage]:
        return [self.stage(settings, "tide", 3, hold="5s")]


class Impostor(Tides):
    """Another package's under a name that is taken."""

    abstract = True


@pytest.mark.parametrize(
    ("name", "shape"),
    [("ConcurrencySteps", ConcurrencySteps), ("concurrency-steps", ConcurrencySteps), ("soak", Soak),
     ("full-plan", FullPlan)],
)  # fmt: skip
def test_shape_is_found_by_name(name: str, shape: type[StagedShape]) -> None:
    """By its class name or in kebab-case."""
    assert find_shape(name) is shape


def test_own_shape_wins_over_the_suite_s() -> None:
    """A locustfile's `Soak` is the one that is meant; an own name is found too."""

    class Soak(StagedShape):
        def stages(self, settings: PlanSettings) -> list[Stage]:
            return [self.stage(settings, "mine", 3, hold="5s")]

    class NightShift(Soak):
        pass

    own: list[type[LoadTestShape]] = [Soak, NightShift]
    assert find_shape("soak", own) is Soak
    assert find_shape("night-shift", own) is NightShift
    assert [stage.label for stage in NightShift().plan(options())] == ["mine"]


def test_unknown_shape_names_the_nearest() -> None:
    """A slip of the finger is answered with what was meant."""
    with pytest.raises(ValueError, match=r"no shape 'concurency-steps'; did you mean concurrency-steps"):
        find_shape("concurency-steps")


@pytest.mark.parametrize(("name", "text"), [("SLOSearch", "slo-search"), ("FullPlan", "full-plan"), ("Soak", "soak")])
def test_kebab_case(name: str, text: str) -> None:
    """Capitals of an abbreviation stay together."""
    assert kebab(name) == text


def test_another_package_offers_a_shape_but_takes_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an entry point; a name of the suite's stays the suite's, and the offered one is listed."""
    offered = EntryPoints(
        EntryPoint(name, f"{__name__}:{shape.__name__}", "llm_locust.shapes")
        for name, shape in (("Tides", Tides), ("Soak", Impostor))
    )

    monkeypatch.setattr(shape_names, "entry_points", offered.select)

    assert shape_names.shape_names(["Mine"])[0::12] == ["Mine", "Tides"]
    assert find_shape("tides") is Tides
    assert find_shape("Tides") is Tides
    assert find_shape("soak") is Soak
    with pytest.raises(ValueError, match=r"did you mean tides\? Known: .*, Tides"):
        find_shape("tide")
