"""Datasets: usable rows by a stated rule, errors with file and line, nothing held in memory."""

import json
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from llm_locust.prompts import Length, PromptError, PromptSource, Wanted, open_prompts, registry
from llm_locust.prompts.lengths import fixed, parse_length
from llm_locust.prompts.rows import ConstantText, Keep
from llm_locust.protocol.types import PromptRequest

Write = Callable[[str, bytes], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return make


def texts(source: PromptSource) -> list[str]:
    assert source.size is not None
    prompts = [source.prompt(i) for i in range(source.size)]
    return [p.text if p.text is not None else " | ".join(m.content for m in p.messages or ()) for p in prompts]


SHAREGPT = b"""[{"id":"1","conversations":[]},
 {"id":"2","conversations":[{"from":"gpt","value":"x"},{"from":"human","value":"Q2"},{"from":"gpt","value":"A2"}]},
 {"id":"3","conversations":[{"from":"system","value":"S"},{"from":"human","value":"Q3"},{"from":"gpt","value":"A3"}]},
 {"id":"4","conversations":[{"from":"human","value":"Q4"}]},
 {"id":"5","conversations":[{"from":"human","value":"Q5"},{"role":"assistant","content":"A5"}]},
 {"id":"6","items":[]}, null,
 {"id":"8","conversations":[{"from":"human","value":""},{"from":"gpt","value":"A8"}]},
 {"id":"9","conversations":[{"from":"human","value":"a"},{"from":"human","value":"b"},{"from":"gpt","value":"c"}]}]"""


def test_sharegpt_takes_the_rows_that_its_rule_names_and_counts_the_others(write: Write) -> None:
    source = open_prompts(f"sharegpt:{write('s.json', SHAREGPT)}", Wanted())
    assert texts(source) == ["Q2", "S | Q3", "Q4", "Q5", "a | b"]
    assert sum(int(note.split(": ")[1].split()[0]) for note in source.notes) == 4


def test_sharegpt_keeps_several_turns_as_messages_and_first_only_ends_before_the_answer(write: Write) -> None:
    row = {"conversations": [{"from": who, "value": text} for who, text in
           [("human", "Q1"), ("gpt", "A1"), ("human", "Q2"), ("gpt", "A2")]]}  # fmt: skip
    path = write("s.json", json.dumps([row]).encode())
    whole = open_prompts(f"sharegpt:{path}", Wanted()).prompt(0).messages
    assert whole is not None
    assert [(m.role, m.content) for m in whole] == [("user", "Q1"), ("assistant", "A1"), ("user", "Q2")]
    assert texts(open_prompts(f"sharegpt-first:{path}", Wanted())) == ["Q1"]


@pytest.mark.parametrize(
    ("content", "says"), [(b"[]", "no usable prompt"), (b"", "empty"), (b"{}", "not a JSON array")]
)
def test_sharegpt_without_a_usable_row_is_refused_before_the_load(write: Write, content: bytes, says: str) -> None:
    with pytest.raises(PromptError, match=says):
        open_prompts(f"sharegpt:{write('s.json', content)}", Wanted())


JSONL = (
    b'{"prompt":"one"}\n\n{"prompt":"two",}\n{"prompt": 3}\r\n["x"]\n'
    b'{"prompt":"four","output_tokens":"8"}\n{"prompt":"five"}'
)


def test_jsonl_names_the_bad_line(write: Write) -> None:
    path = write("p.jsonl", JSONL)
    with pytest.raises(PromptError, match=r"p\.jsonl, line 3: not JSON"):
        open_prompts(str(path), Wanted())


def test_lenient_jsonl_counts_what_it_skipped_and_keeps_the_last_line_without_an_end(write: Write) -> None:
    source = open_prompts(f"jsonl+lenient:{write('p.jsonl', JSONL)}", Wanted())
    assert texts(source) == ["one", "four", "five"]
    assert [source.prompt(i).output_tokens for i in range(3)] == [None, 8, None]
    assert sum(int(note.split(": ")[1].split()[0]) for note in source.notes) == 3


def test_byte_order_mark_is_no_part_of_the_first_prompt(write: Write) -> None:
    source = open_prompts(str(write("b.jsonl", b'\xef\xbb\xbf{"prompt":"Gr\xc3\xbc\xc3\x9fe"}\n')), Wanted())
    assert texts(source) == ["Grüße"]


def test_csv_has_quoted_line_ends_doubled_quotes_and_a_mark_in_its_header(write: Write) -> None:
    content = b'\xef\xbb\xbfprompt,max_tokens\r\n"a ""q"", b\nline2",5\r\nplain,\r\n'
    source = open_prompts(str(write("c.csv", content)), Wanted())
    assert texts(source) == ['a "q", b\nline2', "plain"]
    assert [source.prompt(i).output_tokens for i in range(2)] == [5, None]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"id,answer\n1,x\n", "line 1: no column named prompt"),
        (b"prompt,b\nx\n", "line 2: 1 cells"),
        (b'prompt\n"open\n', "line 2: a quoted cell has no end"),
        (b"", "empty"),
    ],
)
def test_csv_that_is_wrong_is_named_with_its_line(write: Write, content: bytes, says: str) -> None:
    with pytest.raises(PromptError, match=says):
        open_prompts(str(write("c.csv", content)), Wanted())


