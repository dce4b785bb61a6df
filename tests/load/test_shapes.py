"""Every shape of the table has its defaults, takes its options, and refuses what contradicts it."""

from __future__ import annotations

import re

import pytest

from llm_locust.load.arrivals import ArrivalSpec
from llm_locust.load.conductor import Conductor
from llm_locust.load.plan import PlanSettings, lengths_of
from llm_locust.load.shapes import (
    SHAPES,
    Baseline,
    ConcurrencySteps,
    FixedBatch,
    FullPlan,
    LongContext,
    MixedLoad,
    Ramp,
    RateSteps,
    Soak,
    Spike,
    TraceReplay,
)
from llm_locust.load.stage import NO_WARMUP, Stage, Warmup
from llm_locust.load.staged import StagedShape

from .ensemble import Ensemble, closed
from .planning import Count, Law, options


def levels_of(stages: list[Stage]) -> list[tuple[str, int, float | None, float | None, int | None]]:
    """Label, users, rate, hold and requests of each stage."""
    return [(s.label, s.users, s.rate_per_s, s.hold_s, s.requests) for s in stages]


def test_baseline_is_one_user_and_ten_requests() -> None:
    """1 user, no rate, 512 in / 1024 out, 10 requests."""
    (stage,) = Baseline().plan(options())
    assert levels_of([stage]) == [("baseline", 1, None, None, 10)]
    assert (*lengths_of(stage), stage.arrivals) == ("512", "1024", None)


def test_concurrency_steps_climb() -> None:
    """8→16→32→64 users, no rate, 1024/2048, 5 min each, drained in between, one sweep."""
    stages = ConcurrencySteps().plan(options())
    assert levels_of(stages) == [(f"users-{n}", n, None, 300.0, None) for n in (8, 16, 32, 64)]
    assert {(*lengths_of(s), s.spread_s, s.through, s.sweep) for s in stages} == {
        ("1024", "2048", 30.0, False, "users")
    }


def test_rate_steps_climb_under_a_cap() -> None:
    """2→5→10→20 req/s, at most 512 users, Poisson, 5 min each."""
    stages = RateSteps().plan(options())
    assert levels_of(stages) == [(f"rate-{r}", 512, r, 300.0, None) for r in (2, 5, 10, 20)]
    assert {(s.arrivals, s.spread_s, s.sweep) for s in stages} == {(ArrivalSpec(), 0.0, "rates")}
    assert {s.users for s in RateSteps().plan(options(users=32))} == {32}


def test_mixed_load_has_many_lengths() -> None:
    """64 users, 10 req/s, 512–2048 in, 512–4096 out, 10 min."""
    (stage,) = MixedLoad().plan(options())
    assert levels_of([stage]) == [("mixed", 64, 10, 600.0, None)]
    assert lengths_of(stage) == ("512-2048", "512-4096")


def test_full_plan_is_the_four_in_order_with_32_users_for_the_rates() -> None:
    """One table: baseline, concurrency, rates with 32 users, mixed."""
    stages = FullPlan().plan(options())
    parts = [*Baseline().plan(options()), *ConcurrencySteps().plan(options())]
    parts += [*RateSteps().plan(options(users=32)), *MixedLoad().plan(options())]
    assert stages == parts


def test_hold_of_the_full_plan_is_that_of_the_parts_that_have_one() -> None:
    """--llm-hold shortens the steps; the baseline still ends by its ten requests, and every stage has an end."""
    stages = FullPlan().plan(options(hold_s=20.0))
    assert [(stage.label, stage.hold_s, stage.requests) for stage in stages][:2] == [
        ("baseline", None, 10),
        ("users-8", 20.0, None),
    ]
    assert all(stage.hold_s == 20.0 for stage in stages[1:])


