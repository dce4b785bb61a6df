"""What must never be seen: the API key, and how header values, passwords and key-like fields are masked.

Each process reads the key itself, from its own option, environment or file: Locust writes an option's
value into its page and sends all options to its workers in clear (2.47), so the key is taken out of
`parsed_options` before either can happen.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from .options import SECRET_DESTS

MASK = "***"
_KEY_LIKE = re.compile(r"key|token$|secret|passw|auth|credential|bearer|cookie|session", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Secrets:
    """The API key of this process and where it came from; its text never shows in a repr."""

    api_key: str | None = field(default=None, repr=False)
    source: str = "none"
    problems: tuple[str, ...] = ()


def take_out(options: Namespace, environ: Mapping[str, str]) -> Secrets:
    """Read the key and remove it from the options: after this no page and no message can carry it."""
    given = {dest: getattr(options, dest, "") or "" for dest in SECRET_DESTS}
    for dest in SECRET_DESTS:
        if hasattr(options, dest):
            delattr(options, dest)
    if given["llm_api_key"] and given["llm_api_key_file"]:
        return Secrets(problems=("--llm-api-key and --llm-api-key-file exclude each other; give one of them",))
    if given["llm_api_key"]:
        return _checked(given["llm_api_key"], "--llm-api-key")
    if given["llm_api_key_file"]:
        return _from_file(given["llm_api_key_file"])
    if environ.get("OPENAI_API_KEY"):
        return _checked(environ["OPENAI_API_KEY"], "OPENAI_API_KEY")
    return Secrets()


def _from_file(path: str) -> Secrets:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        return Secrets(problems=(f"--llm-api-key-file: {path} cannot be read ({reason})",))
    if not lines or not lines[0].strip():
        return Secrets(problems=(f"--llm-api-key-file: the first line of {path} is empty; it must be the key",))
    return _checked(lines[0], "--llm-api-key-file")


def _checked(key: str, source: str) -> Secrets:
    key = key.strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        return Secrets(problems=(f"{source}: the key has characters that a header cannot carry",))
    return Secrets(key, source)


def mask_url(url: str) -> str:
    """Hide the password of a URL and the values of key-like query fields."""
    parts = urlsplit(url)
    netloc = parts.netloc
    if "@" in netloc:
        login, _, host = netloc.rpartition("@")
        user = login.partition(":")[0]
        netloc = f"{user}:{MASK}@{host}" if ":" in login else f"{MASK}@{host}"
    query = re.sub(r"([^=&]+)=([^&]*)", lambda m: f"{m[1]}={MASK}" if _KEY_LIKE.search(m[1]) else m[0], parts.query)
    return urlunsplit(parts._replace(netloc=netloc, query=query))


def mask_body(value: Any) -> Any:
    """Hide the values of key-like names, at any depth of a JSON value."""
    if isinstance(value, dict):
        return {name: MASK if _KEY_LIKE.search(str(name)) else mask_body(item) for name, item in value.items()}
    if isinstance(value, list):
        return [mask_body(item) for item in value]
    return value
