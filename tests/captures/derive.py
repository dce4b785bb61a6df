"""Work out, from the bytes of each capture, what its server meant: the first draft of ``expected.json``.

Each capture is one request, to a real server, proxy or mock: ``NAME.sse`` is the reply's body with its
transfer coding removed, ``NAME.request.json`` what was asked, ``ends.json`` the status, the end and
[ms, offset, length] of each HTTP chunk. This script uses ``json.loads`` and nothing of the package, so
that the two readings are independent. A draft is then read by eye against the stream; what the script
cannot see stands in ``BY_HAND`` with its reason.
Run ``python tests/captures/derive.py`` to write the file again, and read the difference.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

HERE = Path(__file__).parent
DIALECTS = {
    "/v1/chat/completions": "openai-chat",
    "/v1/completions": "openai-completions",
    "/invocations": "openai-completions",
    "/v1/responses": "openai-responses",
    "/v1/messages": "anthropic-messages",
    "/generate": "sglang-generate",
    "/api/generate": "ollama-chat",
}
BY_HAND = {
    # llama-cpp-python: a second request cut it; [DONE] came, no finish reason did, nor a last HTTP chunk.
    "llamacpppy_interrupted": {"outcome": "truncated"},
    # The mock's index counts tokens, so that it "sent" 24 choices to a request for two: the first token is
    # choice 0, the 23 beyond n are one choice.
    "guidemock_compl_n2": {"text": "Score"},
    # A prompt list is several requests in one: two usages, one a prompt, in their finish events (24 + 24).
    "llamaserver_compl_batchprompt": {"output_tokens": 48},
    # LiteLLM's usage is that of one of its two choices: 28 are stated, and stated is what counts.
    "litellm_chat_n2": {"output_tokens": 28},
}


def events_of(body: bytes) -> list[dict]:
    """Return the JSON objects of an SSE or NDJSON body."""
    found = []
    for line in body.decode().replace("\r\n", "\n").split("\n"):
        text = line[5:].strip() if line.startswith("data:") else line.strip()
        if text.startswith("{"):
            found.append(json.loads(text))
    return found


def openai(events: list[dict]) -> dict:
    """Read chat and completions: text of choice 0, arrivals of all, the last counts, the first finish."""
    texts, arrivals, counts, inputs, finish, running = {}, 0, None, None, {}, {}
    for event in events:
        for choice in event.get("choices") or []:
            delta = choice.get("delta") or choice.get("message") or {}
            text = (delta.get("content") or "") + (choice.get("text") or "")
            place = choice.get("index", 0)
            usage = event.get("usage") or {}
            now = usage.get("completion_tokens")
            grew = now is not None and running.get(place) is not None and now > running[place]
            arrivals += bool(text or delta.get("reasoning_content") or grew)
            running[place] = now if now is not None else running.get(place)
            texts[place] = texts.get(place, "") + text
            if choice.get("finish_reason"):
                finish.setdefault(place, choice["finish_reason"])
        usage = event.get("usage") or {}
        counts = usage.get("completion_tokens") or counts
        inputs = usage.get("prompt_tokens") or inputs
    first = "".join(texts.values()) if len(texts) > 2 else texts.get(0, "")
    return {
        "text": first,
        "arrivals": arrivals,
        "output_tokens": counts,
        "input_tokens": inputs,
        "finish_reason": finish.get(0) or next(iter(finish.values()), None),
    }


def generate(events: list[dict]) -> dict:
    """Read SGLang's cumulative texts; n > 1 by index, counts summed over the choices."""
    texts, counts, arrivals, inputs, finish = {}, {}, 0, None, {}
    for event in events:
        meta, place = event.get("meta_info") or {}, event.get("index", 0)
        text, count = event.get("text", ""), meta.get("completion_tokens", 0)
        arrivals += len(text) > len(texts.get(place, "")) or (place in counts and count > counts[place])
        texts[place], counts[place] = text, count
        inputs = meta.get("prompt_tokens") or inputs
        if meta.get("finish_reason"):
            finish.setdefault(place, meta["finish_reason"]["type"])
    return {
        "text": texts.get(0, ""),
        "arrivals": arrivals,
        "output_tokens": sum(counts.values()) or None,
        "input_tokens": inputs,
        "finish_reason": finish.get(0),
    }


