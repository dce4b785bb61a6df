"""Nothing is lost at the end of a distributed run, and nothing is counted twice: ten runs of ten.

Two workers, streams longer than the interval of the reports, a stop by run time. In every other run the drain is cut,
so that streams end `unfinished`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.rig.stand import stand


def prove(folder: Path, turn: int) -> str:
    """One run; return its figures."""
    drain = ("--llm-drain", "1") if turn % 2 else ()
    with stand(folder, "--profile", "fast", "--ttft-ms", "500", "--itl-ms", "100") as run:
        process = run.run(
            *("-u", "8", "-r", "8", "-t", "7", "--llm-input-tokens", "16", "--llm-output-tokens", "40", *drain),
            workers=2,
        )
        process.wait(60)
        run.assert_nothing_lost()
        outcomes = run.outcomes()
        assert set(outcomes) <= {"ok", "unfinished"}
        assert drain or "unfinished" not in outcomes, outcomes
        generations = run.generations()
        completed = sum(line["completed"] for line in generations)
        assert outcomes["ok"] == completed
        assert len(run.rows()) == len(generations)
        reasons = run.summary()["verdict"]["reasons"]
        assert not [reason for reason in reasons if "differ" in reason or "lost" in reason], reasons
        return f"{len(run.rows())} rows: {outcomes}; server: {completed} completed of {len(generations)}"


@pytest.mark.parametrize("turn", range(2))
def test_rows_are_what_the_server_completed_and_what_was_cut(tmp_path: Path, turn: int) -> None:
    """Once with a drain, once without."""
    print(prove(tmp_path, turn))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_rows_are_exact_ten_times_of_ten(tmp_path: Path) -> None:
    """Ten runs."""
    for turn in range(10):
        folder = tmp_path / str(turn)
        folder.mkdir()
        print(f"run {turn + 1}: {prove(folder, turn)}")
