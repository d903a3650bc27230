"""Data files are told from text by the endings of their names, and by their first line."""

import itertools
import lzma
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
        "Mary NNP I-NP B-PER\nleft VBD I-VP O",
        "Mary -X- _ B-PER\nleft -X- _ O",
        "Mary\tB-PER\nleft\tO",
        "Mary\tNNP\t\tO",
        "Mary B-PER\nleft O",
        "left O\nMary B-PER",
        "#begin document (a); part 000\na 0 0 Mary NNP (TOP(S* - - - - * (0)",
        "# text = Mary left.\n1\tMary\tMary\tPROPN\tNNP\t_\t2\tnsubj\t_\t_\n"
        "2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n2\tleft\tleave\tVERB\tVBD\t_\t0\troot\t_\t_",
    ],
    "labelled trees": [
        "(3 (2 Mary) (3 (3 left) (2 .)))",
        "( (S \n    (NP-SBJ (NNP Mary) )\n    (VP (VBD left) )\n    (. .) ))",
        "(ROOT (S (NP (NNP Mary)) (VP (VBD left)) (-LRB- -LRB-) (. .)))",
    ],
    r"a table \(CSV\)": [
        "text,label\nMary left.,1\n",
        '"text","label"\n"Mary left, and came.","good"',
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
    "Anna:\tHello.\nBo:\tHello.\nAnna:\tGood day.\nBo:\tGood day.",
    "1\tMary left.\n2\tOrla came.\n3\tTavo sat.\n4\tNobody.",  # numbered lines
    "* bread\n* milk\n* eggs\n* tea",
    "bread, milk, eggs\ntea, coffee, water\nsalt, oil, flour",
    "Title, text and label are columns.\nSo, mind them.",
    "text\nlabel\ntitle",
    '"Mary left," said Orla.\n"No," said Tavo.',
    '"Mary left."',
    "[1] Orla left.\n[2] Tavo came.",
    '[12] He said "no" {twice}.',
    "[1985]\n[1986]",
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
    "<b>Mary</b> left.",
    "< 3 is little",
    "$ 5 | a ` b ~ {c}",
    "ミラは去った。\n彼女は来た。",
    "name: Mary\ntown: Oslo",
    "Vitamin B-complex",
    "A NEW S-CLASS",
    "The plan B-or-C",
    "Jackie O left.",
    "| a | b |\n|---|---|\n| 1 | 2 |",
]  # fmt: skip


ENDINGS = {
    "a table": ("a.csv", "a.TSV.gz", "a.xlsx", "a.parquet"),
    "a token on each line with its tags": ("a.conll", "a.conllu.xz"),
    "XML or HTML": ("a.xml", "a.html"),
    "code": ("a.py", "a.yaml"),
    "a document": ("a.pdf", "a.docx"),
    "JSON": ("a.json", "a.jsonl.gz"),
}


@pytest.mark.parametrize(("kind", "content"), [(kind, each) for kind, contents in DATA.items() for each in contents])
def test_data_is_refused(kind: str, content: str) -> None:
    lines = enumerate(["", *content.split("\n")], start=1)
    with pytest.raises(DataError, match=rf"^file:2: looks like {kind}.*; expected .*; advice$"):
        list(prose_lines(lines, "file", "advice"))


@pytest.mark.parametrize(("kind", "name"), [(kind, each) for kind, names in ENDINGS.items() for each in names])
def test_data_is_told_by_the_ending_of_its_name(kind: str, name: str) -> None:
    with pytest.raises(DataError, match=rf"^{name}:2: looks like {kind}.*; expected .*; advice$"):
        list(prose_lines([(1, " "), (2, "Mary left.")], name, "advice"))
    assert str(looks_like(name, "Mary left.")).startswith(kind)
    may_be_json = looks_like(name, "Mary left.", json_lines=True)
    assert may_be_json is None if kind == "JSON" else str(may_be_json).startswith(kind)


@pytest.mark.parametrize("content", TEXT)
def test_text_is_not_refused(content: str) -> None:
    numbered = list(enumerate(["", *content.split("\n"), ""], start=1))
    for name in ("file", "file.txt", "eng.testa", "notes.md", "txt.gz"):
        for json_lines in (False, True):
            assert list(prose_lines(numbered, name, "advice", json_lines=json_lines)) == numbered


def test_json_lines_are_not_refused() -> None:
    numbered = list(enumerate(['{"text": "[1]"}', '{"text": "B-PER"}'], start=1))
    for name in ("file", "file.jsonl"):
        assert list(prose_lines(numbered, name, "advice", json_lines=True)) == numbered


def test_lines_do_not_wait_for_later_ones() -> None:
    asked: list[int] = []
    stream = prose_lines(((number, "a") for number in (1, 2) if not asked.append(number)), "file", "advice")  # type: ignore[func-returns-value]
    assert (next(stream), asked) == ((1, "a"), [1])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["books_gutenberg.txt.xz", "wikipedia_en_2015.txt.xz"])
def test_real_text_is_not_refused(data_folder: Path, name: str) -> None:
    path = data_folder / "lm" / name
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    with lzma.open(path, "rt", encoding="utf-8") as stream:
        for line in filter(str.strip, itertools.islice(stream, 30_000)):
            assert looks_like(name, line) is None, line
