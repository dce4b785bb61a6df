"""Opens a source of prompts by its spelling: `KIND:PATH`, a path alone, `text:…`, `synthetic` or `token-ids`.

Third parties add a kind by an entry point in the group `llm_locust.prompts`: a callable
`(path: Path, *, keep: Keep, lenient: bool) -> PromptSource`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path

import msgspec

from llm_locust.prompts.draw import Use
from llm_locust.prompts.lengths import Length, fixed
from llm_locust.prompts.rows import ConstantText, Keep, open_csv, open_jsonl, open_lines
from llm_locust.prompts.ruler import Ruler
from llm_locust.prompts.sharegpt import ShareGPT
from llm_locust.prompts.source import PromptError, PromptSource
from llm_locust.prompts.synthetic import NOT_SHARED, SharedPrefix, Synthetic
from llm_locust.prompts.textfile import TextFile
from llm_locust.prompts.token_ids import TokenIds
from llm_locust.prompts.traces import open_burstgpt, open_mooncake
from llm_locust.protocol.types import PromptRequest

Opener = Callable[..., PromptSource]

ENTRY_POINTS = "llm_locust.prompts"
SYNTHETIC, TOKEN_IDS = "synthetic", "token-ids"
MADE = (SYNTHETIC, TOKEN_IDS)
"""Prompts that are made to the lengths asked for."""
SPEED_BENCHMARK_OUTPUT = fixed(2048)
SPEED_BENCHMARK_TOKENS = (1, 6144, 14336, 30720)
_CHARACTERS_PER_TOKEN = 4  # where no tokenizer is at hand: the usual ratio of English text


DEFAULT_INPUT = fixed(1024)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the run asks of its prompts; `count` is a local tokenizer's, None where there is none."""

    input_tokens: Length = DEFAULT_INPUT
    output_tokens: Length | None = None
    shared_prefix: SharedPrefix = NOT_SHARED
    max_context_tokens: int | None = None
    seed: int = 0
    count: Callable[[str], int] | None = None


ANYTHING = Wanted()


@dataclass(frozen=True)
class WithOutputTokens:
    """Another source's prompts with the output length that the run asks for."""

    source: PromptSource
    output_tokens: Length
    seed: int = 0

    @property
    def size(self) -> int | None:
        """The source's number of different prompts."""
        return getattr(self.source, "size", None)

    @property
    def digest(self) -> str:
        """The digest of the source's file."""
        return getattr(self.source, "digest", "")

    @property
    def notes(self) -> tuple[str, ...]:
        """What the source skipped."""
        return getattr(self.source, "notes", ())

    def prepared(self, seed: int, _ruler: Ruler) -> WithOutputTokens:
        """Return this source for a run's seed."""
        return replace(self, seed=seed)

    def prompt(self, index: int) -> PromptRequest:
        """Return the source's prompt with the run's own output limit."""
        output = self.output_tokens.sample(self.seed, Use.OUTPUT_TOKENS, index)
        return msgspec.structs.replace(self.source.prompt(index), output_tokens=output, exact_output=True)


@dataclass(frozen=True)
class SpeedBenchmark:
    """Prompts of 1, 6144, 14336 and 30720 tokens in turn."""

    sources: tuple[Synthetic, ...]
    size: int | None = None
    digest: str = ""
    notes: tuple[str, ...] = ()

    @property
    def mean_input_tokens(self) -> int:
        """The usual length of its prompts."""
        return sum(SPEED_BENCHMARK_TOKENS) // len(SPEED_BENCHMARK_TOKENS)

    @property
    def least_input_tokens(self) -> int:
        """The shortest of them."""
        return min(SPEED_BENCHMARK_TOKENS)

    def prepared(self, seed: int, ruler: Ruler) -> SpeedBenchmark:
        """Return this source for a run's seed and a measured ruler."""
        return SpeedBenchmark(tuple(source.prepared(seed, ruler) for source in self.sources))

    def prompt(self, index: int) -> PromptRequest:
        """Return the prompt whose length is next in turn."""
        return self.sources[index % len(self.sources)].prompt(index)


