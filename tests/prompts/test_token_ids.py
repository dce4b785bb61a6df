"""Prompts of ids have exactly the length asked for, are unique, and the same in every process."""

from __future__ import annotations

import pytest

from llm_locust.prompts.lengths import parse_length
from llm_locust.prompts.registry import Wanted, open_prompts
from llm_locust.prompts.ruler import ASSUMED
from llm_locust.prompts.synthetic import SharedPrefix
from llm_locust.prompts.token_ids import FIRST_ID, LAST_ID, TokenIds


def ids_of(source: TokenIds, index: int) -> tuple[int, ...]:
    prompt = source.prompt(index)
    assert prompt.token_ids is not None
    assert (len(prompt.token_ids), prompt.text, prompt.messages) == (prompt.input_tokens, None, None)
    return prompt.token_ids


def opened(**wanted: object) -> TokenIds:
    source = open_prompts("token-ids", Wanted(**wanted))  # type: ignore[arg-type]  # its own fields
    assert isinstance(source, TokenIds)
    return source.prepared(5, ASSUMED)


@pytest.mark.parametrize("spelled", ["1", "37", "512-2048"])
def test_length_is_the_number_of_ids(spelled: str) -> None:
    """Whatever length is drawn, so many ids are there, all of the usual vocabulary."""
    length = parse_length(spelled)
    for index in range(50):
        ids = ids_of(opened(input_tokens=length, output_tokens=parse_length("9")), index)
        assert length.low <= len(ids) <= length.high
        assert min(ids) >= FIRST_ID
        assert max(ids) <= LAST_ID


def test_prompt_follows_from_seed_and_index() -> None:
    """No two begin alike; another process makes the same."""
    length = parse_length("64")
    source = opened(input_tokens=length)
    assert ids_of(source, 3) == ids_of(opened(input_tokens=length), 3)
    assert ids_of(source, 3) != ids_of(source.prepared(6, ASSUMED), 3)
    assert len({ids_of(source, index)[:4] for index in range(200)}) == 200


def test_shared_prefix_is_common_within_its_group() -> None:
    """Half of the prompt, by two groups."""
    source = opened(input_tokens=parse_length("64"), shared_prefix=SharedPrefix(0.5, 2))
    prompts = [ids_of(source, index) for index in range(40)]
    assert len({ids[:32] for ids in prompts}) == 2
    assert len({ids[32:36] for ids in prompts}) == 40
