"""GET /metrics: Prometheus text under the names of SGLang and of vLLM, from the truth of finished requests.

Each figure is told twice, once under either name, so that a scraper of either server finds its own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

import msgspec

from llm_locust.mock.pace import Pace
from llm_locust.mock.truth import Told

NS_PER_S = 1e9
_FIRST_TOKEN = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
                80.0, 160.0, 640.0, 2560.0)  # fmt: skip
_PER_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
_REQUEST = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
            960.0, 1920.0, 7680.0)  # fmt: skip


class Histogram:
    """A Prometheus histogram of seconds."""

    def __init__(self, bounds_s: tuple[float, ...]) -> None:
        self._bounds_s = bounds_s
        self._counts = [0] * (len(bounds_s) + 1)
        self._sum_s = 0.0

    def observe(self, value_s: float) -> None:
        """Add one sample."""
        self._counts[bisect_left(self._bounds_s, value_s)] += 1
        self._sum_s += value_s

    def lines(self, name: str, labels: str) -> Iterable[str]:
        """The text of this histogram."""
        yield f"# TYPE {name} histogram"
        total = 0
        for bound, count in zip((*map(str, self._bounds_s), "+Inf"), self._counts, strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}",{labels}}} {total}'
        yield f"{name}_sum{{{labels}}} {self._sum_s!r}"
        yield f"{name}_count{{{labels}}} {total}"


class Metrics:
    """What /metrics tells; fed with each finished request."""

    def __init__(self) -> None:
        self._first_token = Histogram(_FIRST_TOKEN)
        self._inter_token = Histogram(_PER_TOKEN)
        self._per_token = Histogram(_PER_TOKEN)
        self._request = Histogram(_REQUEST)
        self._finished: Counter[str] = Counter()
        self._prompt_tokens = 0
        self._cached_tokens = 0

    def observe(self, told: Told) -> None:
        """Add one finished request; those that generated nothing have no times."""
        if told.finish_reason is None:
            return
        self._finished["abort" if told.client_gone else told.finish_reason] += 1
        self._prompt_tokens += told.prompt_tokens
        self._cached_tokens += told.cached_tokens
        times = told.token_send_ns
        if not times:
            return
        self._first_token.observe((times[0] - told.arrival_ns) / NS_PER_S)
        for before, after in pairwise(times):
            self._inter_token.observe((after - before) / NS_PER_S)
        if len(times) > 1:
            self._per_token.observe((times[-1] - times[0]) / (len(times) - 1) / NS_PER_S)
        self._request.observe((times[-1] - told.arrival_ns) / NS_PER_S)

    def text(self, pace: Pace, generated_tokens: int, model: str) -> str:
        """The whole page."""
        name = msgspec.json.encode(model).decode()
        sglang = f'engine_type="unified",model_name={name}'
        vllm = f'engine="0",model_name={name}'
        lines = [*self._both_gauges(pace, sglang, vllm), *self._both_counters(pace, generated_tokens, sglang, vllm)]
        for name, histogram in (
            ("time_to_first_token_seconds", self._first_token),
            ("inter_token_latency_seconds", self._inter_token),
            ("request_time_per_output_token_seconds", self._per_token),
            ("e2e_request_latency_seconds", self._request),
        ):
            lines += histogram.lines(f"sglang:{name}", sglang)
            lines += histogram.lines(f"vllm:{name}", vllm)
        return "\n".join(lines) + "\n"

    def _both_gauges(self, pace: Pace, sglang: str, vllm: str) -> Iterable[str]:
        hit_rate = self._cached_tokens / self._prompt_tokens if self._prompt_tokens else 0.0
        yield from _sample("sglang:num_running_reqs", "gauge", sglang, pace.running)
        yield from _sample("sglang:num_queue_reqs", "gauge", sglang, pace.waiting)
        yield from _sample("sglang:token_usage", "gauge", sglang, pace.kv_used_ratio)
        yield from _sample("sglang:cache_hit_rate", "gauge", sglang, hit_rate)
        yield from _sample("vllm:num_requests_running", "gauge", vllm, pace.running)
        yield from _sample("vllm:num_requests_waiting", "gauge", vllm, pace.waiting)
        yield from _sample("vllm:kv_cache_usage_perc", "gauge", vllm, pace.kv_used_ratio)

    def _both_counters(self, pace: Pace, generated_tokens: int, sglang: str, vllm: str) -> Iterable[str]:
        for prefix, labels in (("sglang:", sglang), ("vllm:", vllm)):
            yield from _sample(f"{prefix}prompt_tokens_total", "counter", labels, self._prompt_tokens)
            yield from _sample(f"{prefix}generation_tokens_total", "counter", labels, generated_tokens)
        yield from _sample("sglang:cached_tokens_total", "counter", sglang, self._cached_tokens)
        yield from _sample("sglang:num_requests_total", "counter", sglang, self._finished.total())
        yield from _sample("sglang:num_aborted_requests_total", "counter", sglang, self._finished["abort"])
        yield from _sample("vllm:prefix_cache_queries_total", "counter", vllm, self._prompt_tokens)
        yield from _sample("vllm:prefix_cache_hits_total", "counter", vllm, self._cached_tokens)
        yield from _sample("vllm:num_preemptions_total", "counter", vllm, pace.preemptions)
        yield "# TYPE vllm:request_success_total counter"
        for reason in ("stop", "length", "abort"):
            yield f'vllm:request_success_total{{finished_reason="{reason}",{vllm}}} {self._finished[reason]}'


def _sample(name: str, kind: str, labels: str, value: float) -> Iterable[str]:
    yield f"# TYPE {name} {kind}"
    yield f"{name}{{{labels}}} {value}"
