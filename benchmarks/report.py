"""How long a report of a night takes, and how much memory: 12 h, 20 stages, a million requests.

    python -m benchmarks.report [ROWS]

Prints seconds, peak memory of the process that builds the report, and the size of the page; exit code 1 over the limits
(30 s, 1 GB, 3 MB).
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.lab import ROOT, save, table
from benchmarks.rig.fake_run import SWEEP, FakeRun
from benchmarks.rig.written_run import written

MOST_S, MOST_BYTES, MOST_PAGE_BYTES = 30.0, 1_000_000_000, 3_000_000
NIGHT_S = 12 * 3600
STAGES = 20


def generate(parent: Path, rows: int) -> Path:
    """Write the files of a night: a short fake run by the real outputs, its rows and seconds repeated over the time."""
    base = SWEEP[1]
    stages = tuple(replace(base, label=f"{8 * n} users", users=8 * n, seconds=20) for n in range(1, STAGES + 1))
    run = written(parent, FakeRun(stages), run_id="night")
    stretch(run.directory / "requests.csv", "start_epoch_s", rows)
    stretch(run.directory / "timeline.csv", "epoch_s", NIGHT_S)
    return run.directory


def stretch(path: Path, instant: str, rows: int) -> None:
    """Repeat the lines of a file so that there are `rows`, in order, over the night."""
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    place = head.split(",").index(instant)
    number = head.split(",").index("request_id") if "request_id" in head else None
    start_s = int(float(lines[0].split(",")[place]))
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(head + "\r\n")
        for row in range(rows):
            cells = lines[row * len(lines) // rows].split(",")
            at_s = start_s + row * NIGHT_S / rows
            cells[place] = str(int(at_s)) if number is None else f"{at_s:.9f}"
            if number is not None:
                cells[number] = str(row)
            file.write(",".join(cells) + "\r\n")


def main() -> int:
    """Measure, and say whether the limits hold."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        directory = generate(Path(folder), rows)
        size = (directory / "requests.csv").stat().st_size
        began_s = time.monotonic()
        subprocess.run([sys.executable, "-m", "llm_locust.outputs.report", str(directory)], check=True, cwd=ROOT)
        took_s = time.monotonic() - began_s
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        page = (directory / "report.html").stat().st_size
    peak = usage.ru_maxrss * 1024
    cpu_s = usage.ru_utime + usage.ru_stime
    found = {"rows": rows, "rows_bytes": size, "took_s": took_s, "cpu_s": cpu_s, "peak_bytes": peak, "page_bytes": page}
    heads = ("rows", "their file MB", "seconds", "CPU s", "peak memory MB", "page MB")
    shown = (f"{rows:,}", f"{size / 1e6:,.0f}", f"{took_s:.1f}", f"{cpu_s:.1f}", f"{peak / 1e6:,.0f}",
             f"{page / 1e6:.2f}")  # fmt: skip
    save("report", found, table(heads, [shown]))
    return int(took_s > MOST_S or peak > MOST_BYTES or page > MOST_PAGE_BYTES)


if __name__ == "__main__":
    sys.exit(main())
