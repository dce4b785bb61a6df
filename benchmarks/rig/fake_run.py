"""A run that never was, second by second and without a server: pictures, seconds, records, workers as the loop hands
them to the page. Numbers go through the real cells, so that rows, files and page agree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

import numpy as np

from llm_locust.measure.aggregate import STAGE_WIDE, Aggregate
from llm_locust.measure.finish import Samples
from llm_locust.measure.record import FAILURES, Outcome, RequestRecord
from llm_locust.measure.slo import Slo
from llm_locust.measure.slo_grammar import parse_slo
from llm_locust.measure.snapshot import ALL, RUN, StageFacts, snapshot
from llm_locust.outputs import Picture, Progress, RunFacts, StageVerdict, TimelineRow, Validity
from llm_locust.outputs.live import WorkerNow

NS = 1_000_000_000
BEGAN_S = 1_772_359_200
SLO = "ttft p99 < 2s; tpot p99 < 120ms; goodput(ttft < 2s) > 90%"
HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'


@dataclass(frozen=True)
class FakeStage:
    """One step of the load: what a request of it looks like."""

    label: str
    users: int
    ttft_ms: float
    tpot_ms: float
    seconds: int = 60
    rate_per_s: float | None = None
    ok_per_s: float = 3.0
    failed_ratio: float = 0.0


SWEEP = (
    FakeStage("8 users", 8, 420, 28, ok_per_s=1.2),
    FakeStage("16 users", 16, 560, 34, ok_per_s=2.1),
    FakeStage("32 users", 32, 900, 47, ok_per_s=3.3, failed_ratio=0.01),
    FakeStage("64 users", 64, 2900, 92, ok_per_s=4.2, failed_ratio=0.06),
)
OPEN = (
    FakeStage("2 req/s", 512, 450, 30, rate_per_s=2, ok_per_s=2),
    FakeStage("5 req/s", 512, 800, 45, rate_per_s=5, ok_per_s=5),
    FakeStage("10 req/s", 512, 2600, 80, rate_per_s=10, ok_per_s=7, failed_ratio=0.03),
)
"""The last one cannot keep up: what was due and not started by its end is dropped."""
NIGHT = tuple(
    FakeStage(f"{8 * n} users", 8 * n, 300 + 50 * n, 30 + n, seconds=2160, ok_per_s=0.4) for n in range(1, 21)
)
"""12 h in 20 stages."""
PLANS = {"sweep": SWEEP, "open": OPEN, "night": NIGHT}


def facts(run_id: str = "20260301-101500_deepseek-r1_ConcurrencySteps", **other: object) -> RunFacts:
    """What the run is."""
    values: dict[str, object] = {
        "run_id": run_id,
        "started": datetime.fromtimestamp(BEGAN_S, UTC),
        "host": "http://sglang:30000",
        "model": "deepseek-r1",
        "shape": "ConcurrencySteps",
        "versions": {"llm-locust": "0.1.0", "locust": "2.47.0"},
        "settings": {"price_per_gpu_hour": 2.5},
        "options": {},
        "seeds": {"run": 7},
        "tags": {"gpu": "H100", "gpus": "32", "engine": "sglang"},
        "note": "两节点，张量并行 16",
    }
    return RunFacts(**{**values, **other})  # type: ignore[arg-type]


@dataclass
class FakeRun:
    """Takes seconds one by one; `take` gives what was new."""

    stages: tuple[FakeStage, ...] = SWEEP
    name: str = "chat"
    error: str = "the queue is full"
    finish: str = "stop"
    workers: int = 2
    began_s: int = BEGAN_S
    seed: int = 7
    slo: Slo = field(default_factory=lambda: parse_slo(SLO))

    def __post_init__(self) -> None:
        self.numbers = Aggregate()
        self.random = Random(self.seed)
        self.gaps = np.random.default_rng(self.seed)
        self.second = 0
        self.records: list[RequestRecord] = []
        self.rows: list[TimelineRow] = []
        self.tokens = 0
        self.ids = 0
        self.where: list[tuple[FakeStage, int]] = [
            (stage, second) for stage in self.stages for second in range(stage.seconds)
        ]

    @property
    def over(self) -> bool:
        """Whether all stages have run."""
        return self.second >= len(self.where)

    def step(self, seconds: int = 1) -> None:
        """Let so many seconds pass."""
        for _ in range(min(seconds, len(self.where) - self.second)):
            stage, into = self.where[self.second]
            self._pass(stage, into, self.began_s + self.second)
            self.second += 1

    def picture(self) -> Picture:
        """The run as it is now."""
        facts = {stage.label: StageFacts(stage.users, stage.rate_per_s) for stage in self.stages}
        shown = snapshot(self.numbers, (self.began_s + self.second) * NS, facts)
        stage, into = self.where[min(self.second, len(self.where) - 1)]
        verdicts = {
            row.stage: StageVerdict(validity=Validity.VALID, finished=row.stage != stage.label or self.over)
            for row in shown.rows
        }
        if "64 users" in verdicts:
            reasons = ("dispatch lag p99 3.1 ms is over max(2 ms, 5 % of TTFT p50)",)
            verdicts["64 users"] = StageVerdict(validity=Validity.SUSPECT, reasons=reasons, findings=("SATURATED",))
        verdicts[RUN] = StageVerdict(validity=Validity.SUSPECT if "64 users" in verdicts else Validity.VALID)
        return Picture(
            snapshot=shown,
            verdicts=verdicts,
            slo={row.stage: self.slo.verdicts(row.values) for row in shown.rows if row.name == ALL},
            progress=Progress(
                stage=stage.label,
                phase=self._phase(stage, into),
                stage_number=self.stages.index(stage) + 1,
                stages=len(self.stages),
                users=stage.users,
                in_flight=stage.users,
                elapsed_s=float(self.second),
                left_s=float(len(self.where) - self.second),
            ),
        )

    def take(self) -> tuple[list[TimelineRow], list[RequestRecord]]:
        """The seconds and the records since the last call."""
        rows, self.rows = self.rows, []
        records, self.records = self.records, []
        return rows, records

    def crew(self) -> list[WorkerNow]:
        """The workers as their last reports showed them."""
        stage, _ = self.where[min(self.second, len(self.where) - 1)]
        return [
            WorkerNow(
                worker=f"w{number}",
                host=f"node{number}",
                timestamp_source="kernel",
                users=stage.users // self.workers,
                in_flight=stage.users // self.workers,
                output_tok_per_s=self.tokens / self.workers,
                loop_lag_p99_ms=0.4 * number,
                cpu_percent=31.0 + number,
                report_age_s=1.2,
                clock_offset_ms=0.03 * number,
            )
            for number in range(1, self.workers + 1)
        ]

    def _phase(self, stage: FakeStage, into: int) -> str:
        share = into / stage.seconds
        return "ramp" if share < 0.05 else "warmup" if share < 0.12 else "steady" if share < 0.95 else "drain"

    def _pass(self, stage: FakeStage, into: int, epoch_s: int) -> None:
        phase = self._phase(stage, into)
        second = self.numbers.second(epoch_s)
        window = self.numbers.window(stage.label, self.name, phase)
        shared = self.numbers.window(stage.label, STAGE_WIDE, phase)
        shared.low("from", epoch_s * NS)
        shared.high("until", (epoch_s + 1) * NS)
        self.tokens = 0
        n = int(stage.ok_per_s + self.random.random())
        for _ in range(n):
            record, gaps = self._request(stage, phase, epoch_s)
            kind = "failed" if record.outcome in FAILURES else "ok"
            self.numbers.add(record, Samples(icl_ns=gaps, itl_ns=gaps, streamed_tokens=record.output_tokens))
            self.records.append(record)
            for tally in (second, window):
                tally.counts["started"] += 1
                tally.counts[kind] += 1
                tally.counts["output_tokens"] += record.output_tokens or 0
                tally.counts["input_tokens"] += record.input_tokens or 0
            window.counts["good"] += bool(record.slo_good)
            self.tokens += record.output_tokens or 0
            if kind == "ok":
                for name in ("ttft", "ttft_scheduled", "tpot", "user_wait", "dispatch_lag"):
                    second.sample(f"{name}_ms", getattr(record, f"{name}_ns"))
                second.samples("itl_ms", gaps)
        if stage.rate_per_s and self._phase(stage, into + 1) == "drain" and phase == "steady":
            dropped = int((stage.rate_per_s - stage.ok_per_s) * stage.seconds)
            self.numbers.add_unstarted(stage.label, phase, [(1 + at) * NS // 10 for at in range(dropped)])
        for tally in (second, window):
            tally.counts["in_flight_ns"] += int(stage.users * 0.97 * NS)
        second.counts["in_flight_peak"] += stage.users
        self.rows += [
            TimelineRow(
                second=row, stage=stage.label, phase=phase, users=stage.users, loop_lag_ms_max=self.random.random() * 2
            )
            for row in self.numbers.pop_seconds(epoch_s + 1)
        ]

    def _request(self, stage: FakeStage, phase: str, epoch_s: int) -> tuple[RequestRecord, np.ndarray]:
        """One request that ended in this second; a third of them waited for a busy prefill: two modes."""
        random = self.random
        self.ids += 1
        slow = 3.2 if random.random() < 0.33 else 1.0
        input_tokens, output_tokens = random.randint(256, 4096), random.randint(64, 1024)
        ttft_ns = int(stage.ttft_ms * 1e6 * slow * random.lognormvariate(0, 0.12) * (0.7 + input_tokens / 8000))
        tpot_ns = stage.tpot_ms * 1e6 * random.lognormvariate(0, 0.08)
        failed = random.random() < stage.failed_ratio
        wait_ns = int(random.expovariate(1 / 40e6)) if stage.rate_per_s else None
        start_ns = epoch_s * NS + random.randrange(NS)
        e2e_ns = ttft_ns + int(tpot_ns * (output_tokens - 1))
        scheduled = None if wait_ns is None else start_ns - wait_ns
        ok: dict[str, object] = {
            "ttft_ns": ttft_ns,
            "ttfa_ns": ttft_ns,
            "e2e_ns": e2e_ns,
            "tpot_ns": tpot_ns,
            "stream_end_ns": e2e_ns,
            "headers_ns": ttft_ns // 2,
            "output_tokens": output_tokens,
            "output_tokens_requested": output_tokens,
            "outcome": Outcome.OK,
            "finish_reason": "length" if random.random() < 0.8 else self.finish,
            "http_status": 200,
            "slo_good": ttft_ns < 2e9,
            "ttft_scheduled_ns": None if wait_ns is None else ttft_ns + wait_ns,
            "e2e_scheduled_ns": None if wait_ns is None else e2e_ns + wait_ns,
        }
        bad: dict[str, object] = {
            "outcome": Outcome.REJECTED,
            "http_status": 503,
            "error": self.error,
            "stream_end_ns": 9_000_000,
            "slo_good": False,
        }
        record = RequestRecord(
            run_id="r",
            worker=f"w{1 + self.ids % self.workers}",
            request_id=self.ids,
            user_class="Chat",
            name=self.name,
            dialect="openai-chat",
            stage=stage.label,
            phase=phase,
            start_epoch_ns=start_ns,
            scheduled_epoch_ns=scheduled,
            user_wait_ns=wait_ns,
            dispatch_lag_ns=None if wait_ns is None else 200_000,
            input_tokens=input_tokens,
            input_tokens_requested=input_tokens,
            output_tokens_source="usage",
            timestamp_source="kernel",
            **(bad if failed else ok),  # type: ignore[arg-type]
        )
        gaps = self.gaps.normal(tpot_ns, tpot_ns * 0.1, 60).clip(1e5).astype(np.int64)
        gaps[::15] = gaps[::15] * 5
        return record, gaps
