"""The embedded LLM server: a model of a batching engine, and a byte-exact script player.

It stands for a real server in demos and tests and keeps the truth of what it sent and when. It runs
as a process of its own and knows nothing of the load tool that measures it.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code."""
    from llm_locust.mock.server import serve_from_arguments

    return serve_from_arguments(argv)
