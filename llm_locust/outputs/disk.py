"""What the disk refuses: told once, kept in the summary, tried again.

Knows the files' names and counts, not what is in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from llm_locust.outputs.appendfile import AppendFile


class Disk:
    """The troubles of one run's files. ``say`` puts one line before the user."""

    def __init__(self, directory: Path, say: Callable[[str], None]) -> None:
        self._directory = directory
        self._say = say
        self._troubles: dict[str, str] = {}  # file name → what the system says, while it says so
        self._told: dict[str, str] = {}
        self._history: list[str] = []
        self._removed = False

    def attempt(self, name: str, write: Callable[[], object]) -> bool:
        """Try to write a file and say whether that went well; an OSError is its trouble until it does."""
        try:
            write()
        except OSError as error:
            self._troubles[name] = error.strerror or str(error)
            return False
        self._troubles.pop(name, None)
        return True

    def note_removed(self) -> None:
        """Somebody removed the directory: it is said when its files have been tried again."""
        self._removed = True

    def tell(self, files: Iterable[AppendFile]) -> None:
        """Say what is new since the last call: a trouble once, and once that it is over."""
        if self._removed and not self._troubles:
            self._announce(f"REMOVED by somebody: {self._directory}. It is there again, with all it held.")
            self._removed = False
        fresh = {name: reason for name, reason in self._troubles.items() if name not in self._told}
        over = sorted(name for name in self._told if name not in self._troubles)
        if fresh:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in fresh.items())
            kept = ", ".join(f"{file.path.name} {file.lines_written:,} lines" for file in files)
            waiting = sum(file.lines_waiting for file in files)
            self._announce(
                f"CANNOT WRITE to {self._directory}: {reasons}. On the disk: {kept}; {waiting:,} lines wait in memory. "
                "The run goes on; each flush tries again."
            )
        if over:
            self._announce(f"Written again to {self._directory}: {', '.join(over)}.")
        self._told = dict(self._troubles)

    def report(self, files: Iterable[AppendFile]) -> dict[str, Any]:
        """Return what summary.json says of the files."""
        return {
            "lines": {file.path.name: _counts(file) for file in files},
            "cannot_write": dict(self._troubles),
            "history": list(self._history),
        }

    def not_whole(self, files: Iterable[AppendFile]) -> tuple[str, ...]:
        """Return one sentence for each file that lacks something."""
        lacking = dict(self._troubles)
        for file in files:
            missing = file.lines_waiting + file.lines_let_go
            if missing:
                reason = lacking.get(file.path.name, "the disk was full for too long")
                lacking[file.path.name] = f"{missing:,} of {file.lines_given:,} lines are missing ({reason})"
        return tuple(f"{name} is not whole: {reason}" for name, reason in lacking.items())

    def _announce(self, sentence: str) -> None:
        self._history.append(sentence)
        self._say(sentence)


def _counts(file: AppendFile) -> dict[str, int]:
    return {"written": file.lines_written, "waiting": file.lines_waiting, "let_go": file.lines_let_go}
