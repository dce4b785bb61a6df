"""How a stage is dealt to workers: orders, shares, quotas, and what happens when a worker comes or goes.

The master's side of `StageOrder`. Knows no Locust, no sockets and no clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import msgspec
import numpy as np
from numpy.typing import NDArray

from llm_locust.load.arrivals import Cursor, Ownership, Schedule, Weights, first_index_from
from llm_locust.load.stage import Stage, StageOrder

CLOSED_LOOP_STRIDE = 1 << 24
"""A closed loop's indices of the k-th change of shares begin at k times this: no index is used twice."""

RESHARE_LEAD_NS = 1_500_000_000
"""How far ahead new shares are announced: a worker that hears of them late starts what others took over. Longer than
a starved process stands still (0.7 s seen with four times as many runnable processes as cores)."""


def order_of(leg: Sequence[Stage], number: int, seed: int, first_index: int, first_prompt: int = 0) -> StageOrder:
    """Make the order of a stage (and those that run through from it), without worker, shares and quota."""
    stage = leg[0]
    profile = []
    from_s = 0.0
    for part in leg:
        if part.rate_per_s is not None:
            profile.append((from_s, part.rate_per_s))
        from_s += part.hold_s or 0.0
    return StageOrder(
        number=number,
        label=stage.label,
        worker="",
        users=stage.users,
        shares=(),
        seed=seed,
        first_index=first_index,
        first_prompt=first_prompt,
        arrivals=stage.arrivals,
        profile=tuple(profile),
        warmup_requests_per_user=stage.warmup.requests_per_user,
        spread_s=stage.spread_s,
        release_together=stage.release_together,
        min_requests_per_user=0 if stage.open_loop or stage.requests is not None else stage.min_requests_per_user,
        prompts=stage.prompts,
        input_tokens=stage.input_tokens,
        output_tokens=stage.output_tokens,
        usual_input_tokens=stage.usual_input_tokens,
        usual_output_tokens=stage.usual_output_tokens,
    )


