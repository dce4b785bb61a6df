"""What a run says of its prompts' lengths."""

from __future__ import annotations

import pytest

from llm_locust.load.preflight import Preflight
from llm_locust.load.yardstick import Yardstick
from llm_locust.plugin.facts import estimates
from llm_locust.prompts import Ruler


def found(*, estimate: str = "", overhead: int = 4) -> Preflight:
    ruler = Ruler(("a",), 1.0, overhead, "test")
    return Preflight(rulers=(Yardstick(dialect="openai-chat", ruler=ruler, estimate=estimate),))


@pytest.mark.parametrize(
    ("known", "least", "said"),
    [
        (found(), 64, ()),
        (found(), 5, ()),
        (found(), 1, ("prompts of fewer than 5 tokens have 5: the chat template and one word",)),
        (found(estimate="no usage"), 64, ("prompt lengths are estimates: no usage",)),
        (None, 64, ("prompt lengths are estimates: without a pre-flight nobody measured words",)),
        (None, None, ()),
    ],
    ids=["exact", "just long enough", "too short", "estimated", "no pre-flight", "no made prompts"],
)
def test_lengths_that_are_not_as_asked_for_are_said(
    known: Preflight | None, least: int | None, said: tuple[str, ...]
) -> None:
    """Each reason once; nothing where all is well."""
    assert estimates(known, least) == said
