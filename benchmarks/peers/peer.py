"""What a peer is to these benchmarks: packages, a command line, and a reader of what it reported.

A peer is one file with one ``Peer``; nothing of its code is here. All durations are ms, all peers run without a
network.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.rig.tiny_model import make_model

OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OPENAI_API_KEY": "none",
}
"""No peer asks a hub, none tells where it runs."""
TOKENIZER_ID = "local/tiny"


@dataclass(frozen=True, slots=True)
class Asked:
    """One load: chat streams of one server, closed loop. The tool may write in ``folder``.

    ``tokenizer`` is a folder in a hub's cache, whose root is ``hub_cache``: TOKENIZER_ID there.
    """

    url: str
    tokenizer: Path
    folder: Path
    streams: int
    requests: int
    output_tokens: int
    input_tokens: int = 16
    ignore_eos: bool = True

    @property
    def model(self) -> str:
        """The name in the requests' bodies."""
        return "deepseek-r1"

    @property
    def hub_cache(self) -> Path:
        """The root of the cache that the tokenizer is in."""
        return self.tokenizer.parents[2]


Spread = Mapping[str, float | None]


@dataclass(slots=True)
class Said:
    """What a tool reported. None or an absent key: it does not say."""

    ok: int | None = None
    failed: int | None = None
    output_tokens: float | None = None
    ttft_ms: Spread = field(default_factory=dict)
    itl_ms: Spread = field(default_factory=dict)
    tpot_ms: Spread = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Peer:
    """One tool. ``steps`` are the arguments of `pip install`, one call after the other."""

    name: str
    environment: str
    steps: Sequence[Sequence[str]]
    command: Callable[[Path, Asked], list[str]]
    read: Callable[[Path], Said]
    removed: Sequence[str] = ()
    variables: Callable[[Asked], Mapping[str, str]] = lambda _: {}
    remark: str = ""


def make_tokenizer(cache: Path) -> Path:
    """Put a small model's folder into a hub's cache of its own; return it."""
    home, commit = cache / ("models--" + TOKENIZER_ID.replace("/", "--")), "0" * 40
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(commit)
    return make_model(home / "snapshots" / commit)


def spread_of(source: Mapping[str, Any], *, scale: float = 1.0, **names: str) -> dict[str, float | None]:
    """Pick a spread out of a report: ``mean="avg"`` takes the key `avg`. What is absent or zero-width is None."""
    picked: dict[str, float | None] = {}
    for kind, name in names.items():
        value = source.get(name)
        picked[kind] = None if value is None else float(value) * scale
    return picked


def newest(folder: Path, pattern: str) -> Path:
    """Return the newest file of a pattern. Raises FileNotFoundError."""
    found = sorted(folder.rglob(pattern), key=lambda file: file.stat().st_mtime)
    if not found:
        raise FileNotFoundError(f"no {pattern}")
    return found[-1]


def load_json(file: Path) -> Any:
    """Read a JSON file, or the last line of a file of JSON lines."""
    text = file.read_text()
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return json.loads(text.splitlines()[-1])
