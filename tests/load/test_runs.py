"""Whole runs by real processes: what a stage demands, a batch, several choices, answers without a stream."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rig.locusts import ROOT, Lab
from benchmarks.rig.mock_process import MockProcess, start_mock
from llm_locust.protocol import dialect_names

LLM = ROOT / "locustfiles" / "llm.py"
SHORT = ("--llm-input-tokens", "16", "--llm-output-tokens", "12", "--llm-model", "m")
OBJECTIVES = """
from llm_locust import LLMUser, StagedShape

class User(LLMUser):
    name = "asked"
    slo = "e2e p99 < 50s"

class Day(StagedShape):
    def stages(self, settings):
        return [
            self.stage(settings, "plain", 4, requests=8),
            self.stage(settings, "easy", 4, requests=8, slo="ttft p99 < 20s; goodput(ttft < 20s) > 99%"),
            self.stage(settings, "hard", 4, requests=8, slo="goodput(ttft < 1us) > 1%"),
        ]
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A folder, and the processes of one test."""
    made = Lab(tmp_path)
    yield made
    made.end()


@pytest.fixture
def mock() -> Iterator[MockProcess]:
    """A quick server that speaks everything."""
    with start_mock("--profile", "fast", "--ttft-ms", "30", "--itl-ms", "10") as running:
        yield running


def run(lab: Lab, server: MockProcess, *args: str, file: Path = LLM, workers: int = 0, code: int = 0) -> str:
    """Run headless to the end; return what was printed."""
    binding = (*lab.binding, "--processes", str(workers)) if workers else ()
    process = lab.locust("--headless", "--host", server.url, *SHORT, *binding, *args, file=file)
    assert process.wait(90) == code, process.output
    return process.output


def whole_rows(lab: Lab) -> dict[str, dict[str, Any]]:
    """Each stage's metrics over all names."""
    return {row["stage"]: row["metrics"] for row in lab.summary()["stages"] if row["name"] == "all"}


def test_each_stage_is_judged_by_its_own_objectives(lab: Lab, mock: MockProcess) -> None:
    """Workers judge each request by its stage, a missed one gives exit code 3; without its own a class's holds."""
    file = lab.folder / "day.py"
    file.write_text(OBJECTIVES)
    run(lab, mock, "--llm-warmup", "0", file=file, workers=2, code=3)
    good = {(row["stage"], row["slo_good"]) for row in lab.rows()}
    assert good == {("plain", ""), ("easy", "true"), ("hard", "false")}
    told = {(clause["stage"], clause["clause"]): clause["passed"] for clause in lab.summary()["slo"]}
    assert told == {
        ("plain", "User: e2e p99 < 50s"): True,
        ("easy", "ttft p99 < 20s"): True,
        ("easy", "goodput(ttft < 20s) > 99%"): True,
        ("hard", "goodput(ttft < 1us) > 1%"): False,
    }
    assert whole_rows(lab)["hard"]["slo_judged"] == 8


def test_wrong_objectives_of_a_stage_end_the_start(lab: Lab, mock: MockProcess) -> None:
    """With a pointer to the wrong place, before any request."""
    file = lab.folder / "day.py"
    file.write_text(OBJECTIVES.replace("ttft p99", "tftt p99"))
    output = run(lab, mock, file=file, code=1)
    assert "slo of stage easy: unknown metric tftt; did you mean ttft?" in output
    assert mock.truth()["requests"] == 0


def test_batch_tells_its_latency_and_is_not_judged_by_its_length(lab: Lab, mock: MockProcess) -> None:
    """7 × 12 tokens at once: the window is the batch, its rates are the batch's."""
    output = run(lab, mock, "--llm-shape", "fixed-batch", "--llm-levels", "7", workers=2)
    row = whole_rows(lab)["batch-7"]
    took_s = row["window_s"]
    least_s = (30 + 11 * 10) / 1000
    assert least_s <= took_s < least_s + 0.5
    assert row["output_tok_per_s"] == pytest.approx(7 * 12 / took_s, rel=0.01)
    assert row["total_tok_per_s"] == pytest.approx(7 * (12 + row["input_tokens_mean"]) / took_s, rel=0.01)
    told = re.search(r"batch of 7: ([0-9.]+) s from its release", output)
    assert told is not None
    assert float(told[1]) == pytest.approx(took_s, abs=0.002)
    assert "× E2E p50" not in output


