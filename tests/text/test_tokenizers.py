"""Tokenizers: sentences and tokens in several languages, as NLTK has them, and places that are exact in any text."""

# ruff: noqa: RUF001

import json
import pickle

import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.raw_text.tokenizers import RegexConfig, RegexTokenizer, UnicodeTokenizer
from elmo_tasks.text import tokenization
from elmo_tasks.text.tokenizer_config import (
    TokenizerChoice,
    build_tokenizer,
    parse_tokenizer,
)
from elmo_tasks.text.tokenizers import (
    TREEBANK,
    Tokenizer,
    TreebankTokenizer,
    WhitespaceTokenizer,
)

TOKENIZERS = [TREEBANK, WhitespaceTokenizer(), UnicodeTokenizer(), RegexTokenizer(r"\w+|[^\w\s]")]
NAMES = [type(tokenizer).__name__ for tokenizer in TOKENIZERS]


def sentences(tokenizer: Tokenizer, text: str) -> list[str]:
    return [" ".join(sentence) for sentence in tokenizer.strings(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我爱北京。他说：“好！”真的？", ["我 爱 北 京 。", "他 说 ： “ 好 ！ ”", "真 的 ？"]),
        ("Mary wohnt z.B. am 3. Mai hier. Und du?", ["Mary wohnt z.B . am 3 . Mai hier .", "Und du ?"]),
        ("„Nein.“ Dann ging sie.", ["„ Nein . “", "Dann ging sie ."]),
        ("l'eau co\u00fbte 3,14 \u20ac\u2026 trop cher", ["l'eau co\u00fbte 3,14 \u20ac \u2026 trop cher"]),
        ("Th1s  iſ—an 0ld   b0ok .\n\nJ. Oak", ["Th1s iſ — an 0ld b0ok .", "J . Oak"]),
        ("a\u0308b", ["a\u0308b"]),
        ("한국어 문장입니다.", ["한국어 문장입니다 ."]),
        (" \n ", []),
    ],
)
def test_words_of_any_language(text: str, expected: list[str]) -> None:
    assert sentences(UnicodeTokenizer(), text) == expected


@pytest.mark.parametrize("tokenizer", [TREEBANK, UnicodeTokenizer()])
def test_marks_that_nobody_sees_are_in_no_token(tokenizer: Tokenizer) -> None:
    text = "\ufeffMary\u200b met \u200eOslo\u200f\u2060. \u202aShe\u202c left."
    assert sentences(tokenizer, text) == ["Mary met Oslo .", "She left ."]
    found = [text[token.start : token.end] for token in tokenizer.words(text)]
    assert " ".join(found) == "Mary met Oslo . She left ."
    within = "Mer\u00adkel \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    assert sentences(tokenizer, within) == [within]


def test_tokenized_text() -> None:
    text = "Mary sleeps.\r\n\nHe said : \u201cno\u201d\u00a0."
    assert sentences(WhitespaceTokenizer(), text) == ["Mary sleeps.", "He said : \u201cno\u201d ."]
    assert [line.split() for line in text.splitlines() if line] == list(WhitespaceTokenizer().strings(text))


def test_a_regular_expression() -> None:
    tokenizer = RegexTokenizer(r"\p{L}+|x*")  # empty matches are not tokens
    assert sentences(tokenizer, "Drei-Käse-hoch 123. Ende.") == ["Drei Käse hoch", "Ende"]
    with pytest.raises(ElmoTasksError, match=r"the tokenizer's pattern '\(' is not a regular expression: missing \)"):
        RegexTokenizer("(")


def check_partition(tokenizer: Tokenizer, text: str) -> None:
    """Tokens are in order, do not overlap and leave out white space only."""
    end = 0
    for sentence in tokenizer.tokenize(text):
        assert sentence
        for token in sentence:
            assert token.text == text[token.start : token.end] != ""
            if tokenizer in TOKENIZERS[:2]:  # white space after a mark that joins it to a word may be in a word
                assert not any(character.isspace() for character in token.text)
            assert text[end : token.start].strip() == ""
            assert token.start >= end
            end = token.end
    assert text[end:].strip() == ""
    assert list(tokenizer.strings(text)) == [[each.text for each in one] for one in tokenizer.tokenize(text)]


PIECES = """
    a U.S. Mr. . ... ?! " '' ' `` ` \u2019 “ ” 's n't cannot $ 5 , : & @ http:// www. a@b.c - -- ( ) … 。 ！ 我 ä \u0308
"""
WHITE_SPACE = [" ", "\n", "\n\n", "\r\n", "\t", "\x1c", "\x85", "\u00a0", "\u200d"]


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=NAMES)
@settings(deadline=None, max_examples=60)
@given(text=st.lists(st.sampled_from(PIECES.split() + WHITE_SPACE), max_size=30).map("".join) | st.text(max_size=60))
def test_any_text_is_partitioned(tokenizer: Tokenizer, text: str) -> None:
    check_partition(tokenizer, text)


