"""Closed-loop users against a pace on a virtual clock: no process, no sleep, known times."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from statistics import fmean

from llm_locust.mock.pace import NS_PER_MS, Pace, Sequence


@dataclass(slots=True)
class Finished:
    """One request of a virtual user."""

    user: int
    start_ns: int
    token_ns: list[int] = field(default_factory=list)

    @property
    def ttft_ms(self) -> float:
        return (self.token_ns[0] - self.start_ns) / NS_PER_MS

    @property
    def tpot_ms(self) -> float:
        return (self.token_ns[-1] - self.token_ns[0]) / (len(self.token_ns) - 1) / NS_PER_MS

    @property
    def e2e_ms(self) -> float:
        return (self.token_ns[-1] - self.start_ns) / NS_PER_MS


def run_closed_loop(pace: Pace, users: int, input_tokens: int, output_tokens: int, *,
                    requests_each: int, spread_ms: float = 0.0) -> list[Finished]:  # fmt: skip
    """Run users that ask again as soon as they are answered; return all their requests in order of completion."""
    starts = [(round(user * spread_ms * NS_PER_MS / users), user) for user in range(users)]
    heapq.heapify(starts)
    asked = [0] * users
    finished: list[Finished] = []
    while starts or pace.next_ns() is not None:
        next_ns = pace.next_ns()
        if starts and (next_ns is None or starts[0][0] <= next_ns):
            now_ns, user = heapq.heappop(starts)
            asked[user] += 1
            prefix = tuple(range(user * 10**9 + asked[user] * 10**6, user * 10**9 + asked[user] * 10**6 + input_tokens))
            pace.submit(Sequence(Finished(user, now_ns), 0, prefix, input_tokens, output_tokens), now_ns)
            continue
        assert next_ns is not None
        for sequence in pace.advance(next_ns):
            request: Finished = sequence.owner
            request.token_ns.append(next_ns)
            if sequence.done:
                finished.append(request)
                if asked[request.user] < requests_each:
                    heapq.heappush(starts, (next_ns, request.user))
    return finished


def mean_ttft_ms(requests: list[Finished]) -> float:
    """The mean time to first token."""
    return fmean(request.ttft_ms for request in requests)


def mean_tpot_ms(requests: list[Finished]) -> float:
    """The mean time per output token after the first."""
    return fmean(request.tpot_ms for request in requests)
