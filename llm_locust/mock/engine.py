"""A model of a continuous-batching engine: steps, chunked prefill, a KV pool, a queue, preemption.

Pure: time comes in as an argument (integer ns), tokens go out. Each step serves every running sequence: those
that decode get one token at its end, prompts advance by a chunk, which makes the step longer. What a step costs
stands in the profile. The next step starts at the nominal end of the last, however late it is noticed.
"""

from __future__ import annotations

from collections import deque

from llm_locust.mock.kv import KVPool
from llm_locust.mock.pace import NS_PER_MS, Sequence
from llm_locust.mock.profiles import Profile


class Engine:
    """The pace of a batching engine."""

    def __init__(self, profile: Profile, time_scale: float = 1.0) -> None:
        self._profile = profile
        self._ns_per_ms = NS_PER_MS / time_scale
        self._pool = KVPool(profile.kv_tokens // profile.block_tokens, profile.block_tokens)
        self._queue: deque[Sequence] = deque()
        self._batch: list[Sequence] = []  # in the order of admission
        self._chunks: dict[Sequence, int] = {}  # prefill tokens of the step under way
        self._step_start_ns = 0
        self._step_end_ns: int | None = None
        self.preemptions = 0

    # -- the interface of a pace ------------------------------------------------------------------------------------

    @property
    def running(self) -> int:
        """Sequences in the batch."""
        return len(self._batch)

    @property
    def waiting(self) -> int:
        """Sequences in the queue."""
        return len(self._queue)

    @property
    def kv_used_ratio(self) -> float:
        """Share of the KV pool that sequences hold."""
        return self._pool.used_ratio

    def flush_cache(self) -> None:
        """Empty the prefix cache."""
        self._pool.flush()

    def next_ns(self) -> int | None:
        """The end of the step under way."""
        return self._step_end_ns

    def submit(self, sequence: Sequence, now_ns: int) -> None:
        """Queue a sequence; an idle engine starts a step with it at once."""
        sequence.prefill_left = sequence.prompt_tokens
        sequence.block_hashes = self._pool.hashes(sequence.prefix)
        self._queue.append(sequence)
        if self._step_end_ns is None:
            self._start_step(now_ns)

    def cancel(self, sequence: Sequence) -> None:
        """Drop a sequence wherever it is; what it held is free for the next step."""
        if sequence.done:
            return
        sequence.done = True
        if sequence in self._batch:
            self._batch.remove(sequence)
            self._chunks.pop(sequence, None)
            self._release(sequence)
        else:
            self._queue.remove(sequence)

    def advance(self, now_ns: int) -> list[Sequence]:
        """End every step that is over by now."""
        due: list[Sequence] = []
        while self._step_end_ns is not None and self._step_end_ns <= now_ns:
            due += self._end_step(self._step_end_ns)
            self._start_step(self._step_end_ns)
        return due

    # -- steps ------------------------------------------------------------------------------------------------------

    def _start_step(self, at_ns: int) -> None:
        self._admit()
        self._chunks.clear()
        if not self._batch:
            self._step_end_ns = None
            return
        self._make_room()
        profile, size = self._profile, len(self._batch)
        decode_ms = profile.step_base_ms + profile.step_per_sequence_ms * size
        decode_ms += profile.step_beyond_knee_ms * max(0.0, size - profile.knee_sequences)
        prefill_ms = self._plan_chunks(decode_ms, size)
        self._step_start_ns = at_ns
        self._step_end_ns = at_ns + max(1, round((decode_ms + prefill_ms) * self._ns_per_ms))

    def _plan_chunks(self, decode_ms: float, size: int) -> float:
        """Choose each prompt's chunk of this step; return how much longer they make it, in ms."""
        profile = self._profile
        prompts = [sequence for sequence in self._batch if sequence.prefill_left]
        if not prompts:
            return 0.0
        per_token_ms = min(profile.prompt_base_ms + profile.prompt_per_sequence_ms * size, profile.prompt_most_ms)
        cost_ms = 1000.0 / profile.prefill_tokens_per_s
        share = min(len(prompts) * cost_ms / per_token_ms, profile.prefill_share)
        step_ms = decode_ms / (1.0 - share)
        budget = max(1, int(step_ms * share / cost_ms))
        chunk = max(1, round(step_ms / per_token_ms))
        planned = 0
        for sequence in prompts:
            tokens = min(chunk, sequence.prefill_left, budget - planned)
            if tokens <= 0:
                break
            self._chunks[sequence] = tokens
            planned += tokens
        return planned * cost_ms

    def _end_step(self, at_ns: int) -> list[Sequence]:
        due: list[Sequence] = []
        for sequence in self._batch:
            if sequence.prefill_left:
                sequence.prefill_left -= self._chunks.get(sequence, 0)
                if sequence.prefill_left:
                    continue
                self._publish(sequence)
            if sequence.hold_until_ns > at_ns:
                continue
            sequence.generated += 1
            sequence.due_ns = at_ns
            due.append(sequence)
            if sequence.generated >= sequence.limit_tokens:
                sequence.done = True
                self._release(sequence)
        self._batch = [sequence for sequence in self._batch if not sequence.done]
        return due

    # -- the KV pool ------------------------------------------------------------------------------------------------

    def _admit(self) -> None:
        """First come, first served, while the batch and the pool have room."""
        pool = self._pool
        while self._queue and len(self._batch) < self._profile.max_batch:
            sequence = self._queue[0]
            hashes = sequence.block_hashes
            known_tokens = sequence.prompt_tokens + sequence.generated
            # The last prompt token is always computed: its result is the first output token.
            hits = min(pool.cached_blocks(hashes), (sequence.prompt_tokens - 1) // pool.block_tokens)
            blocks = -(-(known_tokens + 1) // pool.block_tokens)
            if not pool.take(blocks - hits, hashes[:hits]):
                return
            self._queue.popleft()
            sequence.shared_blocks = hashes[:hits]
            sequence.private_blocks = blocks - hits
            sequence.prefill_left = known_tokens - hits * pool.block_tokens
            if not sequence.generated:
                sequence.cached_tokens = hits * pool.block_tokens
            self._batch.append(sequence)

    def _make_room(self) -> None:
        """Give each decoding sequence a block for its next token; preempt the youngest where the pool is full."""
        for sequence in list(self._batch):
            if sequence not in self._batch or sequence.prefill_left:
                continue
            held = (sequence.private_blocks + len(sequence.shared_blocks)) * self._pool.block_tokens
            if sequence.prompt_tokens + sequence.generated + 1 <= held:
                continue
            while not self._pool.take(1, []):
                youngest = self._batch[-1]
                self._preempt(youngest)
                if youngest is sequence:
                    break
            else:
                sequence.private_blocks += 1

    def _preempt(self, sequence: Sequence) -> None:
        """Take a sequence's blocks away; it is prefilled again, its answer included, from the head of the queue."""
        self.preemptions += 1
        self._batch.remove(sequence)
        self._release(sequence)
        self._queue.appendleft(sequence)

    def _publish(self, sequence: Sequence) -> None:
        """A prompt is complete: its full blocks can serve others."""
        fresh = self._pool.publish(sequence.block_hashes[len(sequence.shared_blocks) :])
        sequence.private_blocks -= len(fresh)
        sequence.shared_blocks = sequence.shared_blocks + fresh

    def _release(self, sequence: Sequence) -> None:
        self._pool.give_back(sequence.private_blocks, sequence.shared_blocks)
        sequence.private_blocks, sequence.shared_blocks = 0, []
