"""The screen: whole texts compared, at the widths and on the streams that people have."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from llm_locust.measure.slo import Verdict
from llm_locust.measure.snapshot import RUN
from llm_locust.outputs import numbers
from llm_locust.outputs.console import Screen, next_steps
from llm_locust.outputs.picture import Picture, Progress, StageVerdict, Validity
from llm_locust.outputs.summary import Failure
from tests.outputs.pictures import FIRST, SECOND, closed, picture, stage_row

OPEN = closed(
    "10 req/s",
    512,
    3200.0,
    115.0,
    2900,
    load="open loop",
    rate_requested_per_s=10.0,
    ttft_scheduled_ms_count=2900,
    ttft_scheduled_ms_mean=9876.0,
    ttft_scheduled_ms_p50=9000.0,
    ttft_scheduled_ms_p99=23456.0,
    e2e_scheduled_ms_count=2900,
    e2e_scheduled_ms_mean=240_000.0,
    scheduled_lower_bounds=1,
    saturated=1,
)
ONE_LINE = """\
                                       TTFT ms                   TPOT ms            E2E s tok/s               in
stage    users rate/s    ok fail short    mean   p50         p99    mean        p99  mean    in out total flight verdict
8 users      8 closed    24    0     0   1,200 1,176 1,560 n<100    85.0 93.5 n<100   175   325 185   510   7.92   VALID
64 users    64 closed 1,234    6     2   5,288 5,182       6,874     210        231   435   325 185   510   63.4   VALID
closed loop: as many requests in flight as users; latency counts from the start of a request
"""
ONE_LINE_MARKED = """\
                                       TTFT ms              TPOT ms       E2E s tok/s               in
stage    users rate/s    ok fail short    mean   p50    p99    mean   p99  mean    in out total flight verdict
8 users      8 closed    24    0     0   1,200 1,176 1,560*    85.0 93.5*   175   325 185   510   7.92   VALID
64 users    64 closed 1,234    6     2   5,288 5,182  6,874     210   231   435   325 185   510   63.4   VALID
* n<100: a p99 of fewer than 100 samples
closed loop: as many requests in flight as users; latency counts from the start of a request
"""
TWO_LINES = """\
stage       users rate/s      ok fail short in flight verdict
ms           TTFT    p50     p99 TPOT   p99     E2E s    in/s out/s total/s
8 users         8 closed      24    0     0      7.92   VALID
            1,200  1,176  1,560* 85.0 93.5*       175     325   185     510
10 req/s      512   10.0   2,900    0     0       507   VALID
            3,200  3,136   4,160  115   127       239     325   185     510
 scheduled ≥9,876 ≥9,000 ≥23,456                 ≥240
