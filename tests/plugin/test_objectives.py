"""Who is judged by what: the run by its option, else each class by its own rows and limits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from llm_locust.load.users import LLMUser
from llm_locust.measure.metrics import STAGE_COLUMNS
from llm_locust.measure.record import Outcome, RequestRecord
from llm_locust.measure.slo_grammar import SloError
from llm_locust.measure.snapshot import ALL, StageRow
from llm_locust.plugin.objectives import objectives
from llm_locust.plugin.settings import Settings


class Chat(LLMUser):
    """Judged by its first token."""

    name = "chat"
    slo = "ttft p99 < 1s; goodput(ttft < 1s) > 90%"


class Digest(LLMUser):
    """Judged by its end."""

    name = "digest"
    slo = "e2e p99 < 60s"


def record(user_class: str, ttft_ms: int) -> RequestRecord:
    return RequestRecord(
        run_id="r", worker="w", request_id=0, user_class=user_class, name="n", dialect="d", stage="s", phase="steady",
        start_epoch_ns=0, ttft_ns=ttft_ms * 1_000_000, e2e_ns=ttft_ms * 1_000_000, outcome=Outcome.OK,
    )  # fmt: skip


def row(name: str, **values: Any) -> StageRow:
    found = {**dict.fromkeys(STAGE_COLUMNS), "load": "closed loop", **values}
    return StageRow("s", name, "steady", found)


def test_each_class_is_judged_by_its_own_rows() -> None:
    """A class that sent nothing in a stage has missed what is demanded of it."""
    demanded = objectives(Settings(), [Chat, Digest])
    assert demanded is not None
    rows = [
        row(ALL, ttft_ms_p99=9000.0, ttft_ms_count=20),
        row("chat", ttft_ms_p99=800.0, ttft_ms_count=10, attainment=0.95, slo_judged=10),
    ]
    told = {verdict.clause: (verdict.got, verdict.passed) for verdict in demanded.verdicts(rows)["s"]}
    assert told["Chat: ttft p99 < 1s"] == (800.0, True)
    assert told["Digest: e2e p99 < 60s"] == (None, False)


def test_class_named_as_the_row_over_all_names_is_judged_by_its_own() -> None:
    """Its requests stand in another row, and so do its objectives."""
    named = type("Named", (Chat,), {"name": "all"})
    demanded = objectives(Settings(), [named, Digest])
    assert demanded is not None
    rows = [row("all (name)", ttft_ms_p99=800.0, ttft_ms_count=10), row(ALL, ttft_ms_p99=9000.0, ttft_ms_count=20)]
    assert next(verdict.got for verdict in demanded.verdicts(rows)["s"]) == 800.0


def test_each_request_is_judged_by_the_limits_of_its_class() -> None:
    """A class without limits per request is not judged by another's."""
    demanded = objectives(Settings(), [Chat, Digest])
    assert demanded is not None
    assert demanded.judge_requests
    judged = [demanded.request_good(record(name, 1500)) for name in ("Chat", "Digest", "Other")]
    assert judged == [False, None, None]
    assert demanded.request_good(record("Chat", 500)) is True


def test_option_takes_the_place_of_the_classes_own() -> None:
    """An option that is given wins."""
    demanded = objectives(Settings(slo="goodput(ttft < 2s) > 1%"), [Chat, Digest])
    assert demanded is not None
    assert demanded.request_good(record("Chat", 1500)) is True
    assert demanded.of_class == {}


def test_nothing_is_demanded_where_nobody_says_so() -> None:
    """Then failures decide the exit code."""
    assert objectives(Settings(), [type("Plain", (LLMUser,), {})]) is None


def test_class_without_a_name_is_judged_by_all_rows_where_it_is_alone() -> None:
    """Beside another class its rows could not be told apart."""
    nameless = type("Nameless", (LLMUser,), {"slo": "ttft p99 < 1s"})
    demanded = objectives(Settings(), [nameless])
    assert demanded is not None
    rows = [row(ALL, ttft_ms_p99=900.0, ttft_ms_count=5)]
    assert [verdict.passed for verdict in demanded.verdicts(rows)["s"]] == [True]
    with pytest.raises(SloError, match="Nameless has no `name`"):
        objectives(Settings(), [nameless, Chat])


DAY = {"night": "", "day": "ttft p99 < 500ms; goodput(ttft < 500ms) > 90%", "spike-2": ""}


def test_stage_is_judged_by_its_own_instead_of_the_classes() -> None:
    """Option > stage > user class; a stage without its own leaves it to the classes."""
    demanded = objectives(Settings(), [Chat], DAY)
    assert demanded is not None
    whole, chat = (row(name, ttft_ms_p99=700.0, ttft_ms_count=9) for name in (ALL, "chat"))
    rows = [replace(whole, stage="night"), replace(whole, stage="day"), replace(chat, stage="night")]
    told = {stage: verdicts[0] for stage, verdicts in demanded.verdicts(rows).items()}
    assert {stage: (v.clause, v.passed) for stage, v in told.items()} == {
        "night": ("Chat: ttft p99 < 1s", True),
        "day": ("ttft p99 < 500ms", False),
    }
    assert demanded.request_good(msgspec.structs.replace(record("Chat", 700), stage="day")) is False
    assert demanded.request_good(msgspec.structs.replace(record("Chat", 700), stage="night")) is True
    by_option = objectives(Settings(slo="goodput(ttft < 2s) > 1%"), [Chat], DAY)
    assert by_option is not None
    assert by_option.request_good(msgspec.structs.replace(record("Chat", 1500), stage="day")) is True


def test_stage_of_which_nothing_is_demanded_is_not_judged() -> None:
    """Neither its requests, nor its row, nor what it did not start."""
    demanded = objectives(Settings(), [], DAY)
    assert demanded is not None
    assert demanded.judge_requests
    night = replace(row(ALL, ttft_ms_p99=700.0, ttft_ms_count=9), stage="night")
    assert demanded.verdicts([night]) == {}
    assert demanded.request_good(msgspec.structs.replace(record("Chat", 9), stage="night")) is None
    assert [demanded.missed_by_waiting(label, 600_000_000) for label in ("day", "night")] == [True, False]


def test_row_that_an_edit_split_off_is_judged_as_its_stage() -> None:
    """`day-2` belongs to `day`; a stage of the plan whose label ends in a number is its own."""
    demanded = objectives(Settings(), [], {**DAY, "spike": "ttft p99 < 1s"})
    assert demanded is not None
    told = {label: demanded.of_row(label) for label in ("day", "day-2", "spike", "spike-2", "spike-2-2")}
    assert [label for label, slo in told.items() if slo is not None] == ["day", "day-2", "spike"]
    assert told["day-2"] is told["day"]


def test_plan_without_objectives_of_its_stages_demands_nothing() -> None:
    """As if no stage had been named."""
    assert objectives(Settings(), [], {"a": "", "b": ""}) is None
