"""Prompts as a run has them: lengths as asked for, files alike on every worker, caches emptied or told."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.rig.locusts import ROOT, Lab, Locust
from benchmarks.rig.mock_process import MockProcess, start_mock

LLM = ROOT / "locustfiles" / "llm.py"
FAST = ("--profile", "fast", "--ttft-ms", "2", "--itl-ms", "0.5")
CACHING = ("--time-scale", "200")  # the model of an engine, with its prefix cache
TEMPLATE_TOKENS = 4
ROWS = 40


@pytest.fixture
def mock() -> Iterator[MockProcess]:
    with start_mock(*FAST) as process:
        yield process


def headless(mock: MockProcess, *arguments: str) -> tuple[str, ...]:
    return "--headless", "--host", mock.url, *arguments


def on_workers(lab: Lab, mock: MockProcess, *arguments: str) -> tuple[Locust, list[Locust]]:
    """Start a master and two workers, each in a folder of its own."""
    binding = ("--master-bind-host", "127.0.0.1", "--master-bind-port", str(lab.port), "--expect-workers", "2")
    master = lab.locust("--master", *binding, *headless(mock, *arguments), file=LLM)
    workers = []
    for name in ("one", "two"):
        folder = lab.folder / name
        folder.mkdir(exist_ok=True)
        where = ("--worker", "--master-host", "127.0.0.1", "--master-port", str(lab.port))
        workers.append(Locust(folder, *where, file=LLM))
    lab.started += workers
    return master, workers


def rows_of_growing_length(folder: Path, rows: int = ROWS) -> None:
    """A file whose rows are told apart by their length: the first has one word."""
    folder.mkdir(exist_ok=True)
    lines = [json.dumps({"prompt": " ".join(["word"] * (row + 1)), "output_tokens": 2}) for row in range(rows)]
    (folder / "prompts.jsonl").write_text("\n".join(lines))


# ---- lengths ----


@pytest.mark.parametrize(
    ("arguments", "source"),
    [((), "/tokenize (prompt)"), (("--without", "/tokenize,/v1/tokenize"), "usage")],
    ids=["by the server", "calibrated"],
)
def test_prompts_have_the_length_that_was_asked_for(lab: Lab, arguments: tuple[str, ...], source: str) -> None:
    """To the token, by the server's own count, the template's tokens included; the report says how it was found."""
    with start_mock(*FAST, *arguments) as mock:
        run = lab.locust(*headless(mock, "-u", "2", "-r", "9", "--llm-requests", "6", "--llm-input-tokens", "64",
                                    "--llm-output-tokens", "4"), file=LLM)  # fmt: skip
        assert run.wait() == 0, run.output
    assert {(row["input_tokens"], row["input_tokens_requested"]) for row in lab.rows()} == {("64", "64")}
    (lengths,) = lab.summary()["lengths"]
    assert (lengths["source"], lengths["overhead_tokens"], lengths["estimate"]) == (source, TEMPLATE_TOKENS, "")
    assert lab.summary()["totals"]["input_length_error_ratio"] == 0
    assert lab.summary()["totals"]["input_tokens_mean"] == lab.summary()["totals"]["input_tokens_requested_mean"]


def test_workers_make_their_prompts_by_the_masters_ruler(lab: Lab, mock: MockProcess) -> None:
    """They ask nothing themselves."""
    master, _ = on_workers(lab, mock, "-u", "4", "-r", "9", "--llm-requests", "12", "--llm-input-tokens", "50-70",
                           "--llm-output-tokens", "4")  # fmt: skip
    assert master.wait() == 0, master.output
    assert len({row["worker"] for row in lab.rows()}) == 2
    assert all(row["input_tokens"] == row["input_tokens_requested"] for row in lab.rows())
    before_the_load = mock.truth()["requests"] - len(lab.rows())
    assert before_the_load == 3  # the pre-flight's, and two that tell the template


def test_lengths_that_nobody_can_measure_are_said_to_be_estimates(lab: Lab) -> None:
    """No usage, no /tokenize: the run goes on, and its verdict names it."""
    with start_mock(*FAST, "--fault", "no_usage=1", "--without", "/tokenize,/v1/tokenize") as mock:
        run = lab.locust(*headless(mock, "-u", "1", "--llm-requests", "4", "--llm-input-tokens", "64",
                                    "--llm-output-tokens", "4"), file=LLM)  # fmt: skip
        assert run.wait() == 0, run.output
    finding = "prompt lengths are estimates: a word is taken for a token: the server states no usage"
    assert finding in lab.summary()["verdict"]["findings"]
    assert finding in " ".join(run.output.split())


def test_tokenizer_that_is_not_there_ends_the_start(lab: Lab, mock: MockProcess) -> None:
    """Together with everything else that is wrong, before any request."""
    run = lab.locust(*headless(mock, "--llm-tokenizer", "/no/such/folder", "--llm-prompts", "no.jsonl"), file=LLM)
    assert run.wait() == 1
    assert "--llm-tokenizer: '/no/such/folder' is neither a file" in run.output
    assert mock.truth()["requests"] == 0


# ---- files ----


def test_workers_take_disjoint_parts_of_the_same_file(lab: Lab, mock: MockProcess) -> None:
    """40 requests, and those of the ramp, on two workers: the first rows, each of them once."""
    for folder in (lab.folder, lab.folder / "one", lab.folder / "two"):
        rows_of_growing_length(folder, 4 * ROWS)
    master, _ = on_workers(lab, mock, "-u", "4", "-r", "9", "--llm-rate", "40", "--llm-requests", str(ROWS),
                           "--llm-warmup", "0", "--llm-prompts", "prompts.jsonl")  # fmt: skip
    assert master.wait() == 0, master.output
    asked = Counter(int(row["input_tokens"]) - TEMPLATE_TOKENS for row in lab.rows())
    assert len({row["worker"] for row in lab.rows()}) == 2
    assert asked == Counter(range(1, len(lab.rows()) + 1))
    assert len(lab.rows()) >= ROWS
    assert lab.summary()["totals"]["prompts_repeated_ratio"] == 0


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (ROWS + 1, "prompts.jsonl: the file here has another content"),
        pytest.param(None, "prompts.jsonl", marks=pytest.mark.slow),
    ],
    ids=["another content", "no file"],
)
def test_worker_without_the_masters_file_is_named_and_nothing_is_sent(
    lab: Lab, mock: MockProcess, rows: int | None, told: str
) -> None:
    """Its name and what is wrong there; exit code 1."""
    rows_of_growing_length(lab.folder)
    rows_of_growing_length(lab.folder / "one")
    if rows is not None:
        rows_of_growing_length(lab.folder / "two", rows)
    master, workers = on_workers(lab, mock, "-u", "4", "-r", "9", "-t", "5", "--llm-prompts", "prompts.jsonl")
    assert master.wait() == 1, master.output
    refused = next(line for line in master.output.splitlines() if told in line)
    assert f"-{workers[1].process.pid}: " in refused
    assert f"-{workers[0].process.pid}: " not in refused
    assert mock.truth()["requests"] == 1  # the pre-flight's


@pytest.mark.slow
def test_worker_that_joins_with_another_file_is_sent_away(lab: Lab, mock: MockProcess) -> None:
    """The run goes on without it, and is not INVALID for it."""
    rows_of_growing_length(lab.folder)
    rows_of_growing_length(lab.folder / "one")
    rows_of_growing_length(lab.folder / "two", ROWS + 1)
    master = lab.locust("--master", "--master-bind-host", "127.0.0.1", "--master-bind-port", str(lab.port),
                         "--expect-workers", "1", *headless(mock, "-u", "2", "-r", "9", "-t", "9", "--llm-warmup", "0",
                         "--llm-think-time", "0.2", "--llm-prompts", "prompts.jsonl"), file=LLM)  # fmt: skip
    where = ("--worker", "--master-host", "127.0.0.1", "--master-port", str(lab.port))
    lab.started.append(Locust(lab.folder / "one", *where, file=LLM))
    master.wait_for("All users spawned")
    late = Locust(lab.folder / "two", *where, file=LLM)
    lab.started.append(late)
    assert late.wait(20) == 1, late.output
    assert "the master refuses this worker: prompts.jsonl: the file here has another content" in late.output
    assert master.wait() == 0, master.output
    assert f"-{late.process.pid} refused: prompts.jsonl" in master.output
    assert lab.summary()["verdict"]["validity"] != "INVALID"
    assert len(lab.summary()["workers"]) == 1


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"prompt":"one"}\n\n{"prompt":"two",}\n', "prompts.jsonl, line 3: not JSON"),
        ('{"prompt":"x"}\n'.encode("utf-16"), "prompts.jsonl is UTF-16, not UTF-8: iconv -f UTF-16"),
        (b'{"prompt":"Gr\xfc\xdfe"}\n', "prompts.jsonl, line 1, byte 13: not UTF-8"),
        (b'{"prompt":"bad \\ud83e end"}\n', "prompts.jsonl, line 1: not JSON"),
        (b"\n\n", "no usable prompt in it"),
    ],
    ids=["bad line", "utf-16", "latin-1", "lone surrogate", "nothing"],
)
def test_file_that_cannot_be_used_is_told_before_any_load(
    lab: Lab, mock: MockProcess, content: bytes, told: str
) -> None:
    """File, line and what would mend it."""
    (lab.folder / "prompts.jsonl").write_bytes(content)
    run = lab.locust(*headless(mock, "--llm-prompts", "prompts.jsonl"), file=LLM)
    assert run.wait() == 1
    assert told in run.output
    assert mock.truth()["requests"] == 0


def test_skipped_rows_of_a_file_are_a_finding(lab: Lab, mock: MockProcess) -> None:
    """Leniently read, or too long: how many, and why."""
    conversations = [
        {"conversations": []},
        {"conversations": [{"from": "human", "value": "Q"}, {"from": "gpt", "value": "A"}]},
        {"items": []},
    ]
    (lab.folder / "talks.json").write_text(json.dumps(conversations))
    run = lab.locust(*headless(mock, "-u", "1", "--llm-requests", "3", "--llm-prompts", "sharegpt:talks.json",
                                "--llm-output-tokens", "4"), file=LLM)  # fmt: skip
    assert run.wait() == 0, run.output
    told = [finding for finding in lab.summary()["verdict"]["findings"] if " skipped: " in finding]
    assert told == [
        "talks.json: 1 row skipped: no conversations (conversation 2)",
        "talks.json: 1 row skipped: no user turn (conversation 0)",
    ]


def test_trace_is_played_at_its_instants_and_lengths(lab: Lab, mock: MockProcess) -> None:
    """Milliseconds of the file, the lengths by the server's count, equal blocks an equal prefix."""
    requests = [(0, 700, [0, 1]), (200, 600, [0, 7]), (900, 30, [])]
    lines = [{"timestamp": at, "input_length": n, "output_length": 2, "hash_ids": ids} for at, n, ids in requests]
    (lab.folder / "trace.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run = lab.locust(*headless(mock, "--llm-shape", "trace-replay", "--llm-prompts", "mooncake:trace.jsonl"), file=LLM)
    assert run.wait() == 0, run.output
    rows = sorted(lab.rows(), key=lambda row: float(row["scheduled_epoch_s"]))
    first_s = float(rows[0]["scheduled_epoch_s"])
    instants = [round(float(row["scheduled_epoch_s"]) - first_s, 3) for row in rows]
    assert (instants, [row["input_tokens"] for row in rows]) == ([0.0, 0.2, 0.9], ["700", "600", "30"])


# ---- prefix cache ----


def test_prompts_that_repeat_are_told_with_the_cached_share(lab: Lab) -> None:
    """4 prompts of 1000 tokens, 100 requests: 96 repeated, 95.2 % of the prompt tokens from the cache: SUSPECT."""
    lines = [" ".join([name, *["word"] * (999 - TEMPLATE_TOKENS)]) for name in ("a", "b", "c", "d")]
    (lab.folder / "four.txt").write_text("\n".join(lines))
    with start_mock(*CACHING) as mock:
        run = lab.locust(*headless(mock, "-u", "1", "--llm-requests", "100", "--llm-warmup", "0",
                                    "--llm-prompts", "four.txt", "--llm-output-tokens", "2"), file=LLM)  # fmt: skip
        assert run.wait(60) == 0, run.output
    totals = lab.summary()["totals"]
    assert (totals["input_tokens"], totals["cached_tokens"]) == (100_000, 95_232)
    assert totals["cached_ratio"] == pytest.approx(0.952, abs=0.001)
    assert totals["prompts_repeated_ratio"] == pytest.approx(0.96)
    reason = "96% of prompts repeated (> 5%) while a prefix cache is on: it answered 95.2% of the prompt tokens"
    assert any(reason in told for told in lab.summary()["verdict"]["reasons"])


@pytest.mark.slow
@pytest.mark.parametrize("flush", [True, False], ids=["flushed", "kept"])
def test_cache_is_emptied_before_each_stage(lab: Lab, flush: bool) -> None:
    """One text for all: the first request of the second stage finds it in the cache only where nobody emptied it."""
    with start_mock(*CACHING) as mock:
        run = lab.locust(*headless(mock, "--llm-shape", "concurrency-steps", "--llm-levels", "1,2", "--llm-requests",
                                    "2", "--llm-warmup", "0", "--llm-prompts", f"text:{'word ' * 100}",
                                    "--llm-output-tokens", "2", *(["--llm-flush-cache"] if flush else [])),
                          file=LLM)  # fmt: skip
        assert run.wait(60) == 0, run.output
        asked = mock.truth()["paths"].get("/flush_cache", 0)
    second = [row for row in lab.rows() if row["stage"] == "users-2"]
    cached = {int(row["cached_tokens"] or 0) for row in second[:1]}
    assert (asked, cached == {0}) == ((2, True) if flush else (0, False))


def test_server_without_a_flush_is_a_finding(lab: Lab) -> None:
    """The load goes on; what may be wrong with its numbers is said."""
    with start_mock(*FAST, "--without", "/flush_cache,/reset_prefix_cache") as mock:
        run = lab.locust(*headless(mock, "--llm-shape", "baseline", "--llm-requests", "2", "--llm-output-tokens", "2",
                                    "--llm-input-tokens", "16", "--llm-flush-cache"), file=LLM)  # fmt: skip
        assert run.wait() == 0, run.output
    assert any("its prefix cache was not emptied" in told for told in lab.summary()["verdict"]["findings"])
