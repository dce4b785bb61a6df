"""Between two looks at the sockets there is an interval while many exchanges run, and none otherwise."""

from __future__ import annotations

from collections.abc import Callable

from llm_locust.wire.lull import FROM_STREAMS, Lull


class FakeWatcher:
    """Notes whether it is on."""

    def __init__(self) -> None:
        self.callback: Callable[[], object] | None = None

    def start(self, callback: Callable[[], object]) -> None:
        """Switch on."""
        self.callback = callback

    def stop(self) -> None:
        """Switch off."""
        self.callback = None


class FakeLoop:
    """Gives out one watcher."""

    def __init__(self) -> None:
        self.watcher = FakeWatcher()

    def prepare(self) -> FakeWatcher:
        """Return the watcher of what comes before a look."""
        return self.watcher


def test_a_lull_begins_and_ends_with_the_number_of_exchanges() -> None:
    """On from FROM_STREAMS exchanges on, off below."""
    loop = FakeLoop()
    lull = Lull(loop)
    on = []
    for step in [lull.enter] * (FROM_STREAMS + 1) + [lull.leave] * (FROM_STREAMS + 1):
        step()
        on.append(loop.watcher.callback is not None)
    below, above = [False] * (FROM_STREAMS - 1), [True] * 3
    assert on == [*below, *above, *below, False]
