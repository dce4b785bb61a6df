"""How long a user waits after a request that the server could not take.

After a rejection what the server asks for (Retry-After), at most 30 s, 1 s without one; after a failed connection
0.5 → 5 s with jitter; after any other failure at once, in a closed loop, what is left of a tenth of a second, so that a
user whose requests all fail does not ask hundreds of times a second (a schedule keeps its own pace). All lie outside
all latencies. Takes time and randomness as arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from email.utils import parsedate_to_datetime

from llm_locust.measure.record import FAILURES, Outcome
from llm_locust.wire.types import Exchange

LONGEST_PAUSE_S = 30.0
DEFAULT_PAUSE_S = 1.0
FIRST_CONNECT_PAUSE_S = 0.5
LONGEST_CONNECT_PAUSE_S = 5.0
LEAST_BETWEEN_FAILURES_S = 0.1

# A bug of ours fails each request at once: it must not become a busy loop either.
_NOTHING_CAME = frozenset({Outcome.CONNECT_ERROR, Outcome.TIMEOUT_CONNECT, Outcome.CLIENT_ERROR})


class Backoff:
    """One user's pauses."""

    def __init__(self) -> None:
        self._failures = 0

    def pause_s(
        self,
        outcome: Outcome,
        exchange: Exchange,
        epoch_s: float,
        draw: Callable[[], float],
        *,
        scheduled: bool = False,
    ) -> float:
        """Return the pause after a request that ended so, in seconds; 0 for none. `draw` gives a number in [0, 1)."""
        if outcome in _NOTHING_CAME or (outcome is Outcome.CUT and exchange.status is None):
            longest_s = min(FIRST_CONNECT_PAUSE_S * 2.0**self._failures, LONGEST_CONNECT_PAUSE_S)
            self._failures = min(self._failures + 1, 8)
            return max(FIRST_CONNECT_PAUSE_S, longest_s * (0.75 + 0.25 * draw()))
        self._failures = 0
        if outcome not in FAILURES:
            return 0.0
        if outcome is not Outcome.REJECTED:
            if scheduled:
                return 0.0
            took_s = 0.0 if exchange.end_ns is None else (exchange.end_ns - exchange.start_ns) / 1e9
            return max(LEAST_BETWEEN_FAILURES_S - took_s, 0.0)
        for name, value in exchange.headers:
            if name == b"retry-after":
                return retry_after_s(value.decode("latin-1"), epoch_s)
        return DEFAULT_PAUSE_S


def retry_after_s(value: str, epoch_s: float) -> float:
    """Read a Retry-After header: seconds or an HTTP date; between 0 and 30 s, 1 s where it is neither."""
    value = value.strip()
    try:
        wanted_s = float(value) if value[:1].isdigit() else float(parsedate_to_datetime(value).timestamp()) - epoch_s
    except (ValueError, TypeError, OverflowError):
        return DEFAULT_PAUSE_S
    return min(max(wanted_s, 0.0), LONGEST_PAUSE_S)