def test_soak_has_a_row_an_hour_or_every_ten_minutes_below_three() -> None:
    """1 h by default in rows of 10 min; a night has a row an hour; the last row takes what is left."""
    assert [s.hold_s for s in Soak().plan(options())] == [600.0] * 6
    night = Soak().plan(options(run_time_s=12 * 3600.0 + 1800))
    assert [s.hold_s for s in night] == [3600.0] * 11 + [5400.0]
    assert [s.label for s in night[:2]] == ["soak-01", "soak-02"]
    assert [s.through for s in night] == [False] + [True] * 11
    assert {(s.users, s.rate_per_s) for s in night} == {(512, 8)}
    assert levels_of(Soak().plan(options(run_time_s=300.0))) == [("soak", 512, 8, 300.0, None)]


def test_fixed_batch_is_released_together() -> None:
    """1 × 128/128 and 10 × 1280/1280, each after a warm-up batch."""
    stages = FixedBatch().plan(options())
    assert levels_of(stages) == [("batch-1", 1, None, None, 1), ("batch-10", 10, None, None, 10)]
    assert [(s.input_tokens, s.output_tokens) for s in stages] == [("128", "128"), ("1280", "1280")]
    assert {(s.release_together, s.warmup, s.spread_s) for s in stages} == {(True, Warmup(1), 0.0)}


def test_fixed_batch_of_own_sizes() -> None:
    """--llm-levels gives the sizes, token options the lengths."""
    stages = FixedBatch().plan(options(levels=[1, 32], input_tokens=4096))
    assert [(s.users, s.requests, s.input_tokens, s.output_tokens) for s in stages] == [
        (1, 1, "4096", "128"), (32, 32, "4096", "1280"),
    ]  # fmt: skip


def test_long_context_grows() -> None:
    """1, 6144, 14336, 30720 tokens, 2048 out, one user, two requests a length; one own length as option."""
    stages = LongContext().plan(options())
    assert [(s.label, s.input_tokens, s.output_tokens, s.users, s.requests) for s in stages] == [
        (f"context-{n}", str(n), "2048", 1, 2) for n in (1, 6144, 14336, 30720)
    ]
    (own,) = LongContext().plan(options(input_tokens=120_000, output_tokens=1000, requests=[Count(1)]))
    assert (own.label, own.output_tokens, own.requests) == ("context-120000", "1000", 1)


def test_spike_and_ramp_run_through() -> None:
    """No drain, labels of their own where a rate comes twice."""
    spike = Spike().plan(options())
    assert [(s.label, s.rate_per_s, s.hold_s, s.through) for s in spike] == [
        ("rate-5", 5, 300.0, False), ("rate-20", 20, 60.0, True), ("rate-5-2", 5, 300.0, True),
    ]  # fmt: skip
    ramp = Ramp().plan(options(levels=[1, 2, 3], hold_s=30.0))
    assert levels_of(ramp) == [("users-1", 1, None, 30.0, None), ("users-2", 2, None, 30.0, None),
                               ("users-3", 3, None, 30.0, None)]  # fmt: skip
    assert [s.through for s in ramp] == [False, True, True]


def test_trace_replay_has_the_trace_s_instants() -> None:
    """No rate, no warm-up of its own, until the trace ends; its speed is a class attribute, or `trace:SPEED`."""

    class Fast(TraceReplay):
        speed = 4.0

    (stage,) = Fast().plan(options(users=100))
    assert (stage.users, stage.arrivals, stage.hold_s, stage.requests, stage.warmup) == (
        100, ArrivalSpec("trace", speed=4.0), None, None, NO_WARMUP,
    )  # fmt: skip
    (stage,) = Fast().plan(options(arrivals=Law("trace", None, 0.5)))
    assert stage.arrivals == ArrivalSpec("trace", speed=0.5)


def test_option_wins_over_class_attribute_over_default() -> None:
    """Precedence: option given > class attribute > default."""

    class Mine(ConcurrencySteps):
        levels = (2, 4)
        hold = "1m"
        input_tokens = 99
        warmup = "20s"

    assert levels_of(Mine().plan(options())) == [("users-2", 2, None, 60.0, None), ("users-4", 4, None, 60.0, None)]
    given = options(levels=[3], hold_s=20.0, input_tokens="512-1024", warmup=Warmup(2))
    (stage,) = Mine().plan(given)
    assert (stage.users, stage.hold_s, *lengths_of(stage)) == (3, 20.0, "512-1024", "2048")
    assert (Mine().plan(options())[0].warmup, stage.warmup) == (Warmup(0, 20.0), Warmup(2))


