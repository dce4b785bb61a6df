"""A locustfile to lay beside another one: it keeps the server's counters as they stand when the load begins.

    COUNTERS_FILE=before.txt locust -f locustfiles/llm.py,tests/real/before_load.py ...

So what the pre-flight and the preparation of prompts asked for is not in the difference.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from locust import events

from tests.real.counters import read_text


def _listen(environment: Any, **_: Any) -> None:
    """Come after the suite's own listeners, which are added in `init` too."""
    environment.events.test_start.add_listener(_keep)


def _keep(environment: Any, **_: Any) -> None:
    Path(os.environ["COUNTERS_FILE"]).write_text(read_text(environment.host))


events.init.add_listener(_listen)  # type: ignore[no-untyped-call]  # Locust has no types here
