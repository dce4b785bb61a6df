"""Token lengths: what each spelling means, and what is refused."""

import numpy as np
import pytest

from llm_locust.prompts import parse_length
from llm_locust.prompts.draw import Use


def sampled(spelled: str, count: int) -> list[int]:
    length = parse_length(spelled)
    return [length.sample(1, Use.OUTPUT_TOKENS, index) for index in range(count)]


@pytest.mark.parametrize(
    ("spelled", "low", "high"), [("1024", 1024, 1024), ("512-2048", 512, 2048), ("1_000", 1000, 1000), (7, 7, 7)]
)
def test_length_is_read_from_its_spelling(spelled: str | int, low: int, high: int) -> None:
    length = parse_length(spelled)
    assert (length.low, length.high) == (low, high)
    assert parse_length(str(length)) == length


def test_uniform_length_reaches_both_ends() -> None:
    drawn = sampled("3-5", 3000)
    assert set(drawn) == {3, 4, 5}
    assert all(abs(drawn.count(length) - 1000) < 130 for length in (3, 4, 5))  # five standard deviations


def test_normal_length_has_its_mean_and_deviation_and_is_never_below_one() -> None:
    drawn = np.array(sampled("normal:100:20", 4000))
    assert abs(drawn.mean() - 100) < 1.5
    assert abs(drawn.std() - 20) < 1.5
    assert min(sampled("normal:5:50", 500)) == 1


@pytest.mark.parametrize(
    ("spelled", "says"),
    [
        ("2048-512", "write 512-2048"),
        ("0", "at least 1"),
        ("0-5", "at least 1"),
        ("-4", "write 1024"),
        ("1k", "write 1024"),
        ("99999999999", "more than"),
        ("normal:5", "write 1024"),
    ],
)
def test_length_that_makes_no_sense_is_refused_with_what_would_be_right(spelled: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_length(spelled)
