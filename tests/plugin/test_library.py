"""Which prompts a run takes: option > stage > class > default, field by field; files are known by their content."""

from __future__ import annotations

from pathlib import Path

import pytest

from llm_locust.load.stage import Stage
from llm_locust.load.users import LLMUser
from llm_locust.plugin.library import NOTHING, Dataset, Library
from llm_locust.plugin.settings import Settings, from_raw
from llm_locust.prompts import PromptError, open_prompts, synthetic


def settings_of(**typed: str) -> Settings:
    """The settings of options as typed."""
    found, problems = from_raw({f"llm_{name}": text for name, text in typed.items()})
    assert not problems
    return found


def stage(**fields: str) -> Stage:
    return Stage(label="s", users=1, **fields)  # type: ignore[arg-type]


class Own(LLMUser):
    """A class with lengths of its own."""

    prompts = synthetic(300, 30)


class Bare(LLMUser):
    """A class without prompts."""


def lengths(library: Library, named: Stage | Dataset, owner: type[LLMUser] = Bare) -> tuple[int | None, int | None]:
    prompt = library.of_stage(named).of_class(owner.prompts).prompt(0)
    return prompt.input_tokens, prompt.output_tokens


USUAL = {"usual_input_tokens": "1000", "usual_output_tokens": "100"}
"""What a shape of the suite says."""


@pytest.mark.parametrize(
    ("typed", "named", "bare", "own"),
    [
        ({}, {}, (1024, 2048), (300, 30)),
        ({}, USUAL, (1000, 100), (300, 30)),
        ({}, {**USUAL, "input_tokens": "10"}, (10, 100), (10, 30)),
        ({}, {**USUAL, "input_tokens": "10", "output_tokens": "5"}, (10, 5), (10, 5)),
        ({"input_tokens": "20"}, USUAL, (20, 100), (20, 30)),
        ({"output_tokens": "7"}, {**USUAL, "input_tokens": "10", "output_tokens": "5"}, (10, 7), (10, 7)),
        ({"prompts": "synthetic"}, USUAL, (1000, 100), (1000, 100)),
        ({}, {**USUAL, "prompts": "token-ids"}, (1000, 100), (1000, 100)),
    ],
    ids=["default", "usual", "own shape's input", "own shape's", "input given", "output given", "prompts", "stage's"],
)
def test_lengths_come_from_option_own_shape_class_and_suite(
    typed: dict[str, str], named: dict[str, str], bare: tuple[int, int], own: tuple[int, int]
) -> None:
    """In this order, each length by itself; the suite's shape speaks for classes without prompts."""
    library, of_stage = Library(settings_of(**typed)), stage(**named)
    assert (lengths(library, of_stage, Bare), lengths(library, of_stage, Own)) == (bare, own)
    assert library.lengths(of_stage, [Bare, Own]) == tuple(
        ", ".join(dict.fromkeys(str(tokens) for tokens in column)) for column in zip(bare, own, strict=True)
    )


def test_option_changes_what_it_names_of_made_prompts() -> None:
    """The class's output length stays."""
    library = Library(settings_of(input_tokens="20", shared_prefix="0.5"))
    assert library.of_stage(stage(**USUAL)).of_class(Own.prompts) == synthetic(20, 30, shared_prefix=0.5)


def test_dataset_of_a_class_gets_the_output_limit_of_the_option(tmp_path: Path) -> None:
    """Its texts stay; a length asked for, by an option or a stage, is that of made ones, which is told."""
    (tmp_path / "p.txt").write_text("one\ntwo\n")
    source = open_prompts(str(tmp_path / "p.txt"))
    owner = type("WithFile", (LLMUser,), {"prompts": source})
    library = Library(settings_of(output_tokens="9"))
    adapted = library.of_stage(stage(**USUAL)).of_class(source)
    prompt = adapted.prompt(1)
    assert (prompt.text, prompt.output_tokens, adapted.size, adapted.digest) == ("two", 9, 2, source.digest)
    assert library.lengths(stage(**USUAL), [owner]) == ("own", "9")
    assert library.unused([stage(**USUAL)], [owner]) == ()
    assert Library(settings_of()).of_stage(stage(**USUAL)).of_class(source) is source
    assert lengths(Library(settings_of(input_tokens="99")), stage(**USUAL), owner) == (99, 100)
    assert library.unused([stage(input_tokens="99")], [owner]) == (
        "the shape's own prompts take the place of those of WithFile",
    )


