"""How a run is repeated: its options for run.conf, and the command. Secrets are masked here.

Knows no Locust: it reads what Locust has parsed.
"""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from llm_locust.outputs.runconf import OptionValue

from . import options, values
from .options import SHAPE_NONE, Option
from .secrets import MASK, mask_body, mask_url
from .settings import Settings, texts_of

# Locust's own options that say how a run goes; paths and logging belong to the machine.
_LOCUST_OPTIONS = (
    ("locustfile", "locustfile"), ("host", "host"), ("num_users", "users"), ("spawn_rate", "spawn-rate"),
    ("run_time", "run-time"), ("headless", "headless"), ("autostart", "autostart"), ("autoquit", "autoquit"),
    ("processes", "processes"), ("master", "master"), ("master_bind_host", "master-bind-host"),
    ("master_bind_port", "master-bind-port"), ("master_host", "master-host"), ("master_port", "master-port"),
    ("expect_workers", "expect-workers"), ("tags", "tags"), ("exclude_tags", "exclude-tags"),
    ("reset_stats", "reset-stats"), ("equal_weights", "equal-weights"), ("stop_timeout", "stop-timeout"),
)  # fmt: skip
_OF_A_MASTER = ("master", "expect_workers")  # Locust sets them itself where --processes is given
_LOCUSTS_DEFAULTS = {
    "autoquit": -1, "expect_workers": 1, "master_bind_host": "*", "master_bind_port": 5557,
    "master_host": "127.0.0.1", "master_port": 5557,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a run has that no option says: its shape, its user classes where not all run, the master's workers."""

    shape: str | None = None
    classes: tuple[str, ...] = ()
    workers: int = 0


NOTHING_CHOSEN = Chosen()


def repeat_options(
    settings: Settings, parsed: Namespace, chosen: Chosen = NOTHING_CHOSEN
) -> tuple[dict[str, OptionValue], dict[str, str]]:
    """What repeats the run: option name without dashes → value as typed; and name → why a secret one is left out.

    A run of the web page begins at once in the repeat, without a page.
    """
    kept: dict[str, OptionValue] = {}
    left_out: dict[str, str] = {}
    for name, value, is_masked in _given_items(settings, parsed, chosen):
        if is_masked:
            left_out[name] = f"may hold a secret: {' '.join(value) if isinstance(value, list) else value}"
        else:
            kept[name] = value
    return kept, left_out


def repeat_command(settings: Settings, parsed: Namespace, chosen: Chosen = NOTHING_CHOSEN) -> str:
    """The command that repeats the run, on one line; what may be secret is masked in it."""
    words = ["locust", *chosen.classes]
    for name, value, _ in _given_items(settings, parsed, chosen):
        if isinstance(value, bool):
            words.append(f"--{name}" if value else f"--no-{name}")
        elif not isinstance(value, list):
            words += [f"--{name}", str(value)]
        elif name.startswith("llm-"):
            words += [word for text in value for word in (f"--{name}", text)]
        else:
            words += [f"--{name}", *value]
    return shlex.join(words)


def chosen_classes(parsed: Namespace, available: Iterable[str]) -> tuple[str, ...]:
    """The user classes that were named on the command line or chosen in the page; none where all of them ran."""
    chosen = tuple(getattr(parsed, "user_classes", None) or ())
    return () if set(chosen) == set(available) else chosen


def _given_items(settings: Settings, parsed: Namespace, chosen: Chosen) -> Iterator[tuple[str, OptionValue, bool]]:
    """(name, value that may be seen, whether something was masked in it) of everything that was given."""
    forked = bool(getattr(parsed, "processes", None))
    for dest, name in _LOCUST_OPTIONS:
        # Locust writes 1 user over what was not given; a shape that varies the users would refuse it in the repeat
        value = settings.users if dest == "num_users" else getattr(parsed, dest, None)
        if dest == "headless":
            value = not getattr(parsed, "autostart", False)
        if dest == "expect_workers":
            value = max(value or 0, chosen.workers)
        if not value or value == _LOCUSTS_DEFAULTS.get(dest) or (forked and dest in _OF_A_MASTER):
            continue
        if dest == "host":
            shown = ",".join(mask_url(host.strip()) for host in str(value).split(","))
            yield name, shown, MASK in shown
        else:
            yield name, value if isinstance(value, (bool, list)) else str(value), False
    if getattr(parsed, "class_picker", False):
        yield "llm-shape", chosen.shape or SHAPE_NONE, False
    for dest, typed in settings.raw.items():
        option = options.BY_DEST[dest]
        visible = _shown(option, typed)
        yield option.flag.removeprefix("--"), visible, MASK in str(visible) and MASK not in str(typed)


def _shown(option: Option, typed: str | bool | list[str]) -> OptionValue:
    """The text of an option as it may be seen."""
    if option.kind in ("flag", "switch"):
        return values.switch(str(typed))
    if option.kind == "list":
        texts = texts_of(option, typed)
        return [f"{text.partition(':')[0].strip()}: {MASK}" for text in texts] if option.field == "headers" else texts
    if option.field == "extra_body":
        body = values.json_object(str(typed))
        return str(typed) if mask_body(body) == body else msgspec.json.encode(mask_body(body)).decode()
    return mask_url(str(typed)) if option.field == "proxy" and typed != "env" else str(typed)
