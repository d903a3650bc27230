"""Semantic roles and predicates: folders, pairs of files, missing framesets, and what is skipped and counted."""

import gzip
from pathlib import Path

import pytest

from elmo_tasks.data_readers.srl import SrlConll2005Config, SrlConll2005Reader, SrlConll2012Config
from elmo_tasks.errors import DataError
from tests.data_readers.readers import (
    PREDICATES,
    PROPS,
    ROLES,
    Settings,
    build,
    problem,
    read,
    sample,
    sample_examples,
    write,
)

ROLES_TEXT, ROLES_EXAMPLES = sample("srl_conll2012.conll"), sample_examples("srl_conll2012.conll")
WORDS = "Mary\nlikes\ndiving\n\nRain\n\nShe\nsank\n"
CELLS = "- (A0*) (A0*)\nlike (V*) *\ndive (A1*) (V*)\n\n-\n\n- (A1*)\nsink (V*)\n"


def write_pair(folder: Path, name: str, words: str = WORDS, props: str = CELLS) -> Path:
    write(folder / "words" / f"{name}.words", words)
    write(folder / "props" / f"{name}.props", props)
    return folder


def test_sentences_without_a_predicate_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "data.conll", ROLES_TEXT)
    reader = SrlConll2012Config().build()
    assert [len(sentence.predicates) for sentence in reader.sentences(path)] == [0, 2, 1]
    caplog.set_level("INFO", "elmo_tasks")
    assert len(list(reader.examples(path))) == 3
    assert "3 sentences, 1 of them without a predicate" in caplog.text


def test_a_document_with_a_wrong_border_is_skipped_and_the_next_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "data.conll", ROLES_TEXT.replace("(nw/fen_0001)", "nw/fen_0001"))
    (example,) = read(path, ROLES | {"on_error": "skip"})
    assert (example["tokens"], example["sentence"]) == (["Oaks", "grow"], 0)


def test_where_framesets_are_missing_the_predicate_is_where_its_span_begins(tmp_path: Path) -> None:
    path = write(tmp_path / "data.conll", ROLES_TEXT.replace("dive 02", "dive - "))
    assert read(path, ROLES) == ROLES_EXAMPLES


def test_columns_between_the_words_and_the_props(tmp_path: Path) -> None:
    text = "".join(line.replace(" ", " NN (S* * ", 1) for line in sample("srl_conll2005.txt").splitlines(keepends=True))
    path = write(tmp_path / "data.txt", text)
    assert read(path, PROPS | {"columns": [0, 4]}) == sample_examples("srl_conll2005.txt")


def test_conll_2005_as_distributed(tmp_path: Path) -> None:
    write_pair(tmp_path, "train.03", "He\n\n", "-\n\n")
    write_pair(tmp_path, "train.02")
    plain = tmp_path / "words" / "train.02.words"
    plain.with_suffix(".words.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    write(tmp_path / "props" / "train.02.props.gz", b"")  # a file that is there twice
    reader = SrlConll2005Config().build()
    names = ["train.02.words.gz", "train.02.props", "train.03.words", "train.03.props"]
    assert [file.name for file in reader.files(tmp_path)] == names
    assert read(tmp_path, PROPS) == [{**example, "file": 1} for example in sample_examples("srl_conll2005.txt")]
    assert [sentence.tokens for sentence in reader.sentences(tmp_path)][-1] == ["He"]


@pytest.mark.parametrize(
    ("words", "props", "expected"),
    [
        (WORDS + "\nagain\n", CELLS, "/words/x.words:10: one more sentence than {folder}/props/x.props"),
        (WORDS, CELLS + "\n-\n", "/props/x.props:10: one more sentence than {folder}/words/x.words"),
        (WORDS.replace("Rain\n", "Rain\nfell\n"), CELLS,
         "/props/x.props:5: the sentence has 1 token(s); expected 2 as in {folder}/words/x.words:5"),
        (WORDS, CELLS.replace("sink (V*)", "sink (V*"), "/props/x.props:8: the span (V* is never closed"),
    ],
)  # fmt: skip
def test_words_and_props_that_do_not_fit(words: str, props: str, expected: str, tmp_path: Path) -> None:
    write_pair(tmp_path, "x", words, props)
    assert problem(tmp_path, PROPS).startswith(expected.format(folder=tmp_path))


def test_a_folder_that_is_not_as_distributed(tmp_path: Path) -> None:
    expected = ": no file words/NAME.words; expected a folder with words and props, or a single file"
    assert problem(tmp_path, PROPS) == expected
    write_pair(tmp_path, "a")
    single = write(tmp_path / "words" / "b.words", WORDS)
    expected = f": {single} has no counterpart; expected b.words in words, b.props in props"
    assert problem(tmp_path, PROPS) == expected
    single.rename(tmp_path / "props" / "b.props")
    for _ in range(2):
        assert "props/b.props has no counterpart" in problem(tmp_path, PROPS)
        write(tmp_path / "words" / "c.words", WORDS)  # the first file without a counterpart is named


# Predicates


def test_sentences_without_a_document_are_all_in_the_first_one(tmp_path: Path) -> None:
    path = write(tmp_path / "props.txt", "Mary - (A0*)\nsank sink (V*)\n\nRain -\n\nSnow -\n")
    examples = read(path, PREDICATES | {"source": PROPS})
    assert [each["tags"] for each in examples] == [["O", "B-V"], ["O"], ["O"]]
    assert [(each["document"], each["sentence"], each["line"]) for each in examples] == [
        (0, 0, 1),
        (0, 1, 4),
        (0, 2, 6),
    ]


def test_another_version_of_the_source_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    readers = [build(PREDICATES | {"source": source}) for source in (PROPS, ROLES)]
    before = [reader.cache_key() for reader in readers]
    monkeypatch.setattr(SrlConll2005Reader, "version", 99)
    assert [reader.cache_key() != key for reader, key in zip(readers, before, strict=True)] == [True, False]


def test_a_wrong_proposition_leaves_its_predicate(tmp_path: Path) -> None:
    text = ROLES_TEXT.replace("*)            (V*)", "* (V*)")
    path = write(tmp_path / "data.conll", text)
    assert read(path, PREDICATES | {"on_error": "skip"})[1]["tags"] == ["O", "B-V", "O", "O", "B-V"]
    with pytest.raises(DataError):  # what the source's setting says does not count
        read(path, PREDICATES | {"source": ROLES | {"on_error": "skip"}})


def test_what_is_skipped_in_data_to_predict_does_not_depend_on_the_settings(tmp_path: Path) -> None:
    path = write(tmp_path / "props.txt", "Mary - (A0*)\nsank sink (V*)\n\nRain\n\nSnow -\n")
    for on_error in ("fail", "skip"):
        reader, problems = build(PREDICATES | {"source": PROPS, "on_error": on_error}), list[DataError]()
        assert [each["line"] for each in reader.unlabelled(str(path), problems.append)] == [1, 6]
        assert [str(error).split(": ")[0] for error in problems] == [f"{path}:4"]
        with pytest.raises(DataError, match=r"props\.txt:4: 1 column"):
            list(reader.unlabelled(str(path)))


@pytest.mark.parametrize("settings", [PROPS, PREDICATES | {"source": PROPS}])
def test_compressed_data_to_predict(settings: Settings, tmp_path: Path) -> None:
    write(tmp_path / "test.props.gz", gzip.compress(b"Mary - (A0*)\nsank sink (V*)\n"))
    assert [each["line"] for each in build(settings).unlabelled(f"{tmp_path}/test.props")] == [1]
