"""The columns of CoNLL-2012: documents, sentences, spans in brackets, folders, and the files of other publishers."""

import gzip
import lzma
from pathlib import Path

import pytest

from elmo_tasks.data_readers.conll2012 import Conll2012Document, conll2012_files, read_conll2012
from tests.data_readers.readers import COREF, END, HEAD, problem, read, sample, write

ROW = "d 0 0 a NN * - - - - * -\n"


def documents(path: Path) -> list[Conll2012Document]:
    return list(read_conll2012(path))


@pytest.mark.parametrize("row", [ROW, ROW.replace("-", "_"), "d 0 0 a NN * run run.01 1 _ * (V*) _\n"])
def test_cells_without_a_value_are_hyphens_or_underscores(row: str, tmp_path: Path) -> None:
    ((sentence,),) = [document.sentences for document in documents(write(tmp_path / "d.conll", HEAD + row + "\n"))]
    assert (sentence.words, sentence.parts_of_speech, sentence.speakers) == (("a",), ("NN",), ("-",))
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
    assert caplog.messages == []  # nothing is left out
    gold.unlink()
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
