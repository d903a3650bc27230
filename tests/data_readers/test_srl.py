"""CoNLL-2012, semantic roles and predicates: cells, folders, pairs of files, missing framesets, and what is skipped."""

import gzip
import lzma
from pathlib import Path

import pytest

from elmo_tasks.data_readers import Parsing
from elmo_tasks.data_readers.conll2012 import Conll2012Document, conll2012_files, read_conll2012
from elmo_tasks.data_readers.srl import SrlConll2012Config
from elmo_tasks.errors import DataError
from elmo_tasks.extras.other_tasks.conll import SrlConll2005Config, SrlConll2005Reader
from tests.data_readers.readers import (
    COREF,
    END,
    HEAD,
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
    assert [len(sentence.predicates) for sentence in reader.sentences(path, Parsing())] == [0, 2, 1]
    caplog.set_level("INFO", "elmo_tasks")
    assert len(list(reader.examples(path, Parsing()))) == 3
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
    assert [sentence.tokens for sentence in reader.sentences(tmp_path, Parsing())][-1] == ["He"]


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


ROW = "d 0 0 a NN * - - - - * -\n"


def documents(path: Path) -> list[Conll2012Document]:
    return list(read_conll2012(path))


@pytest.mark.parametrize("row", [ROW, ROW.replace("-", "_"), "d 0 0 a NN * run run.01 1 _ * (V*) _\n"])
def test_cells_without_a_value_are_hyphens_or_underscores(row: str, tmp_path: Path) -> None:
    ((sentence,),) = [document.sentences for document in documents(write(tmp_path / "d.conll", HEAD + row + "\n"))]
    assert (sentence.words, sentence.speakers) == (("a",), ("-",))
    assert sentence.predicates == ((0,) if "run.01" in row else ())


def test_a_last_cell_of_an_underscore_is_not_a_further_column(tmp_path: Path) -> None:
    rows = "".join(f"d\t0\t{index}\ta\tNN\t*\t_\t_\t_\t_\t*\t{cell}\n" for index, cell in enumerate(("_", "(0)")))
    (document,) = documents(write(tmp_path / "d.conll", HEAD + rows + "\n"))
    assert document.sentences[0].words == ("a", "a")


def test_no_break_spaces_blank_lines_and_no_empty_line_at_the_end(tmp_path: Path) -> None:
    cells = ["d", "0", "0", "10\u00a0000", "CD", "*", "-", "-", "-", "-", "*", "-"]
    (document,) = documents(write(tmp_path / "d.conll", HEAD + "\t".join(cells) + "\n \n\n" + ROW + END))
    assert [sentence.words for sentence in document.sentences] == [("10\u00a0000",), ("a",)]
    assert [sentence.first_line for sentence in document.sentences] == [2, 5]


def test_a_header_without_a_part(tmp_path: Path) -> None:
    (document,) = documents(write(tmp_path / "data.conll", "#begin document (a (b));\n" + ROW + END))
    assert document.name == "a (b); part 000"


def test_a_folder_is_read_in_the_order_of_the_names(tmp_path: Path) -> None:
    texts = [f"#begin document ({name}); part 000\n{ROW}{END}" for name in ("first", "second", "third")]
    write(tmp_path / "b" / "1.conll", texts[2])
    write(tmp_path / "a" / "deep" / "2.v4_conll.gz", gzip.compress(texts[1].encode()))
    write(tmp_path / "a" / "1.conll.xz", lzma.compress(texts[0].encode()))
    write(tmp_path / "a" / "README.txt", "not a data file")
    for name in ("._a.conll", "__MACOSX/b.conll", "b/._c.conll"):  # what macOS adds to a folder
        write(tmp_path / name, "text")
    names = ["first; part 000", "second; part 000", "third; part 000"]
    assert [each.name for each in documents(tmp_path)] == names
    for name in ("a/1.conll.zip", "b/1.conll.gz"):  # of a file that is there twice, one is read
        write(tmp_path / name, "")
    assert [each.name for each in documents(tmp_path)] == names


def test_only_the_gold_files_of_a_folder_are_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    automatic, gold = (write(tmp_path / f"a.v4_{kind}_conll", "") for kind in ("auto", "gold"))
    assert conll2012_files(tmp_path) == [gold]
    assert "1 of 2 files are read" in caplog.text
    caplog.clear()
    automatic.unlink()
    assert conll2012_files(tmp_path) == [gold]
    gold.rename(automatic)
    assert conll2012_files(tmp_path) == [automatic]
    assert caplog.messages == []  # nothing is left out
    automatic.unlink()
    assert problem(tmp_path, COREF).startswith(r": the folder has no file whose name ends in _conll or .conll")
    assert problem(tmp_path / "absent", COREF).startswith(": no such file or folder")


# Coreference


def test_documents_without_tokens_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "elmo_tasks")
    text = "".join(f"#begin document (d);\n{body}\n{END}" for body in ("", ROW, ""))
    assert len(read(write(tmp_path / "key", text), COREF)) == 1
    assert "2 document(s) without any token left out" in caplog.text


def test_the_genre_is_what_comes_before_the_slash(tmp_path: Path) -> None:
    text = sample("coref_conll2012.conll").replace("talk/fen_0001", "/fen_0002")
    example, _ = read(write(tmp_path / "key", text), COREF)
    assert (example["document"], example["genre"]) == ("/fen_0002; part 002", None)


def test_litbank(tmp_path: Path) -> None:
    """Thirteen columns with tabs; the last is empty where no mention begins or ends."""
    cells = [("Orla", "(0)"), ("saw", ""), ("the", "(1"), ("boat", "1)"), (".", "")]
    rows = [f"1_tale\t0\t{index}\t{word}" + "\t_" * 8 + f"\t{cell}\n" for index, (word, cell) in enumerate(cells)]
    text = f"#begin document (1_tale); part 0\n{''.join(rows)}\n{''.join(rows[:2])}\n{END}"
    (example,) = read(write(tmp_path / "1_tale.conll", text), COREF)
    assert example["sentences"] == [["Orla", "saw", "the", "boat", "."], ["Orla", "saw"]]
    assert example["speakers"] == [["-"] * 5, ["-"] * 2]
    assert example["clusters"] == [[[0, 0], [5, 5]], [[2, 3]]]
    assert (example["document"], example["genre"]) == ("1_tale; part 000", None)
