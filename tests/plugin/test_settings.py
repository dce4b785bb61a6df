"""Options reach the settings from the command line, the environment, a file and the form; secrets reach nothing."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from locust import argument_parser

from llm_locust.outputs.runconf import run_conf
from llm_locust.plugin import equip, options, repeat, secrets, settings
from llm_locust.plugin.options import OPTIONS, SECRET_DESTS
from llm_locust.plugin.repeat import Chosen

# The defaults that the design promises, as `--help` has to tell them.
DEFAULTS = {
    "--llm-connect-timeout": "10 s",
    "--llm-first-token-timeout": "1 h",
    "--llm-stall-timeout": "300 s",
    "--llm-total-timeout": "6 h",
    "--llm-rate": "none, a closed loop",
    "--llm-spawn-rate": "spread evenly over a tenth of the hold, at most 30 s",
    "--llm-start": "spread",
    "--llm-ignore-eos": "on for synthetic prompts or a given --llm-output-tokens, else off",
    "--llm-temperature": "0",
    "--llm-seed": "fresh per run, recorded",
    "--llm-warmup": "1, each user's first request of a stage",
    "--llm-proxy": "off, the environment's proxies are ignored",
    "--llm-drain": "30m at a planned end, 30s after Ctrl-C (a second Ctrl-C ends it at once), 20s after SIGTERM",
    "--llm-stop-on-failures": "60s",
    "--llm-dialect": "openai-chat",
    "--llm-arrivals": "poisson",
    "--llm-stream": "on",
    "--llm-keep-alive": "on",
    "--llm-out": "reports",
    "--llm-requests": "no limit",
}
TOLD_BESIDE_THEM = (
    "End after this many measured requests over all workers",
    "users (-u, 512 where not given) are the cap on concurrency",
    "with at least 20 failures, no success and no token",
    "usage is asked for in each request, per chunk where the pre-flight saw it accepted",
    "max_tokens, max_completion_tokens where that is refused",
    "Accept-Encoding is identity",
    "0.5 to 5 s after a failed connection",
    "`ulimit -n` of users + 100",
    "periodic table comes with --print-stats only",
    "A given seed repeats them, so a prefix cache may answer",
    "`server` sends none",
)


def parse(*args: str, environ: dict[str, str] | None = None, monkeypatch: Any = None) -> Namespace:
    """Parse a command line as Locust does, with our options registered."""
    for name, value in (environ or {}).items():
        monkeypatch.setenv(name, value)
    parser = argument_parser.get_empty_argument_parser(add_help=False, default_config_files=[])
    argument_parser.setup_parser_arguments(parser)  # type: ignore[no-untyped-call]  # locust's
    options.register(parser)
    parsed: Namespace = parser.parse_args(list(args))
    return parsed


def test_settings_have_the_defaults_of_the_option_table() -> None:
    """One table: a default stands in it and in Settings, and the two agree."""
    plain = settings.Settings()
    table = {option.field: option.default for option in OPTIONS if option.dest not in SECRET_DESTS}
    assert {field: getattr(plain, field) for field in table} == table
    own = {"hosts", "users", "run_time_s", "given", "raw"}
    assert set(settings.Settings.__struct_fields__) - own == set(table)


def test_help_tells_every_default_of_the_design() -> None:
    """The help ends with the default, word for word."""
    parser = argument_parser.get_empty_argument_parser(add_help=True, default_config_files=[])
    options.register(parser)
    shown = " ".join(parser.format_help().split())
    assert "--llm-model is LOCUST_LLM_MODEL" in shown
    for said in TOLD_BESIDE_THEM:
        assert said in re.sub(r"(?<=pre-) ", "", shown), said
    by_flag = {option.flag: option for option in OPTIONS}
    for flag, default in DEFAULTS.items():
        assert f"Default: {default}" in by_flag[flag].help, flag
    for option in OPTIONS:
        assert "Default: " in option.help, option.flag
        assert option.env_var == "LOCUST_" + option.flag[2:].upper().replace("-", "_")
        wrapped = re.sub(r"(?<=[-/]) ", "", shown)
        assert re.sub(r"(?<=[-/]) ", "", option.help.replace("%%", "%")) in wrapped, option.flag


def test_nothing_is_given_when_nothing_was_typed() -> None:
    """Without options the settings are the defaults, and none counts as given."""
    found, problems = settings.read(parse())
    assert problems == []
    assert found == settings.Settings()


def test_option_is_read_from_the_command_line() -> None:
    """Values, switches, flags and lists; what was given is known as given even where it is the default."""
    found, problems = settings.read(
        parse(
            "--llm-model", "deepseek-r1", "--llm-levels", "8-16:8", "--no-llm-keep-alive", "--llm-stream",
            "--llm-dry-run", "--llm-header", "A: 1", "--llm-header", "B: 2", "--llm-tag", "gpus=32",
            "--llm-shape", "concurrency-steps", "-u", "9", "-t", "90s", "--host", "http://a:1/, http://b:2",
        )
    )  # fmt: skip
    assert problems == []
    assert (found.model, found.levels, found.keep_alive, found.dry_run) == ("deepseek-r1", (8, 16), False, True)
    assert found.headers == (("A", "1"), ("B", "2"))
    assert found.tags == (("gpus", "32"),)
    assert (found.shape, found.users, found.run_time_s) == ("concurrency-steps", 9, 90.0)
    assert found.hosts == ("http://a:1", "http://b:2")
    assert found.given == {"model", "levels", "keep_alive", "stream", "dry_run", "headers", "tags", "shape"}


def test_option_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each option has its variable LOCUST_LLM_…."""
    environ = {
        "LOCUST_LLM_MODEL": "m",
        "LOCUST_LLM_STREAM": "false",
        "LOCUST_LLM_DRY_RUN": "true",
        "LOCUST_LLM_TAG": "[gpu=H100, gpus=8]",
        "LOCUST_LLM_EXTRA_BODY": '{"top_k": 1}',
    }
    found, problems = settings.read(parse(environ=environ, monkeypatch=monkeypatch))
    assert problems == []
    assert (found.model, found.stream, found.dry_run, found.extra_body) == ("m", False, True, {"top_k": 1})
    assert found.tags == (("gpu", "H100"), ("gpus", "8"))