def demanded(shape: StagedShape, **given: object) -> set[tuple[str, str]]:
    """The lengths that all prompts of a plan must have, whoever's they are; "" leaves them to the user class."""
    return {(stage.input_tokens, stage.output_tokens) for stage in shape.plan(options(**given))}


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape not in (FixedBatch, LongContext)])
def test_usual_lengths_are_not_demanded(shape: type[StagedShape]) -> None:
    """The suite's numbers are for classes without prompts; an own shape's attribute and an option are for all."""
    mine = type("Mine", (shape,), {"input_tokens": 99})
    assert demanded(shape()) == {("", "")}
    assert demanded(mine()) == {("99", "")}
    assert demanded(mine(), input_tokens=7, output_tokens="5-6") == {("7", "5-6")}


def test_lengths_that_a_shape_is_about_are_demanded() -> None:
    """Batches of 128 tokens and contexts of 6144 are that, whatever the user class has."""
    assert demanded(FixedBatch()) == {("128", "128"), ("1280", "1280")}
    assert demanded(LongContext()) == {(str(n), "2048") for n in (1, 6144, 14336, 30720)}
    assert demanded(type("Mine", (FixedBatch,), {"input_tokens": 64})()) == {("64", "128"), ("64", "1280")}
    assert demanded(type("Mine", (LongContext,), {"input_tokens": 64, "output_tokens": 8})()) == {("64", "8")}


def test_own_full_plan_sets_what_its_parts_know() -> None:
    """Levels for the steps, the hold for all that hold, lengths for all; a part of one's own keeps its attributes."""

    class Own(Baseline):
        requests = 3
        output_tokens = 1

    class Short(FullPlan):
        levels = (2, 4)
        rates = (1,)
        hold = "9s"
        input_tokens = 64

    class Mixed(FullPlan):
        parts = (Own, Baseline)
        requests = 5
        output_tokens = 2

    assert levels_of(Short().plan(options())) == [
        ("baseline", 1, None, None, 10), ("users-2", 2, None, 9.0, None), ("users-4", 4, None, 9.0, None),
        ("rate-1", 32, 1, 9.0, None), ("mixed", 64, 10, 9.0, None),
    ]  # fmt: skip
    assert demanded(Short()) == {("64", "")}
    assert [(stage.requests, stage.output_tokens) for stage in Mixed().plan(options())] == [(3, "1"), (5, "2")]


def test_number_of_requests_ends_a_level_instead_of_its_hold() -> None:
    """N for each, 3x a user, or one a stage; by class attribute too."""

    class Counted(ConcurrencySteps):
        levels = (2, 4)
        requests = (10, 20)

    def ends(*counts: Count) -> list[int | None]:
        return [s.requests for s in ConcurrencySteps().plan(options(levels=[2, 4], requests=list(counts)))]

    assert ends(Count(50)) == [50, 50]
    assert ends(Count(3, per_user=True)) == [6, 12]
    assert ends(Count(5), Count(7)) == [5, 7]
    assert [(s.requests, s.hold_s) for s in Counted().plan(options())] == [(10, None), (20, None)]
    assert [(s.requests, s.hold_s) for s in Counted().plan(options(hold_s=9.0))] == [(None, 9.0)] * 2


def test_users_of_a_level_that_ends_by_requests_start_ten_a_second() -> None:
    """The hold that it does not have is no measure of its ramp: 4 requests must not follow 30 s of others."""
    counted = ConcurrencySteps().plan(options(levels=[2, 64], requests=[Count(4)]))
    assert [(stage.spread_s, stage.hold_s) for stage in counted] == [(0.2, None), (6.4, None)]
    held = ConcurrencySteps().plan(options(levels=[2, 64]))
    assert [(stage.spread_s, stage.hold_s) for stage in held] == [(30.0, 300.0)] * 2


