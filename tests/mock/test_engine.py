"""The engine model on a virtual clock: the published table, and each mechanism alone."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections import Counter

import pytest

from llm_locust.mock.engine import Engine
from llm_locust.mock.kv import KVPool
from llm_locust.mock.pace import NS_PER_MS, Sequence
from llm_locust.mock.profiles import PROFILES, Profile
from tests.mock.closed_loop import mean_tpot_ms, mean_ttft_ms, run_closed_loop

PUBLISHED = [  # users, TTFT ms, TPOT ms, mean output tokens of the measurement
    pytest.param(8, 1200, 85, 202, id="8 users"),
    pytest.param(16, 1850, 92, 194, id="16 users"),
    pytest.param(32, 3200, 115, 187, id="32 users"),
    pytest.param(64, 5288, 210, 145, id="64 users"),
]
# Round numbers: a step is 10 ms + 1 ms a sequence, a prompt advances by one token a ms and costs 0.1 ms a token.
PLAIN = Profile(
    step_base_ms=10.0,
    step_per_sequence_ms=1.0,
    knee_sequences=1000.0,
    step_beyond_knee_ms=0.0,
    prefill_tokens_per_s=10_000.0,
    prompt_base_ms=1.0,
    prompt_per_sequence_ms=0.0,
    prompt_most_ms=1.0,
    prefill_share=0.5,
    max_batch=4,
    kv_tokens=160,
    block_tokens=16,
)


@pytest.mark.parametrize("spread_ms", [0.0, 20_000.0], ids=["burst", "spread"])
@pytest.mark.parametrize(("users", "ttft_ms", "tpot_ms", "output_tokens"), PUBLISHED)
def test_profile_gives_the_published_ttft_and_tpot(
    users: int, ttft_ms: float, tpot_ms: float, output_tokens: int, spread_ms: float
) -> None:
    """Closed loop, 1024 prompt tokens: TTFT and TPOT within 5 % however the users start."""
    engine = Engine(PROFILES["deepseek-r1-32xh100"])
    requests = run_closed_loop(engine, users, 1024, output_tokens, requests_each=5, spread_ms=spread_ms)
    loaded = [request for request in requests if request.start_ns > spread_ms * NS_PER_MS]
    assert mean_ttft_ms(loaded) == pytest.approx(ttft_ms, rel=0.05)
    assert mean_tpot_ms(loaded) == pytest.approx(tpot_ms, rel=0.05)
    assert len(requests) == 5 * users


@pytest.mark.parametrize(("users", "ttft_ms", "tpot_ms", "_tokens"), PUBLISHED)
def test_profile_holds_for_long_answers(users: int, ttft_ms: float, tpot_ms: float, _tokens: int) -> None:
    """TTFT and TPOT follow from the users; E2E from the length asked for."""
    engine = Engine(PROFILES["deepseek-r1-32xh100"])
    requests = run_closed_loop(engine, users, 1024, 1024, requests_each=2, spread_ms=20_000.0)
    loaded = [request for request in requests if request.start_ns > 20_000 * NS_PER_MS]
    assert mean_ttft_ms(loaded) == pytest.approx(ttft_ms, rel=0.05)
    assert mean_tpot_ms(loaded) == pytest.approx(tpot_ms, rel=0.05)
    assert loaded[0].e2e_ms == pytest.approx(ttft_ms + 1023 * tpot_ms, rel=0.05)


def ask(engine: Engine, prompt_tokens: int, limit_tokens: int, now_ms: float = 0.0, salt: int = 0) -> Sequence:
    """Submit one sequence with a prompt of its own (or of this salt)."""
    prefix = tuple(range(salt, salt + prompt_tokens))
    sequence = Sequence(None, 0, prefix, prompt_tokens, limit_tokens)
    engine.submit(sequence, round(now_ms * NS_PER_MS))
    return sequence


def run(engine: Engine) -> list[tuple[float, Sequence]]:
    """Run to the end; return (ms, sequence) of each token."""
    tokens: list[tuple[float, Sequence]] = []
    while (at_ns := engine.next_ns()) is not None:
        tokens += [(at_ns / NS_PER_MS, sequence) for sequence in engine.advance(at_ns)]
    return tokens


def test_step_takes_base_and_batch_time_when_decoding() -> None:
    """One sequence of a short prompt: prefill in one step, then 11 ms a token."""
    engine = Engine(PLAIN)
    ask(engine, 5, 4)
    # First step: 11 ms of decoding and 5 tokens of prefill at 0.1 ms.
    assert [round(at, 3) for at, _ in run(engine)] == [11.5, 22.5, 33.5, 44.5]
    assert engine.running == engine.waiting == 0
    assert engine.kv_used_ratio == 0


def test_prefill_goes_in_chunks_that_delay_decoding() -> None:
    """A prompt of 60 tokens needs several steps; the stream that decodes meanwhile gets longer gaps."""
    engine = Engine(PLAIN)
    decoding = ask(engine, 5, 12)
    assert engine.advance(round(11.5 * NS_PER_MS)) == [decoding]
    prompt = ask(engine, 60, 1, now_ms=12.0, salt=1000)
    tokens = run(engine)
    first = next(at for at, sequence in tokens if sequence is prompt)
    gaps = [round(b - a, 2) for (a, s), (b, _) in itertools.pairwise(tokens) if s is decoding]
    # It joins at 22.5 ms; a step of 2 sequences is 12 ms and lasts 13.3 with its chunk of 13 tokens.
    assert first == pytest.approx(22.5 + 5 * 12 + 60 * 0.1)
    assert max(gaps) == pytest.approx(13.3)
    assert min(gap for gap in gaps if gap) == pytest.approx(11.0)


def test_queue_is_served_in_order_when_the_batch_is_full() -> None:
    """Five sequences, a batch of four: the fifth starts when the first ends."""
    engine = Engine(PLAIN)
    sequences = [ask(engine, 1, 3, salt=100 * number) for number in range(5)]
    assert (engine.running, engine.waiting) == (1, 4)  # the idle engine began with the first alone
    engine.advance(engine.next_ns() or 0)
    assert (engine.running, engine.waiting) == (4, 1)
    order = [sequence for _, sequence in run(engine) if sequence.done]
    assert order.index(sequences[0]) < order.index(sequences[4])
    assert all(sequence.generated == 3 for sequence in sequences)


def test_sequence_waits_when_the_kv_pool_is_full() -> None:
    """160 tokens of pool: a prompt of 100 waits for one of 100 to end."""
    engine = Engine(PLAIN)
    first, second = ask(engine, 100, 5), ask(engine, 100, 5, salt=1000)
    tokens = run(engine)
    last_of_first = max(at for at, sequence in tokens if sequence is first)
    first_of_second = min(at for at, sequence in tokens if sequence is second)
    assert first_of_second > last_of_first
    assert engine.preemptions == 0


def test_youngest_is_preempted_and_comes_back_when_answers_outgrow_the_pool() -> None:
    """Two sequences of 40 + 60 tokens need 200 of 160: one is thrown out, prefilled again, and loses no token."""
    engine = Engine(PLAIN)
    first, second = ask(engine, 40, 60), ask(engine, 40, 60, salt=1000)
    tokens = run(engine)
    assert engine.preemptions >= 1
    assert [sum(s is one for _, s in tokens) for one in (first, second)] == [60, 60]
    assert max(at for at, s in tokens if s is first) < max(at for at, s in tokens if s is second)
    gap = [at for at, s in tokens if s is second]
    assert max(b - a for a, b in itertools.pairwise(gap)) > 100  # the stall that preemption is
    assert engine.kv_used_ratio == 0


def test_prefix_cache_saves_prefill_until_flushed() -> None:
    """The same prompt again: all full blocks but the last token's are cached; after a flush none."""
    engine = Engine(PLAIN)
    cold = ask(engine, 64, 1)
    cold_ms = run(engine)[-1][0]
    warm = ask(engine, 64, 1, now_ms=1000)
    warm_ms = run(engine)[-1][0] - 1000
    engine.flush_cache()
    again = ask(engine, 64, 1, now_ms=2000)
    run(engine)
    assert (cold.cached_tokens, warm.cached_tokens, again.cached_tokens) == (0, 48, 0)
    assert warm_ms < cold_ms / 3