CHOICES = """
from llm_locust import OpenAIChatUser, OpenAICompletionsUser, SGLangGenerateUser

class Chat(OpenAIChatUser): pass
class Completions(OpenAICompletionsUser): pass
class Generate(SGLangGenerateUser): pass
"""
ALL = """
from llm_locust import AnthropicMessagesUser, OllamaUser, OpenAIResponsesUser, TGIUser

class Messages(AnthropicMessagesUser): pass
class Ollama(OllamaUser): pass
class Responses(OpenAIResponsesUser): pass
class TGI(TGIUser): pass
"""


@pytest.mark.parametrize("stream", ["--llm-stream", "--no-llm-stream"])
def test_choices_are_kept_apart_and_their_tokens_added(lab: Lab, mock: MockProcess, stream: str) -> None:
    """Two choices of 12 tokens, by the run's extra body: usage is 24, none is short, gaps are those of one choice."""
    file = lab.folder / "choices.py"
    file.write_text(CHOICES)
    two = '{"n": 2, "sampling_params": {"n": 2}}'
    few = ("-u", "3", "-r", "100", "--llm-requests", "9", "--llm-warmup", "0")
    run(lab, mock, "--llm-extra-body", two, stream, *few, file=file)
    rows = lab.rows()
    assert {row["dialect"] for row in rows} == {"openai-chat", "openai-completions", "sglang-generate"}
    assert {(row["outcome"], row["output_tokens"], row["output_tokens_requested"]) for row in rows} == {
        ("ok", "24", "24")
    }
    row = whole_rows(lab)["run"]
    assert row["short_outputs"] == 0
    if stream == "--llm-stream":
        assert {int(line["chunks"]) for line in rows} == {24}
        assert row["icl_ms_p50"] == pytest.approx(10, abs=3)


def test_answers_without_a_stream_have_e2e_and_tokens(lab: Lab, mock: MockProcess) -> None:
    """Every dialect: no TTFT, no TPOT, no gaps; they are absent, not 0."""
    file = lab.folder / "all.py"
    file.write_text(CHOICES + ALL)
    run(lab, mock, "--no-llm-stream", "-u", "7", "-r", "100", "--llm-requests", "21", "--llm-warmup", "0", file=file)
    rows = lab.rows()
    assert {row["dialect"] for row in rows} == set(dialect_names())
    absent = ("ttft_ms", "ttfa_ms", "tpot_ms", "second_token_ms", "icl_max_ms")
    assert {row[column] for row in rows for column in absent} == {""}
    assert {(row["outcome"], row["output_tokens"], row["output_tokens_source"]) for row in rows} == {
        ("ok", "12", "usage")
    }
    assert all(float(row["e2e_ms"]) >= 30 + 11 * 10 - 1 for row in rows)
    metrics = whole_rows(lab)["run"]
    assert (metrics["ttft_ms_count"], metrics["ttft_ms_p99"], metrics["e2e_ms_count"]) == (0, None, 21)
    assert sum(row["phase"] == "steady" for row in rows) == 21  # a user may have asked before all were there


IDS = """
from llm_locust import OpenAICompletionsUser, SGLangGenerateUser

class Completions(OpenAICompletionsUser): pass
class Generate(SGLangGenerateUser): pass
"""


def test_token_ids_have_the_length_asked_for_without_a_measurement(lab: Lab) -> None:
    """A server without /tokenize: lengths are exact, no calibration is made; a chat API is refused at start."""
    file = lab.folder / "ids.py"
    file.write_text(IDS)
    with start_mock("--profile", "fast", "--ttft-ms", "5", "--itl-ms", "5", "--without", "/tokenize") as server:
        few = ("-u", "2", "-r", "100", "--llm-requests", "8", "--llm-warmup", "0", "--llm-input-tokens", "50-90")
        run(lab, server, "--llm-prompts", "token-ids", *few, file=file)
        rows = lab.rows()
        assert {row["dialect"] for row in rows} == {"openai-completions", "sglang-generate"}
        assert all(row["input_tokens"] == row["input_tokens_requested"] and row["outcome"] == "ok" for row in rows)
        assert len({row["input_tokens"] for row in rows}) > 3
        before = server.truth()["requests"]
        assert before == len(rows) + 2  # the pre-flight's
        output = run(lab, server, "--llm-prompts", "token-ids", code=1)
        assert "--llm-prompts token-ids: openai-chat takes text or messages, not token ids" in output
        assert server.truth()["requests"] == before