def test_option_is_read_from_the_form() -> None:
    """Locust's form hands back strings, also for what was None; an empty one is not given."""
    typed = parse()
    typed.llm_stream, typed.llm_tag, typed.llm_rate, typed.llm_header = "false", "gpu=H100, gpus=8", "2.5", ""
    found, problems = settings.read(typed)
    assert problems == []
    assert (found.stream, found.tags, found.rate_per_s) == (False, (("gpu", "H100"), ("gpus", "8")), 2.5)
    assert found.given == {"stream", "tags", "rate_per_s"}


def test_everything_wrong_is_told_at_once(tmp_path: Path) -> None:
    """One start shows all that is wrong, each with its option."""
    _, problems = settings.read(
        parse("--llm-rate", "fast", "--llm-levels", "a", "--llm-ca-file", str(tmp_path / "no.pem"), "--host", "gpu:1")
    )
    assert [problem.partition(":")[0] for problem in problems] == [
        "--llm-levels", "--llm-rate", "--llm-ca-file", "--host",
    ]  # fmt: skip


def test_files_that_hold_no_certificate_are_told_before_any_request() -> None:
    """Both, with what belongs into them; not one request after another."""
    _, problems = settings.read(parse("--llm-ca-file", __file__, "--llm-client-cert", __file__))
    assert problems == [
        f"--llm-ca-file: CA file {__file__}: no certificate or crl found; right is a PEM file with certificates",
        f"--llm-client-cert: client certificate {__file__}: no certificate with its key in it; "
        "right is a PEM file with a certificate and its key",
    ]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--llm-rate", "2", "--llm-rates", "2,5"), "--llm-rate and --llm-rates exclude each other"),
        (("--llm-shape", "none", "--llm-levels", "8"), "--llm-levels: varies the stages of a shape"),
        (("--llm-shape", "none", "--llm-requests", "1,2"), "--llm-requests: a list needs a shape"),
        (("--llm-prompts", "sharegpt:f", "--llm-ignore-eos"), "--llm-ignore-eos: needs a length"),
        (("--llm-price-per-gpu-hour", "3"), "--llm-price-per-gpu-hour: of how many? add --llm-tag gpus=8"),
        (("--llm-think-time", "2s", "--llm-rate", "5"), "--llm-think-time and --llm-rate exclude each other"),
    ],
)
def test_options_that_contradict_are_refused(args: tuple[str, ...], says: str) -> None:
    """Two options that cannot both hold are named together."""
    _, problems = settings.read(parse(*args))
    assert [problem[: len(says)] for problem in problems] == [says]


def test_choose_follows_the_precedence() -> None:
    """Option given > stage > class attribute > default."""
    given, _ = settings.read(parse("--llm-temperature", "0.7"))
    plain = settings.Settings()
    assert given.choose("temperature", 0.1, 0.2) == 0.7
    assert plain.choose("temperature", 0.1, 0.2) == 0.1
    assert plain.choose("temperature", None, 0.2) == 0.2
    assert plain.choose("temperature") == 0.0


