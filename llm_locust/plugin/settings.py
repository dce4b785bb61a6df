"""The settings of a run: one frozen value, made from the parsed options, shown in every report.

Holds no secret: the key lives in `secrets.Secrets`, and `masked` hides header values, passwords and
key-like fields. Precedence everywhere: option given > stage > class attribute > default (`choose`).
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from llm_locust.prompts.lengths import Length
from llm_locust.prompts.registry import MADE
from llm_locust.prompts.synthetic import NOT_SHARED, SharedPrefix
from llm_locust.wire.tls import TLSOptions
from llm_locust.wire.types import Limits

from . import options, values
from .options import OPTIONS, SECRET_DESTS, SHAPE_NONE, Option
from .secrets import MASK, mask_body, mask_url

T = TypeVar("T")
Raw = Mapping[str, str | bool | list[str]]
"""The given options as they were typed: dest → text. What goes to workers and into run.conf."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Every option of a run as a value. Fields are in the order and under the defaults of `OPTIONS`.

    `given` names the fields that an option set; `raw` holds their texts. `hosts` are the servers
    (`--host`, separated by commas), `users` and `run_time_s` Locust's own options, None where not given.
    """

    model: str | None = None
    dialect: str = "openai-chat"
    path: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    extra_body: Mapping[str, Any] = {}
    stream: bool = True
    temperature: float | None = 0.0
    ignore_eos: bool | None = None
    prompts: str = "synthetic"
    input_tokens: Length | None = None
    output_tokens: Length | None = None
    shared_prefix: SharedPrefix = NOT_SHARED
    tokenizer: str | None = None
    max_context_tokens: int | None = None
    seed: int | None = None
    shape: str | None = None
    levels: tuple[int, ...] | None = None
    rates_per_s: tuple[float, ...] | None = None
    hold_s: float | None = None
    requests: tuple[values.Quota, ...] | None = None
    rate_per_s: float | None = None
    arrivals: values.Arrivals = values.Arrivals()
    warmup: values.Warmup = values.Warmup()
    spawn_rate_per_s: float | None = None
    start: str = "spread"
    think_time_s: tuple[float, float] = (0.0, 0.0)
    flush_cache: bool = False
    connect_timeout_s: float = 10.0
    first_token_timeout_s: float = 3600.0
    stall_timeout_s: float = 300.0
    total_timeout_s: float = 21600.0
    keep_alive: bool = True
    insecure: bool = False
    ca_file: str | None = None
    client_cert: str | None = None
    proxy: str | None = None
    slo: str | None = None
    out: str = "reports"
    name: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    note: str = ""
    price_per_gpu_hour: float | None = None
    save_arrivals: bool = False
    save_failures: int = 0
    drain_s: float | None = None
    stop_on_failures_s: float = 60.0
    dry_run: bool = False
    no_preflight: bool = False
    wait_ready_s: float = 0.0
    hosts: tuple[str, ...] = ()
    users: int | None = None
    run_time_s: float | None = None
    given: frozenset[str] = frozenset()
    raw: Raw = {}

    @property
    def limits(self) -> Limits:
        """The four time limits, as the wire takes them."""
        return Limits(self.connect_timeout_s, self.first_token_timeout_s, self.stall_timeout_s, self.total_timeout_s)

    @property
    def think_time_mean_s(self) -> float:
        """Mean pause of a user between two requests."""
        return sum(self.think_time_s) / 2

    @property
    def honours_eos(self) -> bool:
        """Whether generation may end early: ignore_eos is on for made prompts or a given output length."""
        if self.ignore_eos is not None:
            return not self.ignore_eos
        return not (self.prompts in MADE or "output_tokens" in self.given)

    def choose(self, field: str, stage: T | None = None, class_attribute: T | None = None) -> T:
        """The value of `field` by precedence: option given > stage > class attribute > default; None is "not set"."""
        if field not in self.given:
            for value in (stage, class_attribute):
                if value is not None:
                    return value
        result: T = getattr(self, field)
        return result


def read(parsed: Namespace) -> tuple[Settings, list[str]]:
    """Make the settings from Locust's parsed options; return them with every problem found, each one sentence."""
    raw = given_texts(parsed)
    settings, problems = from_raw(raw)
    hosts = tuple(host.strip().rstrip("/") for host in (getattr(parsed, "host", None) or "").split(",") if host.strip())
    settings = msgspec.structs.replace(
        settings,
        hosts=hosts,
        users=getattr(parsed, "num_users", None),
        run_time_s=_seconds(getattr(parsed, "run_time", None)),
    )
    return settings, problems + list(contradictions(settings))


def given_texts(parsed: Namespace | Mapping[str, Any]) -> dict[str, str | bool | list[str]]:
    """Pick the options of ours that were given, as typed; the key is never among them."""
    found = parsed if isinstance(parsed, Mapping) else vars(parsed)
    return {
        option.dest: found[option.dest]
        for option in OPTIONS
        if option.dest not in SECRET_DESTS and _is_given(option, found.get(option.dest))
    }


