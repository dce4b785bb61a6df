"""Synthetic prompts: exact lengths, unique texts, shared prefixes, the same on every worker."""

import pytest

from llm_locust.prompts import Ruler, RulerError, calibrate, prove, synthetic
from llm_locust.prompts.ruler import ASSUMED
from llm_locust.prompts.words import WORDS


def words(text: str | None) -> list[str]:
    assert text is not None
    return text.split(" ")


@pytest.mark.parametrize("tokens", [1, 31, 32, 33, 63, 64, 1024, 4097])
def test_text_has_as_many_words_as_tokens_were_asked_for(tokens: int) -> None:
    prompt = synthetic(tokens, 5).prompt(3)
    assert (len(words(prompt.text)), prompt.input_tokens, prompt.output_tokens) == (tokens, tokens, 5)


def test_same_seed_and_index_give_the_same_prompt_on_every_worker() -> None:
    one, two = synthetic(200).prepared(7, ASSUMED), synthetic(200).prepared(7, ASSUMED)
    assert [one.prompt(i) for i in range(5)] == [two.prompt(i) for i in range(5)]
    assert one.prompt(0) != synthetic(200).prepared(8, ASSUMED).prompt(0)


def test_prompts_differ_within_their_first_sixteen_tokens() -> None:
    source = synthetic(64).prepared(1, ASSUMED)
    heads = {tuple(words(source.prompt(i).text)[:16]) for i in range(3000)}
    assert len(heads) == 3000


def test_shared_prefix_takes_its_ratio_of_each_prompt_and_no_more() -> None:
    source = synthetic(100, shared_prefix=0.25).prepared(1, ASSUMED)
    first, second = words(source.prompt(0).text), words(source.prompt(1).text)
    assert first[:25] == second[:25]
    assert first[25:41] != second[25:41]
    assert len(first) == 100


def test_groups_have_as_many_prefixes_as_asked_for() -> None:
    source = synthetic(100, shared_prefix=0.5, groups=4).prepared(1, ASSUMED)
    assert len({tuple(words(source.prompt(i).text)[:50]) for i in range(200)}) == 4


def test_overhead_of_the_chat_template_is_taken_off() -> None:
    source = synthetic(100).prepared(1, Ruler(WORDS, 1.0, 12, "test"))
    assert len(words(source.prompt(0).text)) == 88


def test_prompt_is_never_shorter_than_its_template_and_a_word() -> None:
    """What is asked for is then what can be had, so that the measured length is not off."""
    prompt = synthetic(1).prepared(1, Ruler(WORDS, 1.0, 4, "test")).prompt(0)
    assert (len(words(prompt.text)), prompt.input_tokens) == (1, 5)


class ToyTokenizer:
    """One token a word, some words two; `begin` tokens in front of every text."""

    def __init__(self, *, begin: int = 0, two: frozenset[str] = frozenset()) -> None:
        self.begin, self.two, self.asked = begin, two, 0

    def count(self, text: str) -> int:
        self.asked += 1
        return self.begin + sum(2 if word in self.two else 1 for word in text.split())


def test_prove_drops_the_words_of_two_tokens_and_finds_the_begin_token() -> None:
    toy = ToyTokenizer(begin=1, two=frozenset({"time", "year", "zebra"}))
    ruler = prove(toy.count, "toy")
    assert set(WORDS) - set(ruler.words) == {"time", "year"}
    assert (ruler.tokens_per_word, ruler.overhead_tokens) == (1.0, 1)
    assert toy.asked < 200
    text = synthetic(500).prepared(3, ruler).prompt(0).text
    assert text is not None
    assert toy.count(text) == 500


def test_prove_refuses_a_vocabulary_in_which_words_are_not_tokens() -> None:
    with pytest.raises(RulerError, match="common words"):
        prove(len, "characters")


def test_prove_refuses_counts_that_do_not_add_up() -> None:
    with pytest.raises(RulerError, match="add up"):
        prove(lambda text: min(len(text.split()), 300), "capped")


@pytest.mark.parametrize(("slope", "overhead"), [(1.0, 9), (1.37, 26), (0.75, 0)])
@pytest.mark.parametrize("wanted", [128, 1024, 30720])
def test_calibration_comes_within_two_percent_after_at_most_eight_requests(
    slope: float, overhead: int, wanted: int
) -> None:
    asked: list[int] = []

    def ask(text: str) -> int:
        asked.append(len(text.split()))
        return round(slope * asked[-1]) + overhead

    ruler, requests = calibrate(ask, wanted)
    reached = round(slope * ruler.words_for(wanted)) + overhead
    assert abs(reached - wanted) <= 0.02 * wanted
    assert requests == len(asked) <= 8
    assert abs(ruler.overhead_tokens - overhead) <= 3


def test_calibration_gives_up_with_what_was_reached() -> None:
    with pytest.raises(RulerError, match="still counts as 50"):
        calibrate(lambda text: 40 if len(text.split()) < 20 else 50, 5000)


def test_lengths_are_exact_by_a_real_vocabulary() -> None:
    """A byte-level BPE that has most words only behind a blank: a text's first word would be several tokens."""
    tokenizers = pytest.importorskip("tokenizers")
    known = WORDS[: len(WORDS) // 2]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=4000, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([" " + word for word in known] * 3, trainer)

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    assert count("between") > 1 == count(" between")
    ruler = prove(count, "bpe")
    assert 64 <= len(ruler.words) < len(WORDS)
    for tokens in (1, 2, 33, 64, 65, 1000, 30720):
        source = synthetic(tokens, 5).prepared(tokens, ruler)
        assert {count(str(source.prompt(index).text)) for index in range(20)} == {tokens}
