"""The text of an option becomes its value, or the message says what would be right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from llm_locust.plugin import values
from llm_locust.plugin.values import Arrivals, Quota, Warmup

RIGHT: list[tuple[Callable[[str], Any], str, Any]] = [
    (values.duration, "300", 300.0),
    (values.duration, "90s", 90.0),
    (values.duration, "5m", 300.0),
    (values.duration, "1h30m", 5400.0),
    (values.duration, "500ms", 0.5),
    (values.duration, "1.5s", 1.5),
    (values.duration, "0", 0.0),
    (values.levels, "8,16,32,64", (8, 16, 32, 64)),
    (values.levels, "8-64:8", (8, 16, 24, 32, 40, 48, 56, 64)),
    (values.levels, "1, 4-8:2 ,100", (1, 4, 6, 8, 100)),
    (values.rates, "2,5,0.5", (2.0, 5.0, 0.5)),
    (values.rate, "10", 10.0),
    (values.rate, "inf", None),
    (values.quotas, "100", (Quota(100),)),
    (values.quotas, "3x", (Quota(3, per_user=True),)),
    (values.quotas, "10,40,80x", (Quota(10), Quota(40), Quota(80, per_user=True))),
    (values.warmup, "2", Warmup(requests_per_user=2)),
    (values.warmup, "30s", Warmup(requests_per_user=0, duration_s=30.0)),
    (values.warmup, "0", Warmup(requests_per_user=0)),
    (values.arrivals, "poisson", Arrivals("poisson", 1.0)),
    (values.arrivals, "constant", Arrivals("constant", 0.0)),
    (values.arrivals, "gamma:0.25", Arrivals("gamma", 0.25)),
    (values.arrivals, "trace", Arrivals("trace", None)),
    (values.arrivals, "trace:2", Arrivals("trace", None, 2.0)),
    (values.seconds_range, "1-5", (1.0, 5.0)),
    (values.seconds_range, "0.5s-2s", (0.5, 2.0)),
    (values.seconds_range, "2s", (2.0, 2.0)),
    (values.temperature, "server", None),
    (values.temperature, "0.7", 0.7),
    (values.json_object, '{"top_k": 1}', {"top_k": 1}),
    (values.header, "X-Team:  search: web ", ("X-Team", "search: web")),
    (values.tag, "gpus=32", ("gpus", "32")),
    (values.proxy, "env", "env"),
    (values.proxy, "http://user:pw@proxy:3128", "http://user:pw@proxy:3128"),
    (values.switch, "Yes", True),
    (values.switch, "off", False),
    (values.one_line, "a\n b", "a b"),
]
WRONG: list[tuple[Callable[[str], Any], str, str]] = [
    (values.duration, "5 minutes", "right are 300, 90s, 5m, 1h30m, 500ms"),
    (values.duration, "-1", "not negative"),
    (values.duration, "nan", "must be finite"),
    (values.positive_duration, "0", "longer than 0 s"),
    (values.levels, "8-64", "right are 8,16,32,64 or 8-64:8"),
    (values.levels, "64-8:8", "must climb"),
    (values.levels, "0", "at least 1"),
    (values.levels, ",", "is empty"),
    (values.rates, "2,0", "right is 2,5,10,20"),
    (values.rate, "0", "right are 10, 0.5 or inf"),
    (values.quotas, "0", "right are 100, 3x"),
    (values.quotas, "x", "right are 100, 3x"),
    (values.warmup, "soon", "right are 1 (requests a user), 30s or 0"),
    (values.arrivals, "gamma", "gamma:0.5"),
    (values.arrivals, "gamma:0", "gamma:0.5"),
    (values.arrivals, "trace:", "trace:2"),
    (values.arrivals, "uniform", "right are poisson, constant"),
    (values.seconds_range, "5-1", "runs backwards"),
    (values.temperature, "warm", "right are 0, 0.7 or server"),
    (values.json_object, "{'a': 1}", "is not JSON"),
    (values.json_object, "[1]", "is not a JSON object"),
    (values.header, "X-Team", 'right is "X-Team: search"'),
    (values.header, "X Team: a", 'right is "X-Team: search"'),
    (values.header, "X-Team: a\r\nHost: b", "cannot carry"),
    (values.tag, "gpus", "right is gpus=32"),
    (values.proxy, "proxy:3128", "is neither env nor a URL"),
    (values.positive, "0", "whole number of 1 or more"),
    (values.whole, "-1", "whole number of 0 or more"),
    (values.positive_number, "0", "above 0"),
    (values.number, "inf", "must be finite"),
    (values.switch, "maybe", "neither true nor false"),
    (values.text, " ", "is empty"),
]


@pytest.mark.parametrize(("parse", "typed", "value"), RIGHT, ids=[f"{p.__name__}-{t}" for p, t, _ in RIGHT])
def test_value_is_read_as_typed(parse: Callable[[str], Any], typed: str, value: Any) -> None:
    """Each spelling that the help shows has its value."""
    assert parse(typed) == value


@pytest.mark.parametrize(("parse", "typed", "says"), WRONG, ids=[f"{p.__name__}-{t!r}" for p, t, _ in WRONG])
def test_message_says_what_is_right_when_the_value_is_wrong(parse: Callable[[str], Any], typed: str, says: str) -> None:
    """A wrong value is refused with what would be right."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (its text is judged below)
        parse(typed)
    assert says in str(caught.value)


@pytest.mark.parametrize("parse", [values.header, values.json_object, values.proxy])
def test_message_never_quotes_what_may_be_a_secret(parse: Callable[[str], Any]) -> None:
    """A header, a body or a proxy URL may hold a key: an error must not print it."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (its text is judged below)
        parse("canary-7f3a")
    assert "canary" not in str(caught.value)


def test_quota_counts_per_user() -> None:
    """3x of 8 users are 24 requests."""
    assert Quota(3, per_user=True).total(8) == 24
    assert Quota(100).total(8) == 100
