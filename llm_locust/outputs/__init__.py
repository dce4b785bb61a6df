"""The files of a run, written by the process that holds the totals (the master, or a local runner).

Never imports Locust. `open` when the run starts, `flush` at least every five seconds, `close` once at the end. A disk
that fails is told once on the screen and in summary.json; the run goes on, and what could not be written is tried
again at each flush.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from llm_locust.measure.record import RequestRecord
from llm_locust.outputs.appendfile import AppendFile, replace_file
from llm_locust.outputs.disk import Disk
from llm_locust.outputs.facts import RunFacts, RunState, WorkerFacts
from llm_locust.outputs.picture import Picture, Progress, StageVerdict, Validity
from llm_locust.outputs.requests_csv import REQUESTS_HEADER, request_line
from llm_locust.outputs.runconf import copy_locustfiles, run_conf
from llm_locust.outputs.rundir import make_run_directory, point_latest
from llm_locust.outputs.stages_csv import STAGES_HEADER, RowKey, all_rows, is_finished, row_key, stage_line
from llm_locust.outputs.summary import FailureBook, summary_document
from llm_locust.outputs.timeline_csv import TIMELINE_HEADER, TimelineRow, timeline_line

__all__ = [
    "REPORT",
    "Outputs",
    "Picture",
    "Progress",
    "RunFacts",
    "RunState",
    "StageVerdict",
    "TimelineRow",
    "Validity",
    "WorkerFacts",
    "make_run_directory",
]

REPORT = "report.html"
"""The report's name in a run's directory. What makes it (`outputs.report`) loads pandas: a running test does not."""


class Outputs:
    """All files of one run in one directory, which the caller made (`make_run_directory`).

    ``say`` puts one line before the user. ``run`` may be replaced while the run goes on (a worker joins).
    No method raises OSError.
    """

    def __init__(self, run: RunFacts, directory: Path, say: Callable[[str], None]) -> None:
        self.run = run
        self.directory = directory
        self.failures = FailureBook()
        self._disk = Disk(directory, say)
        self._requests = AppendFile(directory / "requests.csv")
        self._stages = AppendFile(directory / "stages.csv")
        self._timeline = AppendFile(directory / "timeline.csv")
        self._stage_lines: dict[RowKey, str] = {}
        self._once: dict[str, Callable[[], object]] = self._beside_the_numbers()

    def open(self) -> None:
        """Make every file, so that a run that dies at once has left a trace."""
        self._requests.append(REQUESTS_HEADER)
        self._stages.append(STAGES_HEADER)
        self._timeline.append(TIMELINE_HEADER)
        self._flush_files(None)

    def flush(self, picture: Picture, rows: Iterable[RequestRecord], seconds: Iterable[TimelineRow]) -> None:
        """Write what is new: requests that ended, seconds that are complete, stages that finished."""
        self.write_rows(rows)
        self._write_seconds(seconds)
        for row in all_rows(picture.snapshot):
            if is_finished(row, picture) and row_key(row) not in self._stage_lines:
                line = self._stage_lines[row_key(row)] = stage_line(self.run.run_id, row, picture)
                self._stages.append(line)
        self._flush_files(picture)

    def write_rows(self, rows: Iterable[RequestRecord]) -> None:
        """Add requests that ended; the disk has them at the next flush."""
        for record in rows:
            self._requests.append(request_line(record))
            self.failures.add(record)

    def close(
        self, picture: Picture, rows: Iterable[RequestRecord], seconds: Iterable[TimelineRow], state: RunState
    ) -> tuple[str, ...]:
        """Write the rest and the final summary; return one sentence for each file that is not whole on the disk."""
        self.write_rows(rows)
        self._write_seconds(seconds)
        self._write_once()
        for file in self._append_files:
            self._disk.attempt(file.path.name, file.close)
        self._disk.attempt("stages.csv", lambda: self._write_final_stages(picture))
        self._disk.tell(self._append_files)
        self._write_summary(state, picture, durable=True)
        self._disk.tell(self._append_files)
        return self._disk.not_whole((self._requests, self._timeline))

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are there, for the last lines on the screen."""
        return tuple(sorted(path for path in self.directory.glob("*") if path.is_file() and path.name[0] != "."))

    @property
    def _append_files(self) -> tuple[AppendFile, ...]:
        return self._requests, self._stages, self._timeline

    def _write_seconds(self, seconds: Iterable[TimelineRow]) -> None:
        for second in seconds:
            self._timeline.append(timeline_line(self.run.run_id, second))

    def _flush_files(self, picture: Picture | None) -> None:
        self._write_once()
        for file in self._append_files:
            self._disk.attempt(file.path.name, file.flush)
        self._write_summary(RunState.RUNNING, picture, durable=False)
        self._disk.tell(self._append_files)

    def _beside_the_numbers(self) -> dict[str, Callable[[], object]]:
        return {
            "run.conf": self._write_run_conf,
            "locustfile": lambda: copy_locustfiles(self.run.locustfiles, self.directory),
            "latest": lambda: point_latest(self.directory),
        }

    def _write_once(self) -> None:
        """Write what is written once and could not be so far; all of it again where somebody removed the directory."""
        if not self.directory.is_dir():
            self._disk.note_removed()
            self._once = self._beside_the_numbers()
        self._once = {name: write for name, write in self._once.items() if not self._disk.attempt(name, write)}

    def _write_final_stages(self, picture: Picture) -> None:
        """Write stages.csv as it is at the end, in the order of time: a late report may have changed lines.

        Stages that were over before a reset are in no picture any more, and keep their lines.
        """
        final = {row_key(row): stage_line(self.run.run_id, row, picture) for row in all_rows(picture.snapshot)}
        before = [line for key, line in self._stage_lines.items() if key not in final]
        lines = [STAGES_HEADER, *before, *final.values()]
        content = "".join(f"{line}\r\n" for line in lines).encode()
        replace_file(self.directory / "stages.csv", content, durable=True)

    def _write_summary(self, state: RunState, picture: Picture | None, *, durable: bool) -> None:
        document = summary_document(self.run, state, picture, self.failures, self._disk.report(self._append_files))
        path = self.directory / "summary.json"
        self._disk.attempt("summary.json", lambda: replace_file(path, document, durable=durable))

    def _write_run_conf(self) -> None:
        run = self.run
        command = " ".join(["locust", *run.chosen_classes, "--config run.conf"])
        comments = [f"{run.run_id}: {command} repeats this run", *run.repeat_command.splitlines()]
        text = run_conf(run.options, run.left_out, comments)
        replace_file(self.directory / "run.conf", text.encode(), durable=False)