* n<100: a p99 of fewer than 100 samples
closed loop: as many requests in flight as users; latency counts from the start
of a request
open loop: requests come by a schedule; `scheduled` counts from the instant that
was due
≥: arrivals were dropped at the stage's end, so this is a lower bound
"""


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither colours nor widths of whoever runs the tests."""
    for name in ("COLUMNS", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


def stages(shown: Picture, width: int | None) -> str:
    """Return the stage table as a stream without a terminal gets it."""
    stream = io.StringIO()
    Screen(stream, width=width).stages(shown)
    return stream.getvalue()


def test_stages_when_screen_is_wide() -> None:
    """One line a stage at 120 columns; with less room the mark of few samples is a star, explained."""
    assert stages(picture(FIRST, SECOND), 120) == ONE_LINE
    assert stages(picture(FIRST, SECOND), 110) == ONE_LINE_MARKED


def test_stages_when_screen_is_narrow() -> None:
    """Two lines a stage at 80 columns; latency from the schedule on its own line, as a lower bound."""
    assert stages(picture(FIRST, OPEN), 80) == TWO_LINES


def test_stages_of_a_trace_are_no_closed_loop() -> None:
    """An open loop without a rate of its own says what its instants are, and nothing else."""
    trace = stage_row("trace", {**OPEN.values, "rate_requested_per_s": None})
    shown = stages(picture(trace), 120)
    assert "closed" not in shown
    assert shown.splitlines()[2].split()[:3] == ["trace", "512", "trace"]


@pytest.mark.parametrize("width", [72, 80, 100, 119, 120, 150, 200])
def test_stages_when_labels_are_wide_characters(width: int) -> None:
    """No line is wider than the screen, no number is cut, and CJK labels do not push the columns out of line."""
    rows = [replace(row, stage=f"{label} {row.stage}") for row, label in ((FIRST, "通义千问长文本"), (OPEN, "ascii"))]
    lines = stages(picture(*rows), width).splitlines()
    assert max(map(cell_len, lines)) <= width
    chinese = next(line for line in lines if line.startswith("通"))
    latin = next(line for line in lines if line.startswith("asc"))
    users = (re.search(r" 8(?= +closed)", chinese), re.search(r" 512(?= +10\.0)", latin))
    assert len({cell_len(found.string[: found.end()]) for found in users if found}) == 1
    for number in ("1,176", "1,560", "≥23,456", "closed", "VALID", "2,900"):
        assert any(number in line for line in lines)


def test_stages_when_a_stage_has_several_names() -> None:
    """The stage first, then its names; one name alone is not said twice."""
    names = [replace(FIRST, name="chat"), replace(FIRST, name="summary")]
    labels = [line.split("  ")[0] for line in stages(picture(*names, FIRST), 120).splitlines()[2:5]]
    assert labels == ["8 users", " chat", " summary"]
    assert " chat" not in stages(picture(names[0], FIRST), 120)


def test_stages_when_nothing_succeeded() -> None:
    """What does not exist is `–`, never 0 or nan."""
    table = stages(picture(stage_row("8 users", {"load": "closed loop", "requests_ok": 0, "requests_failed": 3})), 120)
    assert table.splitlines()[2].split() == ["8", "users", "–", "closed", "0", "3", *["–"] * 11, "VALID"]


def test_stages_when_nothing_was_measured() -> None:
    """The first ten seconds have no table yet."""
    assert stages(picture(), 80) == "No stage has been measured yet.\n"


def test_progress_when_the_end_is_known() -> None:
    """Where the run is, and the least time that is left."""
    progress = Progress(
        stage="64 users",
        phase="steady",
        stage_number=2,
        stages=4,
        users=64,
        in_flight=63,
        elapsed_s=200.4,
        left_s=3725.0,
    )
    stream = io.StringIO()
    screen = Screen(stream)
    screen.progress(picture(progress=progress))
    screen.progress(picture(progress=replace(progress, left_s=None, stage=None)))
    screen.progress(picture())
    assert stream.getvalue() == (
        "stage 2/4 64 users · steady · 64 users · 63 in flight · 3m20s elapsed · about 1h02m left\n"
        "stage 2/4 · steady · 64 users · 63 in flight · 3m20s elapsed · no end set\n"
    )


END = """\
Measured: 1,264 requests: 1,258 ok, 6 failed, 0 unfinished
Not in these numbers: warmup 8 ok, 0 failed
Skipped: 128 users: over 50 % of the requests failed
Measurement: INVALID
  totals differ
  64 users: SATURATED
SLO
stage     demand         measured  samples  verdict
8 users   ttft p99 < 2s  1,560 ms       24  met
64 users  ttft p99 < 2s  6,874 ms    1,234  MISSED
64 users  itl p99 < 1s          –        0  MISSED
64 users  errors < 5%      3.40 %    1,234  met
Failures, all phases
outcome        status  requests  first message
server_error   200            4  模型 "x"␛[31m
connect_error  –              2  ConnectionRefusedError
requests.csv is not whole
"""


def test_end_when_much_went_wrong() -> None:
    """The verdict with its reasons, the SLO, the failures with a message that cannot reach the terminal as it is."""
    shown = picture(
        FIRST,
        SECOND,
        verdicts={
            RUN: StageVerdict(validity=Validity.INVALID, reasons=("totals differ",), findings=("64 users: SATURATED",)),
            "8 users": StageVerdict(validity=Validity.VALID),
        },
        slo={
            "8 users": (Verdict("ttft p99 < 2s", "ttft_ms_p99", "ms", "< 2s", 1560.0, 24, True),),
            "64 users": (
                Verdict("ttft p99 < 2s", "ttft_ms_p99", "ms", "< 2s", 6874.4, 1234, False),
                Verdict("itl p99 < 1s", "itl_ms_p99", "ms", "< 1s", None, 0, False),
                Verdict("errors < 5%", "error_ratio", "ratio", "< 5%", 0.034, 1234, True),
            ),
        },
        skipped={"128 users": "over 50 % of the requests failed"},
    )
    failures = [
        Failure("server_error", 200, 4, '模型 "x"\x1b[31m'),
        Failure("connect_error", None, 2, "ConnectionRefusedError"),
    ]
    stream = io.StringIO()
    Screen(stream).end(shown, failures, ["requests.csv is not whole"])
    assert stream.getvalue().partition("Measured")[2] == END.partition("Measured")[2]


def test_files_when_the_path_is_long(tmp_path: Path) -> None:
    """A path is on one line, to be copied, however narrow the screen."""
    directory = tmp_path / ("x" * 100)
    directory.mkdir()
    (directory / "run.conf").touch()
    shown = picture(OPEN, verdicts={RUN: StageVerdict(validity=Validity.SUSPECT)})
    stream = io.StringIO()
    Screen(stream, width=40).files([directory / "a.csv"], next_steps(shown, [Failure("cut", 200, 1, "")], directory))
    assert stream.getvalue().splitlines() == [
        "Files",
        f"  {directory}/a.csv",
        "Next: read the reasons above before you use the numbers; each has its figure in summary.json",
        f"Next: filter {directory}/requests.csv by outcome to see every failed request with its message",
        "Next: a SATURATED stage was held back by its users: raise -u, or take the rate as more than it carries",
        f"Next: repeat this run: locust --config {directory}/run.conf",
    ]


@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, False)],
    ids=["terminal", "dumb", "no-color"],
)
def test_stages_when_stream_is_a_terminal(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], coloured: bool
) -> None:
    """Colours only on a terminal that wants them."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    Screen(stream, width=120).stages(picture(FIRST, SECOND))
    assert ("\x1b[32m" in stream.getvalue()) is coloured  # green
    assert ("\x1b[31m" in stream.getvalue()) is coloured  # red


def test_stages_when_stream_cannot_encode() -> None:
    """On a stream of ASCII nothing breaks, and the signs have spellings."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Screen(stream, width=80).stages(picture(replace(FIRST, stage="模型"), OPEN, stage_row("none", {"load": None})))
    table = raw.getvalue().decode("ascii")
    assert ">=9,876" in table
    assert "??" in table
    assert " - " in table


def test_say_when_nobody_reads() -> None:
    """A closed pipe does not end a run."""

    class Closed(io.StringIO):
        def write(self, _text: str, /) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    Screen(Closed()).say("still here")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "–"),
        (0, "0"),
        (0.0004, "0.000"),
        (0.4, "0.400"),
        (1.0, "1.00"),
        (9.994, "9.99"),
        (9.996, "10.0"),
        (99.94, "99.9"),
        (99.96, "100"),
        (5288.4, "5,288"),
        (1_234_567.0, "1,234,567"),
    ],
)
def test_three_digits_when_value_is_of_any_size(value: float | None, expected: str) -> None:
    """About three digits, thousands apart, absent as such."""
    assert numbers.three_digits(value) == expected


@pytest.mark.parametrize(
    ("duration_s", "expected"), [(0, "0s"), (59.4, "59s"), (59.6, "1m00s"), (3599.6, "1h00m"), (7500, "2h05m")]
)
def test_span_when_duration_is_of_any_size(duration_s: float, expected: str) -> None:
    """As people say it, and never 60 seconds."""
    assert numbers.span(duration_s) == expected