@pytest.mark.parametrize(
    ("shape", "given", "says"),
    [
        (ConcurrencySteps, {"users": 8}, "--users does not apply to ConcurrencySteps: it varies the users"),
        (ConcurrencySteps, {"rate_per_s": 3.0}, "--llm-rate does not apply to ConcurrencySteps"),
        (ConcurrencySteps, {"rates_per_s": [3.0]}, "--llm-rates does not apply"),
        (ConcurrencySteps, {"arrivals": Law("constant", 0.0)}, "--llm-arrivals does not apply"),
        (RateSteps, {"rate_per_s": 3.0}, "--llm-rate does not apply to RateSteps: it varies the rate"),
        (RateSteps, {"levels": [3]}, "--llm-levels does not apply"),
        (RateSteps, {"start": "together"}, "--llm-start does not apply"),
        (RateSteps, {"arrivals": Law("trace", None)}, "a trace has its own instants"),
        (Baseline, {"users": 8}, "--users does not apply to Baseline: it is one user without a rate"),
        (Baseline, {"hold_s": 60.0}, "--llm-hold does not apply"),
        (FullPlan, {"users": 8}, "--users does not apply to FullPlan"),
        (LongContext, {"prompts": "q.jsonl"}, "--llm-prompts q.jsonl: its prompts have lengths of their own"),
        (FixedBatch, {"requests": [Count(5)]}, "--llm-requests does not apply"),
        (TraceReplay, {"arrivals": Law("poisson")}, "the trace has its own instants"),
        (ConcurrencySteps, {"levels": [8, 8]}, "stands there twice"),
        (ConcurrencySteps, {"requests": [Count(1), Count(2)]}, "2 numbers of requests for 4 stages"),
        (ConcurrencySteps, {"requests": [Count(9)], "hold_s": 60.0}, "both end a stage"),
        (ConcurrencySteps, {"levels": [20], "hold_s": 3.0, "spawn_rate_per_s": 2.0}, "needs 10 s to start 20 users"),
        (ConcurrencySteps, {"run_time_s": 600.0}, "--run-time is 600 s, but ConcurrencySteps needs at least 1320"),
    ],
)
def test_contradiction_is_refused_at_start(shape: type[StagedShape], given: dict[str, object], says: str) -> None:
    """What contradicts the shape is one sentence with what would be right; nothing runs."""
    (problem,) = shape().problems(options(**given))
    assert says in problem
    with pytest.raises(ValueError, match=re.escape(problem)):
        shape().plan(options(**given))


def test_objectives_are_those_of_the_stage_else_of_its_shape() -> None:
    """By class attribute for all stages, by `stage(slo=…)` for one; a full plan's parts keep their own."""

    class Part(Baseline):
        slo = "ttft p50 < 1s"

    class Both(FullPlan):
        parts = (Part, MixedLoad)
        slo = "error_rate < 1%"

    class Own(StagedShape):
        slo = "error_rate < 2%"

        def stages(self, settings: PlanSettings) -> list[Stage]:
            own = self.stage(settings, "day", 2, hold="5s", slo="ttft p99 < 2s")
            return [self.stage(settings, "night", 2, hold="5s"), own]

    assert [stage.slo for stage in Both().plan(options())] == ["ttft p50 < 1s", "error_rate < 1%"]
    assert [stage.slo for stage in Own().plan(options())] == ["error_rate < 2%", "ttft p99 < 2s"]
    assert {stage.slo for stage in ConcurrencySteps().plan(options())} == {""}


def test_wrong_objectives_of_stages_are_told_once_with_a_pointer() -> None:
    """One problem a text, not one a stage."""

    class Wrong(ConcurrencySteps):
        levels = (2, 4)
        slo = "tftt p99 < 2s"

    assert Wrong().problems(options()) == [
        "slo of stages users-2, users-4: unknown metric tftt; did you mean ttft?\n  tftt p99 < 2s\n  ^"
    ]


