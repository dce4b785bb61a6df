"""The prompts that a run's options and stages name: each source opened once per process, off the hub.

Precedence per field: option given > stage > user class > default. A file is known by the digest of its content, so
that a worker with another one under the same name is found before the load.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import gevent
import msgspec

from llm_locust.load.users import LLMUser
from llm_locust.prompts.lengths import fixed, parse_length
from llm_locust.prompts.registry import DEFAULT_INPUT, MADE, Wanted, WithOutputTokens, open_prompts
from llm_locust.prompts.source import PromptError, PromptSource
from llm_locust.prompts.synthetic import Synthetic, synthetic
from llm_locust.prompts.tokenizers import TokenCounter, TokenizerError, open_tokenizer

from .settings import Settings

DEFAULT_OUTPUT = fixed(2048)
_LENGTHS = frozenset({"input_tokens", "output_tokens", "shared_prefix"})


class Named(Protocol):
    """What names prompts: a stage of the plan, or the order that a worker gets."""

    @property
    def prompts(self) -> str: ...

    @property
    def input_tokens(self) -> str: ...

    @property
    def output_tokens(self) -> str: ...


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """A file of prompts as the master has it: what options and stage name (`Named`), or the one of a user class."""

    prompts: str = ""
    input_tokens: str = ""
    output_tokens: str = ""
    digest: str = ""
    user_class: str = ""


NOTHING = Dataset()
"""Names no prompts: what the options name is taken."""


def tokenizer_of(settings: Settings) -> TokenCounter | None:
    """Open the tokenizer that the options name. Raises PromptError that says what would be right."""
    if settings.tokenizer is None:
        return None
    try:
        return open_tokenizer(settings.tokenizer)
    except TokenizerError as error:
        raise PromptError(f"--llm-tokenizer: {error}") from None


def _open(spelled: str, wanted: Wanted) -> PromptSource | PromptError:
    """Open prompts in a thread. An error is given back: gevent prints the traceback of what a thread raises."""
    try:
        return open_prompts(spelled, wanted)
    except PromptError as error:
        return error


class Library:
    """The sources of one process. Raises PromptError where one cannot be opened."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.tokenizer = tokenizer_of(settings)
        self._opened: dict[tuple[str, str, str], PromptSource] = {}

    def of_stage(self, stage: Named) -> PromptSource | None:
        """Return the prompts that options and stage name; None: the user classes' own are taken."""
        if "prompts" not in self.settings.given and not (stage.prompts or stage.input_tokens or stage.output_tokens):
            return None
        spelled = self._spelled(stage)
        if "prompts" in self.settings.given and spelled not in MADE:
            stage = NOTHING  # a stage's lengths are for prompts that are made: a file of the option keeps its own
        key = (stage.prompts, stage.input_tokens, stage.output_tokens)
        if key not in self._opened:
            opened = gevent.get_hub().threadpool.apply(_open, (spelled, self._wanted(stage, spelled)))
            if isinstance(opened, PromptError):
                raise opened
            self._opened[key] = opened
        return self._opened[key]

    def adapt(self, source: PromptSource) -> PromptSource:
        """Give a user class's prompts the lengths that an option asks for."""
        given = {field: getattr(self.settings, field) for field in _LENGTHS & self.settings.given}
        if isinstance(source, Synthetic):
            return replace(source, **given)
        if "output_tokens" in given:
            return WithOutputTokens(source, given["output_tokens"])
        return source

    # ---- what the master finds out, and tells its workers ----

    def wanted_tokens(self, stages: Iterable[Named], classes: Iterable[type[LLMUser]]) -> int | None:
        """Return the longest usual length of prompts that are made to a length; None where none is."""
        lengths = [getattr(source, "mean_input_tokens", None) for source in self._used(stages, classes)]
        return max((length for length in lengths if length is not None), default=None)

    def least_tokens(self, stages: Iterable[Named], classes: Iterable[type[LLMUser]]) -> int | None:
        """Return the shortest length that prompts are made to; None where none is."""
        lengths = [getattr(source, "least_input_tokens", None) for source in self._used(stages, classes)]
        return min((length for length in lengths if length is not None), default=None)

    def notes(self, stages: Iterable[Named], classes: Iterable[type[LLMUser]]) -> tuple[str, ...]:
        """Say what was skipped in the files."""
        used = self._used(stages, classes)
        return tuple(dict.fromkeys(note for source in used for note in getattr(source, "notes", ())))

    def unused(self, stages: Iterable[Named], classes: Iterable[type[LLMUser]]) -> tuple[str, ...]:
        """Say whose own prompts no option but a stage takes the place of: most shapes have lengths of their own."""
        if "prompts" in self.settings.given:
            return ()
        of_stages = [source for source in map(self.of_stage, stages) if source is not None]
        return tuple(
            f"the prompts of {owner.__name__} are not used: the shape has lengths of its own; in a shape of yours "
            'input_tokens = output_tokens = "" leaves them to the class'
            for owner in classes
            if owner.prompts is not None and any(source != self.adapt(owner.prompts) for source in of_stages)
        )

    def datasets(self, stages: Iterable[Named], classes: Iterable[type[LLMUser]]) -> tuple[Dataset, ...]:
        """Return the files that the run takes prompts from."""
        found = [
            Dataset(
                prompts=stage.prompts,
                input_tokens=stage.input_tokens,
                output_tokens=stage.output_tokens,
                digest=getattr(self.of_stage(stage), "digest", ""),
            )
            for stage in stages
        ]
        found += [Dataset(digest=getattr(owner.prompts, "digest", ""), user_class=owner.__name__) for owner in classes]
        return tuple(dict.fromkeys(dataset for dataset in found if dataset.digest))

    def differences(self, datasets: Iterable[Dataset], classes: Iterable[type[Any]]) -> list[str]:
        """Open the master's files here; name those that are missing, or have another content."""
        own = {owner.__name__: getattr(getattr(owner, "prompts", None), "digest", "") for owner in classes}
        problems = []
        for dataset in datasets:
            try:
                of_run = self.of_stage(dataset)
            except PromptError as error:
                problems.append(str(error))
                continue
            mine = own.get(dataset.user_class, "") if dataset.user_class else getattr(of_run, "digest", "")
            if mine != dataset.digest:
                name = f"prompts of {dataset.user_class}" if dataset.user_class else self._spelled(dataset)
                problems.append(
                    f"{name}: the file here has another content (digest {mine or 'none'}) than the master's "
                    f"({dataset.digest}); copy the master's file to this worker"
                )
        return list(dict.fromkeys(problems))

    def _used(self, stages: Iterable[Named], classes: Iterable[type[LLMUser]]) -> Sequence[PromptSource]:
        named = [self.of_stage(stage) for stage in stages]
        used = [source for source in named if source is not None]
        if len(used) < len(named):
            used += [self.adapt(owner.prompts or synthetic()) for owner in classes]
        return used

    def _spelled(self, stage: Named) -> str:
        return self.settings.choose("prompts", stage.prompts or None)

    def _wanted(self, stage: Named, spelled: str) -> Wanted:
        settings = self.settings
        of_stage = [parse_length(text) if text else None for text in (stage.input_tokens, stage.output_tokens)]
        default_output = DEFAULT_OUTPUT if spelled in MADE else None
        return Wanted(
            input_tokens=settings.choose("input_tokens", of_stage[0]) or DEFAULT_INPUT,
            output_tokens=settings.choose("output_tokens", of_stage[1]) or default_output,
            shared_prefix=settings.shared_prefix,
            max_context_tokens=settings.max_context_tokens,
            count=None if self.tokenizer is None else self.tokenizer.count,
        )
