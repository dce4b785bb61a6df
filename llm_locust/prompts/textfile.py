"""Text files read by index: one pass checks the encoding and notes where each line begins.

Only the offsets are held in memory (16 bytes a line). A byte-order mark is taken off; a file that
is not UTF-8 is refused with line, offset and the command that mends it.
"""

from __future__ import annotations

import codecs
import hashlib
import mmap
from collections.abc import Iterator
from pathlib import Path

from llm_locust.prompts.source import PromptError

_MARKS = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


class TextFile:
    """A UTF-8 text file: its lines with their offsets, then any piece of it by offset."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._map: mmap.mmap | None = None
        self._digest = hashlib.sha256()
        try:
            with path.open("rb") as file:
                head = file.read(4)
        except OSError as error:
            raise PromptError(f"{path}: {error.strerror or error}") from None
        for mark, name in _MARKS.items():
            if head.startswith(mark):
                raise PromptError(f"{path} is {name}, not UTF-8: iconv -f {name} -t UTF-8 '{path}' > '{path}.utf8'")

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes that `lines` went through, shortened."""
        return self._digest.hexdigest()[:16]

    def lines(self) -> Iterator[tuple[int, int, str]]:
        """Yield (line number from 1, offset in bytes, the line with its end) of each line."""
        offset = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                self._digest.update(line)
                mark = 3 if number == 1 and line.startswith(codecs.BOM_UTF8) else 0
                yield number, offset + mark, self._decoded(line[mark:], number, offset + mark)
                offset += len(line)

    def _decoded(self, line: bytes, number: int, offset: int) -> str:
        if (place := line.find(b"\0")) >= 0:  # no text of any use here has one
            name = "UTF-16LE" if (offset + place) % 2 else "UTF-16BE"
            raise PromptError(
                f"{self.path}, line {number}, byte {offset + place}: not text (a byte 0x00); "
                f"if it is UTF-16: iconv -f {name} -t UTF-8 '{self.path}' > '{self.path}.utf8'"
            )
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as error:
            raise PromptError(
                f"{self.path}, line {number}, byte {offset + error.start}: not UTF-8 (byte 0x{line[error.start]:02x}); "
                f"if it is Windows-1252: iconv -f CP1252 -t UTF-8 '{self.path}' > '{self.path}.utf8'"
            ) from None

    def require_utf8(self) -> None:
        """Go through the whole file; raises PromptError with line, offset and the command that mends it."""
        for _ in self.lines():
            pass

    def read(self, offset: int, length: int) -> str:
        """Return the text of `length` bytes at `offset`; raises PromptError where the file changed."""
        if self._map is None:
            with self.path.open("rb") as file:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            return self._map[offset : offset + length].decode("utf-8")
        except UnicodeDecodeError:
            raise PromptError(f"{self.path} was changed while it was in use") from None
