"""Data files are told from text by their first lines."""

import itertools
import lzma
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from elmo_tasks.errors import DataError
from elmo_tasks.text.prose import looks_like, prose_lines

DATA = {
    "a JSON array": [
        '[\n  {"text": "Mary left."},\n  {"text": "Orla came."}\n]',
        '[{"text": "Mary left."}, {"text": "Orla came."}]',
        '[{"text": "Mary left."},\n{"text": "Orla came."}]',
        '[\n    {\n        "text": "Mary left."\n',
        '["Mary left.", "Orla came."]',
        '[\n"Mary left.",\n"Orla came."\n]',
        "[]",
        '[["Mary", "left"]]',
    ],
    "a JSON object over several lines": [
        '{\n  "text": "Mary left."\n}',
        '{"text":\n "Mary left."}',
        '{\n  "version": "1.1",\n  "data": [\n',
        '{\n "text": "Mary left."\n}\n{\n "text": "Orla came."\n}',
    ],
    "a token on each line with its tags": [
        "-DOCSTART- -X- -X- O\n\nMary NNP B-NP B-PER",
        "Mary B-PER\nleft O\n. O\n\nOrla B-PER\ncame O",
        "Mary\tO\nleft\tO\n.\tO",
        "B-PER\tMary\nO\tleft\nO\t.",
        "# a comment\n1\tMary\tB-PER\tO\n2\tleft\tO\tO\n3\t.\tO\tO",
        "#begin document (a); part 000\na 0 0 Mary NNP (TOP(S* - - - - * (0)",
        "# text = Mary left.\n1\tMary\tMary\tPROPN\tNNP\t_\t2\tnsubj\t_\t_\n"
        "2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n2\tleft\tleave\tVERB\tVBD\t_\t0\troot\t_\t_",
    ],
    "labelled trees": [
        "(3 (2 Mary) (3 (3 left) (2 .)))",
        "(2 good)\n(4 (3 very) (4 good))",
        "( (S \n    (NP-SBJ (NNP Mary) )\n    (VP (VBD left) )\n    (. .) ))",
        "(ROOT (S (NP (NNP Mary)) (VP (VBD left)) (-LRB- -LRB-) (. .)))",
    ],
    r"a table \(CSV\)": [
        "text,label\nMary left.,1\n",
        '"text","label"\n"Mary left, and came.","good"',
        "Sentence #,Word,POS,Tag\nSentence: 1,Mary,NNP,B-PER\n,left,VBD,O",
        "id;title;rating\n1;The mill;5",
    ],
    r"a table \(TSV\)": [
        "sentence\tlabel\nMary left.\t0",
        "index\tsentence1\tsentence2\tgold_label\n0\tMary left.\tShe left.\tentailment",
    ],
    "XML or HTML": ['<?xml version="1.0"?>\n<a>', "<!DOCTYPE html>\n<html>", "<html lang='en'>"],
}

