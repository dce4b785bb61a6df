"""For documents: Markdown, workbook, charts without a browser; no text of a server becomes markup, formula or link."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.rig.fake_run import OPEN, SWEEP, FakeRun, FakeStage
from benchmarks.rig.written_run import written
from llm_locust.analysis.commands import report_main
from llm_locust.outputs import report_png
from llm_locust.outputs.report import report_document
from llm_locust.outputs.report_markdown import markdown
from llm_locust.outputs.report_run import FinishedRun, load_run
from llm_locust.outputs.report_tables import Column, Table, report_tables
from llm_locust.outputs.report_xlsx import write_workbook

FORMULA = '=HYPERLINK("http://127.0.0.1/","x")'
LABEL = "8 个用户 $x$"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """A run with a Chinese stage, and errors that would be formulas."""
    stages = (FakeStage(LABEL, 8, 420, 28, failed_ratio=0.2), *SWEEP[1:])
    return load_run(written(tmp_path_factory.mktemp("reports"), FakeRun(stages, error=FORMULA)).directory)


def test_markdown_when_a_table_is_known() -> None:
    """Numbers are shown as on a screen and stand right; what could be markup is escaped; absent is a dash."""
    table = Table(
        "T|1",
        (Column("a"), Column("b, ms"), Column("c")),
        (("x|y", 5288.4, None), ("<b>*\n[l](u)", 0.4019, "z")),
    )
    assert markdown([table]) == (
        "### T\\|1\n\n| a | b, ms | c |\n|---|---:|---|\n| x\\|y | 5,288 | – |\n| \\<b\\>\\*␊\\[l\\](u) | 0.402 | z |\n"
    )


def test_report_tables_when_written_as_markdown(run: FinishedRun) -> None:
    """Every table is there, in the order of the report, with the verdict first."""
    text = markdown(report_tables(run))
    titles = re.findall(r"^### (.*)$", text, re.MULTILINE)
    assert titles == ["Run", "Objectives", "Validity", "Stages", "Outcomes", "Failures, all phases", "Formulas"]
    assert text.splitlines()[4].startswith("| verdict | SUSPECT measurement (")


def test_workbook_when_texts_are_formulas(run: FinishedRun, tmp_path: Path) -> None:
    """A sheet a table; numbers are numbers, exact; texts are texts, none a formula or a link."""
    path = tmp_path / "run.xlsx"
    write_workbook(path, report_tables(run))
    with zipfile.ZipFile(path) as book:
        sheets = {name: book.read(name) for name in book.namelist() if name.startswith("xl/worksheets/sheet")}
        strings = "".join(ElementTree.fromstring(book.read("xl/sharedStrings.xml")).itertext())
        names = re.findall(r'<sheet name="([^"]*)"', book.read("xl/workbook.xml").decode())
    assert names == ["Run", "Objectives", "Validity", "Stages", "Outcomes", "Failures, all phases", "Formulas"]
    assert not any(b"<f>" in sheet or b"<hyperlink" in sheet for sheet in sheets.values())
    assert FORMULA in strings
    assert LABEL in strings
    tok_per_s = run.stages[0].values["output_tok_per_s"]
    numbers = {float(n) for n in re.findall(rb"<v>([\d.eE+-]+)</v>", sheets["xl/worksheets/sheet4.xml"])}
    assert any(n == pytest.approx(tok_per_s, rel=1e-14) for n in numbers)


def test_charts_when_written(run: FinishedRun, tmp_path: Path) -> None:
    """Each chart is a PNG and an SVG, whatever a label would be in the language of formulas."""
    paths = report_png.write_charts(tmp_path / "charts", report_document(run), print)
    assert {path.suffix for path in paths} == {".png", ".svg"}
    assert len(paths) == 28
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in paths if path.suffix == ".png")
    assert {"throughput-ttft", "time-tokens", "heat-itl", "cdf-e2e", "ttft-input"} <= {path.stem for path in paths}


def test_latencies_in_charts_have_the_units_of_tables(run: FinishedRun) -> None:
    """TTFT and TPOT in ms, E2E in s."""
    from matplotlib.figure import Figure

    units = {}
    for name, draw in report_png._charts(report_document(run)):
        draw(axes := Figure().add_subplot())
        units[name] = (axes.get_xlabel(), axes.get_ylabel())
    assert {units[f"cdf-{name}"][0] for name in ("ttft", "tpot")} == {"ms (log)"}
    assert (units["cdf-e2e"][0], units["ttft-input"][1], units["e2e-output"][1]) == ("s (log)", "ms", "s")


@pytest.mark.parametrize(
    ("stages", "peak", "title", "lines"),
    [
        pytest.param(SWEEP, 60, "Requests in flight and users", 2, id="closed loop"),
        pytest.param(OPEN, 65, "Requests in flight and users", 2, id="open loop near its limit"),
        pytest.param(OPEN, 64, "Requests in flight, of at most 512", 1, id="open loop far from it"),
    ],
)
def test_users_of_an_open_loop_when_they_are_but_a_limit(
    tmp_path: Path, stages: tuple[FakeStage, ...], peak: int, title: str, lines: int
) -> None:
    """Their line would press the requests in flight flat: it is left out."""
    document = report_document(load_run(written(tmp_path, FakeRun(stages)).directory))
    place = document["history"]["columns"].index("in_flight_peak")
    for point in document["history"]["points"]:
        point[place] = peak
    name, found, _, drawn = report_png._load(document)
    assert (name, found, len(drawn)) == ("load", title, lines)


@pytest.mark.parametrize(
    ("least", "greatest", "labels"),
    [
        (268, 13_600, ["500", "1,000", "2,000", "5,000", "10,000"]),
        (23.5, 118, ["30", "40", "50", "70", "100"]),
        (20, 22.2, ["20", "20.5", "21", "21.5", "22"]),
        (0.4, 900, ["1", "10", "100"]),
    ],
    ids=["decades", "less than a decade", "nearly constant", "many decades"],
)
def test_log_axis_when_its_range_is_wide_or_narrow(least: float, greatest: float, labels: list[str]) -> None:
    """It has labels, whatever the range: powers of ten alone would leave one or none."""
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    report_png._cdf(axes, [{"stage": "8", "requests": [(least, None, None), (greatest, None, None)]}], 0, "E2E")
    axes.set_xlim(least, greatest)
    locations = [place for place in axes.xaxis.get_majorticklocs() if least <= place <= greatest]
    assert axes.xaxis.get_major_formatter().format_ticks(locations) == labels


def test_charts_when_no_font_has_the_characters(
    run: FinishedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One warning names the package; the charts are written all the same, and matplotlib says nothing of its own."""
    from matplotlib import font_manager

    latin = [font for font in font_manager.fontManager.ttflist if font.name == "DejaVu Sans"]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", latin)
    said: list[str] = []
    document = report_document(run)
    document["history"]["points"].clear()
    report_png.write_charts(tmp_path, document, said.append)
    assert said == ["no font for Chinese, Japanese or Korean was found: install the package fonts-noto-cjk"]
    said.clear()
    plain = report_document(load_run(written(tmp_path / "r", FakeRun(SWEEP[:1])).directory))
    plain["history"]["points"].clear()
    report_png.write_charts(tmp_path, plain, said.append)
    assert said == []


def test_report_command_when_everything_is_asked_for(
    run: FinishedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tables alone go to the output, so that they can be piped; the rest is told beside it."""
    code = report_main([str(run.directory), "--xlsx", str(tmp_path / "a.xlsx"), "--markdown"])
    out, err = capsys.readouterr()
    assert code == 0
    assert out.startswith("### Run\n")
    assert err.splitlines()[-2:] == [str(run.directory / "report.html"), str(tmp_path / "a.xlsx")]


def test_report_command_when_there_is_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence, exit code 1."""
    assert report_main([str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"llm-locust report: {tmp_path}: no run there (no summary.json)\n"
    (tmp_path / "summary.json").write_text('{"format": 1}')
    assert report_main([str(tmp_path)]) == 1
    assert "summary.json is no summary of a run" in capsys.readouterr().err
