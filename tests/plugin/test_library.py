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


def lengths(library: Library, named: Stage | Dataset) -> tuple[int | None, int | None]:
    source = library.of_stage(named)
    assert source is not None
    prompt = source.prompt(0)
    return prompt.input_tokens, prompt.output_tokens


class Own(LLMUser):
    """A class with lengths of its own."""

    prompts = synthetic(300, 30)


@pytest.mark.parametrize(
    ("typed", "named", "wanted"),
    [
        ({}, {"input_tokens": "10", "output_tokens": "5"}, (10, 5)),
        ({"input_tokens": "20"}, {"input_tokens": "10", "output_tokens": "5"}, (20, 5)),
        ({"output_tokens": "7"}, {"input_tokens": "10", "output_tokens": "5"}, (10, 7)),
        ({"prompts": "synthetic"}, {}, (1024, 2048)),
        ({}, {"input_tokens": "10"}, (10, 2048)),
    ],
    ids=["the stage's", "input given", "output given", "made by default", "output by default"],
)
def test_lengths_come_from_the_option_then_the_stage(
    typed: dict[str, str], named: dict[str, str], wanted: tuple[int, int]
) -> None:
    """Each by itself: a given input length leaves the shape's output length as it was."""
    assert lengths(Library(settings_of(**typed)), stage(**named)) == wanted


def test_class_keeps_what_no_option_takes() -> None:
    """A stage that names nothing leaves the prompts to the class; options change its lengths only."""
    assert Library(settings_of()).of_stage(stage()) is None
    library = Library(settings_of(input_tokens="20", shared_prefix="0.5"))
    assert library.of_stage(stage()) is None
    adapted = library.adapt(synthetic(300, 30))
    assert adapted == synthetic(20, 30, shared_prefix=0.5)


def test_dataset_of_a_class_gets_the_output_limit_of_the_option(tmp_path: Path) -> None:
    """Its prompts stay what they are."""
    (tmp_path / "p.txt").write_text("one\ntwo\n")
    source = open_prompts(str(tmp_path / "p.txt"))
    adapted = Library(settings_of(output_tokens="9", input_tokens="99")).adapt(source)
    prompt = adapted.prompt(1)
    assert (prompt.text, prompt.output_tokens, adapted.size, adapted.digest) == ("two", 9, 2, source.digest)


def test_file_of_the_option_keeps_its_own_lengths(tmp_path: Path) -> None:
    """A shape's lengths are for prompts that are made."""
    (tmp_path / "p.jsonl").write_text('{"prompt":"x","output_tokens":8}\n')
    library = Library(settings_of(prompts=str(tmp_path / "p.jsonl")))
    assert lengths(library, stage(input_tokens="1024", output_tokens="2048")) == (None, 8)


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


def test_prompts_of_a_class_are_not_dropped_without_a_word() -> None:
    """A stage's lengths take the place of a class's; the same ones, and an option that was given, need no word."""
    bare = type("Bare", (LLMUser,), {})
    said = Library(settings_of()).unused([stage(input_tokens="10", output_tokens="5")], [Own, bare])
    assert [sentence.split(":")[0] for sentence in said] == ["the prompts of Own are not used"]
    assert Library(settings_of()).unused([stage(input_tokens="300", output_tokens="30")], [Own]) == ()
    assert Library(settings_of()).unused([stage()], [Own]) == ()
    assert Library(settings_of(prompts="synthetic")).unused([stage(input_tokens="10")], [Own]) == ()
