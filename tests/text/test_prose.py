"""Data files are told from text by their first lines."""

from __future__ import annotations

import itertools
import lzma
import random
from collections.abc import Iterator

import pytest

from elmo_tasks.config.data_folder import data_folder
from elmo_tasks.errors import DataError
from elmo_tasks.text.prose import looks_like, prose_lines

DATA = {
    "a JSON array": [
        '[\n  {"text": "Mira left."},\n  {"text": "Orla came."}\n]',
        '[{"text": "Mira left."}, {"text": "Orla came."}]',
        '[{"text": "Mira left."},\n{"text": "Orla came."}]',
        '[\n    {\n        "text": "Mira left."\n',
        '["Mira left.", "Orla came."]',
        '[\n"Mira left.",\n"Orla came."\n]',
        "[]",
        '[["Mira", "left"]]',
    ],
    "a JSON object over several lines": [
        '{\n  "text": "Mira left."\n}',
        '{"text":\n "Mira left."}',
        '{\n  "version": "1.1",\n  "data": [\n',
        '{\n "text": "Mira left."\n}\n{\n "text": "Orla came."\n}',
    ],
    "a token on each line with its tags": [
        "-DOCSTART- -X- -X- O\n\nMira NNP B-NP B-PER",
        "Mira B-PER\nleft O\n. O\n\nOrla B-PER\ncame O",
        "Mira\tO\nleft\tO\n.\tO",
        "B-PER\tMira\nO\tleft\nO\t.",
        "# a comment\n1\tMira\tB-PER\tO\n2\tleft\tO\tO\n3\t.\tO\tO",
        "Mira NNP\nleft VBD\nthe DT\nmill NN\n. .",
        "Mira - (A0*)\nleft leave (V*)\nOslo - (A1*)",
        "#begin document (a); part 000\na 0 0 Mira NNP (TOP(S* - - - - * (0)",
        "# text = Mira left.\n1\tMira\tMira\tPROPN\tNNP\t_\t2\tnsubj\t_\t_\n"
        "2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n2\tleft\tleave\tVERB\tVBD\t_\t0\troot\t_\t_",
    ],
    "labelled trees": [
        "(3 (2 Mira) (3 (3 left) (2 .)))",
        "(2 good)\n(4 (3 very) (4 good))",
        "( (S \n    (NP-SBJ (NNP Mira) )\n    (VP (VBD left) )\n    (. .) ))",
        "(ROOT (S (NP (NNP Mira)) (VP (VBD left)) (-LRB- -LRB-) (. .)))",
    ],
    r"a table \(CSV\)": [
        "text,label\nMira left.,1\n",
        '"text","label"\n"Mira left, and came.","good"',
        "Sentence #,Word,POS,Tag\nSentence: 1,Mira,NNP,B-PER\n,left,VBD,O",
        "id;title;rating\n1;The mill;5",
        '"Mira left.",positive\n"Orla, too.",negative\n"So did Tavo.",positive\n"Nobody.",neutral',
        "1,A fine mill.\n1,A good one.\n0,A bad one.\n1,A mill.",
    ],
    r"a table \(TSV\)": [
        "sentence\tlabel\nMira left.\t0",
        "index\tsentence1\tsentence2\tgold_label\n0\tMira left.\tShe left.\tentailment",
        "Mira left.\t1\nOrla came.\t1\nTavo sat.\t0\nNobody.\t1",
    ],
    "XML or HTML": ['<?xml version="1.0"?>\n<a>', "<!DOCTYPE html>\n<html>", "<html lang='en'>"],
    "lines of fastText": ["__label__good Mira left .\n__label__bad Orla came ."],
}

TEXT = [
    "Mira left.",
    "Mira\nleft\nOslo\n.",  # a word on each line
    "\tMira left.\n\tOrla came.\n\tTavo sat.\n\tNobody.",
    "Anna:\tHello.\nBo:\tHello.\nAnna:\tGood day.\nBo:\tGood day.",
    "1\tMira left.\n2\tOrla came.\n3\tTavo sat.\n4\tNobody.",  # numbered lines
    "1\tIn the mill.\n2\tBy the mill.\n3\tAt the mill.\n1\tMira left.\n2\tOrla came.",
    "The mill\t1\nThe harbour\t4\nThe end\t9\nNames\t9",  # the pages of chapters
    "1\tone\tun\teins\n",
    "* bread\n* milk\n* eggs\n* tea",
    "bread, milk, eggs\ntea, coffee, water\nsalt, oil, flour",
    "bread,milk,eggs\ntea,coffee,water\nsalt,oil,flour",
    "Title, text and label are columns.\nSo, mind them.",
    "text\nlabel\ntitle",
    "Text",
    '"Mira left," said Orla.\n"No," said Tavo.',
    '"Mira left."',
    "[1] Orla left.\n[2] Tavo came.",
    '[12] He said "no" {twice}.',
    "[1985]\n[1986]",
    "[\nMira left.\n]",
    "[Enter MIRA, singing]\nMIRA: Who is there?",
    '["No," he said.]',
    "[Footnote 1: see (2).]",
    "(3) Mira left.\n(4) Orla came.",
    "(see above)",
    "(A lot (of words) here.)",
    "(I saw (A lot) of (B ones))",
    "(Mira left.)\n(Orla came.)",
    "# A heading\n\nMira left.\n\n- one\n- two",
    "#mills are fine",
    "O Mira left\nO Orla came\nO Tavo sat",
    "O mill\nO sea\nO land",
    "Anna O\nBert O\nCarl O",  # names
    "Take A-1 and B-2\nGo to the I-95",
    "GO IN\nGO UP\nGO IN\nGO IN\nGO TO",
    "He left .\nShe came .\nIt sat .\nWe saw .\nThey did .",
    "Was it true\nIt was false",
    "The score was 3,4\nand then 5,6",
    "<b>Mira</b> left.",
    "< 3 is little",
    "yes\nno\nyes\nno",
    "- Yes.\n- No.\n- Yes.\n- No.",
    "Mira, Oslo, 1\nOrla, Rome, 2\nTavo, Bern, 2\nAnn, Bonn, 1",
    "O\nI\nB\nO",
    "$ 5 | a ` b ~ {c}",
    "ミラは去った。\n彼女は来た。",
    "name: Mira\ntown: Oslo",
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
    table = [(1, "text\tlabel"), (2, "Mira left.\t1")]
    assert list(prose_lines(iter(table), "file", "advice", json_only=True)) == table


def test_lines_do_not_wait_for_later_ones() -> None:
    def lines() -> Iterator[tuple[int, str]]:
        for number, line in enumerate(("Mira B-PER", "left O", ". O", ""), start=1):
            asked.append(number)
            yield number, line

    asked: list[int] = []
    stream = prose_lines(lines(), "file", "advice", waiting=lambda: True)
    assert (next(stream), asked) == ((1, "Mira B-PER"), [1])
    assert (next(stream), asked) == ((2, "left O"), [1, 2])
    with pytest.raises(DataError, match="looks like a token on each line"):
        next(stream)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["books_gutenberg.txt.xz", "wikipedia_en_2015.txt.xz"])
def test_real_text_is_not_refused(name: str) -> None:
    path = data_folder() / "lm" / name
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    chance, lines = random.Random(1), []
    with lzma.open(path, "rt", encoding="utf-8") as stream:
        for line in itertools.islice(stream, 100_000):
            lines.append(line.rstrip("\n"))
            if len(lines) == chance.randint(1, 40) or len(lines) == 40:
                start = next((index for index, each in enumerate(lines) if each.strip()), None)
                assert start is None or looks_like(lines[start:]) is None, lines
                lines = []
