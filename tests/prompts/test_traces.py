"""Traces: milliseconds and seconds, prefix blocks with equal text, bad rows named."""

from pathlib import Path

import pytest

from llm_locust.prompts import PromptError, Wanted, open_prompts
from llm_locust.prompts.traces import Trace

GOOD = b"""{"timestamp":0,"input_length":700,"output_length":40,"hash_ids":[0,1]}
{"timestamp":31000,"input_length":600,"output_length":1,"hash_ids":[4294967296,1]}
{"timestamp":30500,"input_length":600,"output_length":1,"hash_ids":[0,7]}
{"timestamp":200,"input_length":20,"output_length":8,"hash_ids":[0]}
"""


def trace(tmp_path: Path, kind: str, content: bytes) -> Trace:
    path = tmp_path / "trace"
    path.write_bytes(content)
    source = open_prompts(f"{kind}:{path}", Wanted(seed=5))
    assert isinstance(source, Trace)
    return source


def prompt_words(source: Trace, index: int) -> list[str]:
    text = source.prompt(index).text
    assert text is not None
    return text.split(" ")


def test_mooncake_times_are_milliseconds_sorted_and_said_to_be(tmp_path: Path) -> None:
    source = trace(tmp_path, "mooncake", GOOD)
    assert source.arrivals_s.tolist() == [0.0, 0.2, 30.5, 31.0]
    assert "out of order" in source.notes[0]
    assert source.faster(2).arrivals_s.tolist() == [0.0, 0.1, 15.25, 15.5]


def test_mooncake_blocks_of_equal_id_have_equal_text(tmp_path: Path) -> None:
    source = trace(tmp_path, "mooncake", GOOD)
    first, short, third, wide = (prompt_words(source, i) for i in range(4))
    assert [len(p) for p in (first, short, third, wide)] == [700, 20, 600, 600]
    assert first[:512] == third[:512]
    assert short == first[:20]
    assert first[512:600] != third[512:]
    assert wide[:512] != first[:512]  # an id beyond 32 bits is not cut to 0


@pytest.mark.parametrize(("tokens", "blocks", "has"), [(20, [0, 1], 1), (1100, [0], 3), (1024, [0, 1, 2], 2)])
def test_mooncake_row_whose_blocks_do_not_fit_is_refused_with_its_line(
    tmp_path: Path, tokens: int, blocks: list[int], has: int
) -> None:
    """More blocks than tokens, or fewer than those that are full."""
    row = f'{{"timestamp":200,"input_length":{tokens},"output_length":8,"hash_ids":{blocks}}}'.encode()
    with pytest.raises(PromptError, match=f"line 2: {tokens} tokens have {has} blocks of 512; hash_ids has"):
        trace(tmp_path, "mooncake", GOOD.splitlines()[0] + b"\n" + row + b"\n")


@pytest.mark.parametrize("blocks", [[], [0, 1], [0, 1, 2]])
def test_mooncake_row_may_leave_out_the_block_that_is_not_full(tmp_path: Path, blocks: list[int]) -> None:
    """1100 tokens: two full blocks and a part of one; or none at all."""
    row = f'{{"timestamp":0,"input_length":1100,"output_length":8,"hash_ids":{blocks}}}\n'.encode()
    assert trace(tmp_path, "mooncake", row).blocks == (tuple(blocks),)


@pytest.mark.parametrize("line", [b'{"timestamp":"x"}', b"nope", b'{"timestamp":0,"input_length":0,"output_length":1}'])
def test_mooncake_row_that_is_wrong_is_named(tmp_path: Path, line: bytes) -> None:
    with pytest.raises(PromptError, match="line 1"):
        trace(tmp_path, "mooncake", line)


BURST = b"""Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,ChatGPT,1087,0,1087,Conversation log
118,GPT-4,417,276,693,API log
"""


def test_burstgpt_times_are_seconds_and_failed_rows_are_left_out_and_counted(tmp_path: Path) -> None:
    source = trace(tmp_path, "burstgpt", BURST)
    assert source.arrivals_s.tolist() == [0.0, 113.0]
    assert [len(prompt_words(source, i)) for i in range(2)] == [472, 417]
    assert [source.prompt(i).output_tokens for i in range(2)] == [18, 276]
    assert source.notes == ("trace: 1 row skipped: no tokens asked or answered",)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a,b\n1,2\n", "no column Timestamp"),
        (b"Timestamp,Request tokens,Response tokens\n1,x,3\n", "line 2: not a number"),
        (b"Timestamp,Request tokens,Response tokens\n1,2,3\n\n1,x,3\n\n", "line 4: not a number"),
    ],
)
def test_burstgpt_file_that_is_wrong_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    with pytest.raises(PromptError, match=says):
        trace(tmp_path, "burstgpt", content)


def test_lenient_trace_skips_and_counts_what_is_wrong(tmp_path: Path) -> None:
    """`KIND+lenient` holds for traces, too."""
    bad = GOOD.splitlines()[0] + b'\nnope\n{"timestamp":0,"input_length":0,"output_length":1}\n'
    mooncake = trace(tmp_path, "mooncake+lenient", bad)
    assert len(mooncake.arrivals_s) == 1
    assert [note.split(":")[1] for note in mooncake.notes] == [" 1 row skipped", " 1 row skipped"]
    burst = trace(tmp_path, "burstgpt+lenient", BURST + b"x,GPT-4,1,1,2,API log\n")
    assert burst.arrivals_s.tolist() == [0.0, 113.0]
    assert "trace: 1 row skipped: not a number (line 5)" in burst.notes
