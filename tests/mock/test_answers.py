"""What the server answers: streams and documents of every API, its truth, its other paths, its two profiles."""

from __future__ import annotations

from contextlib import ExitStack
from statistics import fmean

import pytest

from benchmarks.rig.mock_process import MockProcess, start_mock
from llm_locust.mock.tokens import TEXTS, text_number
from tests.mock.client import FAST, Client, ask, chat

MS = 1_000_000


def test_chat_streams_role_tokens_finish_usage_and_done(mock: MockProcess) -> None:
    """The whole event sequence of a chat stream, usage counted by the toy tokenizer (3 words + 4 for the template)."""
    answer = ask(mock.port, "/v1/chat/completions", chat("one two three", max_tokens=3))
    role, *tokens, finish, usage = answer.objects
    assert (answer.status, answer.ended, answer.events[-1]) == (200, "last-chunk", "[DONE]")
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert role["choices"] == [
        {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    ]
    assert [len(token["choices"][0]["delta"]["content"].split()) for token in tokens] == [1, 1, 1]
    assert finish["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "length"}]
    assert usage["choices"] == []
    assert usage["usage"] == {
        "prompt_tokens": 7,
        "completion_tokens": 3,
        "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def test_chat_leaves_usage_out_when_not_asked(mock: MockProcess) -> None:
    answer = ask(mock.port, "/v1/chat/completions", chat(max_tokens=2, stream_options=None))
    assert not any("usage" in event for event in answer.objects)


def test_chat_counts_on_every_token_when_asked(mock: MockProcess) -> None:
    options = {"include_usage": True, "continuous_usage_stats": True}
    answer = ask(mock.port, "/v1/chat/completions", chat(max_tokens=4, stream_options=options, n=2))
    counts = [o["usage"]["completion_tokens"] for o in answer.objects if "usage" in o]
    assert counts == [1, 2, 3, 4, 5, 6, 7, 8, 8]


def test_no_token_is_lost_when_the_server_cannot_keep_pace() -> None:
    """A gap of 1 us: many tokens are due at once; each still has its own event, the end comes once."""
    with start_mock("--profile", "fast", "--ttft-ms", "1", "--itl-ms", "0.001") as mock:
        answer = ask(mock.port, "/v1/chat/completions", chat(max_tokens=300, ignore_eos=True))
        told = mock.lines()[0]
    tokens = [o["choices"][0]["delta"]["content"] for o in answer.objects if o["choices"] and o["choices"][0]["delta"]]
    ends = [o for o in answer.objects if o["choices"] and o["choices"][0]["finish_reason"]]
    assert (len(tokens) - 1, len(ends), len(told["token_send_ns"])) == (300, 1, 300)
    assert "".join(tokens).split()[:60] == [TEXTS[text_number(1, 0, position)].strip() for position in range(60)]
    assert answer.objects[-1]["usage"]["completion_tokens"] == 300


def test_choices_are_apart_when_n_is_two(mock: MockProcess) -> None:
    answer = ask(mock.port, "/v1/chat/completions", chat(max_tokens=3, n=2))
    texts = {0: "", 1: ""}
    for event in answer.objects:
        for choice in event["choices"]:
            texts[choice["index"]] += choice["delta"].get("content", "")
    assert [len(text.split()) for text in texts.values()] == [3, 3]
    assert texts[0] != texts[1]
    assert answer.objects[-1]["usage"]["completion_tokens"] == 6


def test_document_is_whole_when_no_stream_is_asked(mock: MockProcess) -> None:
    body = {"messages": [{"role": "user", "content": "hi"}], "max_completion_tokens": 4}
    answer = ask(mock.port, "/v1/chat/completions", body)
    assert answer.headers["content-type"] == "application/json"
    assert len(answer.json["choices"][0]["message"]["content"].split()) == 4
    assert answer.json["usage"]["completion_tokens"] == 4
    assert answer.json["choices"][0]["finish_reason"] == "length"


def test_completions_take_text_and_token_ids(mock: MockProcess) -> None:
    for prompt in ("a b c d e", [11, 12, 13, 14, 15]):
        body = {"prompt": prompt, "max_tokens": 2, "stream": True, "stream_options": {"include_usage": True}}
        answer = ask(mock.port, "/v1/completions", body)
        assert answer.objects[-1]["usage"]["prompt_tokens"] == 5
        assert "".join(o["choices"][0]["text"] for o in answer.objects[:-1]).count(" ") == 2


def test_generate_is_cumulative(mock: MockProcess) -> None:
    """SGLang's own API: text and ids grow, the last event has the finish."""
    body = {"text": "a b", "stream": True, "sampling_params": {"max_new_tokens": 3, "ignore_eos": True}}
    answer = ask(mock.port, "/generate", body)
    events = answer.objects
    assert [len(event["text"].split()) for event in events] == [1, 2, 3]
    assert [len(event["output_ids"]) for event in events] == [1, 2, 3]
    assert events[2]["text"].startswith(events[1]["text"])
    assert [event["meta_info"]["finish_reason"] for event in events] == [None, None, {"type": "length", "length": 3}]
    assert events[2]["meta_info"]["completion_tokens"] == 3
    assert answer.events[-1] == "[DONE]"


def test_truth_tells_each_send_between_server_and_client_clock(mock: MockProcess) -> None:
    """The stamp in each chunk is the truth's send instant, and the client reads it after that."""
    answer = ask(mock.port, "/v1/chat/completions", chat(max_tokens=20), {"X-Request-Id": "truth-1"})
    told = next(line for line in mock.lines() if line["request_id"] == "truth-1")
    stamps = [event["t"] for event in answer.objects if "t" in event]
    assert told["token_send_ns"] == stamps
    assert len(stamps) == 20
    last_read_ns = answer.reads[-1][0]
    assert told["arrival_ns"] < told["head_ns"] < stamps[0] < stamps[-1] <= told["end_ns"]
    assert stamps[-1] < last_read_ns
    due = [told["arrival_ns"] + 10 * MS + 2 * MS * position for position in range(20)]
    assert all(sent >= at for sent, at in zip(stamps, due, strict=True))
    assert (told["outcome"], told["completed"], told["output_tokens"]) == ("ok", True, 20)
    assert told["finish_reason"] == "length"


def test_truth_counts_the_bytes_on_the_wire(mock: MockProcess) -> None:
    answer = ask(mock.port, "/v1/chat/completions", chat(max_tokens=5), {"X-Request-Id": "bytes"})
    told = next(line for line in mock.lines() if line["request_id"] == "bytes")
    assert told["sent_bytes"] == sum(len(data) for _, data in answer.reads)


def test_tokenize_speaks_three_spellings(mock: MockProcess) -> None:
    words = "one two  three\nfour"
    openai = ask(mock.port, "/tokenize", {"model": "mock", "prompt": words}).json
    messages = ask(mock.port, "/tokenize", {"messages": [{"role": "user", "content": words}]}).json
    llama = ask(mock.port, "/tokenize", {"content": words}).json
    assert (openai["count"], len(openai["tokens"]), openai["max_model_len"]) == (4, 4, 131072)
    assert messages["count"] == len(messages["tokens"]) == 8
    assert llama == {"tokens": openai["tokens"]}


def test_other_paths_answer(mock: MockProcess) -> None:
    assert ask(mock.port, "/v1/models").json["data"][0]["id"] == "mock"
    assert ask(mock.port, "/get_server_info").json["profile"] == "fast"
    for path in ("/flush_cache", "/start_profile", "/stop_profile"):
        assert ask(mock.port, path, {}).status == 200
    assert mock.truth()["paths"]["/flush_cache"] == 1


def test_metrics_count_what_was_generated_under_both_names() -> None:
    """Counters and histograms agree with the truth; vLLM's and SGLang's names tell the same."""
    with start_mock(*FAST) as mock:
        for tokens in (5, 7):
            ask(mock.port, "/v1/chat/completions", chat("a b", max_tokens=tokens))
        page = ask(mock.port, "/metrics").body.decode()
    values = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    for labels in ('sglang:{}{{engine_type="unified",model_name="mock"}}', 'vllm:{}{{engine="0",model_name="mock"}}'):
        assert values[labels.format("generation_tokens_total")] == "12"
        assert values[labels.format("prompt_tokens_total")] == "12"
        assert values[labels.format("time_to_first_token_seconds_count")] == "2"
        assert values[labels.format("inter_token_latency_seconds_count")] == "10"
        assert 0.020 <= float(values[labels.format("time_to_first_token_seconds_sum")]) < 1
    assert values['vllm:request_success_total{finished_reason="length",engine="0",model_name="mock"}'] == "2"
    assert values['sglang:num_running_reqs{engine_type="unified",model_name="mock"}'] == "0"


def test_engine_profile_serves_and_caches_prefixes() -> None:
    """The default profile, 100 times faster: the second identical prompt hits the cache until it is flushed."""
    with start_mock("--time-scale", "100") as mock:
        prompt = " ".join(f"w{number}" for number in range(320))
        cached = []
        for flush in (False, False, True):
            if flush:
                ask(mock.port, "/flush_cache", {})
            answer = ask(mock.port, "/v1/chat/completions", chat(prompt, max_tokens=3))
            cached.append(answer.objects[-1]["usage"]["prompt_tokens_details"]["cached_tokens"])
        assert cached == [0, 320, 0]


@pytest.mark.parametrize(("users", "ttft_ms", "tpot_ms"), [(8, 1200, 85), (32, 3200, 115)])
def test_engine_profile_keeps_its_table_over_real_sockets(users: int, ttft_ms: float, tpot_ms: float) -> None:
    """Closed loop (each client pipelines three requests, served one by one), 20 times faster, by what was sent."""
    scale = 20
    prompts = [" ".join(f"u{user}r{turn}w{word}" for word in range(1020)) for user in range(users) for turn in range(3)]
    with start_mock("--time-scale", str(scale)) as mock, ExitStack() as stack:
        clients = [stack.enter_context(Client(mock.port)) for _ in range(users)]
        for number, prompt in enumerate(prompts):
            clients[number % users].send("/v1/chat/completions", chat(prompt, max_tokens=60, ignore_eos=True))
        for client in clients * 3:
            assert client.read().objects[-1]["usage"]["prompt_tokens"] == 1024
        lines = mock.lines()
    assert len(lines) == 3 * users
    sent = [line["token_send_ns"] for line in lines]
    ttft = fmean(tokens[0] - line["arrival_ns"] for tokens, line in zip(sent, lines, strict=True))
    tpot = fmean((tokens[-1] - tokens[0]) / 59 for tokens in sent)
    assert tpot / MS * scale == pytest.approx(tpot_ms, rel=0.15)
    assert ttft / MS * scale == pytest.approx(ttft_ms, rel=0.15)
