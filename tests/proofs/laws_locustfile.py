"""Four arrival laws, a stage each, without a pause in the law: what the proof of arrivals runs."""

import os

import msgspec

from llm_locust import LLMUser
from llm_locust.load.arrivals import ArrivalSpec
from llm_locust.load.plan import PlanSettings
from llm_locust.load.stage import Stage
from llm_locust.load.staged import StagedShape

RATE_PER_S = float(os.environ.get("PROOF_RATE", "100"))
ARRIVALS = int(os.environ.get("PROOF_ARRIVALS", "2000"))
LAWS = {
    "poisson": ArrivalSpec("poisson"),
    "constant": ArrivalSpec("constant"),
    "gamma-0.25": ArrivalSpec("gamma", cv=0.25),
    "gamma-2": ArrivalSpec("gamma", cv=2.0),
}


class User(LLMUser):
    """Asks short questions."""


class Laws(StagedShape):
    """The same rate under each law."""

    warmup = 0
    input_tokens = 16
    output_tokens = 4

    def stages(self, settings: PlanSettings) -> list[Stage]:
        """Give a stage a law."""
        hold_s = ARRIVALS / RATE_PER_S
        stages = {law: self.stage(settings, law, users=96, hold=hold_s, rate_per_s=RATE_PER_S) for law in LAWS}
        return [msgspec.structs.replace(stage, arrivals=LAWS[law]) for law, stage in stages.items()]
