"""How many tokens each event of a stream brought: provisionally while it runs, finally when it has ended.

Knows no I/O and no clock.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

UNKNOWN = -1
"""The cumulative count of an event that told none."""


_ONES: Ints = np.ones(1024, np.int64)
_ONES.flags.writeable = False


def one_each(events: int) -> Ints:
    """Return one token an event, not to be written to."""
    return _ONES[:events] if events <= len(_ONES) else np.ones(events, np.int64)


def running_tokens(cumulative: Ints, before: int, arrivals: Ints) -> Ints:
    """Return the tokens of each event as far as one can tell yet: the growth of the server's count, or one
    per arrival where it told none. `before` is the count of the event before the first of these.
    """
    known = np.maximum(cumulative, 0)
    growth = known.copy()
    growth[1:] -= known[:-1]
    growth[:1] -= max(before, 0)
    return np.where(cumulative == UNKNOWN, arrivals, np.maximum(growth, 0))


def known_tokens(cumulative: Ints) -> Ints | None:
    """Return the tokens of each event where the running count tells, else None.

    It tells when each event has one, it never falls, and it grows: some gateways repeat the final figure on
    every event.
    """
    if cumulative[0] <= 0 or cumulative[-1] <= cumulative[0]:
        return None
    tokens = np.diff(cumulative, prepend=0)
    return None if tokens.min() < 0 else tokens


def final_tokens(weights: Ints, total: int) -> Ints:
    """Spread the true total over the events in proportion to their weights; exact in sum, never negative.

    Up to any event the sum is within one token of its share, so no second gets another's tokens.
    """
    reached = np.cumsum(weights)
    if not reached.size or reached[-1] == total:
        return weights
    shares: Ints = reached * total // reached[-1]
    shares[1:] -= shares[:-1].copy()
    return shares