def test_file_of_the_option_keeps_its_own_lengths(tmp_path: Path) -> None:
    """A shape's lengths are for prompts that are made; so are the suite's where an own shape names the file."""
    (tmp_path / "p.jsonl").write_text('{"prompt":"x","output_tokens":8}\n')
    path = str(tmp_path / "p.jsonl")
    library = Library(settings_of(prompts=path))
    assert lengths(library, stage(input_tokens="1024", output_tokens="2048")) == (None, 8)
    assert lengths(library, stage(**USUAL), Own) == (None, 8)
    assert library.lengths(stage(**USUAL), [Own]) == ("own", "own")
    assert lengths(Library(settings_of()), stage(prompts=path, **USUAL), Own) == (None, 8)
    assert lengths(Library(settings_of()), stage(prompts=path, output_tokens="4", **USUAL), Own) == (None, 4)


def test_source_is_opened_once(tmp_path: Path) -> None:
    """However many stages name it."""
    (tmp_path / "p.txt").write_text("one\n")
    library = Library(settings_of(prompts=str(tmp_path / "p.txt")))
    assert library.of_stage(stage(input_tokens="1")) is library.of_stage(NOTHING)


def test_words_are_measured_for_the_longest_prompts_that_are_made(tmp_path: Path) -> None:
    """A file's prompts are as long as they are: then there is nothing to measure."""
    (tmp_path / "p.txt").write_text("one\n")
    library = Library(settings_of())
    assert library.wanted_tokens([stage(), stage(input_tokens="100-200")], [Own]) == 300
    assert library.wanted_tokens([stage()], [type("Bare", (LLMUser,), {})]) == 1024
    assert Library(settings_of(prompts=str(tmp_path / "p.txt"))).wanted_tokens([stage()], [Own]) is None


def test_files_are_compared_by_content(tmp_path: Path) -> None:
    """The master's account of its files, held against what a worker has under the same names."""
    path = tmp_path / "p.txt"
    path.write_text("one\n")
    with_file = type("WithFile", (LLMUser,), {"prompts": open_prompts(str(path))})
    settings = settings_of(prompts=str(path))
    datasets = Library(settings).datasets([stage(), stage()], [Own, with_file])
    assert [(dataset.user_class, bool(dataset.digest)) for dataset in datasets] == [("", True), ("WithFile", True)]
    assert Library(settings).differences(datasets, [Own, with_file]) == []
    path.write_text("two\n")
    other = type("WithFile", (LLMUser,), {"prompts": open_prompts(str(path))})
    of_option, of_class = Library(settings).differences(datasets, [Own, other])
    assert of_option.startswith(f"{path}: the file here has another content (digest ")
    assert of_class.startswith("prompts of WithFile: the file here has another content")
    path.unlink()
    (missing,) = Library(settings).differences(datasets[:1], [])
    assert str(path) in missing


def test_tokenizer_that_cannot_be_opened_is_told_with_its_option() -> None:
    """As everything that is wrong before the load."""
    with pytest.raises(PromptError, match="--llm-tokenizer: 'nowhere' is neither a file"):
        Library(settings_of(tokenizer="nowhere"))


def test_lengths_of_a_class_are_not_dropped_without_a_word() -> None:
    """A stage that demands others takes their place; the same ones, the usual ones and an option need no word."""
    told = ("the shape's own lengths take the place of those of Own",)
    assert Library(settings_of()).unused([stage(input_tokens="10")], [Own, Bare]) == told
    assert Library(settings_of()).unused([stage(), stage(prompts="text:x")], [Own]) == (
        "the shape's own prompts take the place of those of Own",
    )
    assert Library(settings_of()).unused([stage(input_tokens="300", output_tokens="30")], [Own]) == ()
    assert Library(settings_of()).unused([stage(), stage(**USUAL)], [Own]) == ()
    assert Library(settings_of(input_tokens="10")).unused([stage(input_tokens="10")], [Own]) == ()
    assert Library(settings_of(prompts="synthetic")).unused([stage(input_tokens="10")], [Own]) == ()
