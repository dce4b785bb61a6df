"""Token counts on this machine, without a network: tiktoken encodings and `tokenizer.json` files.

Nothing here downloads. An encoding that is not on the disk is refused, with the variable that
says where tiktoken looks. Counts are those of whole texts without special tokens.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from pathlib import Path
from typing import Protocol

# The encoding's file and where tiktoken's own cache looks for it: the SHA-1 of the address it came from.
_PUBLIC = "https://openaipublic.blob.core.windows.net/"
_ENCODING_FILES = {
    "cl100k_base": "encodings/cl100k_base.tiktoken",
    "o200k_base": "encodings/o200k_base.tiktoken",
    "o200k_harmony": "encodings/o200k_base.tiktoken",
    "p50k_base": "encodings/p50k_base.tiktoken",
    "p50k_edit": "encodings/p50k_base.tiktoken",
    "r50k_base": "encodings/r50k_base.tiktoken",
}
_SPLIT_PATTERN = "|".join(  # contractions, words, short numbers, punctuation, line ends, blanks
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        r"[^\r\n\p{L}\p{N}]?\p{L}+",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)


class TokenizerError(ValueError):
    """A tokenizer that cannot be had here; the text says what would be right."""


class TokenCounter(Protocol):
    """Counts the tokens of a text. `name` says which vocabulary, for the report."""

    name: str

    def count(self, text: str) -> int:
        """Return the number of tokens of the whole text, special tokens left out."""
        ...


class TiktokenCounter:
    """Counts with a tiktoken encoding."""

    def __init__(self, name: str, encoding: object) -> None:
        self.name = name
        self._encode = encoding.encode_ordinary  # type: ignore[attr-defined]

    def count(self, text: str) -> int:
        """Return the number of tokens of the text."""
        return len(self._encode(text))


class FileCounter:
    """Counts with a model's own `tokenizer.json`."""

    def __init__(self, path: Path) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise TokenizerError(f"{path} needs the package tokenizers: pip install 'llm-locust[tokenizers]'") from None
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain Exception for every kind of bad file
            raise TokenizerError(f"{path} is not a tokenizer.json: {error}") from None
        self.name = str(path)

    def count(self, text: str) -> int:
        """Return the number of tokens of the text. Other threads go on meanwhile: only the batch call lets them."""
        (encoding,) = self._tokenizer.encode_batch_fast([text], add_special_tokens=False)
        return len(encoding)


def open_tokenizer(spelled: str) -> TokenCounter:
    """Open a tokenizer: an encoding's name, a `.tiktoken` file, a `tokenizer.json`, or a model's folder.

    Raises TokenizerError that names what was looked for and what would be right.
    """
    path = Path(spelled).expanduser()
    if path.is_dir():
        inside = path / "tokenizer.json"
        if not inside.is_file():
            raise TokenizerError(f"the folder {path} has no tokenizer.json")
        return FileCounter(inside)
    if path.is_file():
        return _ranks_counter(path) if path.suffix == ".tiktoken" else FileCounter(path)
    if spelled in _ENCODING_FILES:
        return _named_counter(spelled)
    known = ", ".join(_ENCODING_FILES)
    raise TokenizerError(
        f"{spelled!r} is neither a file, nor a model's folder, nor an encoding of tiktoken ({known}). "
        "Names of model hubs are not looked up: nothing is downloaded."
    )


def _named_counter(name: str) -> TokenCounter:
    address = _PUBLIC + _ENCODING_FILES[name]
    cached = hashlib.sha1(address.encode()).hexdigest()
    folder = os.environ.get("TIKTOKEN_CACHE_DIR")
    if not folder or not (Path(folder) / cached).is_file():
        where = f"{folder}/{cached} is not there" if folder else "it is not set"
        raise TokenizerError(
            f"the encoding {name} is not on this disk, and nothing is downloaded: put the file {Path(address).name} "
            f"as {cached} into the folder that TIKTOKEN_CACHE_DIR names ({where}), or give the .tiktoken file's path"
        )
    import tiktoken

    return TiktokenCounter(name, tiktoken.get_encoding(name))


def _ranks_counter(path: Path) -> TokenCounter:
    import tiktoken

    ranks: dict[bytes, int] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            token, rank = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error):
            raise TokenizerError(f"{path}, line {number}: not a `base64-token rank` pair") from None
    if not ranks:
        raise TokenizerError(f"{path} is empty")
    encoding = tiktoken.Encoding(path.stem, pat_str=_SPLIT_PATTERN, mergeable_ranks=ranks, special_tokens={})
    return TiktokenCounter(str(path), encoding)
