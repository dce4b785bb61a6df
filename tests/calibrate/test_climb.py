"""Which levels `climb` plays, with a worker that we make up: what fails by chance is played again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llm_locust.calibrate import command
from llm_locust.calibrate.verdict import PRECISION, Level, best_of

from .test_verdict import level

CAPACITY = 700


class Worker:
    """Carries up to its capacity, unless something comes between: `disturbed` numbers of plays, from 0."""

    def __init__(self, *disturbed: int) -> None:
        self.played: list[int] = []
        self._disturbed = disturbed

    def play(self, streams: int) -> Level:
        """Play a level in no time."""
        number = len(self.played)
        self.played.append(streams)
        told = level(
            streams, cpu_ratio=min(0.9 * streams / CAPACITY, 1.0), error_p99_ms=0.02 if streams <= CAPACITY else 5.0
        )
        return replace(told, error_p99_ms=19.0) if number in self._disturbed else told


@pytest.mark.parametrize("disturbed", [(), (0,), (1,), (0, 1), (1, 3)], ids=str)
def test_a_level_that_fails_by_chance_is_played_again(
    disturbed: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to two disturbances in a row change nothing of the answer where the core had rest."""
    worker = Worker(*disturbed)
    monkeypatch.setattr(command, "play", worker.play)
    best = best_of(command.climb())
    assert best is not None
    assert best.streams <= CAPACITY < best.streams * PRECISION


def test_what_fails_three_times_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the level counts as it is, and lower ones are tried."""
    worker = Worker(0, 1, 2)
    monkeypatch.setattr(command, "play", worker.play)
    levels = command.climb()
    assert worker.played[:4] == [400, 400, 400, 200]
    assert not levels[0].carried


def test_a_level_that_fails_on_a_full_core_is_played_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nothing to doubt: no number of streams is played twice."""
    worker = Worker()
    monkeypatch.setattr(command, "play", worker.play)
    command.climb()
    assert len(set(worker.played)) == len(worker.played)


@pytest.mark.parametrize(("disturbed", "streams"), [((), [400, 620]), ((0, 1), [400, 400])], ids=str)
def test_no_level_is_begun_that_would_end_after_the_budget(
    disturbed: tuple[int, ...], streams: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each level takes 20 s here: two fit into 50 s, also where the second is one that failed and is played again."""
    worker = Worker(*disturbed)
    at_s = [1000.0]

    def play(streams: int) -> Level:
        at_s[0] += 20.0
        return worker.play(streams)

    monkeypatch.setattr(command, "play", play)
    monkeypatch.setattr(command, "now_s", lambda: at_s[0])
    levels = command.climb()
    assert worker.played == streams
    assert [one.streams for one in levels] == list(dict.fromkeys(streams))


@pytest.mark.parametrize("wanted", ["-5", "0", "many", "inf", "nan"])
def test_wanted_load_is_above_nothing(wanted: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Said before anything is played."""
    with pytest.raises(SystemExit):
        command.calibrate_main(["--want-streams", wanted])
    assert f"{wanted!r} is not a number above 0" in capsys.readouterr().err
