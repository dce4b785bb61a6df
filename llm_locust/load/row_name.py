"""The name of the row in which a request stands, in every table and file."""

from __future__ import annotations

import logging
from functools import cache

from llm_locust.measure.snapshot import ALL

logger = logging.getLogger(__name__)


def row_name(name: str) -> str:
    """Return the name of the row of requests with this name: another where it is that of the row over all names."""
    return name if name != ALL else _renamed()


@cache
def _renamed() -> str:
    """Say it once, and give the row."""
    row = f"{ALL} (name)"
    logger.warning('Requests named "%s" stand in the row "%s": "%s" is the row over all names', ALL, row, ALL)
    return row
