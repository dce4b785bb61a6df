"""What do load generators say about streams that are not what they seem?

    python -m benchmarks.truth [--tools llm-locust,vllm] [--cases A02,A26]

The embedded server plays one fault script to each tool: one stream, two requests one after the other (one where a
script is long). The right answers are those of the tests' own table of cases. A cell is right where
success or failure is, the tokens of the successes are (where the server told their number), and the time to first
token is, within 20 ms of what the server says it sent. A tool that reports nothing is right about a failure: it
claims no success. Who is wrong is asked once more, and the better answer kept.

No other benchmark takes anything from the tests: the cases are theirs, and a copy of the right answers would go astray.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.lab import ROOT, raise_priority, save, table
from benchmarks.peers import PEERS, ours
from benchmarks.peers.compare import ToolFailedError, ask, read
from benchmarks.peers.environments import add_install_option, bin_of, install_all
from benchmarks.peers.peer import Asked, Peer, make_tokenizer
from benchmarks.rig.mock_process import start_mock
from tests.cases.expected import EXPECTED, Expected
from tests.cases.streams import STREAMS

TELLING = {
    "A02/V1": "HTTP 200 and [DONE], no token",
    "A02/V3": "one token without text, by usage",
    "A03/V1": "reasoning, then the answer",
    "A03/V2": "reasoning under its other name",
    "A11/": "no finish reason, no [DONE], clean end",
    "A12/V1": "closed in mid-stream",
    "A14/V1": "comments before the first token",
    "A14/V3": "empty data lines",
    "A15/V1": "no space after `data:`",
    "A16/V1": "CRLF, an event over several lines",
    "A18/V2": "a character cut into segments",
    "A26/V1": "an error event instead of tokens",
    "A26/V2": "an error event after two tokens",
    "A28/V1": "finish reason `abort`",
    "A29/V1": "a tool call",
    "A31/V2": "eight tokens in an event",
    "A39/": "one token, then only keep-alives",
    "A40/V3": "HTTP 200 and a login page",
}
"""Cases by the beginning of their name, and what each is."""
STALLED = Expected(outcome="timeout_stall", source=None)
USUAL = '{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1764500000,"model":"deepseek-r1",'
LONG_MS = 5000
RESULTS = ROOT / "benchmarks" / "results" / "truth.json"
TOLERANCE_MS = 20.0
ASKED_TOKENS = 8
LIMIT_S = 75.0
TOOLS: dict[str, Peer] = {"llm-locust": ours.PLAIN, **PEERS}


@dataclass(frozen=True, slots=True)
class Answer:
    """What one tool said about one case: ``ok`` is None where it reported nothing.

    ``played`` counts how often the server played the script: a tool that never asked is not right about anything.
    """

    case: str
    tool: str
    requests: int
    played: int
    sent_ttft_ms: float | None = None
    ok: int | None = None
    tokens: float | None = None
    ttft_ms: float | None = None
    note: str = ""

    def right(self, expected: Expected) -> bool:
        """Judge it."""
        if not self.played:
            return False
        if expected.outcome != "ok":
            return not self.ok
        if self.ok is None or self.ok < self.requests:  # one of the tools asks for more than it was told to
            return False
        if expected.source == "usage" and self.tokens != self.ok * (expected.output_tokens or 0):
            return False
        if self.sent_ttft_ms is None:
            return self.ttft_ms is None
        return self.ttft_ms is not None and abs(self.ttft_ms - self.sent_ttft_ms) <= TOLERANCE_MS

    def cell(self, expected: Expected) -> str:
        """Show it; wrong ones are bold."""
        if self.ok is None:
            return "no report" if self.right(expected) else f"**no report, {self.played} asked**"
        told = "failed"
        if self.ok:
            count = "ok" if self.ok >= self.requests else f"{self.ok} of {self.requests} ok"
            tokens = "– tok" if self.tokens is None else f"{self.tokens / self.ok:g} tok"
            told = f"{count}, {tokens}, " + ("–" if self.ttft_ms is None else f"{self.ttft_ms:.0f} ms")
        return told if self.right(expected) else f"**{told}**"


def main() -> int:
    """Play, ask, print, save; 1 if the product is wrong about any case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_install_option(parser)
    parser.add_argument("--tools", default=",".join(TOOLS))
    parser.add_argument("--cases", default=",".join(TELLING))
    given = parser.parse_args()
    cases = [name for wanted in given.cases.split(",") for name in STREAMS if name.startswith(wanted) and _told(name)]
    if unknown := set(given.tools.split(",")) - set(TOOLS):
        parser.error(f"--tools: no {', '.join(sorted(unknown))}; there are {', '.join(TOOLS)}")
    tools = [TOOLS[name] for name in given.tools.split(",")]
    folder = given.install.resolve()
    missing = install_all(folder, tools)
    answers: list[Answer] = []
    with tempfile.TemporaryDirectory() as cache:
        tokenizer = make_tokenizer(Path(cache))
        for peer in tools:
            if peer.name not in missing:
                answers += ask_all(peer, cases, bin_of(folder, peer) if peer.environment else Path(), tokenizer)
    answers = [*kept(answers), *answers]
    cases = [name for name in STREAMS if any(one.case == name for one in answers)]
    results = [{**asdict(one), "right": one.right(expected_of(one.case))} for one in answers]
    save("truth", {"answers": results}, *make_tables(cases, answers))
    return int(any(not one.right(expected_of(one.case)) for one in answers if one.tool == ours.PLAIN.name))


