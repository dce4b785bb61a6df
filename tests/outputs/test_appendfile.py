"""A growing file: whole lines only, whatever happens to the process, the disk or the directory."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from llm_locust.outputs.appendfile import AppendFile, replace_file


def test_flush_when_called_twice(tmp_path: Path) -> None:
    """Lines are in the file after each flush, in their order, once."""
    file = AppendFile(tmp_path / "deeper" / "a.csv")
    file.append("h1,h2")
    file.append("1,2")
    file.flush()
    assert file.path.read_bytes() == b"h1,h2\r\n1,2\r\n"
    file.flush()
    file.append("3,中")
    file.close()
    assert file.path.read_bytes() == "h1,h2\r\n1,2\r\n3,中\r\n".encode()
    assert (file.lines_given, file.lines_written, file.lines_waiting) == (3, 3, 0)


def test_flush_when_the_file_is_somebody_elses(tmp_path: Path) -> None:
    """A file that is there already is never overwritten or added to."""
    (tmp_path / "a.csv").write_bytes(b"precious")
    file = AppendFile(tmp_path / "a.csv")
    file.append("1")
    with pytest.raises(FileExistsError):
        file.flush()
    assert (tmp_path / "a.csv").read_bytes() == b"precious"
    assert file.lines_waiting == 1


class _FullDisk:
    """`os.write` of a disk that has room for so many bytes more."""

    def __init__(self, room_bytes: int) -> None:
        self.room_bytes = room_bytes
        self._write = os.write

    def __call__(self, file: int, payload: memoryview) -> int:
        if self.room_bytes == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._write(file, payload[: self.room_bytes])
        self.room_bytes -= written
        return written


def test_flush_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No half line is left; what did not fit is kept and written when there is room again."""
    file = AppendFile(tmp_path / "a.csv")
    for line in ("header", "line-1", "line-2"):
        file.append(line)
    disk = _FullDisk(room_bytes=8 + 8 + 5)  # header, line 1 and five bytes of line 2
    monkeypatch.setattr(os, "write", disk)
    with pytest.raises(OSError, match="No space left"):
        file.flush()
    assert file.path.read_bytes() == b"header\r\nline-1\r\n"
    assert (file.lines_written, file.lines_waiting) == (2, 1)
    file.append("line-3")
    with pytest.raises(OSError, match="No space left"):
        file.flush()
    disk.room_bytes = 1_000
    file.append("line-4")
    file.flush()
    assert file.path.read_bytes() == b"header\r\nline-1\r\nline-2\r\nline-3\r\nline-4\r\n"
    assert (file.lines_written, file.lines_waiting, file.lines_let_go) == (5, 0, 0)