@pytest.mark.parametrize(
    ("args", "ends_early"),
    [
        ((), False),
        (("--llm-prompts", "sharegpt:f"), True),
        (("--llm-prompts", "sharegpt:f", "--llm-output-tokens", "100"), False),
        (("--no-llm-ignore-eos",), True),
    ],
)
def test_eos_is_ignored_by_default_where_the_length_matters(args: tuple[str, ...], ends_early: bool) -> None:
    """ignore_eos: on for synthetic prompts or a given --llm-output-tokens, else off."""
    found, _ = settings.read(parse(*args))
    assert found.honours_eos is ends_early


@pytest.mark.parametrize(
    ("args", "only_made"), [((), True), (("--llm-output-tokens", "100"), False), (("--llm-ignore-eos",), False)]
)
def test_eos_is_ignored_for_every_prompt_only_where_that_was_asked(args: tuple[str, ...], only_made: bool) -> None:
    """A length or `--llm-ignore-eos` holds for a task's own texts, too; the default only for prompts that are made."""
    found, _ = settings.read(parse(*args))
    body = equip.ask_options(found, secrets.Secrets()).body
    assert (body.ignore_eos, body.ignore_eos_if_exact) == (True, only_made)


# ---- secrets ----

CANARY = "sk-canary-7f3a"


def test_key_is_taken_out_of_the_options(tmp_path: Path) -> None:
    """Locust sends all of parsed_options to its workers and shows them: the key must not be among them."""
    key_file = tmp_path / "key"
    key_file.write_text(f"{CANARY}\nsecond line\n")
    for args, environ, source in (
        (("--llm-api-key", CANARY), {}, "--llm-api-key"),
        (("--llm-api-key-file", str(key_file)), {}, "--llm-api-key-file"),
        ((), {"OPENAI_API_KEY": CANARY}, "OPENAI_API_KEY"),
    ):
        parsed = parse(*args)
        taken = secrets.take_out(parsed, environ)
        assert (taken.api_key, taken.source, taken.problems) == (CANARY, source, ())
        assert CANARY not in repr(taken)
        assert not any(dest in vars(parsed) for dest in SECRET_DESTS)
        found, _ = settings.read(parsed)
        assert CANARY not in repr(found)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("--llm-api-key", "a", "--llm-api-key-file", "b"), "exclude each other"),
        (("--llm-api-key-file", "/nowhere/key"), "/nowhere/key cannot be read (No such file or directory)"),
        (("--llm-api-key", "schlüssel"), "characters that a header cannot carry"),
    ],
)
def test_key_that_cannot_be_used_is_told_without_the_key(args: tuple[str, ...], says: str) -> None:
    """A bad key is a problem of the start, and its text is not printed."""
    taken = secrets.take_out(parse(*args), {})
    assert taken.api_key is None
    assert len(taken.problems) == 1
    assert says in taken.problems[0]
    assert "schl" not in taken.problems[0]


def test_nothing_secret_is_in_the_form() -> None:
    """What may hold a secret is not in the web form: Locust writes an option's value into its page."""
    shown = {option.flag for option in OPTIONS if option.form}
    hidden = {"--llm-api-key", "--llm-api-key-file", "--llm-header", "--llm-extra-body", "--llm-proxy"}
    assert not shown & hidden


def test_secrets_are_masked_everywhere() -> None:
    """Settings for reports, the repeat command and run.conf carry no secret; what was left out is said."""
    parsed = parse(
        "--llm-header", f"Authorization: Bearer {CANARY}", "--llm-extra-body", f'{{"a": {{"api_key": "{CANARY}"}}}}',
        "--llm-proxy", f"http://u:{CANARY}@p:1", "--host", f"http://u:{CANARY}@h:1/?token={CANARY}",
        "--llm-model", "m", "--llm-tag", "a=b", "--llm-tag", "c=d",
    )  # fmt: skip
    found, problems = settings.read(parsed)
    assert problems == []
    kept, left_out = repeat.repeat_options(found, parsed)
    text = repr(settings.masked(found)) + repeat.repeat_command(found, parsed) + run_conf(kept, left_out, ())
    assert CANARY not in text
    assert set(left_out) == {"host", "llm-header", "llm-extra-body", "llm-proxy"}
    assert settings.masked(found)["hosts"] == ["http://u:***@h:1/?token=***"]
    assert settings.masked(found)["extra_body"] == {"a": {"api_key": "***"}}


