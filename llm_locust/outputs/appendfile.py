"""A file that only grows, by whole lines, and survives a kill, a full disk and a removed directory.

Lines wait in memory until `flush`. What could not be written stays there and is tried again at the next flush; the
file is cut back to its last whole line first, so no half line of ours is ever left behind a failed write. (A process
killed inside the system call itself may leave one: the readers drop a last line without its end.)
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

MOST_WAITING_BYTES = 256 * 1024 * 1024
"""Lines beyond this wait for a disk in vain: they are counted and let go, so that the run itself goes on."""


class AppendFile:
    """One growing file. Lines are given without their end; none holds a line break."""

    def __init__(self, path: Path, *, line_end: bytes = b"\r\n", most_waiting_bytes: int = MOST_WAITING_BYTES) -> None:
        self.path = path
        self.lines_given = 0
        self.lines_written = 0
        self.lines_let_go = 0
        self._line_end = line_end
        self._most_waiting_bytes = most_waiting_bytes
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._file: int | None = None
        self._whole_bytes = 0  # length of the file up to its last whole line

    @property
    def lines_waiting(self) -> int:
        """How many lines are in memory only."""
        return len(self._waiting)

    def append(self, line: str) -> None:
        """Take one line; it is on disk after the next successful flush."""
        self.lines_given += 1
        encoded = line.encode("utf-8") + self._line_end
        if self._waiting_bytes + len(encoded) > self._most_waiting_bytes:
            self.lines_let_go += 1
            return
        self._waiting.append(encoded)
        self._waiting_bytes += len(encoded)

    def flush(self) -> None:
        """Write the waiting lines. Raises OSError where not all of them could be written; they are kept."""
        if not self._waiting and self._file is not None and not self._vanished(self._file):
            return
        file = self._usable()
        self._cut_to_whole_lines(file)
        payload = b"".join(self._waiting)
        written = 0
        try:
            while written < len(payload):
                written += os.write(file, memoryview(payload)[written:])
        finally:
            self._book(payload, written)
            if written < len(payload):
                self._cut_to_whole_lines(file)

    def close(self) -> None:
        """Flush, ask the disk to keep it, and close; the file is closed also where that raises OSError."""
        try:
            self.flush()
            if self._file is not None:
                os.fsync(self._file)
        finally:
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _usable(self) -> int:
        """Return the open file; make it the first time, and again with all it held where it was removed."""
        if self._file is not None and not self._vanished(self._file):
            return self._file
        self.path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
        fresh = os.open(self.path, flags, 0o644)
        if self._file is None:
            self._file = fresh
            return fresh
        removed = self._file
        try:
            _copy(removed, fresh, self._whole_bytes)
        except OSError:
            os.close(fresh)
            self.path.unlink()
            raise
        os.close(removed)
        self._file = fresh
        return fresh

    @staticmethod
    def _vanished(file: int) -> bool:
        # A write to a removed file succeeds and is lost; its link count tells.
        return os.name == "posix" and os.fstat(file).st_nlink == 0

    def _cut_to_whole_lines(self, file: int) -> None:
        size = os.fstat(file).st_size
        if size > self._whole_bytes:
            os.ftruncate(file, self._whole_bytes)
        elif size < self._whole_bytes:
            self._whole_bytes = size  # somebody emptied it: go on from there, never over a hole
        os.lseek(file, self._whole_bytes, os.SEEK_SET)

    def _book(self, payload: bytes, written: int) -> None:
        whole = payload.rfind(b"\n", 0, written) + 1
        self._whole_bytes += whole
        lines = payload.count(b"\n", 0, whole)
        self.lines_written += lines
        del self._waiting[:lines]
        self._waiting_bytes -= whole


def _copy(source: int, target: int, length_bytes: int) -> None:
    os.lseek(source, 0, os.SEEK_SET)
    with os.fdopen(os.dup(source), "rb") as reader, os.fdopen(os.dup(target), "wb") as writer:
        shutil.copyfileobj(reader, writer)
        writer.truncate(length_bytes)


def replace_file(path: Path, content: bytes, *, durable: bool) -> None:
    """Put `content` in the place of `path` in one step: a reader sees the old file or the new one, never a half.

    A rename survives the death of the process. ``durable`` also asks the disk (fsync), which can take 100 ms and
    holds the hub: for the end of a run only. Raises OSError; the old file is untouched then.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    waiting = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(waiting, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(waiting, path)
    except OSError:
        waiting.unlink(missing_ok=True)
        raise
