"""A server's own counters, and a locustfile to lay beside another one: it keeps them as they stand when load begins.

    COUNTERS_FILE=before.txt locust -f locustfiles/llm.py,tests/real/counters.py ...

So what the pre-flight and the preparation of prompts asked for is not in the difference.
"""

from __future__ import annotations

import os
import urllib.request
from pathlib import Path
from typing import Any

from locust import events
from prometheus_client.parser import text_string_to_metric_families

VARIABLE = "COUNTERS_FILE"

Counters = dict[str, float]
"""Sample name to its sum over all labels."""


def read_text(url: str) -> str:
    """Ask the server for its metrics."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def sums(text: str) -> Counters:
    """Sum each sample over its labels; the buckets of histograms are left out."""
    found: Counters = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if not sample.name.endswith(("_bucket", "_created")):
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def growth(before: Counters, after: Counters) -> Counters:
    """Return by how much each counter grew; one that did not exist before began at 0."""
    return {name: value - before.get(name, 0.0) for name, value in after.items()}


def _listen(environment: Any, **_: Any) -> None:
    """Come after the suite's own listeners, which are added in `init` too."""
    if VARIABLE in os.environ:
        environment.events.test_start.add_listener(_keep)


def _keep(environment: Any, **_: Any) -> None:
    Path(os.environ[VARIABLE]).write_text(read_text(environment.host))


events.init.add_listener(_listen)  # type: ignore[no-untyped-call]  # Locust has no types here