def test_cancel_frees_what_it_held_and_stops_the_tokens() -> None:
    """A sequence whose client went away gets nothing more, in the batch or in the queue."""
    engine = Engine(PLAIN)
    running, queued = ask(engine, 100, 50), ask(engine, 100, 50, salt=1000)
    engine.advance(round(300 * NS_PER_MS))
    engine.cancel(queued)
    engine.cancel(running)
    engine.cancel(running)  # twice does no harm
    assert run(engine) == []
    assert (engine.running, engine.waiting, engine.kv_used_ratio) == (0, 0, 0)


def test_held_sequence_gets_no_token_before_its_instant() -> None:
    """A stall: the sequence stays in the batch, its tokens resume after the hold."""
    engine = Engine(PLAIN)
    sequence = ask(engine, 5, 3)
    sequence.hold_until_ns = 100 * NS_PER_MS
    times = [at for at, _ in run(engine)]
    assert times[0] >= 100
    assert times[1] - times[0] == pytest.approx(11)


def test_time_scale_divides_all_times() -> None:
    """Scaled by 10, every token comes ten times sooner."""
    plain, scaled = Engine(PLAIN), Engine(PLAIN, time_scale=10.0)
    ask(plain, 50, 5)
    ask(scaled, 50, 5)
    assert [at for at, _ in run(scaled)] == pytest.approx([at / 10 for at, _ in run(plain)], abs=1e-4)


