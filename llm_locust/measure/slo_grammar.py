"""The grammar of `--llm-slo`, read at start: an error points at the wrong place.

    slo     = clause { ";" clause }
    clause  = metric [ statistic ] comparison value
            | "goodput" "(" limit { "," limit } ")" comparison value
    limit   = metric comparison value
    value   = number [ unit ]

Metrics are the names of METRICS without `_ms`, and `error_rate`. A distribution needs a statistic: mean, min, p50,
p90, p95, p99, max. Units: us, ms, s, min, h for durations; % for ratios; /s and tok/s may follow a rate.
"""

from __future__ import annotations

import difflib
import re

from llm_locust.measure.metrics import METRICS, STATISTICS, Metric
from llm_locust.measure.slo import GOODPUT, Clause, Limit, Slo

_TOKEN = re.compile(r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<name>[A-Za-z_µ]\w*)|(?P<sign><=|>=|[<>(),;%]|/s))")

_MS_PER_UNIT = {"us": 1e-3, "µs": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4, "h": 3.6e6}
_OPTIONAL_UNITS = {"s": ("s",), "1/s": ("/s",), "tok/s": ("tok", "/s"), "tok": ("tok",)}
_STATISTICS = tuple(statistic for statistic in STATISTICS if statistic != "count")

METRIC_NAMES: dict[str, Metric] = {
    **{metric.name.removesuffix("_ms"): metric for metric in METRICS if metric.kind != "text"},
    **{f"{name}_start": metric for name in ("ttft", "e2e") for metric in METRICS if metric.name == f"{name}_ms"},
    "error_rate": next(metric for metric in METRICS if metric.name == "error_ratio"),
}
"""What the grammar calls each metric."""
_ATTAINMENT = next(metric for metric in METRICS if metric.name == "attainment_ratio")


class SloError(ValueError):
    """The text is not an SLO; its message has the text and a ^ below the wrong place."""

    def __init__(self, problem: str, text: str, position: int) -> None:
        super().__init__(f"{problem}\n  {text}\n  {' ' * position}^")
        self.problem = problem
        self.position = position


def parse_slo(text: str) -> Slo:
    """Read objectives. Raises SloError."""
    return _Parser(" ".join(text.split("\n"))).slo()


class _Parser:
    """Walks over the text once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._scan()
        self._next = 0

    def slo(self) -> Slo:
        clauses: list[Clause] = []
        limits: tuple[Limit, ...] = ()
        while True:
            self._skip(";")
            if self._at_end():
                break
            at = self._position()
            clause, request_limits = self._clause()
            if request_limits and limits:
                raise SloError("goodput(...) may stand once: a request has one verdict", self._text, at)
            limits = limits or request_limits
            clauses.append(clause)
            if not self._at_end() and self._peek() != ";":
                raise self._error("; expected")
        if not clauses:
            raise SloError("an objective expected, such as ttft p99 < 2s", self._text, 0)
        return Slo(self._text.strip(), tuple(clauses), limits)

    def _clause(self) -> tuple[Clause, tuple[Limit, ...]]:
        start = self._position()
        if self._peek() == GOODPUT:
            self._take()
            limits = self._limits()
            wanted_at = self._position()
            comparison, value = self._comparison(), self._value(_ATTAINMENT)
            limit = Limit(GOODPUT, _ATTAINMENT, comparison, value)
            return Clause(self._between(start), self._between(wanted_at), limit), limits
        name, metric = self._metric()
        statistic = self._statistic(metric)
        wanted_at = self._position()
        limit = Limit(name, metric, self._comparison(), self._value(metric))
        return Clause(self._between(start), self._between(wanted_at), limit, statistic), ()

    def _limits(self) -> tuple[Limit, ...]:
        self._expect("(")
        limits = []
        while True:
            at = self._position()
            name, metric = self._metric()
            if metric.field is None:
                raise SloError(f"{name} is no metric of one request", self._text, at)
            limits.append(Limit(name, metric, self._comparison(), self._value(metric)))
            if self._peek() != ",":
                self._expect(")")
                return tuple(limits)
            self._take()

    def _metric(self) -> tuple[str, Metric]:
        name = self._peek()
        metric = METRIC_NAMES.get(name)
        if metric is None:
            close = difflib.get_close_matches(name, METRIC_NAMES, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise self._error(f"unknown metric {name}{hint}" if name else "a metric expected")
        self._take()
        return name, metric

    def _statistic(self, metric: Metric) -> str | None:
        if metric.kind != "latency":
            return None
        if self._peek() not in _STATISTICS:
            raise self._error(f"one of {', '.join(_STATISTICS)} expected")
        return self._take()

    def _comparison(self) -> str:
        if self._peek() not in ("<", "<=", ">", ">="):
            raise self._error("<, <=, > or >= expected")
        return self._take()

    def _value(self, metric: Metric) -> float:
        if not self._peek()[:1].isdigit():
            raise self._error("a number expected")
        number = float(self._take())
        if metric.unit == "ms":
            if self._peek() not in _MS_PER_UNIT:
                raise self._error(f"a unit expected: {', '.join(_MS_PER_UNIT)}")
            return number * _MS_PER_UNIT[self._take()]
        if metric.kind == "ratio":
            return number / 100 if self._skip("%") else number
        for unit in _OPTIONAL_UNITS.get(metric.unit, ()):
            self._skip(unit)
        return number

    def _scan(self) -> list[tuple[str, int]]:
        tokens = []
        position = 0
        while self._text[position:].strip():
            match = _TOKEN.match(self._text, position)
            if match is None:
                blank = len(self._text[position:]) - len(self._text[position:].lstrip())
                raise SloError("this is not understood", self._text, position + blank)
            kind = match.lastgroup or ""
            tokens.append((match[kind], match.start(kind)))
            position = match.end()
        return tokens

    def _peek(self) -> str:
        return "" if self._at_end() else self._tokens[self._next][0]

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1][0]

    def _skip(self, token: str) -> bool:
        if self._peek() != token:
            return False
        self._next += 1
        return True

    def _expect(self, token: str) -> None:
        if not self._skip(token):
            raise self._error(f"{token} expected")

    def _at_end(self) -> bool:
        return self._next >= len(self._tokens)

    def _position(self) -> int:
        return len(self._text.rstrip()) if self._at_end() else self._tokens[self._next][1]

    def _between(self, start: int) -> str:
        """Return the text from `start` to the last token taken."""
        token, at = self._tokens[self._next - 1]
        return self._text[start : at + len(token)]

    def _error(self, problem: str) -> SloError:
        return SloError(problem, self._text, self._position())
