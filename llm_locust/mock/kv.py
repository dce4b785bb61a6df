"""The KV pool in blocks, and the prefix cache that lives in its unused part.

Full blocks of prompts are kept under the hash of all tokens up to their end, least recently used first to
go; a block in use by a sequence never goes. Pure bookkeeping.
"""

from __future__ import annotations

from collections import OrderedDict

from llm_locust.mock.tokens import TokenKey


class KVPool:
    """Blocks of the pool: private ones, cached ones in use (counted), cached ones that may be evicted."""

    def __init__(self, total_blocks: int, block_tokens: int) -> None:
        self.total_blocks = total_blocks
        self.block_tokens = block_tokens
        self._private = 0
        self._used: dict[int, int] = {}  # hash of a cached block -> sequences using it
        self._idle: OrderedDict[int, None] = OrderedDict()

    @property
    def used_ratio(self) -> float:
        """Share of the blocks that sequences hold."""
        return (self._private + len(self._used)) / self.total_blocks

    def hashes(self, prefix: tuple[TokenKey, ...]) -> list[int]:
        """The chained hashes of a prompt's full blocks."""
        size, chain, hashes = self.block_tokens, 0, []
        for end in range(size, len(prefix) + 1, size):
            chain = hash((chain, prefix[end - size : end]))
            hashes.append(chain)
        return hashes

    def cached_blocks(self, hashes: list[int]) -> int:
        """How many leading blocks of a prompt are in the cache."""
        for count, block in enumerate(hashes):
            if block not in self._used and block not in self._idle:
                return count
        return len(hashes)

    def take(self, count: int, shared: list[int]) -> bool:
        """Take ``count`` private blocks and the cached blocks ``shared``; False and nothing taken if it cannot be."""
        newly_used = sum(block not in self._used for block in shared)
        if self._private + len(self._used) + newly_used + count > self.total_blocks:
            return False
        for block in shared:
            self._idle.pop(block, None)
            self._used[block] = self._used.get(block, 0) + 1
        self._private += count
        while self._private + len(self._used) + len(self._idle) > self.total_blocks:
            self._idle.popitem(last=False)
        return True

    def publish(self, blocks: list[int]) -> list[int]:
        """Turn private blocks that hold these full prompt blocks into cached ones; return those turned."""
        turned = [block for block in blocks if block not in self._used]
        for block in turned:
            self._idle.pop(block, None)
            self._used[block] = 1
        self._private -= len(turned)
        return turned

    def give_back(self, count: int, shared: list[int]) -> None:
        """Return private blocks, and let go of cached ones: they stay until evicted."""
        self._private -= count
        for block in shared:
            self._used[block] -= 1
            if not self._used[block]:
                del self._used[block]
                self._idle[block] = None

    def flush(self) -> None:
        """Forget every cached block that no sequence uses."""
        self._idle.clear()