def test_late_driver_gets_all_tokens_at_their_nominal_times() -> None:
    """Steps follow from nominal ends: who asks late gets the tokens of several steps, each with its due time."""
    engine = Engine(PLAIN)
    sequence = ask(engine, 5, 4)
    assert engine.advance(40 * NS_PER_MS) == [sequence] * 3
    assert engine.next_ns() == round(44.5 * NS_PER_MS)


def test_prefill_takes_no_more_than_its_share_of_a_step() -> None:
    """However many prompts wait, a step at most doubles with a share of a half."""
    profile = dataclasses.replace(PLAIN, max_batch=100, kv_tokens=100_000, prefill_tokens_per_s=1000.0)
    engine = Engine(profile)
    for number in range(50):
        ask(engine, 500, 1, salt=1000 * number)
    engine.advance(engine.next_ns() or 0)
    start_ns = engine.next_ns() or 0
    engine.advance(start_ns)
    step_ms = ((engine.next_ns() or 0) - start_ns) / NS_PER_MS
    assert step_ms <= 2 * (10 + 50) + 1


@pytest.mark.parametrize("seed", range(20))
def test_no_token_and_no_block_is_lost_under_any_mix(seed: int) -> None:
    """Shared prefixes, a scarce pool, preemption, clients that go: each gets its tokens, all blocks come back."""
    chance = random.Random(seed)
    engine = Engine(dataclasses.replace(PLAIN, kv_tokens=320, max_batch=6))
    got: Counter[Sequence] = Counter()
    gone: set[Sequence] = set()
    sequences: list[Sequence] = []
    now_ns = 0
    while len(sequences) < 60 or engine.next_ns() is not None:
        if len(sequences) < 60 and chance.random() < 0.4:
            prompt, salt = chance.randint(1, 150), 1000 * chance.randint(0, 3)
            sequences.append(ask(engine, prompt, chance.randint(1, 100), now_ns / NS_PER_MS, salt))
        if chance.random() < 0.05:
            engine.flush_cache()
        if sequences and chance.random() < 0.05 and not (leaving := chance.choice(sequences)).done:
            engine.cancel(leaving)
            gone.add(leaving)
        now_ns = engine.next_ns() or now_ns + NS_PER_MS
        got.update(engine.advance(now_ns))
        assert 0 <= engine.kv_used_ratio <= 1
        assert engine.running <= 6
    assert [got[one] for one in sequences if one not in gone] == [s.limit_tokens for s in sequences if s not in gone]
    assert (engine.running, engine.waiting, engine.kv_used_ratio) == (0, 0, 0)


def test_pool_evicts_the_least_recently_used_blocks_only() -> None:
    """Idle cached blocks make room; used ones never do."""
    pool = KVPool(total_blocks=4, block_tokens=2)
    old, new = pool.hashes((1, 2, 3, 4)), pool.hashes((5, 6, 7, 8))
    assert pool.take(2, [])
    assert pool.publish(old) == old
    pool.give_back(0, old)
    assert pool.take(2, [])
    assert pool.publish(new) == new
    assert (pool.cached_blocks(old), pool.cached_blocks(new)) == (2, 2)
    assert pool.take(1, [])  # one of the old two goes
    assert pool.cached_blocks(old) == 0
    assert not pool.take(2, [])
    assert pool.take(1, [])
    assert pool.cached_blocks(new) == 2
    assert pool.used_ratio == 1.0


def test_hashes_depend_on_all_tokens_before() -> None:
    """The same block after another beginning is another block."""
    pool = KVPool(total_blocks=4, block_tokens=2)
    assert pool.hashes((1, 2, 3, 4))[0] == pool.hashes((1, 2, 9, 9))[0]
    assert pool.hashes((1, 2, 3, 4))[1] != pool.hashes((9, 9, 3, 4))[1]
    assert pool.hashes((1, 2, 3)) == pool.hashes((1, 2))
