"""The locustfile of the master benchmark: a plan of so many stages, all but the last one short.

LLM_BENCH_STAGES, LLM_BENCH_USERS, LLM_BENCH_WINDOW_S say how many, with how many users, and how long the last
one holds.
"""

import os

from llm_locust import LLMUser
from llm_locust.load.plan import PlanSettings
from llm_locust.load.stage import NO_WARMUP, Stage
from llm_locust.load.staged import StagedShape, running_through

STAGES = int(os.environ.get("LLM_BENCH_STAGES", "1"))
USERS = int(os.environ.get("LLM_BENCH_USERS", "8"))
WINDOW_S = float(os.environ.get("LLM_BENCH_WINDOW_S", "30"))
SHORT_S = 2.0


class User(LLMUser):
    """Never runs here: the workers are simulated."""


class Plan(StagedShape):
    """Stages that run through, so that a master gets to its last one soon."""

    min_requests_per_user = 0

    def stages(self, settings: PlanSettings) -> list[Stage]:
        """Give the stages."""
        holds_s = [SHORT_S] * (STAGES - 1) + [WINDOW_S]
        return running_through([
            Stage(label=f"level-{number:02}", users=USERS, hold_s=hold_s, warmup=NO_WARMUP, spawn_rate=USERS,
                  min_requests_per_user=0)
            for number, hold_s in enumerate(holds_s, 1)
        ])  # fmt: skip