def test_all_problems_are_told_at_once() -> None:
    """Two wrong options and a stage that is too short: three sentences."""
    wrong = options(users=3, rate_per_s=1.0, levels=[20], hold_s=3.0, spawn_rate_per_s=2.0)
    assert len(ConcurrencySteps().problems(wrong)) == 3


def test_wrong_class_attribute_is_told_at_start() -> None:
    """A level that is no whole number, a hold that is no time: C's floats never reach the runner."""

    class Half(ConcurrencySteps):
        levels = (2.5, 5)  # type: ignore[assignment]  # on purpose

    class Timeless(ConcurrencySteps):
        hold = "5 bananas"

    assert "whole number of users" in Half().problems(options())[0]
    assert "'5 bananas' is not a duration" in Timeless().problems(options())[0]


@pytest.mark.parametrize(
    ("shape", "attributes", "says"),
    [
        (ConcurrencySteps, {"levels": 8}, "Mine: levels 8: they are a tuple of users"),
        (ConcurrencySteps, {"levels": "8,16"}, "Mine: levels '8,16': they are a tuple of users"),
        (RateSteps, {"rates": 5}, "Mine: rates 5: they are a tuple of requests a second"),
        (ConcurrencySteps, {"requests": "2x"}, "Mine: requests '2x': they are a number, or a tuple"),
        (Soak, {"row": 0}, "Mine: row 0: it must be longer than 0 s"),
        (Soak, {"rate": "8"}, "Mine: TypeError: "),
        (StagedShape, {"stages": lambda self, settings: None}, "Mine: `stages` gives a list of what"),
        (StagedShape, {"stages": lambda self, settings: [{}]}, "Mine: `stages` gives a list of what"),
        (StagedShape, {"stages": lambda self, settings: []}, "the plan has no stage"),
        (StagedShape, {"stages": lambda self, settings: [self.stage(settings, "", 1, hold=9)]}, "a stage has no label"),
        (
            StagedShape,
            {"stages": lambda self, settings: 1 / 0},
            "Mine: ZeroDivisionError: division by zero (test_shapes",
        ),
    ],
)
def test_whatever_an_own_shape_says_wrong_is_one_sentence(
    shape: type[StagedShape], attributes: dict[str, object], says: str
) -> None:
    """No traceback at start, and nothing runs."""
    (problem,) = type("Mine", (shape,), attributes)().problems(options())
    assert problem.startswith(says)


def test_every_shape_has_a_sound_plan_by_default() -> None:
    """Whole users, labels of their own, an end; no shape is run by importing it, all keep Locust's options."""
    for shape in SHAPES:
        stages = shape().plan(options())
        assert len({s.label for s in stages}) == len(stages)
        assert all(type(s.users) is int and s.users > 0 for s in stages)
        assert shape.abstract
        assert shape.use_common_options
        assert all(s.hold_s or s.requests or s.arrivals == ArrivalSpec("trace") for s in stages)


def test_subclass_is_not_abstract() -> None:
    """A user's own subclass is what Locust runs."""

    class Mine(Soak):
        rate = 2

    assert not Mine.abstract


def test_tick_runs_the_conductor_that_begin_makes() -> None:
    """The first tick begins the run, once; the answers are the conductor's."""
    ensemble, made = Ensemble(), []

    def begin(shape: StagedShape) -> Conductor:
        made.append(Conductor([closed("x", 2)], ensemble, seed=1))
        return made[-1]

    shape = ConcurrencySteps()
    shape.begin = begin
    assert [shape.tick(), shape.tick()] == [(2, 100.0), (2, 100.0)]
    assert made == [shape.conductor]
    ensemble.close()


def test_run_time_belongs_to_the_plan_of_a_soak_only() -> None:
    """A soak lasts the run time; for other plans it is a limit."""
    assert Soak().run_limit_s(options(run_time_s=60.0)) is None
    assert MixedLoad().run_limit_s(options(run_time_s=900.0)) == 900.0