def kept(fresh: list[Answer]) -> list[Answer]:
    """Return the answers of an earlier run that this one did not ask for again: all of them take half an hour."""
    if not RESULTS.exists():
        return []
    asked = {(one.case, one.tool) for one in fresh}
    told = [{key: value for key, value in one.items() if key != "right"}
            for one in json.loads(RESULTS.read_text())["answers"]]  # fmt: skip
    return [Answer(**one) for one in told if (one["case"], one["tool"]) not in asked]


def expected_of(case: str) -> Expected:
    """Return the right answer of a case."""
    return EXPECTED.get(case, STALLED)


def _told(case: str) -> str:
    return next((what for beginning, what in TELLING.items() if case.startswith(beginning)), "")


def ask_all(peer: Peer, cases: list[str], programs: Path, tokenizer: Path) -> list[Answer]:
    """Ask one tool about every case."""
    answers = []
    for case in cases:
        answer = ask_one(peer, programs, case, tokenizer)
        if not answer.right(expected_of(case)):  # a busy machine is not the tool's fault
            again = ask_one(peer, programs, case, tokenizer)
            answer = again if again.right(expected_of(case)) else answer
        answers.append(answer)
        verdict = "right" if answers[-1].right(expected_of(case)) else "wrong"
        print(f"{peer.name}: {case}: {answers[-1].cell(expected_of(case))}: {verdict} {answers[-1].note}", flush=True)
    return answers


def ask_one(peer: Peer, programs: Path, case: str, tokenizer: Path) -> Answer:
    """Play a script to a tool and read what it says."""
    requests = 1 if STREAMS[case][-1][0] > LONG_MS else 2
    with tempfile.TemporaryDirectory() as name:
        folder, script = Path(name) / "tool", Path(name) / "script.json"
        folder.mkdir()
        script.write_text(json.dumps({"/v1/chat/completions": script_of(case)}))
        with start_mock("--profile", "fast", "--script", str(script)) as mock:
            raise_priority(mock.process.pid)
            asked = Asked(mock.url, tokenizer, folder, 1, requests, ASKED_TOKENS, ignore_eos=False)
            ended = ask(peer, programs, asked, limit_s=LIMIT_S, pin=False)
            played = [line for line in mock.lines() if line["outcome"] == "script"]
        asked_for = case, peer.name, requests, len(played), sent_ttft_ms(case, played)
        try:
            said = read(peer, folder, ended)
        except ToolFailedError as why:
            return Answer(*asked_for, note=str(why))
    return Answer(*asked_for, said.ok, said.output_tokens, said.ttft_ms.get("mean"), said.note)


def sent_ttft_ms(case: str, played: list[dict[str, Any]]) -> float | None:
    """Return when the segment that completes the first token was sent, after its request was read: the mean."""
    right_ms = expected_of(case).ttft_ms
    segments: list[float] = [at_ms for at_ms, data in STREAMS[case] if not data.startswith(b"<")]
    if right_ms is None or right_ms not in segments:
        return None
    place = segments.index(right_ms) + ("RAW" not in case)  # the player's own head comes first
    waits = [line["segment_send_ns"][place] - line["arrival_ns"] for line in played
             if len(line["segment_send_ns"]) > place]  # fmt: skip
    return sum(waits) / len(waits) / 1e6 if waits else None


def script_of(case: str) -> dict[str, Any]:
    """Return a case in the form of the script player, with the fields that every server sends.

    The cases leave them out; some tools take no event without them. A raw script keeps its own lengths.
    """
    raw = "RAW" in case
    segments: list[tuple[float, str]] = []
    for at_ms, data in STREAMS[case]:
        text = data.decode("latin-1")
        segments.append((at_ms, text if raw else text.replace('{"choices":', USUAL + '"choices":')))
    return {"segments": segments, "raw": raw}


def make_tables(cases: list[str], answers: list[Answer]) -> tuple[str, str]:
    """Make the table of answers, and how many of them are right."""
    tools = [peer.name for peer in TOOLS.values() if any(one.tool == peer.name for one in answers)]
    cells = {(one.case, one.tool): one for one in answers}
    rows = []
    for case in cases:
        expected = expected_of(case)
        right = expected.outcome
        if right == "ok":
            first = "–" if expected.ttft_ms is None else f"{expected.ttft_ms:.0f} ms"
            right = f"ok, {expected.output_tokens} tok, {first}"
        rows.append((f"{_told(case)} ({case.split(' ')[0].split('/')[0]})", right,
                     *(cells[case, tool].cell(expected) for tool in tools)))  # fmt: skip
    counts = [sum(one.right(expected_of(one.case)) for one in answers if one.tool == tool) for tool in tools]
    total = ("right", str(len(cases)), *map(str, counts))
    head = "Reported for each script: success, tokens a request, TTFT. Bold is wrong."
    return head, table(("script (case)", "right", *tools), [*rows, total])


if __name__ == "__main__":
    raise SystemExit(main())