def deal_quota(requests: int, weights: Weights) -> dict[str, int]:
    """Deal a number of requests to workers by their users: largest remainders first, then the order of the workers."""
    total = sum(weight for _, weight in weights)
    if total <= 0:
        return {worker: 0 for worker, _ in weights}
    dealt = {worker: requests * weight // total for worker, weight in weights}
    by_remainder = sorted(weights, key=lambda share: -(requests * share[1] % total))
    for worker, _ in by_remainder[: requests - sum(dealt.values())]:
        dealt[worker] += 1
    return dealt


def return_quota(quotas: Mapping[str, int], lost: str, issued_there: int, weights: Weights) -> dict[str, int]:
    """Deal what a lost worker had not issued to the others (``weights``: theirs); quotas stay totals of the stage."""
    kept = {worker: quota for worker, quota in quotas.items() if worker != lost}
    returned = deal_quota(max(quotas.get(lost, 0) - issued_there, 0), weights)
    return {worker: kept.get(worker, 0) + returned.get(worker, 0) for worker in kept | returned}


class Dealer:
    """Deals one stage to the workers by their users, and deals again when those change."""

    def __init__(
        self,
        order: StageOrder,
        weights: Weights,
        requests: int | None = None,
        trace_ns: NDArray[np.int64] | None = None,
    ) -> None:
        """Deal for the first time. ``requests``: the stage's measured ones; ``trace_ns``: a trace's offsets."""
        self._order = msgspec.structs.replace(order, shares=((0, weights),))
        self._requests = requests
        self._trace_ns = trace_ns
        self._quotas: dict[str, int] | None = None if requests is None else deal_quota(requests, weights)
        self._changes = 0
        self._is_measured = False
        self.unissued = 0
        """Arrivals that fell due at a worker that was lost, before the others took over."""

    @property
    def weights(self) -> Weights:
        """The newest shares."""
        return self._order.weights

    def orders(self) -> list[StageOrder]:
        """Give the order of each worker that has a share."""
        return [self.order_for(worker) for worker, _ in self.weights]

    def order_for(self, worker: str) -> StageOrder:
        """Give one worker's order; one without a share gets nothing to issue, but knows the stage."""
        quota = None if self._quotas is None else self._quotas.get(worker, 0)
        return msgspec.structs.replace(self._order, worker=worker, quota=quota)

    def amend(self, order: StageOrder) -> None:
        """Take new rates (`Conductor` sends them as an order of the same number); shares and quotas stay."""
        self._order = msgspec.structs.replace(self._order, profile=order.profile)

    def deal_anew(self, weights: Weights) -> None:
        """Deal from the start: the users stand otherwise than foreseen, and nothing has been issued yet."""
        self._order = msgspec.structs.replace(self._order, shares=((0, weights),))
        if self._requests is not None:
            self._quotas = deal_quota(self._requests, weights)

    def measure(self, weights: Weights, offset_ns: int, window_ns: int) -> bool:
        """Deal by the users as the measured window finds them; False where nothing is to be sent.

        Users come one after the other: the first that came would have all shares and the whole quota, of which nothing
        has been issued before the window. New shares hold from ``offset_ns``; the window begins at ``window_ns``, both
        counted from the stage's opening. Within a stage once: users changed by hand split its row, not its quota.
        """
        if self._is_measured:
            return False
        self._is_measured = True
        scheduled, before = self._order.arrivals is not None, self._quotas
        reshared = scheduled and _parts(weights) != _parts(self.weights)
        if reshared:
            self.reshare(weights, offset_ns)
        if self._requests is not None:
            requests = self._requests
            self._quotas = self._owned_from(window_ns, requests) if scheduled else deal_quota(requests, weights)
        return reshared or self._quotas != before

    def with_quota(self, weights: Weights) -> Weights:
        """Leave out who came when the quota was dealt: its arrivals would be issued by nobody."""
        if self._quotas is None or not self._is_measured or self._order.arrivals is None:
            return weights
        return tuple((worker, users if self._quotas.get(worker) else 0) for worker, users in weights)

    def reshare(self, weights: Weights, offset_ns: int) -> None:
        """Let new shares hold from the first arrival due at or after the offset from the stage's opening.

        The offset lies as far ahead as the message needs. In a closed loop they hold at once. Quotas stay with the
        workers that have them; a newcomer gets none (`lost` and `take_back` deal those that nobody would issue).
        """
        self._changes += 1
        index = self._index_from(offset_ns) if self._order.arrivals else self._changes * CLOSED_LOOP_STRIDE
        kept = tuple(share for share in self._order.shares if share[0] < index)
        self._order = msgspec.structs.replace(self._order, shares=(*kept, (index, weights)))

    def take_back(self, worker: str, steady_issued: int, weights: Weights) -> bool:
        """Deal what a worker without users has not issued to those with users; False where there is nothing to deal."""
        others = tuple((name, users) for name, users in weights if name != worker and users)
        if self._quotas is None or not others or self._quotas.get(worker, 0) <= steady_issued:
            return False
        self._quotas = {**return_quota(self._quotas, worker, steady_issued, others), worker: steady_issued}
        return True

    def lost(self, worker: str, weights: Weights, *, steady_issued: int, last_seen_ns: int, offset_ns: int) -> None:
        """Go on without a worker: ``weights`` are the others', ``steady_issued`` what it last reported.

        Its arrivals due between its last report (``last_seen_ns``, an offset from the opening) and the first that the
        others take over are counted as unissued.
        """
        if self._order.arrivals is not None:
            self.unissued += self._owned_between(worker, last_seen_ns, offset_ns)
        if self._quotas is not None:
            self._quotas = return_quota(self._quotas, worker, steady_issued, weights)
        self.reshare(weights, offset_ns)

    def _schedule(self) -> Schedule:
        assert self._order.arrivals is not None
        seed = (self._order.seed, self._order.number)
        return Schedule(self._order.arrivals, self._order.profile, seed, self._trace_ns)

    def _owned_from(self, window_ns: int, requests: int) -> dict[str, int]:
        """Give each worker what it owns of the arrivals that come first in the window."""
        first, shares = self._index_from(window_ns), self._order.shares
        return {worker: Ownership(shares, worker).mine(first, requests).size for worker, _ in self.weights}

    def _index_from(self, offset_ns: int) -> int:
        return first_index_from(self._schedule(), offset_ns)

    def _owned_between(self, worker: str, from_ns: int, until_ns: int) -> int:
        """Count the worker's arrivals due within (from, until)."""
        cursor = Cursor(self._schedule(), Ownership(self._order.shares, worker))
        counts = []
        for offset_ns in (from_ns, until_ns - 1):
            count = 0
            while passed := len(cursor.pass_until(offset_ns)):
                count += passed
            counts.append(count)
        return counts[1]


def _parts(weights: Weights) -> dict[str, Fraction]:
    """The share of each worker that has one."""
    total = sum(users for _, users in weights)
    return {worker: Fraction(users, total) for worker, users in weights if users}