def from_raw(raw: Raw) -> tuple[Settings, list[str]]:
    """Make settings from given texts; a value that cannot be read keeps its default and is told."""
    fields: dict[str, Any] = {}
    problems: list[str] = []
    for dest, typed in raw.items():
        option = options.BY_DEST[dest]
        try:
            fields[option.field] = _value(option, typed)
        except ValueError as error:
            problems.append(f"{option.flag}: {error}")
    if fields.get("shape") == SHAPE_NONE:
        fields["shape"] = None
    given = frozenset(options.BY_DEST[dest].field for dest in raw)
    return Settings(**fields, given=given, raw=dict(raw)), problems


def contradictions(settings: Settings) -> Iterator[str]:
    """Name what is wrong between options, and files that are not there."""
    given = settings.given
    if "rate_per_s" in given and "rates_per_s" in given:
        yield "--llm-rate and --llm-rates exclude each other; give the rate of a run or those of its stages"
    for field, flag in (("levels", "--llm-levels"), ("rates_per_s", "--llm-rates"), ("hold_s", "--llm-hold")):
        if field in given and "shape" in given and settings.shape is None:
            yield f"{flag}: varies the stages of a shape, but --llm-shape is none"
    if settings.requests and len(settings.requests) > 1 and "shape" in given and settings.shape is None:
        yield "--llm-requests: a list needs a shape with as many stages; without one give a single number"
    if "prompts" in given and settings.prompts not in MADE:
        for field, flag in (("input_tokens", "--llm-input-tokens"), ("shared_prefix", "--llm-shared-prefix")):
            if field in given:
                yield f"{flag}: is for prompts that are made; those of {settings.prompts} stay as they are"
    if settings.ignore_eos and settings.prompts not in MADE and settings.output_tokens is None:
        yield "--llm-ignore-eos: needs a length to run to; add --llm-output-tokens 2048"
    if settings.insecure and settings.ca_file:
        yield "--llm-insecure and --llm-ca-file exclude each other; a certificate is verified or it is not"
    if settings.price_per_gpu_hour is not None and not any(key == "gpus" for key, _ in settings.tags):
        yield "--llm-price-per-gpu-hour: of how many? add --llm-tag gpus=8"
    if "think_time_s" in given and settings.rate_per_s is not None:
        yield "--llm-think-time and --llm-rate exclude each other; with a rate the schedule says when a user asks"
    yield from _missing_files(settings)
    yield from _bad_hosts(settings.hosts)


def _missing_files(settings: Settings) -> Iterator[str]:
    for flag, path in (("--llm-ca-file", settings.ca_file), ("--llm-client-cert", settings.client_cert)):
        if path and not Path(path).is_file():
            yield f"{flag}: there is no file {path}"
        elif path:
            yield from _not_a_certificate(flag, path)


def _not_a_certificate(flag: str, path: str) -> Iterator[str]:
    right = "certificates" if flag == "--llm-ca-file" else "a certificate and its key"
    try:
        (TLSOptions(ca_file=path) if flag == "--llm-ca-file" else TLSOptions(client_cert=path)).context()
    except ValueError as error:
        yield f"{flag}: {error}; right is a PEM file with {right}"


def _bad_hosts(hosts: tuple[str, ...]) -> Iterator[str]:
    for host in hosts:
        scheme, separator, rest = host.partition("://")
        if scheme not in ("http", "https") or not separator or not rest:
            yield f"--host: {mask_url(host)!r} is not an address; right is http://server:30000"


def masked(settings: Settings) -> dict[str, Any]:
    """The settings for a report: builtins only, without what could be a secret."""
    shown: dict[str, Any] = msgspec.to_builtins(settings)
    del shown["raw"]
    shown["given"] = sorted(settings.given)
    shown["headers"] = [[name, MASK] for name, _ in settings.headers]
    shown["extra_body"] = mask_body(dict(settings.extra_body))
    shown["hosts"] = [mask_url(host) for host in settings.hosts]
    if settings.proxy and settings.proxy != "env":
        shown["proxy"] = mask_url(settings.proxy)
    return shown


def _is_given(option: Option, typed: Any) -> bool:
    return typed is True if option.kind == "flag" else typed not in ("", None, [])


def _value(option: Option, typed: str | bool | list[str]) -> Any:
    if option.kind == "list":
        return tuple(option.parse(text) for text in texts_of(option, typed))
    return option.parse(str(typed))


def texts_of(option: Option, typed: str | bool | list[str]) -> list[str]:
    """Give the texts of a list option, as typed in the shell or on one line of the web form."""
    if isinstance(typed, list):
        return typed
    return [text.strip() for text in str(typed).split(",") if text.strip()]


def _seconds(run_time: Any) -> float | None:
    return None if run_time in (None, "") else values.duration(str(run_time))