def test_flush_when_a_half_line_could_not_be_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where even the cut fails, it is made before the next write."""
    file = AppendFile(tmp_path / "a.csv")
    file.append("line-1")
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", _FullDisk(room_bytes=3))
        patch.setattr(os, "ftruncate", _refuse)
        with pytest.raises(OSError, match="Input/output"):
            file.flush()
        assert file.path.read_bytes() == b"lin"
    file.append("line-2")
    file.flush()
    assert file.path.read_bytes() == b"line-1\r\nline-2\r\n"


def _refuse(_file: int, _length: int) -> None:
    raise OSError(errno.EIO, "Input/output error")


def test_append_when_the_disk_stays_full(tmp_path: Path) -> None:
    """What waits is bounded; what is let go is counted."""
    file = AppendFile(tmp_path / "a.csv", line_end=b"\n", most_waiting_bytes=10)
    for line in ("1234", "1234", "1234"):
        file.append(line)
    assert (file.lines_given, file.lines_waiting, file.lines_let_go) == (3, 2, 1)
    file.close()
    assert file.path.read_bytes() == b"1234\n1234\n"


@pytest.mark.parametrize("new_lines", [0, 1])
def test_flush_when_the_directory_was_removed(tmp_path: Path, new_lines: int) -> None:
    """The file is made again with all that it held, also when nothing new came."""
    file = AppendFile(tmp_path / "run" / "a.csv")
    file.append("header")
    file.append("1")
    file.flush()
    shutil.rmtree(tmp_path / "run")
    for number in range(new_lines):
        file.append(f"new {number}")
    file.flush()
    file.append("last")
    file.close()
    assert file.path.read_bytes() == b"header\r\n1\r\n" + b"new 0\r\n" * new_lines + b"last\r\n"


def test_flush_when_the_directory_cannot_be_made_again(tmp_path: Path) -> None:
    """Nothing is forgotten while the place is taken, and all is written when it is free."""
    file = AppendFile(tmp_path / "run" / "a.csv")
    file.append("header")
    file.flush()
    shutil.rmtree(tmp_path / "run")
    (tmp_path / "run").write_text("in the way")
    file.append("1")
    with pytest.raises(OSError, match="exists"):
        file.flush()
    (tmp_path / "run").unlink()
    file.flush()
    assert file.path.read_bytes() == b"header\r\n1\r\n"
    file.close()


def test_flush_when_somebody_emptied_the_file(tmp_path: Path) -> None:
    """Writing goes on from the new end: no hole of zero bytes."""
    file = AppendFile(tmp_path / "a.csv")
    file.append("header")
    file.flush()
    file.path.write_bytes(b"")
    file.append("1")
    file.close()
    assert file.path.read_bytes() == b"1\r\n"


_LIMITED = """
import resource, sys
from pathlib import Path
from llm_locust.outputs.appendfile import AppendFile
file = AppendFile(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
for number in range(100):
    file.append(f"line {number:03d} 0123456789")
try:
    file.flush()
except OSError as error:
    print(error.errno, file.path.stat().st_size, file.lines_written, file.lines_waiting)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
file.close()
"""


@pytest.mark.skipif(not hasattr(resource, "RLIMIT_FSIZE"), reason="POSIX only")
def test_flush_when_the_kernel_refuses_in_the_middle(tmp_path: Path) -> None:
    """A real short write of the kernel: cut to 47 lines of 21 bytes, then completed."""
    path = tmp_path / "a.csv"
    done = subprocess.run([sys.executable, "-c", _LIMITED, path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(errno.EFBIG), str(47 * 21), "47", "53"]
    assert path.read_bytes() == b"".join(b"line %03d 0123456789\r\n" % number for number in range(100))


_KILLED = """
import sys
from pathlib import Path
from llm_locust.outputs.appendfile import AppendFile
file = AppendFile(Path(sys.argv[1]))
for number in range(10_000):
    file.append(f"{number}," + "x" * 200)
    if number % 100 == 99:
        file.flush()
        print(number, flush=True)
"""


def test_file_when_the_process_is_killed(tmp_path: Path) -> None:
    """After kill -9 every line that was flushed is there, each one whole."""
    path = tmp_path / "a.csv"
    with subprocess.Popen([sys.executable, "-c", _KILLED, path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = [int(process.stdout.readline()) for _ in range(20)]
        process.send_signal(signal.SIGKILL)
        told += [int(line) for line in process.stdout.read().splitlines()]
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1].decode().splitlines()
    assert len(whole) > told[-1]
    assert whole == [f"{number},{'x' * 200}" for number in range(len(whole))]


def test_replace_file_when_it_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old file stays whole, and nothing is left beside it."""
    path = tmp_path / "summary.json"
    replace_file(path, b"old", durable=False)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", _no_room)
        with pytest.raises(OSError, match="No space left"):
            replace_file(path, b"new", durable=False)
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("summary.json", b"old")]
    replace_file(path, b"newer", durable=True)
    assert [(entry.name, entry.read_bytes()) for entry in tmp_path.iterdir()] == [("summary.json", b"newer")]


def _no_room(_source: Path, _target: Path) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")
