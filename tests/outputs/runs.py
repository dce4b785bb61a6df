"""A hand-made run that the tests of its files share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from llm_locust.measure.seconds import SECOND_COLUMNS, SecondRow
from llm_locust.outputs import RunFacts, TimelineRow, WorkerFacts

RUN_ID = "20260301-101500_m_users"


def facts(locustfile: Path) -> RunFacts:
    """Return a run with something in every field."""
    return RunFacts(
        run_id=RUN_ID,
        started=datetime(2026, 3, 1, 18, 0, 0, tzinfo=timezone(timedelta(hours=8))),
        host="http://127.0.0.1:8000",
        model="组织/m",
        shape=None,
        versions={"python": "3.11.9", "locust": "2.47.0"},
        settings={"users": 8, "seed": None},
        options={"host": "http://127.0.0.1:8000", "users": 8},
        left_out={"llm-api-key": "secret: set LOCUST_LLM_API_KEY"},
        seeds={"run": 42},
        repeat_command="locust -f llm.py --host http://127.0.0.1:8000 --users 8",
        server={"usage": True},
        tags={"gpu": "H100"},
        note="=1+1 \ud83e",
        locustfiles=(locustfile,),
        workers=(WorkerFacts(worker="w1", host="h", pid=7, version="0.1.0", timestamp_source="kernel"),),
    )


def second(epoch_s: int, **values: float) -> TimelineRow:
    """Return a second in which everything that is not given is absent."""
    whole: Mapping[str, Any] = {**dict.fromkeys(SECOND_COLUMNS), **values}
    return TimelineRow(second=SecondRow(epoch_s, whole), stage="8 users", phase="steady", users=8)


class Sayings(list[str]):
    """What the user was told."""

    def __call__(self, sentence: str) -> None:
        self.append(sentence)
