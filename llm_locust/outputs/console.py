"""What a run says on the screen: the stage table, a progress line, the verdicts, the failures, where the files are.

Readable without a terminal: colours only where the stream is one (rich honours NO_COLOR and TERM=dumb), no box
characters, and no character that the stream cannot encode. Whatever a server sent is drawn, never sent to the terminal
as it is.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from llm_locust.measure.slo import Verdict
from llm_locust.measure.snapshot import ALL, RUN
from llm_locust.outputs import numbers
from llm_locust.outputs.picture import Picture, StageVerdict, Validity
from llm_locust.outputs.stage_table import LITERAL_MARK, VERDICT_STYLES, has_few_samples, stage_table
from llm_locust.outputs.summary import Failure
from llm_locust.outputs.text import drawn

FILE_COLUMNS = 160
"""Width where the stream is no terminal and COLUMNS does not say."""

_PLAIN = str.maketrans({"–": "-", "≥": ">=", "…": "...", "·": "-", "─": "-"})


class Screen:
    """One stream that people read. Every method prints and returns; a broken stream is ignored."""

    def __init__(self, stream: TextIO, *, width: int | None = None) -> None:
        terminal = stream.isatty()
        if width is None and not terminal and "COLUMNS" not in os.environ:
            width = FILE_COLUMNS
        self._stream = stream
        # rich ends the process when its own stream breaks (15.0, on_broken_pipe), so it never gets this one.
        self._rendered = io.StringIO()
        self._console = Console(
            file=self._rendered, force_terminal=terminal, width=width, markup=False, highlight=False, emoji=False
        )

    def say(self, sentence: str) -> None:
        """Print one sentence, loud."""
        self._print(Text(f"llm-locust: {drawn(sentence)}", "bold"), whole=True)

    def plan(self, lines: Iterable[str]) -> None:
        """Print a plan, each line whole."""
        for line in lines:
            self._print(Text(drawn(line)), whole=True)

    def stages(self, picture: Picture) -> None:
        """Print the stage table and what must be known to read it."""
        if not picture.snapshot.rows:
            self._print(Text("No stage has been measured yet."))
            return
        table, mark = stage_table(picture, self._console.width)
        self._print(table)
        if mark != LITERAL_MARK and has_few_samples(picture):
            self._print(Text("* n<100: a p99 of fewer than 100 samples", "dim"))
        self._print(Text(_loop_sentence(picture), "dim"))

    def progress(self, picture: Picture) -> None:
        """Print where the run is, and the time left."""
        progress = picture.progress
        if progress is None:
            return
        left = "no end set" if progress.left_s is None else f"about {numbers.span(progress.left_s)} left"
        parts = [
            f"stage {progress.stage_number}/{progress.stages} {progress.stage or ''}".rstrip(),
            progress.phase,
            f"{progress.users:,} users",
            f"{progress.in_flight:,} in flight",
            f"{numbers.span(progress.elapsed_s)} elapsed",
            left,
        ]
        self._print(Text(drawn(" · ".join(parts)), "cyan"))

    def end(self, picture: Picture, failures: Sequence[Failure], not_whole: Iterable[str] = ()) -> None:
        """Print everything that is to be known at the end, but the files."""
        self._print(Text())
        self.stages(picture)
        self._print(Text(_totals_sentence(picture)))
        self._excluded(picture)
        for stage, reason in picture.skipped.items():
            self._print(Text(drawn(f"Skipped: {stage}: {reason}"), "yellow"))
        self._verdicts(picture)
        if picture.slo:
            self._print(_slo_table(picture.slo))
        if failures:
            self._print(_failure_table(failures))
        for sentence in not_whole:
            self._print(Text(drawn(sentence), "bold red"))

    def files(self, paths: Iterable[Path], next_steps: Iterable[str]) -> None:
        """Print where the files are, and what to do next."""
        self._print(Text("Files", "bold"))
        for path in paths:
            self._print(Text(f"  {drawn(str(path))}"), whole=True)
        for step in next_steps:
            self._print(Text(f"Next: {drawn(step)}"), whole=True)

    def _excluded(self, picture: Picture) -> None:
        phases: dict[str, Counter[str]] = {}
        for row in picture.snapshot.excluded:
            if row.name == ALL:
                counts = phases.setdefault(row.phase, Counter())
                counts.update({name: int(row.values[name] or 0) for name in ("requests_ok", "requests_failed")})
        told = [
            f"{phase} {counts['requests_ok']:,} ok, {counts['requests_failed']:,} failed"
            for phase, counts in phases.items()
            if counts.total()
        ]
        if told:
            self._print(Text(drawn(f"Not in these numbers: {'; '.join(told)}"), "dim"))

    def _verdicts(self, picture: Picture) -> None:
        run = picture.verdicts.get(RUN)
        if run is not None:  # it has the reasons of all stages
            self._verdict("Measurement", run)
            return
        for stage, verdict in picture.verdicts.items():
            if verdict.reasons or verdict.findings:
                self._verdict(stage, verdict)

    def _verdict(self, what: str, verdict: StageVerdict) -> None:
        line = Text(drawn(f"{what}: ")).append(verdict.validity.value, VERDICT_STYLES[verdict.validity])
        self._print(line)
        for reason in (*verdict.reasons, *verdict.findings):
            self._print(Text(f"  {drawn(reason)}"))

    def _print(self, renderable: RenderableType, *, whole: bool = False) -> None:
        """Print it; ``whole``: on one line however long, so that a path in it can be copied."""
        self._console.print(renderable, soft_wrap=whole)
        text = "\n".join(line.rstrip() for line in self._rendered.getvalue().split("\n"))
        self._rendered.seek(0)
        self._rendered.truncate()
        encoding = self._stream.encoding or "utf-8"
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            text = text.translate(_PLAIN).encode(encoding, "replace").decode(encoding)
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            pass  # nobody reads any more (a broken pipe, a closed stream, a full disk behind a log)


def next_steps(
    picture: Picture, failures: Sequence[Failure], directory: Path, classes: Sequence[str] = ()
) -> list[str]:
    """Return what a user does after this run, the most urgent first; ``classes``: `RunFacts.chosen_classes`."""
    steps = []
    verdict = picture.verdicts.get(RUN)
    if verdict is not None and verdict.validity is not Validity.VALID:
        steps.append("read the reasons above before you use the numbers; each has its figure in summary.json")
    if failures:
        steps.append(f"filter {directory / 'requests.csv'} by outcome to see every failed request with its message")
    if any(row.values["saturated"] for row in picture.snapshot.rows):
        steps.append("a SATURATED stage was held back by its users: raise -u, or take the rate as more than it carries")
    if (directory / "run.conf").is_file():
        steps.append(f"repeat this run: {' '.join(['locust', *classes])} --config {directory / 'run.conf'}")
    return steps


def _loop_sentence(picture: Picture) -> str:
    """Say from where the latencies of the table count."""
    loops = {row.values["load"] for row in picture.snapshot.rows}
    sentences = []
    if "closed loop" in loops:
        sentences.append("closed loop: as many requests in flight as users; latency counts from the start of a request")
    if "open loop" in loops:
        sentences.append("open loop: requests come by a schedule; `scheduled` counts from the instant that was due")
        if any(row.values["scheduled_lower_bounds"] for row in picture.snapshot.rows):
            sentences.append("≥: arrivals were dropped at the stage's end, so this is a lower bound")
    return "\n".join(sentences)


def _totals_sentence(picture: Picture) -> str:
    values = picture.snapshot.run.values
    ended = [
        (int(values[name] or 0), word)
        for name, word in (("requests_ok", "ok"), ("requests_failed", "failed"), ("requests_unfinished", "unfinished"))
    ]
    counts = ", ".join(f"{numbers.count(number)} {word}" for number, word in ended)
    return f"Measured: {numbers.count(sum(number for number, _ in ended))} requests: {counts}"


def _slo_table(verdicts: Mapping[str, Iterable[Verdict]]) -> Table:
    table = _plain_table("SLO", ("stage", "demand", "measured", "samples", "verdict"))
    for stage, clauses in verdicts.items():
        for clause in clauses:
            measured = _measured(clause)
            verdict = Text("met", "green") if clause.passed else Text("MISSED", "bold red")
            table.add_row(drawn(stage), drawn(clause.clause), measured, numbers.count(clause.n), verdict)
    return table


def _measured(clause: Verdict) -> str:
    """Return what an objective found, with its unit; a share in percent, as the demand has it."""
    if clause.got is None:
        return numbers.ABSENT
    if clause.unit == "ratio":
        return f"{numbers.three_digits(clause.got * 100)} %"
    return f"{numbers.three_digits(clause.got)} {clause.unit}".rstrip()


def _failure_table(failures: Iterable[Failure]) -> Table:
    table = _plain_table("Failures, all phases", ("outcome", "status", "requests", "first message"))
    for failure in failures:
        status = str(failure.http_status or numbers.ABSENT)
        table.add_row(failure.outcome, status, numbers.count(failure.count), Text(drawn(failure.sample)))
    return table


def _plain_table(title: str, columns: Iterable[str]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(
            column, justify="right" if column in ("measured", "samples", "requests") else "left", overflow="fold"
        )
    return table
