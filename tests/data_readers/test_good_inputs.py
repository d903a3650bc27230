"""What readers make of inputs: columns, schemes, documents, white space, tokens; odd files are in `test_odd_files`."""

import json
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data_readers.columns import TagReader
from elmo_tasks.data_readers.records import unescape
from elmo_tasks.errors import DataError
from tests.data_readers.readers import (
    CONLLU,
    NER,
    SNLI,
    SST,
    TABLE,
    TEXTS,
    Settings,
    build,
    check_columns,
    conllu,
    read_text,
    sample,
    write,
)

WORD = conllu("1", "a", "X")
WHOLE = conllu("1-2", "ab") + conllu("1", "a", "X") + conllu("2", "b", "Y")
DOCUMENTS = "a O\n\nb O\n\nc O\n\n-DOCSTART- O\n\nd O\n\n-DOCSTART- O\n\ne O\n"


def snli(premise: str, hypothesis: str, **columns: str) -> str:
    pair = {"sentence1": premise, "sentence2": hypothesis, "gold_label": "neutral"}
    return json.dumps(pair | columns) + "\n"


def table(text: str) -> str:
    return text.replace("|", "\t")


PARSES = {
    "sentence1_binary_parse": "( ( A ( ( U.S. -made ) car ) ) . )",
    "sentence2_binary_parse": "( ( -LRB- ( A -RRB- ) ) ( car ! ) )",
}
MULTINLI = table(
    "gold_label|sentence1_binary_parse|sentence2_binary_parse|sentence1_parse|sentence2_parse|sentence1|sentence2|"
    "promptID|pairID|genre|label1|label2|label3|label4|label5\n"
    "neutral|( ( It ( rained ) ) . )|( Rain . )|(ROOT)|(ROOT)|It rained.|Rain.|1|1n|fiction|neutral\n"
    "-|( It . )|( He . )|(ROOT)|(ROOT)|It.|He.|2|2e|travel|neutral|entailment|neutral|entailment|\n"
    "entailment|( So ' \" )|( Yes . )|(ROOT)|(ROOT)|So'\"|Yes.|3|3e|fiction|a|b|c|d|e\n"
)
SICK = table(
    "pair_ID|sentence_A|sentence_B|entailment_label|relatedness_score|SemEval_set\n"
    "1|A boy is running|A child isn't still|ENTAILMENT|4.5|TRAIN\n"
    "2|A boy is running|A boy is tall|NEUTRAL|3.1|TRIAL\n"
    "3|A boy is running|No boy is running|CONTRADICTION|4|TEST\n"
    "4|A cat sleeps|A cat is asleep|ENTAILMENT|5|TEST\n"
)
LONG = " ".join(["word"] * 40_000)  # more than the limit of Python's csv
GOLD = "gold_label|sentence1|sentence2"
# The reader, a text, and columns of its examples; lists are joined by spaces
CASES: list[tuple[Settings, str, dict[str, list[Any]]]] = [
    (NER | {"columns": [2, 1], "tag_scheme": "IOB2"}, "1\tB-LOC\tOslo\t_\n2\tO\t10\u00a0000\t_\n",
     {"tokens": ["Oslo 10\u00a0000"], "tags": ["B-LOC O"]}),
    (NER | {"columns": [0, 1], "tag_scheme": None}, "Oslo  NNP I-LOC\nsleeps VBZ O\n", {"tags": ["NNP VBZ"]}),
    (NER | {"input_scheme": "IOB1"}, "a O\nb I-LOC\n", {"tags": ["O U-LOC"]}),
    (NER, "\ufeff\r\n \t\r\n Oslo I-LOC \t\r\n\r\n\r\nbegins O\r\n", {"tokens": ["Oslo", "begins"]}),
    (NER, DOCUMENTS, {"document": [0, 0, 0, 1, 2], "sentence": [0, 1, 2, 0, 0]}),
    (NER, "Oslo I-LOC\n-DOCSTART- O\nbegins O\n", {"document": [0, 1], "sentence": [0, 0]}),
    (CONLLU, f"{WORD}\n# newdocument is no border\n{WORD}\n#newdoc\n{WORD}\n",
     {"document": [0, 0, 1], "sentence": [0, 1, 0]}),
    (CONLLU, f"{WORD}\n# newdoc\n\n{WORD}\n{WORD}\n", {"document": [0, 1, 1], "sentence": [0, 0, 1]}),
    (CONLLU, f"{WHOLE}\n{conllu('1-1', 'a')}{WORD}", {"tokens": ["a b", "a"], "tags": ["X Y", "X"]}),
    (CONLLU | {"tag_column": "xpos"}, sample("conllu.conllu"), {"tags": ["VBP RB VB", "CD NFP", "$"]}),
    (SST, "\ufeff(3 (2 8\u00a01\\/2) (3 Women))\r\n", {"tokens": ["8\u00a01/2 Women"], "label": ["positive"]}),
    (TEXTS | {"columns": {"text": -1, "label": 0}}, "label\ttext, other\n1\ta, b\n", {"tokens": ["a , b"]}),
    (TEXTS | {"tokenizer": "whitespace"}, f"text,label\n{LONG},1\n", {"tokens": [LONG]}),
    (TEXTS | {"task": "text_pairs", "columns": {"premise": 1, "hypothesis": 2, "label": 0}, "header": False},
     'same\tIt is "on.\tIt works.\n',
     {"premise": ['It is " on .'], "hypothesis": ["It works ."], "label": ["same"]}),
    (TEXTS | {"delimiter": ";", "tokenizer": "whitespace"}, 'label;text\nx;"Mary; sleeps."\n',
     {"tokens": ["Mary; sleeps."], "label": ["x"]}),
    (TABLE, 'Mary\tNNP\tS-PER\n"\t``\tO\n\t\t\n\nNew\tNNP\tB-LOC\n',
     {"tokens": ['Mary "', "New"], "tags": ["S-PER O", "B-LOC"], "line": [1, 5], "sentence": [0, 1]}),
    (TEXTS | {"task": "tagging", "token_per_line": False}, 'tags,tokens\nNNP VBZ,Mary sleeps\n"NNP ,","Mary ,"\n',
     {"tokens": ["Mary sleeps", "Mary ,"], "tags": ["NNP VBZ", "NNP ,"]}),
    (TEXTS | {"quotes": False}, 'label,text\nx,"Mary" sleeps\n', {"tokens": ['" Mary " sleeps']}),
    (TABLE | {"delimiter": " "}, '" PUNCT\nMary PROPN\n\n" PUNCT\n', {"tokens": ['" Mary', '"']}),
    (TEXTS, "text,label\nGood, x\nFine,x \nWell,x\n", {"label": ["x", "x", "x"]}),
    (TEXTS, "text\tlabel\t\t\nA day\tgood\t1\t2\n", {"label": ["good"]}),  # several columns without a name
    (SNLI, "\ufeff" + table(f"{GOLD}\r\n\r\nneutral|It rained.|Rain.\r\n\r\n"),
     {"premise": ["It rained ."], "hypothesis": ["Rain ."], "line": [3]}),
    (SNLI, "\ufeff  " + sample("snli.jsonl").replace("\n", "\r\n\r\n"), {"line": [1, 5, 7]}),
    (SNLI, "\n" + sample("snli.jsonl"), {"line": [2, 4, 5]}),
    (SNLI, snli("A dog does n't -LRB- bark -RRB- .", "It is `` loud ''"),
     {"premise": ["A dog does n't ( bark ) ."], "hypothesis": ['It is " loud "']}),
    (SNLI | {"tokenized": True}, snli("A dog doesn't bark.", "It's loud!"),
     {"premise": ["A dog doesn't bark."], "hypothesis": ["It's loud!"]}),
    (SNLI, snli("See it . Well.", "Fine ."), {"premise": ["See it . Well ."]}),  # raw, as half of the marks are
    (SNLI | {"tokenized": False}, snli("See it . Well.", "Fine ."), {"premise": ["See it . Well ."]}),
    (SNLI, snli("The dog's bone", "A dog"), {"premise": ["The dog 's bone"], "hypothesis": ["A dog"]}),
    (SNLI, snli("A U.S.-made car.", "A car!", **PARSES),
     {"premise": ["A U.S. -made car ."], "hypothesis": ["( A ) car !"]}),
    (SNLI, snli("It isn't.", "Parade", sentence1_binary_parse="", sentence2_binary_parse="Parade"),
     {"premise": ["It is n't ."], "hypothesis": ["Parade"]}),
    (SNLI | {"tokenized": True}, snli("A U.S.-made car.", "A car!", **PARSES), {"premise": ["A U.S.-made car."]}),
    (SNLI, MULTINLI, {"label": ["neutral", "entailment"], "premise": ["It rained .", "So ' \""],
                      "hypothesis": ["Rain .", "Yes ."]}),
    (SNLI, SICK, {"premise": ["A boy is running"] * 3 + ["A cat sleeps"],
                  "hypothesis": ["A child is n't still", "A boy is tall", "No boy is running", "A cat is asleep"],
                  "label": ["entailment", "neutral", "contradiction", "entailment"]}),
    (SNLI | {"semeval_set": "TEST"}, SICK, {"hypothesis": ["No boy is running", "A cat is asleep"]}),
    (SNLI, table("pair_ID|sentence_A|sentence_B|relatedness_score|entailment_judgment\n1|A boy|A child|4.5|ENTAILMENT"),
     {"premise": ["A boy"], "hypothesis": ["A child"], "label": ["entailment"]}),
    (SNLI | {"columns": ["text", "claim", "verdict"]}, table("verdict|text|claim\nneutral|It rained.|Rain."),
     {"premise": ["It rained ."], "hypothesis": ["Rain ."], "label": ["neutral"]}),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "text", "columns"), CASES, ids=[repr(case[1])[:40] for case in CASES])
