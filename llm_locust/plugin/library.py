"""The prompts that a run's options and stages name: each source opened once per process, off the hub.

Precedence per field: option given > stage (what a shape of one's own says, or what a shape is about) > user class >
the shape's usual lengths > default. A file is known by the digest of its content, so
that a worker with another one under the same name is found before the load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import gevent
import msgspec

from llm_locust.load.users import LLMUser
from llm_locust.prompts.lengths import Length, fixed, parse_length
from llm_locust.prompts.registry import DEFAULT_INPUT, MADE, Wanted, WithOutputTokens, open_prompts
from llm_locust.prompts.source import PromptError, PromptSource
from llm_locust.prompts.synthetic import Synthetic
from llm_locust.prompts.token_ids import TokenIds
from llm_locust.prompts.tokenizers import TokenCounter, TokenizerError, open_tokenizer

from .settings import Settings

DEFAULT_OUTPUT = fixed(2048)
_LENGTHS = ("input_tokens", "output_tokens")
OWN_LENGTHS = "own"
"""Said of prompts that are as long as they are."""


class Named(Protocol):
    """What names prompts: a stage of the plan, or the order that a worker gets."""

    @property
    def prompts(self) -> str: ...

    @property
    def input_tokens(self) -> str: ...

    @property
    def output_tokens(self) -> str: ...

    @property
    def usual_input_tokens(self) -> str: ...

    @property
    def usual_output_tokens(self) -> str: ...


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """A file of prompts as the master has it: what options and stage name (`Named`), or the one of a user class."""

    prompts: str = ""
    input_tokens: str = ""
    output_tokens: str = ""
    usual_input_tokens: str = ""
    usual_output_tokens: str = ""
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


class ChosenPrompts:
    """The prompts of a stage (`StagePrompts`): ``source``, or what ``adapt`` makes of a class's own."""

    def __init__(self, source: PromptSource, adapt: Callable[[PromptSource], PromptSource] | None) -> None:
        """``adapt``: None where option or stage name the source."""
        self._source = source
        self._adapt = adapt
        self._adapted: dict[int, tuple[PromptSource, PromptSource]] = {}

    @property
    def named(self) -> PromptSource | None:
        """What option or stage name, for every class; None: each has its own."""
        return self._source if self._adapt is None else None

    def of_class(self, own: PromptSource | None) -> PromptSource:
        """Return what a class with these prompts asks (None: it has none); for the same ones the same object."""
        if own is None or self._adapt is None:
            return self._source
        if id(own) not in self._adapted:
            self._adapted[id(own)] = (own, self._adapt(own))
        return self._adapted[id(own)][1]


