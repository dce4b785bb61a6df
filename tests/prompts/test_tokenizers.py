"""Tokenizers: files on this disk only, errors that say what would be right, known counts."""

import base64
from pathlib import Path

import pytest

from llm_locust.prompts import TokenizerError, open_tokenizer


def ranks_file(folder: Path) -> Path:
    """A byte-level vocabulary with one merge: `he`."""
    tokens = [bytes([b]) for b in range(256)] + [b"he"]
    path = folder / "toy.tiktoken"
    path.write_text("".join(f"{base64.b64encode(t).decode()} {i}\n" for i, t in enumerate(tokens)))
    return path


def test_tiktoken_file_counts_bytes_and_merges(tmp_path: Path) -> None:
    counter = open_tokenizer(str(ranks_file(tmp_path)))
    assert (counter.count("he"), counter.count("hehe!"), counter.count("ü"), counter.count("")) == (1, 3, 2, 0)


def test_special_tokens_in_a_text_are_text(tmp_path: Path) -> None:
    assert open_tokenizer(str(ranks_file(tmp_path))).count("<|endoftext|>") == 13


def test_tiktoken_file_with_a_bad_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.tiktoken"
    path.write_text("aGU= 1\nnot a pair at all\n")
    with pytest.raises(TokenizerError, match="line 2"):
        open_tokenizer(str(path))


def test_tokenizer_json_of_a_models_folder_counts_words(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    model = tokenizers.models.WordLevel({"a": 0, "b": 1, "[UNK]": 2}, unk_token="[UNK]")
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert open_tokenizer(str(tmp_path)).count("a b c a") == 4


def test_encoding_that_is_not_on_the_disk_names_the_folder_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
    with pytest.raises(TokenizerError, match="TIKTOKEN_CACHE_DIR"):
        open_tokenizer("o200k_base")


def test_encoding_is_read_from_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cached file of another content is refused by tiktoken's own hash check, not fetched again."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    with pytest.raises(TokenizerError, match="is not there"):
        open_tokenizer("cl100k_base")


@pytest.mark.parametrize("spelled", ["deepseek-ai/DeepSeek-R1", "no_such_base"])
def test_name_of_a_model_hub_is_refused_without_a_look_at_any_network(spelled: str) -> None:
    with pytest.raises(TokenizerError, match="nothing is downloaded"):
        open_tokenizer(spelled)


def test_folder_without_a_tokenizer_and_broken_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match=r"no tokenizer\.json"):
        open_tokenizer(str(tmp_path))
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(TokenizerError, match=r"is not a tokenizer\.json"):
        open_tokenizer(str(tmp_path))
