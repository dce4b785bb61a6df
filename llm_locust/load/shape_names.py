"""Finds a load shape by its name: the locustfile's own, the suite's, or one that another package offers.

A package offers its shapes under the entry point `llm_locust.shapes`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from importlib.metadata import entry_points

from locust import LoadTestShape

from llm_locust.load.shapes import SHAPES

ENTRY_POINTS = "llm_locust.shapes"


def shape_names(own: Iterable[str] = ()) -> list[str]:
    """Name all that can be chosen: the locustfile's own first, then the suite's, then other packages'."""
    added = (point.name for point in entry_points(group=ENTRY_POINTS))
    return list(dict.fromkeys([*own, *(shape.__name__ for shape in SHAPES), *added]))


def find_shape(name: str, own: Iterable[type[LoadTestShape]] = ()) -> type[LoadTestShape]:
    """Find a shape by its name or its name in kebab-case, in the order of `shape_names`.

    ValueError names the nearest ones.
    """
    mine = {shape.__name__: shape for shape in own}
    known = {**{shape.__name__: shape for shape in SHAPES}, **mine}
    names = shape_names(mine)
    title = next((title for title in names if name in (title, kebab(title))), None)
    if title is None:
        near = difflib.get_close_matches(kebab(name), [kebab(title) for title in names], n=2, cutoff=0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else "."
        raise ValueError(f"there is no shape '{name}'{hint} Known: {', '.join(names)}")
    if title in known:
        return known[title]
    point = next(iter(entry_points(group=ENTRY_POINTS, name=title)))
    loaded: type[LoadTestShape] = point.load()
    return loaded


def kebab(name: str) -> str:
    """Spell a class name in kebab-case."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()
