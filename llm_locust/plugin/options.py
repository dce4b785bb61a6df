"""The options of a run: one row each, and how they get into Locust's command line and web form.

All values are taken as text and judged together in `settings`, so that everything wrong is told at
once; argparse would stop at the first. An option that was not given is "" (a bare flag: False), which
also survives Locust's web form, where None would come back as a string of another meaning.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from llm_locust.prompts.lengths import parse_length
from llm_locust.prompts.synthetic import NOT_SHARED, SharedPrefix

from . import values

GROUP = "LLM"
DESCRIPTION = (
    "Load test of a language-model server (llm-locust). Each option is also an environment variable: "
    "--llm-model is LOCUST_LLM_MODEL. Without an option: usage is asked for in each request, per chunk where the "
    "pre-flight saw it accepted; the output limit is max_tokens, max_completion_tokens where that is refused; "
    "Accept-Encoding is identity; a user waits 0.5 to 5 s after a failed connection; a start needs `ulimit -n` of "
    "users + 100; Locust's own periodic table comes with --print-stats only."
)
SHAPE_NONE = "none"
DIALECTS = (
    "openai-chat",
    "openai-completions",
    "openai-responses",
    "sglang-generate",
    "anthropic-messages",
    "tgi-generate",
    "ollama-chat",
)


@dataclass(frozen=True, slots=True)
class Option:
    """One option: its flag, the field of `Settings` it fills, its parser, default and help.

    `kind`: "value" takes text, "list" may be repeated, "switch" is --x/--no-x, "flag" is bare.
    `form` puts it into Locust's web form; what may hold a secret stays out of it, because Locust
    writes an option's value into its page in clear.
    """

    flag: str
    field: str
    parse: Callable[[str], Any]
    default: Any
    help: str
    metavar: str | None = None
    kind: str = "value"
    form: bool = True
    choices: tuple[str, ...] = ()

    @property
    def dest(self) -> str:
        """The name in `parsed_options`."""
        return self.flag.removeprefix("--").replace("-", "_")

    @property
    def env_var(self) -> str:
        """The environment variable that also sets it."""
        return f"LOCUST_{self.dest.upper()}"


# A table is read by its rows.
# fmt: off
OPTIONS: tuple[Option, ...] = (
    # what is asked of whom
    Option("--llm-model", "model", values.text, None,
           "Model name sent in each request. Default: the one that the server's /v1/models names.", "NAME"),
    Option("--llm-dialect", "dialect", values.text, "openai-chat",
           "API to speak: " + ", ".join(DIALECTS) + " or one of a plugin. Refused where the user class fixes it. "
           "Default: openai-chat.", "NAME"),
    Option("--llm-path", "path", values.text, None,
           "Path of the endpoint, where it is not the dialect's own. Default: the dialect's.", "PATH"),
    Option("--llm-api-key", "api_key", values.text, None,
           "API key. Better in the environment (LOCUST_LLM_API_KEY or OPENAI_API_KEY) or a file: a command line can be "
           "seen by others. Each worker needs its own copy. Never printed, never written. Default: none.",
           "KEY", form=False),
    Option("--llm-api-key-file", "api_key_file", values.text, None,
           "File whose first line is the API key. Default: none.", "FILE", form=False),
    Option("--llm-header", "headers", values.header, (),
           'Header sent with each request, as "Name: value"; may be repeated. Values are masked in reports; '
           "a master sends them to its workers in clear. Default: none.", "HEADER", "list", form=False),
    Option("--llm-extra-body", "extra_body", values.json_object, {},
           "JSON object merged into each request's body. Default: {}.", "JSON", form=False),
    Option("--llm-stream", "stream", values.switch, True,
           "Ask for a streamed answer; without one there is no TTFT. Default: on.", kind="switch"),
    Option("--llm-temperature", "temperature", values.temperature, 0.0,
           "Sampling temperature; `server` sends none. Default: 0.", "T|server"),
    Option("--llm-ignore-eos", "ignore_eos", values.switch, None,
           "Generate to the output limit, whatever the model wants. Default: on for synthetic prompts or a given "
           "--llm-output-tokens, else off.", kind="switch"),
    # prompts
    Option("--llm-prompts", "prompts", values.text, "synthetic",
           "Prompts: synthetic, token-ids (where the API takes them), text:STRING, text:@FILE, KIND:PATH (sharegpt, "
           "openqa, jsonl, csv, lines, mooncake, burstgpt, …) or a path. Default: synthetic.", "NAME|PATH"),
    Option("--llm-input-tokens", "input_tokens", parse_length, None,
           "Prompt length in tokens: 1024, 512-2048 (uniform) or normal:1024:200 (mean, deviation). "
           "Default: the user class's or the shape's, else 1024.", "N|A-B"),
    Option("--llm-output-tokens", "output_tokens", parse_length, None,
           "Output limit in tokens, written like --llm-input-tokens. Default: the dataset's, the user class's or the "
           "shape's, else 2048.", "N|A-B"),
    Option("--llm-shared-prefix", "shared_prefix", SharedPrefix.parse, NOT_SHARED,
           "Share of each prompt that all have in common: 0.5; or within groups: 0.9:16. "
           "Default: 0, each prompt is unique.", "RATIO[:GROUPS]"),
    Option("--llm-tokenizer", "tokenizer", values.text, None,
           "Counts prompt tokens where the server has no /tokenize: a tiktoken encoding, a .tiktoken file, a "
           "tokenizer.json or a model's folder. Nothing is downloaded. Default: calibration against the server's "
           "usage.", "NAME|PATH"),
    Option("--llm-max-context", "max_context_tokens", values.positive, None,
           "Skip and count dataset rows longer than this many tokens. Default: no limit.", "N"),
    Option("--llm-seed", "seed", values.whole, None,
           "Seed of prompts and arrivals. A given seed repeats them, so a prefix cache may answer. "
           "Default: fresh per run, recorded.", "N"),
    # load
    Option("--llm-shape", "shape", values.text, None,
           "Load shape of the suite or of the locustfile, e.g. ConcurrencySteps or concurrency-steps; none: plain "
           "users. Default: the locustfile's, else none.", "NAME"),
    Option("--llm-levels", "levels", values.levels, None,
           "Users of each stage: 8,16,32,64 or 8-64:8. Default: the shape's.", "LIST"),
    Option("--llm-rates", "rates_per_s", values.rates, None,
           "Requests per second of each stage: 2,5,10,20. Default: the shape's.", "LIST"),
    Option("--llm-hold", "hold_s", values.positive_duration, None,
           "Least time that a stage is held: 5m. Default: the shape's.", "TIME"),
    Option("--llm-requests", "requests", values.quotas, None,
           "End after this many measured requests over all workers: 100, 3x (3 a user), or a list with one number "
           "per stage. Default: no limit.", "N"),
    Option("--llm-rate", "rate_per_s", values.rate, None,
           "Requests per second of an open loop; users (-u, 512 where not given) are the cap on concurrency. "
           "Default: none, a closed loop.", "RATE"),
    Option("--llm-arrivals", "arrivals", values.arrivals, values.Arrivals(),
           "Law of the arrival gaps: poisson, constant, gamma:CV, trace, trace:SPEED. Default: poisson.", "LAW"),
    Option("--llm-warmup", "warmup", values.warmup, values.Warmup(),
           "What is excluded at each stage's start: N requests a user, a time (30s), or 0. "
           "Default: 1, each user's first request of a stage.", "N|TIME"),
    Option("--llm-spawn-rate", "spawn_rate_per_s", values.positive_number, None,
           "Users started per second in a stage. Default: spread evenly over a tenth of the hold, at most 30 s.",
           "RATE"),
    Option("--llm-start", "start", values.one_of("together", "spread"), "spread",
           "How the users of a stage start: together or spread. Default: spread.", "HOW",
           choices=("together", "spread")),
    Option("--llm-think-time", "think_time_s", values.seconds_range, (0.0, 0.0),
           "Pause of a user after each answer in a closed loop: 2s or 1-5. Default: 0.", "A-B"),
    Option("--llm-flush-cache", "flush_cache", values.switch, False,
           "Empty the server's prefix cache before each stage. Default: off.", kind="flag"),
    # limits and connections
    Option("--llm-connect-timeout", "connect_timeout_s", values.duration, 10.0,
           "Limit for the connection; 0 is none. Default: 10 s.", "TIME"),
    Option("--llm-first-token-timeout", "first_token_timeout_s", values.duration, 3600.0,
           "Limit for the first token; 0 is none. Default: 1 h.", "TIME"),
    Option("--llm-stall-timeout", "stall_timeout_s", values.duration, 300.0,
           "Limit between two tokens; keep-alives do not feed it; 0 is none. Default: 300 s.", "TIME"),
    Option("--llm-total-timeout", "total_timeout_s", values.duration, 21600.0,
           "Limit for a whole request; 0 is none. Default: 6 h.", "TIME"),
    Option("--llm-keep-alive", "keep_alive", values.switch, True,
           "Keep each user's connection between its requests. Default: on.", kind="switch"),
    Option("--llm-insecure", "insecure", values.switch, False,
           "Do not verify the server's certificate. Default: off.", kind="flag"),
    Option("--llm-ca-file", "ca_file", values.text, None,
           "PEM file of the authorities to trust. Default: the system's.", "FILE"),
    Option("--llm-client-cert", "client_cert", values.text, None,
           "PEM file with the client's certificate and key. Default: none.", "FILE"),
    Option("--llm-proxy", "proxy", values.proxy, None,
           "Proxy: a URL, or env to take HTTP_PROXY and its kin. Times are less exact through one. "
           "Default: off, the environment's proxies are ignored.", "env|URL", form=False),
    # verdict and reports
    Option("--llm-slo", "slo", values.text, None,
           'Objectives of the run, e.g. "ttft p99 < 2s; tpot p99 < 50ms"; error_rate and goodput(…) as the '
           "documentation says. A miss gives exit code 3. Default: none.", "SLO"),
    Option("--llm-out", "out", values.text, "reports",
           "Folder that gets one folder per run. Default: reports.", "DIR"),
    Option("--llm-name", "name", values.one_line, None,
           "Name of the run in its folder and reports. Default: the model's.", "NAME"),
    Option("--llm-tag", "tags", values.tag, (),
           "What the run was made on, as KEY=VALUE (gpu, gpus, nodes, engine, deploy, tp, ep, …); may be repeated. "
           "Default: none.", "KEY=VALUE", "list"),
    Option("--llm-note", "note", values.one_line, "",
           "A remark for the report. Default: none.", "TEXT"),
    Option("--llm-price-per-gpu-hour", "price_per_gpu_hour", values.number, None,
           "Price of a GPU hour, for the cost of a million tokens (needs --llm-tag gpus=N). Default: none.", "PRICE"),
    Option("--llm-save-arrivals", "save_arrivals", values.switch, False,
           "Each worker writes every arrival time to a file beside itself. Default: off.", kind="flag"),
    Option("--llm-save-failures", "save_failures", values.whole, 0,
           "Keep the raw bytes of the first N failed answers per outcome. Default: 0.", "N"),
    # how the run begins and ends
    Option("--llm-drain", "drain_s", values.duration, None,
           "Longest wait for open streams when the load ends. Default: 30m at a planned end, 30s after Ctrl-C (a "
           "second Ctrl-C ends it at once), 20s after SIGTERM; a shorter one given here holds for all.", "TIME"),
    Option("--llm-stop-on-failures", "stop_on_failures_s", values.duration, 60.0,
           "End the run, exit code 1, after this time with at least 20 failures, no success and no token; 0: never. "
           "Default: 60s.", "TIME"),
    Option("--llm-dry-run", "dry_run", values.switch, False,
           "Print the plan with its least duration and stop. Default: off.", kind="flag"),
    Option("--llm-no-preflight", "no_preflight", values.switch, False,
           "Skip the short request that checks server, key and model before the load. Default: off.", kind="flag"),
    Option("--llm-wait-ready", "wait_ready_s", values.duration, 0.0,
           "Wait this long for the server to answer before the load: 10m. Default: 0, do not wait.", "TIME"),
)
# fmt: on
BY_DEST = {option.dest: option for option in OPTIONS}
SECRET_DESTS = ("llm_api_key", "llm_api_key_file")


class Menu(list[str]):
    """Choices for the web form's menu that argparse does not enforce: it would stop at the first wrong option."""

    def __contains__(self, item: object) -> bool:
        """Let every value through; `settings` judges it with all the others."""
        return True