def test_inputs(settings: Settings, text: str, columns: dict[str, list[Any]], tmp_path: Path) -> None:
    check_columns(tmp_path, settings, text, columns)


def test_documents_in_memory_are_numbered_too() -> None:
    given = [{"tokens": [each], "tags": ["O"]} for each in ("a", "b", "c", "-DOCSTART-", "d", "-DOCSTART-", "e")]
    found = build(NER).read(given)
    assert (found["document"][:], found["sentence"][:]) == ([0, 0, 0, 1, 2], [0, 1, 2, 0, 0])


def test_the_pairs_of_other_sets_of_sick_are_counted_and_an_unknown_set_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    read_text(tmp_path, SICK, SNLI | {"semeval_set": "TRAIN"})
    assert "3 pair(s) of other sets left out" in caplog.text
    path = write(tmp_path / "SICK.txt", SICK.replace("TRIAL", "DEV"))
    with pytest.raises(DataError, match=r"SICK.txt:3: SemEval_set 'DEV'; expected TRAIN, TRIAL, TEST"):
        build(SNLI | {"semeval_set": "TRAIN"}).read(path)


def test_pairs_that_are_left_out_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    text = snli("It rained.", "") + snli(" ", "Rain.") + snli("It rained.", "Rain.") + snli("A.", "B.", gold_label="-")
    assert len(read_text(tmp_path, text, SNLI)) == 1
    assert "2 pair(s) with an empty sentence left out" in caplog.text
    assert f"{tmp_path / 'data.txt'}: 1 pair(s) without a gold label left out" in caplog.text


