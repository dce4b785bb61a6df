"""The files of a run on a failing disk, tidied up by somebody, left by a process that was killed: nothing is lost."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from llm_locust.outputs import Outputs, RunState
from llm_locust.outputs.readers import read_requests, read_summary, read_timeline
from tests.outputs.pictures import FIRST, picture
from tests.outputs.records import BARE, WHOLE, changed
from tests.outputs.runs import Sayings, second


class FullDisk:
    """While `full`, no write brings anything to the disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        self._write, self._replace = os.write, os.replace
        monkeypatch.setattr(os, "write", self.write)
        monkeypatch.setattr(os, "replace", self.replace)

    def write(self, file: int, payload: memoryview) -> int:
        self._check()
        return self._write(file, payload)

    def replace(self, source: Path, target: Path) -> None:
        self._check()
        self._replace(source, target)

    def _check(self) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")


def test_flush_when_the_disk_is_full_for_a_while(
    outputs: Outputs, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told once, loud; the run goes on; all is written when there is room again, and the summary tells of it."""
    disk = FullDisk(monkeypatch)
    said = Sayings()
    outputs = Outputs(outputs.run, directory, said)
    outputs.open()
    outputs.flush(picture(FIRST), [WHOLE], [second(100)])
    disk.full = True
    for number in (2, 3, 4):
        outputs.flush(picture(FIRST), [changed(WHOLE, request_id=number)], [second(100 + number)])
    assert said == [
        f"CANNOT WRITE to {directory}: requests.csv: No space left on device; timeline.csv: No space left on device; "
        "summary.json: No space left on device. On the disk: requests.csv 2 lines, stages.csv 3 lines, "
        "timeline.csv 2 lines; 2 lines wait in memory. The run goes on; each flush tries again."
    ]
    assert read_requests(directory)["request_id"].tolist() == [1]
    disk.full = False
    outputs.flush(picture(FIRST), [changed(WHOLE, request_id=5)], [])
    assert said[1:] == [f"Written again to {directory}: requests.csv, summary.json, timeline.csv."]
    assert outputs.close(picture(FIRST), [], [], RunState.FINISHED) == ()
    assert read_requests(directory)["request_id"].tolist() == [1, 2, 3, 4, 5]
    assert read_timeline(directory)["epoch_s"].tolist() == [100, 102, 103, 104]
    assert read_summary(directory)["files"]["history"] == said


def test_close_when_the_disk_stays_full(outputs: Outputs, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing at the end is told, file by file."""
    disk = FullDisk(monkeypatch)
    outputs.open()
    outputs.flush(picture(FIRST), [WHOLE], [])
    disk.full = True
    assert outputs.close(picture(FIRST), [BARE], [], RunState.FINISHED) == (
        "requests.csv is not whole: 1 of 3 lines are missing (No space left on device)",
        "stages.csv is not whole: No space left on device",
        "summary.json is not whole: No space left on device",
    )
    assert read_summary(directory)["state"] == "running"
    assert read_requests(directory)["request_id"].tolist() == [1]


@pytest.mark.parametrize("flushed", [True, False], ids=["in mid-run", "before the end"])
def test_files_when_the_directory_was_removed(outputs: Outputs, directory: Path, flushed: bool) -> None:
    """Somebody tidied up: every file is made again with all that it held, and that is told."""
    said = Sayings()
    outputs = Outputs(outputs.run, directory, said)
    outputs.open()
    outputs.flush(picture(FIRST), [WHOLE], [second(100)])
    made = sorted(path.name for path in directory.iterdir())
    shutil.rmtree(directory.parent)
    rest = [BARE]
    if flushed:
        outputs.flush(picture(FIRST), rest, [])
        rest = []
    assert outputs.close(picture(FIRST), rest, [], RunState.FINISHED) == ()
    assert said == [f"REMOVED by somebody: {directory}. It is there again, with all it held."]
    assert read_summary(directory)["files"]["history"] == said
    assert sorted(path.name for path in directory.iterdir()) == made
    assert (directory.parent / "latest").resolve() == directory
    assert read_requests(directory)["request_id"].tolist() == [1, 2]
    assert read_timeline(directory)["epoch_s"].tolist() == [100]
    assert read_summary(directory)["state"] == "finished"


def test_open_when_latest_is_a_directory(outputs: Outputs, directory: Path) -> None:
    """What stands in the way is told, and the run goes on."""
    (directory.parent / "latest").mkdir()
    said = Sayings()
    Outputs(outputs.run, directory, said).open()
    assert len(said) == 1
    assert "latest: is a directory, not a link; left as it is" in said[0]


_KILLED = """
import sys
from pathlib import Path
from tests.outputs.pictures import FIRST, picture
from tests.outputs.records import WHOLE, changed
from tests.outputs.runs import facts, second
from llm_locust.outputs import Outputs
directory = Path(sys.argv[1])
outputs = Outputs(facts(Path(sys.argv[2])), directory, print)
outputs.open()
for number in range(10_000):
    rows = [changed(WHOLE, request_id=number * 10 + i) for i in range(10)]
    outputs.flush(picture(FIRST), rows, [second(number)])
    print(number, flush=True)
"""


def test_files_when_the_process_is_killed(outputs: Outputs, directory: Path) -> None:
    """After kill -9 all that was flushed can be read, and the summary is a whole document."""
    command = [sys.executable, "-c", _KILLED, str(directory), str(outputs.run.locustfiles[0])]
    root = Path(__file__).parents[2]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(10)]
        process.send_signal(signal.SIGKILL)
        told += [int(line) for line in process.stdout.read().splitlines()]
    requests = read_requests(directory)["request_id"].tolist()
    assert requests == list(range(len(requests)))
    assert len(requests) >= (told[-1] + 1) * 10
    assert read_timeline(directory)["epoch_s"].tolist()[: told[-1] + 1] == list(range(told[-1] + 1))
    assert read_summary(directory)["state"] == "running"