class Library:
    """The sources of one process. Raises PromptError where one cannot be opened."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.tokenizer = tokenizer_of(settings)
        self._chosen: dict[Dataset, ChosenPrompts] = {}

    def of_stage(self, stage: Named) -> ChosenPrompts:
        """Return the prompts of a stage, opened where they are a file."""
        key = self._named_by(stage)
        if key not in self._chosen:
            opened = gevent.get_hub().threadpool.apply(_open, (self._spelled(key), self._wanted(key)))
            if isinstance(opened, PromptError):
                raise opened
            given = "prompts" in self.settings.given or key.prompts
            self._chosen[key] = ChosenPrompts(opened, None if given else partial(self._adapted, key, opened))
        return self._chosen[key]

    def _named_by(self, stage: Named) -> Dataset:
        """What names a stage's prompts, without the lengths that do not reach them."""
        spelled = self._spelled(stage)
        made = spelled in MADE
        if not made and "prompts" in self.settings.given:
            return NOTHING  # a stage's lengths are for prompts that are made: a file of the option keeps its own
        return Dataset(
            prompts=stage.prompts,
            input_tokens=stage.input_tokens,
            output_tokens=stage.output_tokens,
            usual_input_tokens=stage.usual_input_tokens if made else "",
            usual_output_tokens=stage.usual_output_tokens if made else "",
        )

    def _adapted(self, stage: Named, made: PromptSource, own: PromptSource) -> PromptSource:
        """Give a class's prompts the lengths that options and stage ask for; ``made`` where they cannot have them."""
        settings = self.settings
        input_tokens: Length | None = settings.choose("input_tokens", _length(stage.input_tokens))
        output_tokens: Length | None = settings.choose("output_tokens", _length(stage.output_tokens))
        if isinstance(own, Synthetic | TokenIds):
            return replace(
                own,
                input_tokens=input_tokens or own.input_tokens,
                output_tokens=output_tokens or own.output_tokens,
                shared_prefix=settings.choose("shared_prefix", own.shared_prefix),
            )
        if input_tokens is not None:
            return made
        return own if output_tokens is None else WithOutputTokens(own, output_tokens)

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

    def unused(self, stages: Sequence[Named], classes: Iterable[type[LLMUser]]) -> tuple[str, ...]:
        """Say whose own prompts a stage takes the place of, or of their lengths; what an option does needs no word."""
        if "prompts" in self.settings.given:
            return ()
        return tuple(
            f"the shape's own {what} take the place of those of {owner.__name__}"
            for owner in classes
            if owner.prompts is not None and (what := self._replaced(stages, owner.prompts))
        )

    def _replaced(self, stages: Sequence[Named], own: PromptSource) -> str:
        """Name what the stages replace of a class's prompts; "" where they leave them alone."""
        if any(stage.prompts for stage in stages):
            return "prompts"
        left = self.of_stage(NOTHING).of_class(own)
        taken = [source for source in (self.of_stage(stage).of_class(own) for stage in stages) if source != left]
        if any(type(source) is not type(left) and not isinstance(source, WithOutputTokens) for source in taken):
            return "prompts"
        return "lengths" if taken else ""

    def lengths(self, stage: Named, classes: Iterable[type[LLMUser]]) -> tuple[str, str]:
        """Spell the token lengths that a stage's prompts and answers have, in and out: those of every user class."""
        sources = self._used([stage], classes)
        told = ([_told(getattr(source, field, None)) for source in sources] for field in _LENGTHS)
        into, out = (", ".join(dict.fromkeys(texts)) for texts in told)
        return into, out

    def datasets(self, stages: Iterable[Named], classes: Iterable[type[LLMUser]]) -> tuple[Dataset, ...]:
        """Return the files that the run takes prompts from."""
        found = [
            Dataset(
                prompts=stage.prompts,
                input_tokens=stage.input_tokens,
                output_tokens=stage.output_tokens,
                digest=getattr(self.of_stage(stage).named, "digest", ""),
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
                of_run = self.of_stage(dataset).named
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
        own = [owner.prompts for owner in classes] or [None]
        used = [self.of_stage(stage).of_class(prompts) for stage in stages for prompts in own]
        return list({id(source): source for source in used}.values())

    def _spelled(self, stage: Named) -> str:
        return self.settings.choose("prompts", stage.prompts or None)

    def _wanted(self, stage: Named) -> Wanted:
        settings = self.settings
        into = _length(stage.input_tokens) or _length(stage.usual_input_tokens)
        out = _length(stage.output_tokens) or _length(stage.usual_output_tokens)
        default_output = DEFAULT_OUTPUT if self._spelled(stage) in MADE else None
        return Wanted(
            input_tokens=settings.choose("input_tokens", into) or DEFAULT_INPUT,
            output_tokens=settings.choose("output_tokens", out) or default_output,
            shared_prefix=settings.shared_prefix,
            max_context_tokens=settings.max_context_tokens,
            count=None if self.tokenizer is None else self.tokenizer.count,
        )


def _length(spelled: str) -> Length | None:
    return parse_length(spelled) if spelled else None


def _told(length: object) -> str:
    return str(length) if isinstance(length, Length) else OWN_LENGTHS