class _Switch(argparse.BooleanOptionalAction):
    """--x/--no-x whose help stays as it was written: argparse would add the raw default."""

    def __init__(self, option_strings: list[str], dest: str, help: str, **rest: Any) -> None:  # noqa: A002
        super().__init__(option_strings, dest, **rest)
        self.help = help


def register(parser: argparse.ArgumentParser) -> None:
    """Add the group "LLM" to Locust's parser (listener of `init_command_line_parser`)."""
    group = parser.add_argument_group(GROUP, DESCRIPTION)
    for option in OPTIONS:
        action: Any = group.add_argument(option.flag, **dict(_argparse_keywords(option)))
        # A group takes no keywords of Locust's parser, and its options reach the form only by these
        # attributes of the action (Locust 2.47).
        action.include_in_web_ui = option.form
        action.is_secret = action.is_required = action.is_multiple = False
        if option.kind == "switch":
            action.choices = Menu(["", "true", "false"])
        elif option.choices:
            action.choices = Menu(["", *option.choices])


def _argparse_keywords(option: Option) -> Iterator[tuple[str, Any]]:
    yield "dest", option.dest
    yield "help", option.help
    yield "env_var", option.env_var
    if option.kind == "flag":
        yield "action", "store_true"
        return
    yield "default", ""
    if option.kind == "switch":
        yield "action", _Switch
        return
    yield "metavar", option.metavar
    if option.kind == "list":
        yield "action", "append"
        yield "default", None