def test_utf16_is_refused_with_the_command_that_mends_it(write: Write) -> None:
    with pytest.raises(PromptError, match=r"is UTF-16, not UTF-8: iconv -f UTF-16 -t UTF-8"):
        open_prompts(str(write("u.csv", "prompt\r\nGrüße\r\n".encode("utf-16"))), Wanted())


def test_other_encodings_are_refused_with_line_and_offset(write: Write) -> None:
    with pytest.raises(PromptError, match=r"line 2, byte 6: not UTF-8 \(byte 0xfc\).*iconv -f CP1252"):
        open_prompts(str(write("l.txt", b"good\nG\xfcte\n")), Wanted())


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("lines", b"good\nG\xfcte\n"),
        ("jsonl", b'{"prompt":"a"}\n{"prompt":"\xfc"}\n'),
        ("openqa", b'{"question":"a"}\n{"question":"\xfc"}\n'),
        ("csv", b"prompt\nG\xfcte\n"),
        ("sharegpt", b'[{"conversations":[\n{"from":"human","value":"\xfc"},{"from":"gpt","value":"A"}]}]'),
        ("sharegpt-first", b'[{"conversations":[\n{"from":"human","value":"\xfc"},{"from":"gpt","value":"A"}]}]'),
        ("mooncake", b'{"timestamp":0,"input_length":1,"output_length":1}\n{"\xfc":0}\n'),
        ("burstgpt", b"Timestamp,Model,Request tokens,Response tokens\n1,\xfc,5,3\n"),
        ("text", b"good\nG\xfcte"),
    ],
)
def test_other_encodings_are_refused_by_every_kind(write: Write, kind: str, content: bytes) -> None:
    """Line, place and the command that mends it, whatever reads the file."""
    path = write("f", content)
    with pytest.raises(PromptError, match=r"f, line 2, byte \d+: not UTF-8 \(byte 0xfc\).*iconv -f CP1252 -t UTF-8"):
        open_prompts(f"{kind}:{'@' if kind == 'text' else ''}{path}", Wanted())


@pytest.mark.parametrize(
    ("content", "line"),
    [(b'[\n{"id":1},\n{"id":2 "x":3}\n]', 3), (b'[\n{"id":1},\n{"conversations":[\n', 3), (b"\n{}", 1)],
    ids=["malformed", "without an end", "no array"],
)
def test_sharegpt_file_that_is_no_array_is_named_with_the_line(write: Write, content: bytes, line: int) -> None:
    with pytest.raises(PromptError, match=rf"s\.json, line {line}: not a JSON array of conversations"):
        open_prompts(f"sharegpt:{write('s.json', content)}", Wanted())


def test_lone_surrogate_is_refused_with_its_line_and_a_pair_is_one_character(write: Write) -> None:
    content = b'{"prompt":"bad \\ud83e end"}\n{"prompt":"good \\ud83e\\udd16"}\n'
    path = write("e.jsonl", content)
    with pytest.raises(PromptError, match="line 1: not JSON"):
        open_prompts(str(path), Wanted())
    source = open_prompts(f"jsonl+lenient:{path}", Wanted())
    assert [text.encode() for text in texts(source)] == [b"good \xf0\x9f\xa4\x96"]


def test_lines_leave_out_the_blank_ones_and_openqa_reads_questions(write: Write) -> None:
    assert texts(open_prompts(str(write("l.txt", "一\n\n二\n".encode())), Wanted())) == ["一", "二"]
    path = write("qa.jsonl", b'{"question":"Why?","human_answers":["x"]}\n')
    assert texts(open_prompts(f"openqa:{path}", Wanted())) == ["Why?"]


def test_rows_come_in_their_order_and_again_from_the_front(write: Write) -> None:
    source = open_prompts(str(write("l.txt", b"a\nb\nc\nd\n")))
    assert [source.prompt(i).text for i in range(5)] == ["a", "b", "c", "d", "a"]


def test_rows_beyond_the_context_are_skipped_and_counted(write: Write) -> None:
    path = write("l.txt", b"a b c\na\na b c d e f\n")
    wanted = Wanted(max_context_tokens=6, output_tokens=fixed(2), count=lambda text: len(text.split()))
    source = open_prompts(str(path), wanted)
    assert texts(source) == ["a b c", "a"]
    assert source.notes == ("l.txt: 1 row skipped: longer than --llm-max-context 6 (line 3)",)


def test_output_length_of_the_run_replaces_the_files_own(write: Write) -> None:
    path = write("p.jsonl", b'{"prompt":"x","output_tokens":8}\n')
    source = open_prompts(str(path), Wanted(output_tokens=Length(3, 4, 3.5)))
    assert {source.prompt(i).output_tokens for i in range(50)} == {3, 4}


