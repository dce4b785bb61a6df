"""A server's own counters, as its `/metrics` tells them."""

from __future__ import annotations

import urllib.request

from prometheus_client.parser import text_string_to_metric_families

Counters = dict[str, float]
"""Sample name to its sum over all labels."""


def read_text(url: str) -> str:
    """Ask the server for its metrics."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
    return text


def sums(text: str) -> Counters:
    """Sum each sample over its labels; the buckets of histograms are left out."""
    found: Counters = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if not sample.name.endswith(("_bucket", "_created")):
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def growth(before: Counters, after: Counters) -> Counters:
    """Return by how much each counter grew; one that did not exist before began at 0."""
    return {name: value - before.get(name, 0.0) for name, value in after.items()}
