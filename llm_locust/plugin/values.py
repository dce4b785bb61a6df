"""How the text of an option becomes a value: parsers that say what would be right.

Every parser takes the text as it was typed and raises ValueError with a sentence that completes
"--llm-x: …" (that of token lengths is `prompts.lengths.parse_length`). Knows no Locust, no I/O and no clock.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, Literal

import msgspec

_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


class Arrivals(msgspec.Struct, frozen=True):
    """The law of the arrival gaps; `cv` is their coefficient of variation (None: a trace has its own).

    `speed` is a trace's: 2 plays it in half its time.
    """

    law: Literal["poisson", "constant", "gamma", "trace"] = "poisson"
    cv: float | None = 1.0
    speed: float = 1.0


class Quota(msgspec.Struct, frozen=True):
    """A number of requests: of a stage, or of each of its users."""

    count: int
    per_user: bool = False

    def total(self, users: int) -> int:
        """Requests of a stage that runs `users` users."""
        return self.count * users if self.per_user else self.count


class Warmup(msgspec.Struct, frozen=True):
    """What a stage does before its window: a number of requests per user, or a time; both 0: nothing."""

    requests_per_user: int = 1
    duration_s: float = 0.0


def text(value: str) -> str:
    """Take any text that is not empty."""
    if not value.strip():
        raise ValueError("is empty")
    return value.strip()


def one_line(value: str) -> str:
    """Take free text; line ends become spaces."""
    return " ".join(value.split())


def switch(value: str) -> bool:
    """Read a yes or no."""
    word = value.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"{value!r} is neither true nor false")


def duration(value: str) -> float:
    """Read a time span in seconds: 300, 90s, 5m, 1h30m, 500ms, 1.5s."""
    word = value.strip().lower()
    try:
        seconds = float(word)
    except ValueError:
        parts = _DURATION_PART.findall(word)
        if not parts or "".join(number + unit for number, unit in parts) != word:
            raise ValueError(f"{value!r} is not a time span; right are 300, 90s, 5m, 1h30m, 500ms") from None
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(f"{value!r} is not a time span; it must be finite and not negative")
    return seconds


def positive_duration(value: str) -> float:
    """Read a time span longer than nothing, in seconds."""
    seconds = duration(value)
    if seconds == 0:
        raise ValueError("must be longer than 0 s")
    return seconds


def number(value: str) -> float:
    """Read a finite number that is not negative."""
    try:
        result = float(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a number") from None
    if not math.isfinite(result) or result < 0:
        raise ValueError(f"{value!r} must be finite and not negative")
    return result


def positive_number(value: str) -> float:
    """Read a finite number above 0."""
    result = number(value)
    if result == 0:
        raise ValueError("must be above 0")
    return result


def whole(value: str) -> int:
    """Read a whole number that is not negative; underscores and thousands' commas are not taken."""
    if not re.fullmatch(r"\s*\d+\s*", value):
        raise ValueError(f"{value!r} is not a whole number of 0 or more")
    return int(value)


def positive(value: str) -> int:
    """Read a whole number of 1 or more."""
    if not re.fullmatch(r"\s*\d+\s*", value) or int(value) == 0:
        raise ValueError(f"{value!r} is not a whole number of 1 or more")
    return int(value)