def test_text_is_one_prompt_for_all_from_the_option_or_a_file(write: Write) -> None:
    assert open_prompts("text:Say hi: now", Wanted()).prompt(9).text == "Say hi: now"
    assert open_prompts(f"text:@{write('t.txt', b'from file')}", Wanted()).prompt(0).text == "from file"


@pytest.mark.parametrize("spelled", ["sharegpt:/no/such/file", "nonsense", "jsonl:", "text:"])
def test_spelling_that_names_nothing_is_refused(spelled: str) -> None:
    with pytest.raises(PromptError):
        open_prompts(spelled, Wanted())


def test_same_content_has_the_same_digest_and_other_content_another(write: Write) -> None:
    one, two, other = (open_prompts(str(write(n, c)), Wanted()) for n, c in
                       [("a.txt", b"x\n"), ("b.txt", b"x\n"), ("c.txt", b"y\n")])  # fmt: skip
    assert one.digest == two.digest != other.digest


def test_another_package_adds_a_kind_of_dataset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By an entry point: `KIND:PATH` opens it, with what is to be kept, and the name is listed."""
    offered = EntryPoints([EntryPoint("shouts", f"{__name__}:open_shouts", "llm_locust.prompts")])

    monkeypatch.setattr(registry, "entry_points", offered.select)
    path = tmp_path / "p.shouts"
    path.write_text("hear me\n")
    assert open_prompts(f"shouts:{path}").prompt(0).text == "HEAR ME"
    assert open_prompts(f"shouts:{path}", Wanted(output_tokens=parse_length("7"))).prompt(0).output_tokens == 7
    with pytest.raises(PromptError, match="shouts"):
        open_prompts("whispers:nowhere")


def open_shouts(path: Path, *, keep: Keep, lenient: bool) -> ConstantText:
    """What another package offers."""
    assert keep(PromptRequest(text="a")) is None
    assert not lenient
    return ConstantText(path.read_text().strip().upper())


@pytest.mark.parametrize(("encoding", "place"), [("utf-16-le", 1), ("utf-16-be", 0)])
@pytest.mark.parametrize("kind", ["lines", "csv", "jsonl"])
def test_utf_16_without_a_mark_is_refused_with_the_command_that_mends_it(
    write: Write, kind: str, encoding: str, place: int
) -> None:
    """Every second byte of plain English is 0: as UTF-8 it would be read, and sent as rubbish."""
    path = write("u16", "prompt\nplain english\n".encode(encoding))
    name = encoding.upper().replace("-L", "L").replace("-B", "B")
    with pytest.raises(PromptError, match=rf"line 1, byte {place}: not text \(a byte 0x00\).*iconv -f {name} -t UTF-8"):
        open_prompts(f"{kind}:{path}")


@pytest.mark.parametrize(("kind", "data"), [("csv", b"prompt\rabc\rdef\r"), ("lines", b"one\rtwo\rthree\n")])
def test_lines_that_end_in_a_carriage_return_alone_are_refused(write: Write, kind: str, data: bytes) -> None:
    """One error with the remedy; not one prompt of all lines."""
    with pytest.raises(PromptError, match=r"line 1: a carriage return without a line feed.*tr"):
        open_prompts(f"{kind}:{write('cr', data)}")


def test_cell_of_a_csv_file_may_be_as_long_as_a_context(write: Write) -> None:
    """Python's csv module refuses more than 128 KB unless it is told otherwise."""
    text = "word " * 60_000
    source = open_prompts(f"csv:{write('long', f'prompt{chr(10)}{text}{chr(10)}'.encode())}")
    assert source.prompt(0).text == text


def test_text_that_cannot_be_sent_is_refused_before_the_load() -> None:
    """A command line with a byte that is no UTF-8 gives a lone surrogate."""
    with pytest.raises(PromptError, match=r"not UTF-8.*lines:FILE"):
        open_prompts("text:bad \udcff end")
    assert open_prompts("text:gr\u00fc\u00dfe \U0001f600 \u200b").prompt(0).text == "gr\u00fc\u00dfe \U0001f600 \u200b"


def test_skipped_rows_are_told_with_the_places_of_the_first(write: Write) -> None:
    """Lines, three of them; the counts are those of all."""
    rows = b'{"prompt": "a"}\n' + b"[1]\n" * 2 + b'{"prompt": "b"}\n' + b"[2]\n" * 3 + b'{"prompt": ""}\n'
    source = open_prompts(f"jsonl+lenient:{write('r', rows)}")
    assert source.notes == (
        "r: 5 rows skipped: not a JSON object (lines 2, 3, 5, …)",
        "r: 1 row skipped: prompt is empty (line 8)",
    )


def test_quote_inside_a_cell_that_has_none_around_it_is_named(write: Write) -> None:
    """Three lines that a spreadsheet would read as one; no carriage return is blamed."""
    path = write("q.csv", b'prompt,output_tokens\n5" pipe,10\nb,20\n6" pipe,30\n')
    with pytest.raises(PromptError, match="line 2: a quote inside a cell that is not quoted"):
        open_prompts(str(path))
