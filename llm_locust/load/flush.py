"""Empties a server's prefix cache between stages (`--llm-flush-cache`), in the spellings of SGLang and vLLM.

SGLang refuses while requests run, so this belongs between the drain of a stage and the opening of the next. A server
that cannot do it is a finding beside the stage, not an end of the run.
"""

from __future__ import annotations

import httpx

from llm_locust.load.answer import without_secrets_text
from llm_locust.load.endpoint import base_of, endpoints_of
from llm_locust.load.flight import request_headers
from llm_locust.load.options import DEFAULT_DIALECT, AskOptions
from llm_locust.protocol import get_dialect
from llm_locust.wire.client import http_client
from llm_locust.wire.transport import WireTransport

FLUSH_TIMEOUT_S = 30.0
_SPELLINGS = (("POST", "/flush_cache"), ("GET", "/flush_cache"), ("POST", "/reset_prefix_cache"))
_NO_SUCH_PATH = (404, 405, 501)


def flush_caches(options: AskOptions, hosts: str, transport: WireTransport) -> tuple[str, ...]:
    """Empty the cache of every host (separated by commas); blocks the greenlet. Return what is to be said."""
    dialect = get_dialect(options.dialect or DEFAULT_DIALECT)
    headers = request_headers(dialect, options)
    headers.pop("Content-Type", None)
    told = []
    with http_client(transport) as http:
        for endpoint in endpoints_of(hosts, dialect.path):
            problem = _flush(http, base_of(endpoint.url), {**headers, "Accept": "*/*"})
            if problem:
                told.append(f"{base_of(endpoint.shown)}: {without_secrets_text(problem, options)}")
    return tuple(told)


def _flush(http: httpx.Client, base: str, headers: dict[str, str]) -> str:
    """Empty one server's cache; return why it was not, "" where it was."""
    for method, path in _SPELLINGS:
        try:
            response = http.request(method, base + path, headers=headers, timeout=FLUSH_TIMEOUT_S)
        except httpx.HTTPError as error:
            return f"its prefix cache was not emptied: {error}"
        if response.is_success:
            return ""
        if response.status_code not in _NO_SUCH_PATH:
            return f"its prefix cache was not emptied: {method} {path} answers HTTP {response.status_code}"
    return (
        "its prefix cache was not emptied: it has neither /flush_cache (SGLang) nor /reset_prefix_cache "
        "(vLLM with VLLM_SERVER_DEV_MODE=1)"
    )