TEXT = [
    "Mary left.",
    "Mary\nleft\nOslo\n.",  # a word on each line
    "\tMary left.\n\tOrla came.\n\tTavo sat.\n\tNobody.",
    "Anna:\tHello.\nBo:\tHello.\nAnna:\tGood day.\nBo:\tGood day.",
    "1\tMary left.\n2\tOrla came.\n3\tTavo sat.\n4\tNobody.",  # numbered lines
    "1\tone\tun\teins\n",
    "* bread\n* milk\n* eggs\n* tea",
    "bread, milk, eggs\ntea, coffee, water\nsalt, oil, flour",
    "bread,milk,eggs\ntea,coffee,water\nsalt,oil,flour",
    "Title, text and label are columns.\nSo, mind them.",
    "text\nlabel\ntitle",
    "Text",
    '"Mary left," said Orla.\n"No," said Tavo.',
    '"Mary left."',
    "[1] Orla left.\n[2] Tavo came.",
    '[12] He said "no" {twice}.',
    "[1985]\n[1986]",
    "[\nMary left.\n]",
    "[Enter MARY, singing]\nMARY: Who is there?",
    '["No," he said.]',
    "[Footnote 1: see (2).]",
    "(3) Mary left.\n(4) Orla came.",
    "(see above)",
    "(A lot (of words) here.)",
    "(I saw (A lot) of (B ones))",
    "(Mary left.)\n(Orla came.)",
    "# A heading\n\nMary left.\n\n- one\n- two",
    "#mills are fine",
    "O Mary left\nO Orla came\nO Tavo sat",
    "O mill\nO sea\nO land",
    "Anna O\nBert O\nCarl O",  # names
    "Take A-1 and B-2\nGo to the I-95",
    "He left .\nShe came .\nIt sat .\nWe saw .\nThey did .",
    "Was it true\nIt was false",
    "The score was 3,4\nand then 5,6",
    "<b>Mary</b> left.",
    "< 3 is little",
    "O\nI\nB\nO",
    "$ 5 | a ` b ~ {c}",
    "ミラは去った。\n彼女は来た。",
    "name: Mary\ntown: Oslo",
    "| a | b |\n|---|---|\n| 1 | 2 |",
]  # fmt: skip


@pytest.mark.parametrize(("kind", "content"), [(kind, each) for kind, contents in DATA.items() for each in contents])
def test_data_is_refused(kind: str, content: str) -> None:
    lines = enumerate(["", *content.split("\n")], start=1)
    with pytest.raises(DataError, match=rf"^file:2: looks like {kind}.*; expected .*; advice$"):
        list(prose_lines(lines, "file", "advice"))


@pytest.mark.parametrize("content", TEXT)
def test_text_is_not_refused(content: str) -> None:
    lines = content.split("\n")
    for number in range(1, len(lines) + 1):
        assert looks_like(lines[:number]) is None
    numbered = list(enumerate(["", *lines, ""], start=1))
    assert list(prose_lines(iter(numbered), "file", "advice")) == numbered


def test_json_lines_are_not_refused() -> None:
    numbered = list(enumerate(['{"text": "[1]"}', '{"text": "B-PER"}'] * 40, start=1))
    for json_only in (False, True):
        assert list(prose_lines(iter(numbered), "file", "advice", json_only=json_only)) == numbered


def test_only_json_is_looked_for_where_lines_are_objects() -> None:
    with pytest.raises(DataError, match="looks like a JSON array"):
        list(prose_lines(iter([(1, "["), (2, "{")]), "file", "advice", json_only=True))
    table = [(1, "text\tlabel"), (2, "Mary left.\t1")]
    assert list(prose_lines(iter(table), "file", "advice", json_only=True)) == table


def test_lines_do_not_wait_for_later_ones() -> None:
    def lines() -> Iterator[tuple[int, str]]:
        for number, line in enumerate(("Mary B-PER", "left O", ". O", ""), start=1):
            asked.append(number)
            yield number, line

    asked: list[int] = []
    stream = prose_lines(lines(), "file", "advice", waiting=lambda: True)
    assert (next(stream), asked) == ((1, "Mary B-PER"), [1])
    assert (next(stream), asked) == ((2, "left O"), [1, 2])
    with pytest.raises(DataError, match="looks like a token on each line"):
        next(stream)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["books_gutenberg.txt.xz", "wikipedia_en_2015.txt.xz"])
def test_real_text_is_not_refused(data_folder: Path, name: str) -> None:
    path = data_folder / "lm" / name
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    chance, lines = random.Random(1), []
    with lzma.open(path, "rt", encoding="utf-8") as stream:
        for line in itertools.islice(stream, 30_000):
            lines.append(line.rstrip("\n"))
            if len(lines) == chance.randint(1, 40) or len(lines) == 40:
                start = next((index for index, each in enumerate(lines) if each.strip()), None)
                assert start is None or looks_like(lines[start:]) is None, lines
                lines = []
