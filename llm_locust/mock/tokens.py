"""The toy tokenizer and the vocabulary of the generated text.

One whitespace-separated word is one token, on both sides: a prompt of N words has N tokens (and a chat
prompt CHAT_TOKENS_PER_MESSAGE more per message, for its template), and each generated token is one word
with a blank before it. So any text can be counted by hand.
"""

from __future__ import annotations

import zlib

import msgspec

CHAT_TOKENS_PER_MESSAGE = 4
VOCABULARY_SIZE = 1 << 17

_PLAIN = (
    "the server answers with one word for each token it makes and this text goes on as long as it was asked to "
    "because nobody reads it but a clock which wants to know when every piece left"
)
# Several bytes a character, or an escape in JSON: a client that decodes its reads one by one shows it.
_AWKWARD = 'naïve Größe 语言 模型 été 🚀 "quoted" back\\slash café número λόγος слово ends. here, now; then: why? yes!'
WORDS = (*_PLAIN.split(), *_AWKWARD.split())
TEXTS = tuple(f" {word}" for word in WORDS)
JSON_TEXTS = tuple(msgspec.json.encode(text)[1:-1] for text in TEXTS)
"""The inside of each text's JSON string, so that an event is built by joining bytes."""

TokenKey = str | int
"""What the prefix cache compares: a word, or a token id where the client sent ids."""


def words_of(text: str) -> list[TokenKey]:
    """Cut a text into tokens."""
    return list(text.split())


def token_id(word: str) -> int:
    """Give a word its id: the same in every process."""
    return zlib.crc32(word.encode("utf-8", "surrogatepass")) % VOCABULARY_SIZE


def text_number(request_number: int, choice: int, position: int) -> int:
    """Which of TEXTS is the token at this position; answers of different requests differ."""
    return (request_number * 7 + choice * 3 + position) % len(TEXTS)