def typed(events: list[dict]) -> dict:
    """Read Anthropic messages and Responses by their event types."""
    read = {"text": "", "arrivals": 0, "output_tokens": None, "input_tokens": None, "finish_reason": None}
    for event in events:
        kind = event.get("type", "")
        if kind in ("content_block_delta", "response.output_text.delta"):
            delta = event["delta"]["text"] if isinstance(event["delta"], dict) else event["delta"]
            read["text"] += delta
            read["arrivals"] += delta != ""
        usage = event.get("usage") or (event.get("message") or event.get("response") or {}).get("usage") or {}
        read["input_tokens"] = usage.get("input_tokens") or read["input_tokens"]
        read["output_tokens"] = usage.get("output_tokens") or read["output_tokens"]
        if kind == "message_delta":
            read["finish_reason"] = event["delta"]["stop_reason"]
        if kind in ("response.completed", "response.incomplete"):
            cut = (event["response"].get("incomplete_details") or {}).get("reason") == "max_output_tokens"
            read["finish_reason"] = "length" if cut else event["response"]["status"]
    return read


def ollama(events: list[dict]) -> dict:
    """Read the lines of /api/generate."""
    texts = [event.get("response", "") for event in events]
    last = events[-1]
    return {
        "text": "".join(texts),
        "arrivals": sum(text != "" for text in texts),
        "output_tokens": last.get("eval_count"),
        "input_tokens": last.get("prompt_eval_count"),
        "finish_reason": last.get("done_reason"),
    }


def message_of(event: dict) -> str:
    """Find the message of an error object."""
    error = event.get("error")
    if isinstance(error, dict):
        return str(error.get("message"))
    detail = event.get("detail")
    if isinstance(detail, list):
        return "; ".join(item["msg"] for item in detail)
    return str(error if event.get("object") != "error" and isinstance(error, str) else event.get("message") or detail)


def outcome_of(read: dict, end: dict, *, stream: bool, demanded: int | None, body: bytes) -> str:
    """Return the first outcome that applies, by the order of the metrics page."""
    done = b"[DONE]" in body or b"message_stop" in body or b'"done":true' in body or not stream
    some = read["arrivals"] or read["output_tokens"] or (read["text"] and not stream)
    rules = [
        ("unfinished", end["end"] == "cancelled-by-client" and end["status"] == 200),
        ("rejected", end["status"] in (429, 503)),
        ("http_error", end["status"] >= 300),
        ("not_streamed", stream and "json" in end["content_type"] and "ndjson" not in end["content_type"]),
        ("server_error", read["error"] is not None),
        ("aborted", read["finish_reason"] in ("abort", "error")),
        ("cut", end["end"] == "eof" and not done),
        ("empty", not some and (done or read["finish_reason"] is not None)),
        ("truncated", read["finish_reason"] is None and b'"done":true' not in body),
        ("truncated", demanded is not None and (read["output_tokens"] or demanded) < demanded),
    ]
    return next((name for name, applies in rules if applies), "ok")


def expectation(name: str, end: dict) -> dict:
    """Return the expected reading and outcome of one capture."""
    request = json.loads((HERE / f"{name}.request.json").read_text())
    asked = request["body"] if isinstance(request["body"], dict) else {}
    body = (HERE / f"{name}.sse").read_bytes()
    dialect = DIALECTS[request["path"]]
    events = events_of(body)
    readers = {"openai-chat": openai, "openai-completions": openai, "sglang-generate": generate, "ollama-chat": ollama}
    read = readers.get(dialect, typed)(events if end["status"] == 200 else [])
    faults = [event for event in events if event.get("error") or event.get("object") == "error"]
    read["error"] = message_of(faults[0]) if faults and end["status"] == 200 else None
    prompt = asked.get("prompt")
    prompts = len(prompt) if isinstance(prompt, list) and isinstance(prompt[0], (str, list)) else 1
    stream = bool(asked.get("stream"))
    demanded = asked.get("max_tokens") if asked.get("ignore_eos") else None
    hand = BY_HAND.get(name, {})
    outcome = outcome_of(read, end, stream=stream, demanded=demanded, body=body)
    text = read.pop("text")
    text = hand.get("text", text)
    n = asked.get("n") or (asked.get("sampling_params") or {}).get("n") or 1
    expected = {
        "dialect": dialect,
        "stream": stream,
        "n": n * prompts,
        "demanded_tokens": demanded,
        "outcome": outcome,
        **read,
        "http_message": message_of(events[0]) if events and end["status"] != 200 else None,
        "text_start": text[:24],
        "text_length": len(text),
        "text_sha256": hashlib.sha256(text.encode()).hexdigest()[:16],
    }
    if not stream:
        expected["arrivals"] = 0
    return {**expected, **{key: value for key, value in hand.items() if key != "text"}}


def main() -> None:
    """Write ``expected.json``, a line a capture."""
    ends = json.loads((HERE / "ends.json").read_text())
    lines = [f"{json.dumps(name)}: {json.dumps(expectation(name, ends[name]))}" for name in sorted(ends)]
    (HERE / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
