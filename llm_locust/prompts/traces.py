"""Recorded traffic: Mooncake (JSONL, with prefix blocks) and BurstGPT (CSV).

A trace gives instants and lengths; texts are synthetic. Mooncake's `timestamp` is in milliseconds,
its `hash_ids` name blocks of 512 tokens: equal ids give equal text, so that a prefix cache sees
what it saw when the trace was taken. BurstGPT's `Timestamp` is in seconds.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from llm_locust.prompts.draw import Use
from llm_locust.prompts.phrases import PHRASE_WORDS, Phrases, opened
from llm_locust.prompts.ruler import ASSUMED, Ruler
from llm_locust.prompts.source import PromptError, Skipped
from llm_locust.prompts.textfile import TextFile
from llm_locust.protocol.types import PromptRequest

BLOCK_TOKENS = 512


class MooncakeRow(msgspec.Struct, frozen=True):
    """One line of a Mooncake trace; `timestamp` in ms, lengths in tokens."""

    timestamp: float
    input_length: int
    output_length: int
    hash_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Trace:
    """Requests with instants (s from the first, ascending), lengths and prefix blocks."""

    arrivals_s: npt.NDArray[np.float64]
    input_tokens: npt.NDArray[np.int64]
    output_tokens: npt.NDArray[np.int64]
    blocks: tuple[tuple[int, ...], ...]
    digest: str
    notes: tuple[str, ...] = ()
    seed: int = 0
    ruler: Ruler = ASSUMED
    _phrases: Phrases = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_phrases", Phrases(self.ruler.words, self.seed))

    @property
    def size(self) -> int | None:
        """The number of requests in the trace."""
        return len(self.arrivals_s)

    def prepared(self, seed: int, ruler: Ruler) -> Trace:
        """Return this trace for a run's seed and a measured ruler."""
        return replace(self, seed=seed, ruler=ruler)

    def faster(self, speed: float) -> Trace:
        """Return the trace played `speed` times as fast."""
        return replace(self, arrivals_s=self.arrivals_s / speed)

    @property
    def mean_input_tokens(self) -> int:
        """The usual length of its prompts."""
        return round(float(self.input_tokens.mean()))

    @property
    def least_input_tokens(self) -> int:
        """The shortest length in the trace."""
        return int(self.input_tokens.min())

    def prompt(self, index: int) -> PromptRequest:
        """Make the prompt of one request."""
        row = index % len(self.arrivals_s)
        tokens = max(int(self.input_tokens[row]), self.ruler.shortest_tokens)
        words = self.ruler.words_for(tokens)
        parts: list[str] = []
        for block in self.blocks[row]:
            if words <= 0:
                break
            parts.append(self._block(block, min(words, BLOCK_TOKENS)))
            words -= BLOCK_TOKENS
        if words > 0:
            parts.append(self._phrases.drawn(Use.TRACE_TEXT, index, words))
        output = max(1, int(self.output_tokens[row]))
        return PromptRequest(text=opened(" ".join(parts)), input_tokens=tokens, output_tokens=output, exact_output=True)

    def _block(self, block: int, words: int) -> str:
        """The first `words` words of a block's text: the same for the same id (64 bits and more)."""
        names = hashlib.blake2b(f"{self.seed}/{block}".encode(), digest_size=BLOCK_TOKENS // PHRASE_WORDS).digest()
        return self._phrases.named(names, words)


def open_mooncake(path: Path, *, lenient: bool = False) -> Trace:
    """Read a Mooncake trace; a bad row raises PromptError with file and line, or is skipped and counted."""
    file = TextFile(path)
    decoder = msgspec.json.Decoder(MooncakeRow)
    rows: list[MooncakeRow] = []
    skipped = Skipped(path)
    for number, _, line in file.lines():
        if not line.strip():
            continue
        row = _mooncake_row(decoder, line)
        if isinstance(row, MooncakeRow):
            rows.append(row)
        elif lenient:
            skipped.add(row, number)
        else:
            raise PromptError(f"{path}, line {number}: {row}")
    if not rows:
        raise PromptError(f"{path}: no request in it")
    order = sorted(range(len(rows)), key=lambda i: rows[i].timestamp)
    return Trace(
        arrivals_s=_from_first(np.array([rows[i].timestamp for i in order]) / 1000),
        input_tokens=np.array([rows[i].input_length for i in order], dtype=np.int64),
        output_tokens=np.array([rows[i].output_length for i in order], dtype=np.int64),
        blocks=tuple(rows[i].hash_ids for i in order),
        digest=file.digest,
        notes=(*_sorted_note(path, order), *skipped.notes),
    )


def _mooncake_row(decoder: msgspec.json.Decoder[MooncakeRow], line: str) -> MooncakeRow | str:
    """Read a row, or say what is wrong with it."""
    try:
        row = decoder.decode(line)
    except (msgspec.DecodeError, UnicodeError) as error:
        return str(error)
    return _mooncake_problem(row) or row


def _mooncake_problem(row: MooncakeRow) -> str:
    most = math.ceil(row.input_length / BLOCK_TOKENS)
    if row.input_length < 1 or row.output_length < 0:
        return f"lengths {row.input_length} in, {row.output_length} out: at least 1 token in, and not less than 0 out"
    least = row.input_length // BLOCK_TOKENS  # some leave out the block that is not full
    if row.hash_ids and not least <= len(row.hash_ids) <= most:
        return f"{row.input_length} tokens have {most} blocks of {BLOCK_TOKENS}; hash_ids has {len(row.hash_ids)}"
    if any(block < 0 for block in row.hash_ids):
        return "hash_ids holds a negative id"
    return ""


def open_burstgpt(path: Path, *, lenient: bool = False) -> Trace:
    """Read a BurstGPT trace; rows with no response tokens (failed there) are left out and counted.

    A row that is no numbers raises PromptError with file and line, or is left out and counted too.
    """
    import pandas as pd  # a second of CPU in every process of a run, needed for this kind of file only

    file = TextFile(path)
    file.require_utf8()
    try:
        table = pd.read_csv(path, skip_blank_lines=False).dropna(how="all")  # so that a row's place is its line
    except (OSError, ValueError) as error:
        raise PromptError(f"{path}: {error}") from None
    wanted = ("Timestamp", "Request tokens", "Response tokens")
    if missing := [name for name in wanted if name not in table.columns]:
        raise PromptError(f"{path}, line 1: no column {', '.join(missing)}; a BurstGPT file has {', '.join(wanted)}")
    numbers = table.loc[:, list(wanted)].apply(pd.to_numeric, errors="coerce")
    bad = numbers.isna().any(axis=1)
    if bad.any() and not lenient:
        raise PromptError(f"{path}, line {int(bad.idxmax()) + 2}: not a number")
    skipped = Skipped(path)
    for place in np.flatnonzero(bad).tolist():
        skipped.add("not a number", int(table.index[place]) + 2)
    numbers = numbers[~bad]
    used = numbers[(numbers["Response tokens"] > 0) & (numbers["Request tokens"] > 0)]
    if used.empty:
        raise PromptError(f"{path}: no request with an answer in it")
    used = used.sort_values("Timestamp", kind="stable")
    left_out = len(numbers) - len(used)
    notes = (
        (f"{path.name}: {left_out} row{'s' if left_out > 1 else ''} skipped: no tokens asked or answered",)
        if left_out
        else ()
    )
    return Trace(
        arrivals_s=_from_first(used["Timestamp"].to_numpy(dtype=np.float64)),
        input_tokens=used["Request tokens"].to_numpy(dtype=np.int64),
        output_tokens=used["Response tokens"].to_numpy(dtype=np.int64),
        blocks=((),) * len(used),
        digest=file.digest,
        notes=(*notes, *skipped.notes),
    )


def _from_first(instants_s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    from_first: npt.NDArray[np.float64] = instants_s - instants_s[0]
    return from_first


def _sorted_note(path: Path, order: list[int]) -> tuple[str, ...]:
    moved = sum(1 for place, row in enumerate(order) if place != row)
    return (f"{path.name}: {moved} rows were out of order and were sorted by time",) if moved else ()