@pytest.mark.slow
@pytest.mark.parametrize("piece", [" ", ".", "'", '"', "?!", ". ", "U.S. ", "a@", "He left. "])
def test_long_text_is_partitioned(piece: str) -> None:
    check_partition(TREEBANK, piece * (25_000 // len(piece)))  # more than a window


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=NAMES)
def test_worker_processes_get_the_same(tokenizer: Tokenizer) -> None:
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.version == tokenizer.version
    assert copy.tokenize("A b. C!") == tokenizer.tokenize("A b. C!")


def test_every_tokenizer_has_its_own_version(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = [tokenizer.version for tokenizer in (*TOKENIZERS, RegexTokenizer("a"))]
    assert len(set(versions)) == len(versions)
    monkeypatch.setattr(tokenization, "VERSION", "another")
    assert TREEBANK.version.startswith("another")


@pytest.mark.parametrize("piece", [".", "! ", "\n ", "。", "a.", '("', "\u200d"])
def test_long_runs_take_linear_time(piece: str) -> None:
    """Quadratic time would be minutes for this many pieces."""
    text = piece * 15_000
    assert "".join(token.text for token in UnicodeTokenizer().words(text)) == "".join(text.split())


@pytest.mark.parametrize("text", ["a\x0bb\nc", "a\x85b", "a\u2028b c", "a\r\nb"])
def test_only_a_line_feed_ends_a_line_of_tokens(text: str) -> None:
    tokenizer = WhitespaceTokenizer()
    assert list(tokenizer.strings(text)) == [[token.text for token in each] for each in tokenizer.tokenize(text)]


CHOICE = pydantic.TypeAdapter(TokenizerChoice)


@pytest.mark.parametrize(
    ("choice", "kind"),
    [
        ('"treebank"', TreebankTokenizer),
        ('"whitespace"', WhitespaceTokenizer),
        ('"unicode"', UnicodeTokenizer),
        ('{"type": "unicode"}', UnicodeTokenizer),
        ('{"type": "regex", "pattern": "a+"}', RegexTokenizer),
    ],
)
def test_choices(choice: str, kind: type) -> None:
    assert type(build_tokenizer(CHOICE.validate_json(choice))) is kind
    assert type(parse_tokenizer(choice if choice.startswith("{") else json.loads(choice))) is kind


def test_wrong_choices() -> None:
    with pytest.raises(pydantic.ValidationError, match=r"'\(' is not a regular expression"):
        RegexConfig(pattern="(")
    for text, problem in (
        ("unicod", "the tokenizer 'unicod': unknown type; expected one of regex, treebank, unicode, whitespace"),
        ("{", "the tokenizer '{': its settings: '{' is not valid Jsonnet"),
        ('{"type": "regex"}', "Field required; expected a JSON object"),
        ('{"type": "regex", "pattern": ""}', "at least 1 character"),
    ):
        with pytest.raises(ElmoTasksError) as caught:
            parse_tokenizer(text)
        assert problem in str(caught.value)


def treebank_sentences(text: str) -> list[str]:
    return [" ".join(sentence) for sentence in TREEBANK.strings(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She walked in the park.", "She walked in the park ."),
        ("I don't, can't and cannot.", "I do n't , ca n't and can not ."),
        ("In the 1990\u2019s", "In the 1990 \u2019s"),
        ("Don\u2019t say it\u2019s Ann\u2019s.", "Do n\u2019t say it \u2019s Ann \u2019s ."),
        ("It cost $5.50, £3 or €1,000.", "It cost $ 5.50 , £ 3 or € 1,000 ."),
        ("A well-known 5% rise at 5:30", "A well-known 5 % rise at 5:30"),
        ('"Why," she asked (twice) [so]', '" Why , " she asked ( twice ) [ so ]'),
        ("“Yes,” he said ``now''.", "“ Yes , ” he said `` now '' ."),
        ("the dogs' bowls and 'ours'", "the dogs ' bowls and ' ours '"),
        ("Wait... no -- wait… yes", "Wait ... no -- wait … yes"),
        ("See https://a.example/b?c=d&e, or www.b.example.", "See https://a.example/b?c=d&e , or www.b.example ."),
        ("Write to ann.lee+x@mail.example.org!", "Write to ann.lee+x@mail.example.org !"),
        ("Q&A at B&B; salt & pepper", "Q&A at B&B ; salt & pepper"),
        ("She lives in the U.S.", "She lives in the U.S."),
        ('He said "Wow." and (to cats, dogs, etc.) no.', 'He said " Wow . " and ( to cats , dogs , etc. ) no .'),
        ('Say "Yes."; (not "No."), or *go.*', 'Say " Yes . " ; ( not " No . " ) , or * go . *'),
        ("an U.S.-based firm, i.e. at 5 p.m. sharp", "an U.S.-based firm , i.e. at 5 p.m. sharp"),
    ],
)
def test_words(text: str, expected: str) -> None:
    assert treebank_sentences(text) == [expected]


def test_a_blank_line_ends_a_sentence() -> None:
    text = "A heading\r\nOne line\r\nand another.\r\n \r\nThe end"
    assert treebank_sentences(text) == ["A heading One line and another .", "The end"]


def test_nothing_but_white_space_has_no_sentence() -> None:
    assert TREEBANK.tokenize("") == TREEBANK.tokenize(" \n\t\r\n \u2003 ") == []


def test_a_long_text_has_the_sentences_of_its_parts() -> None:
    part = "Mr. Lee left the U.S. in 1996. She stayed, and so did J. Moe! "
    assert treebank_sentences(part * 800) == treebank_sentences(part) * 800


def test_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    assert [len(sentence) for sentence in TREEBANK.tokenize("words " * 4000)] == [3333, 667]  # 20,000 characters
    assert {token.text for sentence in TREEBANK.tokenize("words " * 4000) for token in sentence} == {"words"}


CASES = """
"I know Mr. Smith."
"It is 5 p.m. now."
"He served in the U.S. Army."
Did you see Mr. Smith?
I know Mr. Smith!!!
Was it Gen. Ito?! |Nobody knew.
"The U.S. Senate sat." |It rained.
She met Dr. Roe. |"I know Dr. Roe." |He nodded.
"We left at 5 a.m. on Monday," she said.
He asked Mr. Li, "Who is Mr. Wu?"
The talk by Dr. J. K. Moe was long. |We slept.
"Wow!" said Ann.
"Wow!" |"No!" |"Why?"
"Why?" Ann asked. |Nobody spoke.
"Stop!" I cried. |The horse stood.
"(Stop!)" I cried. |The horse stood.
"Go home." |The dog went.
He said "Stop!" and ran.
He said "Wow." and left.
It was late (very late!) and dark.
It was late. |(Very late!) |We slept.
"...and then he left..." |She wept.
“I thought that…” |“No.”
Wait... and see.
Wait... |They are here.
He left at 5 p.m. |"Why?"
He left at 5 p.m. |The rest stayed.
He left at 5 p.m. |(He was ill.)
He left at 5 p.m. on Friday.
He left at 5 p.m. Friday.
She works at Acme Inc. |"The firm is big."
The U.S. "Safe Roads Act" is old.
Dr. "Bones" Roe left.
Ann vs. The Club was dull.
We sell pens, ink, etc. |They sell paper.
We sell things (pens, ink, etc.). |They do not.
Some birds, e.g. The Owl, are wise.
See figs. 3 and 4. |Then go on.
Room No. 5 is free. |He said no. |They left.
It is on p. 7. |We read it.
The mill burned down.|[citation needed] It was rebuilt.
He went to Oslo.|:33 She stayed.
It boils at 100 °C. |Nonetheless, it froze.
It weighs 5.5 lbs. |That is a lot.
He lived to be 90. |She did not.
They paid 100. |some paid more.
There are two reasons: 1. the rain and 2. the wind.
J. R. Hill wrote it. |We read it.
Ask W.H.S. Kern about it.
He lived c. 1818 in Rome.
He moved to the U.K. |There he died.
She has a Ph.D. |She is proud.
Thanks!! |See you.
What is it called!?
Thanks ! !! |See you.
Is it you ? |Yes .
He left . " |She stayed . "
He left.|[3] Then he came back.
He left.|(Then he came back.)
He left.|"Then he came back."
We like node.js and www.example.org a lot.
The file is a.txt. |Open it.
Read this. |https://www.example.org/a
"Read this." |https://www.example.org/a
Yes. |no. |maybe.
First line.\\n|Second line.
He said: "I am Lt. Dan." |I said: "I am not."
It was the so-called "Mt. Doom." |Nobody went.
The Dept. of Labor (D.O.L.) agreed.
Is it 5 p.m.? |Yes.
It's 5 p.m.! |Go.
**Shapes.** |A file has some.
""".strip().split("\n")


@pytest.mark.parametrize("case", [case.replace("\\n", "\n") for case in CASES])
def test_a_sentence_ends_where_a_reader_ends_it(case: str) -> None:
    text, borders = case.replace("|", ""), [at for at, character in enumerate(case) if character == "|"]
    starts = [sentence[0][0] for sentence in TREEBANK.spans(text)]
    assert starts[1:] == [at - number for number, at in enumerate(borders)]