_KINDS: dict[str, Opener] = {
    "sharegpt": ShareGPT,
    "sharegpt-first": partial(ShareGPT, first_only=True),
    "openqa": open_jsonl,
    "jsonl": open_jsonl,
    "csv": open_csv,
    "lines": open_lines,
}
_TRACES = {"mooncake": open_mooncake, "burstgpt": open_burstgpt}
_SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".txt": "lines", ".json": "sharegpt"}


def kinds() -> tuple[str, ...]:
    """Name every kind that can be opened, those of third parties included."""
    added = {point.name for point in entry_points(group=ENTRY_POINTS)}
    return tuple(sorted({*MADE, "speed-benchmark", "text", *_KINDS, *_TRACES, *added}))


def open_prompts(spelled: str, wanted: Wanted = ANYTHING) -> PromptSource:
    """Open the source of prompts that `--llm-prompts` names. Raises PromptError before any load."""
    kind, _, rest = spelled.partition(":")
    if spelled in ("", *MADE):
        make = TokenIds if spelled == TOKEN_IDS else Synthetic
        return make(wanted.input_tokens, wanted.output_tokens, wanted.shared_prefix, wanted.seed)
    if spelled == "speed-benchmark":
        output = wanted.output_tokens or SPEED_BENCHMARK_OUTPUT
        return SpeedBenchmark(tuple(Synthetic(fixed(n), output, seed=wanted.seed) for n in SPEED_BENCHMARK_TOKENS))
    if kind == "text":
        return _with_output(_constant(rest), wanted)
    kind, lenient = kind.removesuffix("+lenient"), kind.endswith("+lenient")
    if kind in _TRACES:
        return replace(_TRACES[kind](_existing(rest), lenient=lenient), seed=wanted.seed)
    opener = _opener(kind)
    if opener is None:
        path = Path(spelled).expanduser()
        if not path.is_file() or path.suffix not in _SUFFIXES:
            raise PromptError(
                f"{spelled!r} is neither a file ({', '.join(_SUFFIXES)}) nor KIND:PATH with one of {', '.join(kinds())}"
            )
        opener = _KINDS[_SUFFIXES[path.suffix]]
    else:
        path = _existing(rest)
    return _with_output(opener(path, keep=_keep(wanted), lenient=lenient), wanted)


def _opener(kind: str) -> Opener | None:
    if kind in _KINDS:
        return _KINDS[kind]
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == kind:
            loaded: Opener = point.load()
            return loaded
    return None


def _constant(rest: str) -> ConstantText:
    if not rest.startswith("@"):
        return ConstantText(rest)
    path = _existing(rest[1:])
    return ConstantText("".join(line for _, _, line in TextFile(path).lines()))


def _existing(path: str) -> Path:
    found = Path(path).expanduser()
    if not found.is_file():
        raise PromptError(f"{path or 'the path'} is not a file" if path else "a path is missing after the colon")
    return found


def _with_output(source: PromptSource, wanted: Wanted) -> PromptSource:
    return WithOutputTokens(source, wanted.output_tokens, wanted.seed) if wanted.output_tokens else source


def _keep(wanted: Wanted) -> Keep:
    """Skip prompts that with their answer exceed the context."""
    limit = wanted.max_context_tokens
    if limit is None:
        return lambda prompt: None
    asked = wanted.output_tokens.high if wanted.output_tokens else 0
    estimated = "" if wanted.count else " (estimated from its characters: no local tokenizer)"

    def reason(prompt: PromptRequest) -> str | None:
        text = prompt.text or "\n".join(message.content for message in prompt.messages or ())
        tokens = wanted.count(text) if wanted.count else math.ceil(len(text) / _CHARACTERS_PER_TOKEN)
        if tokens + (asked or prompt.output_tokens or 0) > limit:
            return f"longer than --llm-max-context {limit}{estimated}"
        return None

    return reason
