"""run.conf: the options of a run, so that `locust --config run.conf` repeats it; and the copy of its locustfiles.

Knows no Locust: the caller gives option names and values, secrets taken out. The format is that of ConfigArgParse's
DefaultConfigFileParser, which Locust reads; it has no escapes, so each line is read back by the same rule before it is
written, and what the format cannot carry becomes a comment that says so.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from llm_locust.outputs.text import drawn, encodable

_COMMENT_STARTS = str.maketrans({"#": r"\u0023", ";": r"\u003b"})

OptionValue = str | bool | int | float | Sequence[str] | None

# ConfigArgParse 1.7 to 1.9, DefaultConfigFileParser.parse
_LINE = re.compile(
    r"^(?P<key>[^:=;#\s]+)\s*"
    r'(?:(?P<equal>[:=\s])\s*([\'"]?)(?P<value>.+?)?\3)?'
    r"\s*(?:\s[;#]\s*(?P<comment>.*?)\s*)?$"
)


def run_conf(options: Mapping[str, OptionValue], left_out: Mapping[str, str], comments: Iterable[str]) -> str:
    """Return the text of run.conf.

    ``options``: long option name without dashes → value as given on the command line; None is left out.
    ``left_out``: option name → why it is not here ("secret: set LOCUST_LLM_API_KEY").
    """
    lines = [f"# {drawn(comment)}" for comment in comments]
    lines += [_option_line(name, value) for name, value in options.items() if value is not None]
    lines += [f"# {name}: {drawn(reason)}" for name, reason in left_out.items()]
    return "".join(f"{encodable(line)}\n" for line in lines)


def copy_locustfiles(sources: Iterable[Path], directory: Path) -> list[Path]:
    """Copy the locustfiles into the run's directory; return the copies. Raises OSError."""
    copies: list[Path] = []
    for source in sources:
        target = directory / source.name
        number = 1
        while target in copies:
            number += 1
            target = directory / f"{source.stem}-{number}{source.suffix}"
        shutil.copyfile(source, target)
        copies.append(target)
    return copies


def _option_line(name: str, value: OptionValue) -> str:
    if isinstance(value, bool):
        return f"{name} = {'true' if value else 'false'}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        # Inside a JSON list everything can be said, line breaks too; what begins a comment is escaped.
        items = json.dumps([encodable(item) for item in value], ensure_ascii=False)
        return f"{name} = {items.translate(_COMMENT_STARTS)}"
    text = _on_one_line(str(value))
    for candidate in (text, f'"{text}"', f"'{text}'"):
        line = f"{name} = {candidate}".strip()
        if _read_back(line) == (name, text):
            return line
    return f"# {name}: this value cannot be said in a file of this format: {drawn(text)}"


def _on_one_line(text: str) -> str:
    """Return a JSON object without its line breaks; other text as it is."""
    if len(text.splitlines()) < 2 or not text.lstrip().startswith("{"):
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError:
        return text


def _read_back(line: str) -> tuple[str, str] | None:
    """Read a line as ConfigArgParse will; None where it would take it for something else."""
    if len(line.splitlines()) != 1 or (match := _LINE.match(line)) is None:
        return None
    value = match.group("value") or ""
    return None if value.startswith("[") and value.endswith("]") else (match.group("key"), value)