def test_run_conf_repeats_the_run(tmp_path: Path) -> None:
    """`locust --config run.conf` gives the same settings again."""
    parsed = parse(
        "-f", "x.py", "--llm-model", "m", "--llm-tag", "a=b, c", "--llm-tag", "c=d", "--no-llm-stream",
        "--llm-dry-run", "--llm-note", "it's ; a # note", "--llm-slo", "ttft p99 < 2s; tpot p99 < 50ms",
        "--llm-extra-body", '{"top_k": 1, "stop": ["# a"]}', "-u", "8", "--host", "http://h:1",
    )  # fmt: skip
    found, problems = settings.read(parsed)
    assert problems == []
    conf = tmp_path / "run.conf"
    conf.write_text(run_conf(*repeat.repeat_options(found, parsed), ()), encoding="utf-8")
    again, problems = settings.read(parse("--config", str(conf)))
    assert problems == []
    assert again == found


def test_repeat_command_repeats_the_run() -> None:
    """The printed command, split as a shell does, gives the same settings again."""
    parsed = parse(
        "-f", "x.py", "--llm-tag", "a=b c", "--llm-tag", "d=e", "--no-llm-stream", "--llm-dry-run", "--tags", "x", "y",
    )  # fmt: skip
    found, _ = settings.read(parsed)
    words = shlex.split(repeat.repeat_command(found, parsed))
    again, problems = settings.read(parse(*words[1:]))
    assert problems == []
    assert again == found


def test_repeat_begins_at_once_where_the_run_did() -> None:
    """A run of the page is repeated without one, with the shape and the classes that were chosen there."""

    def kept(*args: str, shape: str | None = None) -> dict[str, object]:
        parsed = parse("-f", "x.py", *args)
        found, _ = settings.read(parsed)
        again = parse(*shlex.split(repeat.repeat_command(found, parsed, Chosen(shape)))[1:])
        assert (again.headless, again.autostart) == (not parsed.autostart, parsed.autostart)
        options, _ = repeat.repeat_options(found, parsed, Chosen(shape))
        return {name: value for name, value in options.items() if name != "locustfile"}

    assert kept() == kept("--headless") == {"headless": True}
    assert kept("--autostart", "--autoquit", "3") == {"autostart": True, "autoquit": "3"}
    assert kept("--class-picker", shape="Sweep") == {"headless": True, "llm-shape": "Sweep"}
    assert kept("--class-picker") == {"headless": True, "llm-shape": "none"}


def test_repeat_has_the_ports_of_its_master() -> None:
    """Another master of the machine has Locust's own; what the run did not set is left to it."""
    own = ("--processes", "2", "--master-bind-port", "6001", "--master-port", "6001", "--master-bind-host", "127.0.0.1")
    for args in (own, ("--processes", "2")):
        parsed = parse("-f", "x.py", "--headless", *args)
        found, _ = settings.read(parsed)
        words = shlex.split(repeat.repeat_command(found, parsed))
        assert sorted(words[1:]) == sorted(["--locustfile", "x.py", "--headless", *args])


def test_repeat_waits_for_the_workers_that_were_there() -> None:
    """A master that begins by itself would go on with the first one; forked workers are counted by Locust."""
    for args, kept in (
        (("--master",), {"master": True, "expect-workers": "3"}),
        (("--master", "--expect-workers", "4"), {"master": True, "expect-workers": "4"}),
        (("--processes", "3"), {"processes": "3"}),
        ((), {}),
    ):
        parsed = parse("-f", "x.py", *args)
        found, _ = settings.read(parsed)
        options, _ = repeat.repeat_options(found, parsed, Chosen(workers=3 if args else 0))
        assert options == {"locustfile": "x.py", "headless": True, **kept}


def test_repeat_names_the_classes_that_ran() -> None:
    """Names on the command line are words of their own, not options; all of them need none."""
    parsed = parse("-f", "x.py", "--tags", "a", "--", "Chat")
    found, _ = settings.read(parsed)
    chosen = repeat.chosen_classes(parsed, ["Chat", "Digest"])
    assert chosen == ("Chat",)
    assert repeat.chosen_classes(parsed, ["Chat"]) == ()
    again = parse(*shlex.split(repeat.repeat_command(found, parsed, Chosen(classes=chosen)))[1:])
    assert (again.user_classes, again.tags) == (["Chat"], ["a"])


def test_repeat_has_no_users_where_none_were_given() -> None:
    """Locust writes 1 user over what was not given before a run begins; a shape that varies them refuses any."""
    parsed = parse("-f", "x.py", "--llm-levels", "8,16")
    found, _ = settings.read(parsed)
    parsed.num_users = 1
    kept, _ = repeat.repeat_options(found, parsed)
    assert kept == {"locustfile": "x.py", "headless": True, "llm-levels": "8,16"}
    assert "--users" not in repeat.repeat_command(found, parsed)