def rate(value: str) -> float | None:
    """Read requests per second; `inf` is no rate at all."""
    if value.strip().lower() == "inf":
        return None
    try:
        return positive_number(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a rate; right are 10, 0.5 or inf (as fast as the users can)") from None


def levels(value: str) -> tuple[int, ...]:
    """Read user counts: 8,16,32,64 or 8-64:8 (from 8 to 64 by 8)."""
    result: list[int] = []
    for item in _items(value):
        match = re.fullmatch(r"(\d+)(?:-(\d+):(\d+))?", item)
        if match is None:
            raise ValueError(f"{item!r} is not a user count; right are 8,16,32,64 or 8-64:8")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if first < 1 or step < 1 or last < first:
            raise ValueError(f"{item!r} must climb from at least 1 by at least 1")
        result.extend(range(first, last + 1, step))
    return tuple(result)


def rates(value: str) -> tuple[float, ...]:
    """Read requests per second, one each stage: 2,5,10,20."""
    try:
        return tuple(positive_number(item) for item in _items(value))
    except ValueError:
        raise ValueError(f"{value!r} is not a list of rates; right is 2,5,10,20") from None


def quotas(value: str) -> tuple[Quota, ...]:
    """Read numbers of requests: 100, 3x (3 a user), or one each stage: 10,40,80."""
    result = []
    for item in _items(value):
        match = re.fullmatch(r"(\d+)(x?)", item)
        if match is None or int(match[1]) == 0:
            raise ValueError(f"{item!r} is not a number of requests; right are 100, 3x (3 a user) or 10,40,80")
        result.append(Quota(int(match[1]), match[2] == "x"))
    return tuple(result)


def warmup(value: str) -> Warmup:
    """Read a warm-up: 1 (requests a user), 30s (a time), 0 (none)."""
    if re.fullmatch(r"\s*\d+\s*", value):
        return Warmup(requests_per_user=int(value))
    try:
        return Warmup(requests_per_user=0, duration_s=duration(value))
    except ValueError:
        raise ValueError(f"{value!r} is not a warm-up; right are 1 (requests a user), 30s or 0") from None


def arrivals(value: str) -> Arrivals:
    """Read an arrival law: poisson, constant, gamma:CV, trace, trace:SPEED."""
    word = value.strip().lower()
    if word == "poisson":
        return Arrivals()
    if word == "constant":
        return Arrivals("constant", 0.0)
    if word == "trace":
        return Arrivals("trace", None)
    law, _, factor = word.partition(":")
    if law in ("gamma", "trace"):
        try:
            number_of_law = positive_number(factor)
            return Arrivals("gamma", number_of_law) if law == "gamma" else Arrivals("trace", None, number_of_law)
        except ValueError:
            pass
    raise ValueError(
        f"{value!r} is not an arrival law; right are poisson, constant, gamma:0.5 (its CV), trace, trace:2 (its speed)"
    )


def seconds_range(value: str) -> tuple[float, float]:
    """Read a time or a range of times in seconds: 2s, 1-5, 0.5s-2s."""
    low, _, high = value.strip().partition("-")
    try:
        result = duration(low), duration(high or low)
    except ValueError:
        raise ValueError(f"{value!r} is not a think time; right are 2s or 1-5 (seconds)") from None
    if result[0] > result[1]:
        raise ValueError(f"{value!r} runs backwards; right is 1-5")
    return result


def temperature(value: str) -> float | None:
    """Read a temperature; `server` sends none."""
    if value.strip().lower() == "server":
        return None
    try:
        return number(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a temperature; right are 0, 0.7 or server (send none)") from None


def json_object(value: str) -> dict[str, Any]:
    """Read a JSON object. The message never quotes the text: it may hold a key."""
    try:
        result = json.loads(value)
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON ({error.msg} at character {error.pos + 1})") from None
    if not isinstance(result, dict):
        raise ValueError('is not a JSON object; right is {"top_k": 1}')
    return result


def header(value: str) -> tuple[str, str]:
    """Read `Name: value`. The message never quotes the value."""
    name, colon, content = value.partition(":")
    name, content = name.strip(), content.strip()
    if not colon or not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
        raise ValueError('is not a header; right is "X-Team: search"')
    if not content.isprintable() or not content.isascii():
        raise ValueError(f"the value of {name} has characters that a header cannot carry")
    return name, content


def tag(value: str) -> tuple[str, str]:
    """Read KEY=VALUE."""
    key, equals, content = value.partition("=")
    if not equals or not key.strip():
        raise ValueError(f"{value!r} is not a tag; right is gpus=32")
    return key.strip(), content.strip()


def one_of(*names: str) -> Callable[[str], str]:
    """Make a parser that takes one of `names`."""

    def parse(value: str) -> str:
        if value not in names:
            raise ValueError(f"{value!r} is unknown; right are {', '.join(names)}")
        return value

    return parse


def proxy(value: str) -> str:
    """Read `env` or a proxy's URL. The message never quotes the URL: it may hold a password."""
    if value == "env" or re.match(r"(https?|socks5h?)://[^/\s]+", value):
        return value
    raise ValueError("is neither env nor a URL like http://proxy:3128")


def _items(value: str) -> list[str]:
    items = [item.strip() for item in value.split(",") if item.strip()]
    if not items:
        raise ValueError("is empty")
    return items
