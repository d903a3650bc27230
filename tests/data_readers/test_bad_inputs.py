"""What does not follow a format: for each reader the inputs, and the line and the message of the error."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.data_readers.readers import (
    CONLLU,
    COREF,
    END,
    HEAD,
    LINES,
    NAMES,
    NER,
    ODD_FILES,
    PROPS,
    ROLES,
    SAMPLES,
    SNLI,
    SQUAD,
    SST,
    STARS,
    TABLE,
    TEXTS,
    Settings,
    conllu,
    problem,
    sample,
    write,
    write_for,
    write_hub,
)

ROW = "d 0 0 a NN * - - - - * -\n"
CONLL_2012, COREFERENCE = "srl_conll2012.conll", "coref_conll2012.conll"
PAIR = {"gold_label": "neutral", "sentence1": "It rained.", "sentence2": "Rain."}
UTF_16 = ": the file is UTF-16; expected UTF-8. Convert it with: iconv"
JQ = "; expected each JSON object on one line, as `jq -c %s FILE` prints them; convert the file"
LEFT_OUT = "; expected a word or a tag there"


def changed(name: str, old: str, new: str) -> str:
    """A sample file with a fault."""
    assert old in sample(name)
    return sample(name).replace(old, new)


def snli(line: str | dict[str, Any]) -> str:
    """A good pair, an empty line, and another line."""
    return f"{json.dumps(PAIR)}\n\n{line if isinstance(line, str) else json.dumps(line)}\n"


def tabs(rows: str) -> str:
    return rows.replace("|", "\t")


WORD = conllu("1", "a", "X")
SKELETON = ROW.replace(" a ", " [WORD] ")
# The reader, a text, and how the error begins after the name of the file
TEXTS_AND_PROBLEMS: list[tuple[Settings, str | bytes, str]] = [
    (NER, "Oslo" * 25 + "\n", f":1: 1 column(s); expected at least 2: '{'Oslo' * 20}'"),
    (NER, "a x O\n\nb x O\nc O\n", ":4: 2 column(s); expected 3 as in line 1: 'c O'"),
    (NER, "a O\nb 0\n", ":2: '0' is not a tag; expected O or a tag such as B-LOC"),
    (NER, "a B-LOC\nb O\nc E-LOC\n", ":3: 'E-LOC' is not a tag"),
    (NER, "a B-LOC\n\nb O\nc I-LOC\n", ":4: 'I-LOC' after 'O' is not valid in IOB2 (the scheme of the first span"),
    (NER, "a U-LOC\n\nb B-LOC\nc I-LOC\n", ":4: 'I-LOC' at the end of a sentence is not valid in BIOUL"),
    (NER, "a I-LOC\n-DOCSTART- O\nb O\nc U-LOC\n", ":4: 'U-LOC' is not a tag of IOB1"),
    (NER | {"input_scheme": "IOB2"}, "a O\nb I-LOC\n", ":2: 'I-LOC' after 'O' is not valid in IOB2"),
    (NER | {"columns": [0, 3]}, "a O\n", ":1: 2 column(s); expected at least 4"),
    (NER | {"columns": [-3, -1]}, "a O\n", ":1: 2 column(s); expected at least 3"),
    (NER, "-DOCSTART- -X- O O\n\n", ": has no example"),
    (NER | {"on_error": "skip"}, "a\n", ": has no example; 1 were skipped, the first because of "),
    (NER, "Mary\tO\n\tO\n", ":2: column 0 is empty; expected a word or a tag there: '\\tO'"),
    (NER | {"columns": [0, 1]}, "Mary\t\tX\n", ":1: column 1 is empty"),
    (NER | {"columns": [0, 1], "tag_scheme": None}, "a\tO\tX\nb\t\u00a0\tX\n", ":2: the tag is empty; expected"),
    (CONLLU, "1\ta\tX\n", ":1: 3 column(s); expected 10, separated by tabs: '1\\ta\\tX'"),
    (CONLLU, WORD.replace("\t", " "), ":1: 1 column(s); expected 10, separated by tabs"),
    (CONLLU, WORD + WORD, ":2: word 1 where word 2 was expected; is an empty line missing?"),
    (CONLLU, conllu("2", "a", "X"), ":1: word 2 where word 1 was expected"),
    (CONLLU, conllu("a", "a", "X"), ":1: 'a' does not number a word (1), a range of words (1-2) or an empty node"),
    (CONLLU, conllu("1-", "a", "X"), ":1: '1-' does not number"),
    (CONLLU, WORD + "# comment\n", ":2: a comment inside a sentence; expected an empty line before it"),
    (CONLLU, WORD + conllu("2", "b"), ":2: word 2 ('b') has no upos"),
    (CONLLU, conllu("1", "", "X"), ":1: word 1 has no form"),
    (CONLLU, conllu("0.1", "b") + "\n" + WORD, ":1: a sentence without words"),
    (CONLLU, "# newdoc\n\n\n", ": has no example"),
    (CONLLU | {"tag_column": "xpos"}, WORD, ":1: word 1 ('a') has no xpos"),
    (COREF, ROW, ":1: a token outside of a document; expected '#begin document (NAME); part NNN' first"),
    (COREF, HEAD + ROW, ":1: the document 'a; part 000' is never closed; expected '#end document'"),
    (COREF, HEAD + ROW + HEAD, ":3: a document begins inside the one of line 1"),
    (COREF, HEAD + END + "\n" + END, ":4: a document ends where none is open"),
    (COREF, "#begin document d; part 0\n", ":1: '#begin document d; part 0'; expected '#begin document (NAME); part "),
    (NAMES, HEAD + "d 0 0 a NN * - - - - (GPE* -\n" + END, ":2: the span (GPE* is never closed in its sentence"),
    (
        NAMES,
        HEAD.replace("(a)", "(pt/a)") + ROW + END,
        ": has no example; 1 document(s) whose names are not annotated left",
    ),
    (ROLES, HEAD + "d 0 0 a NN * - - - - *\n", ":2: 11 column(s); expected at least 12"),
    (COREF, HEAD + ROW + "d 0 1 b NN * - - - - * * -\n", ":3: 13 column(s); expected 12 as in line 2"),
    (COREF, HEAD + SKELETON + "\n" + END, ":2: [WORD] stands for each word: the file is a skeleton"),
    (COREF, HEAD + ROW.replace(" ", "\t").replace("a\t", "\t") + "\n" + END, ":2: column 3 is empty"),
    (ROLES, changed(CONLL_2012, "(ARGM-MNR*)", "(ARGM-MNR*"), ":8: '(V*)' opens a span inside the span (ARGM-MNR* of"),
    (ROLES, changed(CONLL_2012, "*)            (V*)", "* (V*)"), ":7: the span (ARG1* is never closed in its sentence"),
    (ROLES, changed(CONLL_2012, "dive 02 - - * *)            (V*)", "dive - - - * *) *"),
     ":4: 2 column(s) of roles for 1 token(s) with a frameset, and not every column has a span V instead"),
    (COREF, changed(COREFERENCE, "Elm * -", "Elm * 7"), ":8: '7' is not a coreference cell"),
    (PROPS, "Rain\n", ":1: 1 column(s); expected at least 2: 'Rain'"),
    (PROPS, "a - *\nb x\n", ":2: 2 column(s); expected 3 as in line 1: 'b x'"),
    (PROPS | {"columns": [2, 1]}, "a -\n", ":1: 2 column(s); expected at least 3: 'a -'"),
    (PROPS, "a -\n\na -\nb x\n", ":3: 0 column(s) of roles for 1 predicate(s) in the column of lemmas"),
    (PROPS, "- (A0*) *\nlike (V*) *\ndive (A1*) (V*)\n", ":1: 1 column(s) of roles for 3 pre"),  # without words
    (PROPS, "a - (A0*\nb x (V*)\n", ":2: '(V*)' opens a span inside the span (A0* of token 0"),
    (PROPS, "a - *)\nb x (V*)\n", ":1: '*)' closes a span, but none is open"),
    (PROPS, "\t-\t*\n", ":1: column 0 is empty"),
    (PROPS, "a - (A0\nb x *)\n", ":1: '(A0' in a column of spans; expected *, (LABEL*"),
    (PROPS, "a - *\nb x -\n", ":2: '-' in a column of spans; expected *, (LABEL*, *), (LABEL*) or (LABEL)"),
    (PROPS, "a x (A0(A1*\nb - *))\n", ":1: '(A0(A1*' in a column of spans"),
    (PROPS, "a x *\nb - (A0*))\n", ":2: '(A0*))' in a column of spans"),
    (PROPS, "a x (*\nb - *)\n", ":1: '(*' in a column of spans"),
    (SST, "(0 Never)\n\n(3 (2 It) (3 works)", ":3: the tree ends with 1 bracket(s) that are not closed"),
    (SST, "(3 (2 It) (3 works)))", ":1: column 21: ')' outside the tree; expected one tree per line"),
    (SST, "(3 works) again", ":1: column 11: 'again' outside the tree"),
    (SST, "It (3 works)", ":1: column 1: 'It' where an opening bracket was expected"),
    (SST, "(3 (It) (3 works))", ":1: column 5: 'It' where a label from 0 to 4 was expected"),
    (SST, "((2 It) (3 works))", ":1: column 2: '(' where a label from 0 to 4 was expected"),
    (SST, "(5 works)", ":1: column 2: '5' where a label from 0 to 4 was expected"),
    (SST, "(34 works)", ":1: column 2: '34' where a label from 0 to 4 was expected"),
    (SST, "(3 (2 It) works)", ":1: column 11: 'works' where a bracket was expected"),
    (SST, "(3 It works)", ":1: column 7: 'works' where a closing bracket was expected"),
    (SST, "(3 It (3 works))", ":1: column 7: '(' where a closing bracket was expected"),
    (SST, "(3 (2 It) (3))", ":1: column 13: ')' where a word or an opening bracket was expected"),
    (SST | {"granularity": 2}, "(2 (2 It) (2 is))\n", ": has no example; 1 neutral example(s) left out"),
    (SST | {"on_error": "skip"}, "(\n", ": has no example; 1 were skipped, the first because of "),
    (STARS, "review,stars\nGood,5\nBad\n", ":3: 1 column(s); expected 2 as in line 1: 'Bad'"),
    (STARS, "stars,reviews\n", ": has no example"),
    (STARS, "stars,reviews\n5,Good\n", ":1: no column 'review' among stars, reviews; name the columns in"),
    (STARS | {"delimiter": ";"}, "review,stars\nGood,5\n", ":1: no column 'review' among review,stars; name the"),
    (STARS, "review,id,review,stars\nGood,1,Bad,5\n",
     ":1: 'review' is the name of 2 columns; choose one by its number in 'columns': 0 or 2"),
    (STARS, "review,stars\nGood,\n", ":2: 'stars' is ''; expected a label. dataset_reader.on_error=skip leaves"),
    (STARS, "review,stars\n ,5\n", ":2: 'review' is ' '; expected a text with at least one token"),
    (STARS, 'review,stars\n"Good,5\n', ":2: not a row of a table (unexpected end of data)"),
    (TEXTS, 'label,text\nx,"Mary" sleeps\n', ":2: not a row of a table (',' expected after '\"'); with quotes: false"),
    (TEXTS, "text,label\nGood.,1\rBad.,0\n", ":2: not a row of a table (new-line character seen in unquoted field - do "
     "you need to open the file in universal-newline mode?); a CR ends no line next to LF; convert the file with: tr "),
    (TABLE, "a\tO\n\nb\tO\nc\n", ":4: 1 column(s); expected 2 as in line 1"),
    (TABLE, "a\tO\n\tO\n", ":2: the token is ''; expected a string that is not empty"),
    (TABLE, "a\tO\nleft\t\u00a0\n", ":2: the tag is '\\xa0'; expected a string that is not blank"),
    (TABLE | {"tag_scheme": "IOB2"}, "a\tO\nb\tLOC\n", ":2: 'LOC' is not a tag"),
    (TABLE | {"columns": {"tokens": 0, "tags": 2}}, "a\tO\n", ":1: 2 column(s); expected at least 3: 'a\\tO'"),
    (TABLE | {"header": True, "columns": {"tokens": "Word", "tags": "Tag", "sentence": "Sentence #"}},
     "Word,Tag\nMary,O\n", ":2: no column 'Sentence #' among Word, Tag"),
    (TEXTS | {"encoding": "utf8"}, "text,label\nGood.,1\n".encode("utf-16-le"), ": the file is UTF-16LE"),
    (LINES | {"columns": {"label": "n"}}, (ODD_FILES / "nan.jsonl").read_bytes(), ":1: NaN is not a finite number"),
    (LINES, (ODD_FILES / "utf16.txt").read_bytes(), UTF_16),
    (NER, (ODD_FILES / "utf16.txt").read_bytes(), UTF_16),
    (LINES, '{"review": "x"}', ":1: no 'text' among review"),
    (LINES, '{"text": "Yes", "label": 1}\n[]', ":2: a JSON list; expected an object"),
    (LINES, '[{"text": "Yes", "label": 1},\n{"text": "No", "label": 0}]', ":1: looks like a JSON array" + JQ % "'.[]'"),
    (LINES, '\n{\n"text": "Yes",\n"label": 1\n}', ":2: looks like a JSON object over several lines" + JQ % "."),
    (LINES, '{"text": "Yes", "label": 1, "score": NaN}', ":1: NaN is not a finite number (null stands for"),
    (SQUAD, '{"data": [\n{"paragraphs": ]}', ":2: expected value at column 16"),
    (SQUAD, '{"data": []} x', ":1: trailing characters at column 14"),
    (SQUAD, '{"data":\n "\\ud83c"}', ":2: unexpected end of hex escape at column 9"),
    (SQUAD, '{"data": ' + "1" * 5000, ":1: number out of range at column 43"),
    (SQUAD, "[" * 100_000, ":1: recursion limit exceeded at column 202; exp"),
    (SQUAD, "[1]", ": [1] is not an object with 'data'"),
    (SQUAD, "{}", ": no 'data' among no columns"),
    (SQUAD, '{"data": {}}', ": 'data' is {}; expected a list"),
    (SQUAD, '{"data": []}', ": has no example"),
    (LINES, '{"text": "Yes', ":1: EOF while parsing a string at column 13; expected"),
    (TABLE | {"tag_scheme": "IOB2"}, "a\tB- LOC\n", ":1: 'B- LOC' is not a tag"),
    (SNLI, snli("{'a': 1}"), ":3: key must be a string at column 2"),
    (SNLI, snli(PAIR | {"gold_label": "maybe"}), ":3: gold_label 'maybe'; expected entailment, neutral, "),
    (SNLI, snli(PAIR | {"gold_label": None}), ":3: 'gold_label' is None; expected a string"),
    (SNLI, '{"a": 1}\n{"b": 2}\n', ":1: expected columns sentence1/sentence2 or sentence_A/sentence_B or "
     "premise/hypothesis, and one of gold_label, entailment_label, entailment_judgment, label; got: a. Name others in"),
    (SNLI, snli({"gold_label": "neutral", "sentence1": "It."}), ":3: no 'sentence2' among gold_label, sentence1"),
    (SNLI, snli(PAIR | {"sentence1_binary_parse": "( ( It rained ) ."}),
     ":3: the brackets of a binary parse are not balanced: '( "),
    (SNLI, snli(PAIR | {"sentence1_binary_parse": "It ) ( rained"}), ":3: the brackets of a binary parse are not"),
    (SNLI, tabs("gold_label|sentence1|sentence2|pairID|label1\nneutral|It.|He."),
     ":2: 3 column(s); expected 4 to 5 as in the"),
    (SNLI, tabs("gold_label|sentence1|sentence2\nneutral|It.|He.|x"), ":2: 4 column(s); expected 3 as in the"),
    (SNLI, tabs("gold_label|sentence1|sentence1\nneutral|It.|He."),
     ":1: columns that the header row has twice: 'sentence1'"),
    (SNLI, tabs("sentence1|sentence2|verdict\nIt.|He.|neutral"), ":1: expected columns sentence1/sentence2 or"),
    (SNLI, tabs("\ngold_label|sentence1|sentence2\nneutral|It."), ":3: 2 column(s); expected 3 as in the header"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "text", "expected"), TEXTS_AND_PROBLEMS, ids=[repr(row[1])[:40] for row in TEXTS_AND_PROBLEMS]
)
def test_errors_name_file_and_line(settings: Settings, text: str | bytes, expected: str, tmp_path: Path) -> None:
    assert problem(write_for(settings, tmp_path, text), settings).startswith(expected)


def test_an_error_beyond_the_first_pairs_that_show_the_columns(tmp_path: Path) -> None:
    lines = [json.dumps(PAIR)] * 1002
    lines[1001] = "{"
    assert problem(write(tmp_path / "pairs.jsonl", "\n".join(lines)), SNLI).startswith(":1002: ")


def answer_of(paragraph: Any) -> Any:
    return paragraph["qas"][0]["answers"][1]


PARAGRAPH = "data[0].paragraphs[0]"
FIRST = f"{PARAGRAPH}.qas[0] (question 'q1')"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda each: answer_of(each).update(answer_start=0),
         f"{FIRST}, answers[1]: the answer '90 km' is not at 0, where the passage of 84 characters has 'The I'"),
        (lambda each: answer_of(each).update(answer_start=84),
         f"{FIRST}, answers[1]: the answer '90 km' is not at 84, where the passage of 84 characters has nothing"),
        (lambda each: answer_of(each).update(answer_start=-72),  # where the answer is, from the end
         f"{FIRST}, answers[1]: the answer '90 km' is not at -72, where"),
        (lambda each: answer_of(each).update(text="engineer. Then", answer_start=75), f"{FIRST}, answers[1]: "
         "the answer 'engineer. Then' is not at 75, where the passage of 84 characters has 'engineer.'"),
        (lambda each: answer_of(each).update(text="  ", answer_start=23),
         f"{FIRST}, answers[1]: the answer '  ' contains only white space"),
        (lambda each: answer_of(each).update(answer_start="12"),
         f"{PARAGRAPH}.qas[0].answers[1]: 'answer_start' is '12'; expected a whole number"),
        (lambda each: answer_of(each).update(answer_start=True),
         f"{PARAGRAPH}.qas[0].answers[1]: 'answer_start' is True; expected a whole number"),
        (lambda each: answer_of(each).pop("text"), f"{PARAGRAPH}.qas[0].answers[1]: no 'text' among answer_start"),
        (lambda each: each["qas"][0].update(answers=[]),
         f"{FIRST}: no answer; expected one, as in SQuAD v1.1. For questions without an answer, as in SQuAD 2.0, set "
         "dataset_reader.no_answer and model.no_answer to true; on_error: 'skip'"),
        (lambda each: each["qas"][0].update(question=" "), f"{FIRST}: a question without any token"),
        (lambda each: each["qas"][0].update(id=7.0), f"{PARAGRAPH}.qas[0]: 'id' is 7.0; expected a string"),
        (lambda each: each["qas"][0].update(id=True), f"{PARAGRAPH}.qas[0]: 'id' is True; expected a string"),
        (lambda each: each["qas"][2].update(id="q1"),
         f"{PARAGRAPH}.qas[2] (question 'q1'): an earlier question has the same id"),
        (lambda each: each.update(context="\n"), f"{PARAGRAPH}: a passage without any token"),
        (lambda each: each.update(qas=None), f"{PARAGRAPH}: 'qas' is None; expected a list"),
    ],
    ids=range(15),
)  # fmt: skip
def test_paragraphs_of_squad(change: Callable[[Any], object], expected: str, tmp_path: Path) -> None:
    document = copy.deepcopy(json.loads(sample("squad.json")))
    change(document["data"][0]["paragraphs"][0])
    assert problem(write(tmp_path / "data.json", json.dumps(document)), SQUAD).startswith(f": {expected}")


@pytest.mark.parametrize(
    ("task", "change", "expected"),
    [
        ("classification", {"stars": None}, ": 'stars' is None; expected a label. dataset_reader.on_error=skip leaves"),
        ("classification", {"stars": " "}, ": 'stars' is ' '; expected a label. dataset_reader.on_error=skip leaves"),
        ("classification", {"stars": ["a", "b"]}, ": the label is ['a', 'b']; expected a string. Sets of labels are "
         "for the task multi_label, such as the config small/multi_label"),
        ("classification", {"stars": 4.0}, ": the label is 4.0; expected a string that is not blank, a whole number"),
        ("classification", {"review": ["a", 3]}, ", token 1: the token is 3; expected a string that is not empty"),
        ("classification", {"review": ["a", ""]}, ", token 1: the token is ''; expected a string that is not empty"),
        ("classification", {"review": []}, ": 'review' is []; expected a text with at least one token"),
        ("multi_label", {"topics": None}, ": 'topics' is None; expected a list of labels, or a string"),
        ("multi_label", {"topics": ["a", None]}, ": the label is None; expected a string that is not blank"),
        ("multi_label", {"topics": "a,,b"}, ": the label is ''; expected a string that is not blank"),
        ("multi_label", {"topics": [0, 1, 0]}, ": 'topics' is [0, 1, 0], which seems to be 0 or 1 for each label"),
        ("multi_label", {"topics": "1,0,1"}, ": 'topics' is ['1', '0', '1'], which seems to be 0 or 1 for each label"),
        ("multi_label", {"topics": "a\nb"}, ": 'topics' has '\\n' in a label; expected labels that ',' separates. Set"),
        ("multi_label", {"topics": "a|b"}, ": 'topics' has '|' in a label; expected labels that ',' separates. Set"),
        ("multi_label", {"topics": "['a']"}, ": 'topics' is a list that was printed as text: \"['a']\"; expected its "
         "items with ',' between them, or JSON lines"),
        ("regression", {"stars": "good"}, ": 'stars' is 'good'; expected a number, such as 3.5"),
        ("regression", {"stars": "1_5"}, ": 'stars' is '1_5'; expected a number"),
        ("regression", {"stars": True}, ": 'stars' is True; expected a number"),
        ("regression", {"stars": 10**400}, f": 'stars' is {10**79}; expected a number"),
        ("pair_regression", {"score": "nan"}, ": 'score' is 'nan'; expected a number"),
        ("text_pairs", {"premise": 3}, ": 'premise' is 3; expected a list of strings, or a string"),
        ("tagging", {"pos": ["NNP"]}, ": 1 tags for 2 tokens"),
        ("tagging", {"pos": 3}, ": 'pos' is 3; expected a list"),
        ("tagging", {"tokens": "['a', 'b']"}, ": 'tokens' is a list that was printed as text: \"['a', 'b']\"; "),
        ("tagging", {"tokens": "['a'\n 'b']"}, ": 'tokens' is a list that was printed as text: "),  # numpy's
        ("tagging", {"pos": '["NNP", "VBD"]'}, ": 'pos' is a list that was printed as text: "),
        ("tagging", {"pos": "[3 0]"}, ": 'pos' is a list that was printed as text: '[3 0]'; expected its items with "
         "spaces between them, or JSON lines"),
        ("tagging", {"pos": [-100, 1]}, ", token 0: the tag is -100, the mark of Hugging Face's tokenizers for pieces"),
        ("tagging", {"pos": "-100 1"}, ", token 0: the tag is -100, the mark of"),
        ("tagging", {"tokens": [], "pos": []}, ": 'tokens' has no token; expected at least one"),
        ("semantic_roles", {"verb": 3}, ": 'verb' is 3; expected the index of one of the 3 tokens, from 0"),
        ("semantic_roles", {"verb": -1}, ": 'verb' is -1; expected the index of one of the 3 tokens, from 0"),
        ("semantic_roles", {"verb": True}, ": 'verb' is True; expected the index"),
        ("semantic_roles", {"tags": "B-ARG0 V O"}, ", token 1: 'V' is not a tag"),
        ("reading", {"answers": {"text": ["Mary"], "answer_start": [3]}},
         " (question '3'), answers[0]: the answer 'Mary' is not at 3"),
        ("reading", {"answers": "Mary"}, ": 'answers' is 'Mary'; expected a list"),
        ("reading", {"id": 0.5}, ": 'id' is 0.5; expected a string or a whole number"),
        ("coreference", {"clusters": [[[0, 4]]]}, ": 'clusters' has the mention [0, 4]; expected [first, last token]"),
        ("coreference", {"clusters": [3]}, ": 'clusters' has the mention 3; expected [first, last token]"),
        ("coreference", {"clusters": [[[0, 1], [2, 1]]]}, ": 'clusters' has the mention [2, 1]; expected"),
        ("coreference", {"clusters": [[[-1, 0]]]}, ": 'clusters' has the mention [-1, 0]; expected"),
        ("coreference", {"clusters": [[[0, 1, 2]]]}, ": 'clusters' has the mention [0, 1, 2]; expected"),
        ("coreference", {"clusters": [[[0, True]]]}, ": 'clusters' has the mention [0, True]; expected"),
        ("coreference", {"clusters": 3}, ": 'clusters' is 3; expected a list"),
        ("coreference", {"sentences": [], "clusters": []}, ": 'sentences' has no token; expected at least one"),
        ("coreference", {"sentences": [["a", 3]]}, ", token 1: the token is 3; expected a string that is not empty"),
        ("coreference", {"speakers": [["a", "b"]]},
         ": 'speakers' is [['a', 'b']]; expected a list with as many items as there are sentences, 2"),
        ("coreference", {"speakers": [["a"], ["b", "c"]]},
         ": 'speakers[0]' is ['a']; expected a speaker, or one for each of 2 tokens"),
        ("coreference", {"speakers": [["a", "b"], ["c"]]}, ": 'speakers[1]' is ['c']; expected a speaker, or one for"),
        ("coreference", {"speakers": [["a", 7], ["c", "d"]]}, ": 'speakers[0]' is ['a', 7]; expected a speaker"),
    ],
)  # fmt: skip
def test_rows(task: str, change: dict[str, Any], expected: str, tmp_path: Path) -> None:
    row = json.loads(sample(f"{task}.jsonl").split("\n")[0])
    path = write(tmp_path / "data.jsonl", f"{json.dumps(row)}\n\n{json.dumps(row | change)}\n")
    assert problem(path, SAMPLES[f"{task}.jsonl"]).startswith(f":3{expected}")


SPLIT_TAG = '{"tokens": ["a", "b"], "ner_tags": ["O", "LOC"]}'
GOOD_ROW = {"tokens": ["a"], "ner_tags": ["O"]}
QUESTION = {"id": "q", "question": "?", "context": "It is 90", "answers": {"text": ["90"], "answer_start": [6]}}
HUB_PAIR = {"premise": "It rained.", "hypothesis": "Rain.", "label": "neutral"}


@pytest.mark.parametrize(
    ("settings", "rows", "expected"),
    [
        (NER, [{"tokens": ["a"], "ner_tags": [3]}], ": row 0, token 0: '3' is not a tag"),
        (NER, [{"tokens": ["a", "b"], "ner_tags": ["O", "LOC"]}], ": row 0, token 1: 'LOC' is not a tag"),
        (NER, [GOOD_ROW, {}], ": row 1: 'tokens' is None; expected a list"),
        (NER, [GOOD_ROW, {"tokens": ["a", None], "ner_tags": ["O", "O"]}], ": row 1, token 1: the token is None; exp"),
        (NER, [GOOD_ROW, {"tokens": ["a"], "ner_tags": [None]}], ": row 1, token 0: the tag is None; expected a str"),
        (NER | {"hub_columns": ["tokens", "tags"]}, [GOOD_ROW], ": no column 'tags' among tokens, ner_tags; name the"),
        (SQUAD, [QUESTION | {"answers": {"text": ["90"], "answer_start": []}}], ": row 0.answers: 1 texts and 0 start"),
        (SQUAD, [QUESTION | {"answers": {"text": ["90"], "answer_start": [5]}}],
         ": row 0 (question 'q'), answers[0]: the answer '90' is not at 5"),
        (SQUAD, [QUESTION | {"answers": {"text": [None], "answer_start": [6]}}],
         ": row 0.answers[0]: 'text' is None; expected a string"),
        (SQUAD, [QUESTION | {"context": None}], ": row 0: 'context' is None; expected a string"),
        (SQUAD, [{"id": "q", "question": "?"}], ": no column 'answers', 'context' among id, question; expected the"),
        (SNLI, [HUB_PAIR | {"label": 1}], ": row 0: 'label' is 1; expected a string"),
        (SNLI, [HUB_PAIR, HUB_PAIR | {"label": "?"}], ": row 1: label '?'; expected"),
        (SNLI | {"columns": ["premise", "hypothesis", "verdict"]}, [HUB_PAIR],
         ": no column 'verdict' among premise, hypothesis, label; expected"),
        ({"type": "hub", "task": "classification", "columns": {"text": "review"}}, [{"text": "a", "label": "b"}],
         ": no column 'review' among text, label; name them in 'columns'"),
    ],
)  # fmt: skip
def test_rows_of_hub_data_sets(settings: Settings, rows: list[Any], expected: str, tmp_path: Path) -> None:
    assert problem(write_hub(tmp_path / "hub", rows), settings).startswith(expected)