@pytest.mark.parametrize("inside", ["I", "M"])
def test_a_longer_span_decides_between_bioes_and_bmes(inside: str) -> None:
    reader = TagReader("IOB2", "auto")
    assert reader.convert(["O", "S-X", "B-X", "E-X"], "x:", 1) == ["O", "B-X", "B-X", "I-X"]
    with pytest.raises(DataError, match=r"x:6: 'B-X' at the end of a sentence is not valid in BIOES"):
        reader.convert(["O", "S-X", "B-X"], "x:", 4)  # in both
    assert reader.convert(["B-X", f"{inside}-X", "E-X"], "x:", 8) == ["B-X", "I-X", "I-X"]
    with pytest.raises(DataError, match=r"is not a tag of (BIOES|BMES); .* \(the scheme of the first span; set input"):
        reader.convert(["B-X", f"{'M' if inside == 'I' else 'I'}-X", "E-X"], "x:", 12)


def test_the_scheme_can_be_given_and_tags_may_not_be_spans() -> None:
    with pytest.raises(DataError, match=r"x:2: 'S-X' is not a tag of IOB2; expected O or one of B-LABEL, I-LABEL$"):
        TagReader("BIOUL", "IOB2").convert(["O", "S-X"], "x:", 1)
    assert TagReader(None, "auto").convert(["NN", "-"], "x:", 1) == ["NN", "-"]


@pytest.mark.parametrize(
    ("escaped", "written"),
    [
        *zip(("-LRB-", "-RRB-", "-LSB-", "-RSB-", "-LCB-", "-RCB-"), "()[]{}", strict=True),
        *(("``", '"'), ("''", '"'), ("`", "'"), ("'", "'"), ("'s", "'s"), ("(", "("), ("A-LRB-", "A-LRB-")),
        *(("and\\/or", "and/or"), ("\\*\\*", "**"), ("1\u00a01\\/2", "1\u00a01/2"), ("\\n", "\\n")),
    ],
)
def test_escapes_of_the_treebank_are_undone(escaped: str, written: str) -> None:
    assert unescape(escaped) == unescape(written) == written
