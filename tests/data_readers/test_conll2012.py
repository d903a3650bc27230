"""The columns of CoNLL-2012: documents, sentences, folders, every error with its place, the real data's counts."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest

from elmo_tasks.data_readers.conll2012 import Conll2012Document, bracketed_spans, conll2012_files, read_conll2012
from elmo_tasks.errors import DataError

GOLDEN = """\
#begin document (nw/fen/00/fen_0001); part 000
nw/fen/00/fen_0001   0   0    Mira   NNP   (TOP(S(NP*)        -    -   -   Oak   (PERSON*)   (ARG0*)        *   (0)
nw/fen/00/fen_0001   0   1   likes   VBZ          (VP*     like   01   1   Oak          *       (V*)        *     -
nw/fen/00/fen_0001   0   2    deep   NN        (NP(NP*        -    -   -   Oak          *    (ARG1*  (ARGM-MNR*) (1|(2
nw/fen/00/fen_0001   0   3  diving   NN           *)))     dive   02   -   Oak          *         *)       (V*)   1)|2)
nw/fen/00/fen_0001   0   4       .   .             *))        -    -   -   Oak          *          *        *     -

nw/fen/00/fen_0001   0   0    Rain   NN   (TOP(NP*))   rain   -   2   -   *   -

#end document
#begin document (nw/fen/00/fen_0001); part 001
#end document
"""
HEADER = "#begin document (d); part 000\n"
ROW = "d 0 0 a NN * - - - - * -\n"


def write(path: Path, text: str = GOLDEN) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def read(path: Path) -> list[Conll2012Document]:
    return list(read_conll2012(path))


def test_golden_file(tmp_path: Path) -> None:
    path = write(tmp_path / "data.conll")
    first, second = read(path)
    assert (first.path, first.name) == (path, "nw/fen/00/fen_0001; part 000")
    assert (second.name, second.sentences) == ("nw/fen/00/fen_0001; part 001", [])
    sentence, short = first.sentences
    assert sentence.words == ("Mira", "likes", "deep", "diving", ".")
    assert sentence.parts_of_speech == ("NNP", "VBZ", "NN", "NN", ".")
    assert sentence.lemmas == ("-", "like", "-", "dive", "-")
    assert sentence.speakers == ("Oak",) * 5
    assert sentence.roles == (("(ARG0*)", "(V*)", "(ARG1*", "*)", "*"), ("*", "*", "(ARGM-MNR*)", "(V*)", "*"))
    assert sentence.coreference == ("(0)", "-", "(1|(2", "1)|2)", "-")
    assert (sentence.first_line, short.first_line) == (2, 8)
    assert sentence.predicates == (1, 3)
    assert (short.lemmas, short.predicates, short.roles) == (("rain",), (), ())  # a lemma alone is no predicate


def test_cells_without_a_value_are_hyphens_or_underscores(tmp_path: Path) -> None:
    rows = ROW + ROW.replace("-", "_") + "d 0 0 a NN * run run.01 1 _ * (V*) _\n"
    for row in rows.splitlines(keepends=True):
        ((sentence,),) = [document.sentences for document in read(write(tmp_path / "d.conll", HEADER + row + "\n"))]
        assert sentence.words == ("a",)
        assert sentence.predicates == ((0,) if "run.01" in row else ())
        assert sentence.speakers == ("-",)


def test_a_last_cell_of_an_underscore_is_no_further_column(tmp_path: Path) -> None:
    rows = "".join(f"d\t0\t{place}\ta\tNN\t*\t_\t_\t_\t_\t*\t{cell}\n" for place, cell in enumerate(("_", "(0)")))
    (document,) = read(write(tmp_path / "d.conll", HEADER + rows + "\n"))
    assert document.sentences[0].words == ("a", "a")


def test_tabs_byte_order_mark_windows_line_ends_and_no_empty_line_at_the_end(tmp_path: Path) -> None:
    cells = ["d", "0", "0", "10\u00a0000", "CD", "*", "-", "-", "-", "-", "*", "-"]
    text = "\ufeff" + HEADER + "\t".join(cells) + "\n \n\n" + ROW + "#end document\n"
    (document,) = read(write(tmp_path / "data.conll", text.replace("\n", "\r\n")))
    assert [sentence.words for sentence in document.sentences] == [("10\u00a0000",), ("a",)]
    assert [sentence.first_line for sentence in document.sentences] == [2, 5]


def test_a_header_without_a_part(tmp_path: Path) -> None:
    (document,) = read(write(tmp_path / "data.conll", "#begin document (a (b));\n" + ROW + "#end document\n"))
    assert document.name == "a (b); part 000"


def test_a_folder_is_read_in_the_order_of_the_names(tmp_path: Path) -> None:
    def text(name: str) -> str:
        return f"#begin document ({name}); part 000\n{ROW}#end document\n"

    write(tmp_path / "b" / "1.conll", text("third"))
    (tmp_path / "a" / "deep").mkdir(parents=True)
    (tmp_path / "a" / "deep" / "2.v4_conll.gz").write_bytes(gzip.compress(text("second").encode()))
    (tmp_path / "a" / "1.conll.xz").write_bytes(lzma.compress(text("first").encode()))
    write(tmp_path / "a" / "README.txt", "not a data file")
    assert [document.name for document in read(tmp_path)] == [
        f"{name}; part 000" for name in ("first", "second", "third")
    ]


def test_what_macos_adds_to_a_folder_is_not_data(tmp_path: Path) -> None:
    for name in ("a.gold_conll", "._a.gold_conll", "__MACOSX/b.gold_conll", "b/._c.conll"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text")
    assert conll2012_files(tmp_path) == [tmp_path / "a.gold_conll"]


def test_of_a_folder_with_gold_files_those_alone_are_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path / "a.v4_auto_conll")
    gold = write(tmp_path / "a.v4_gold_conll")
    with caplog.at_level("INFO", logger="elmo_tasks"):
        assert conll2012_files(tmp_path) == [gold]
    assert "1 of 2 files are read" in caplog.text
    caplog.clear()
    (tmp_path / "a.v4_auto_conll").unlink()
    other = write(tmp_path / "b.conll").parent / "deep"
    write(other / "c.v4_gold_conll")
    with caplog.at_level("INFO", logger="elmo_tasks"):
        assert conll2012_files(other) == [other / "c.v4_gold_conll"]
    assert caplog.messages == []  # nothing is left out


def test_a_file_that_was_unpacked(tmp_path: Path) -> None:
    path = write(tmp_path / "1.conll")
    assert conll2012_files(tmp_path / "1.conll.xz") == [path]
    assert read(tmp_path / "1.conll.xz") == read(path)


def test_a_folder_without_files_and_no_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"the folder has no file whose name ends in _conll or \.conll"):
        conll2012_files(tmp_path)
    with pytest.raises(DataError, match="absent: no such file or folder"):
        conll2012_files(tmp_path / "absent")


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (ROW, 1, "a token outside of a document; wanted '#begin document (NAME); part NNN' first"),
        (HEADER + ROW, 1, "the document 'd; part 000' is never closed; wanted '#end document'"),
        (HEADER + ROW + HEADER, 3, "a document begins inside the one of line 1"),
        (HEADER + "#end document\n\n#end document\n", 4, "a document ends where none is open"),
        ("#begin document d; part 0\n", 1, "'#begin document d; part 0'; wanted '#begin document (NAME); part NNN'"),
        (HEADER + "d 0 0 a NN * - - - - *\n", 2, "11 column(s); wanted at least 12"),
        (HEADER + ROW + "d 0 1 b NN * - - - - * * -\n", 3, "13 column(s); wanted 12 as in line 2"),
        (
            HEADER + ROW.replace(" a ", " [WORD] ") + "\n#end document\n",
            2,
            "[WORD] stands for each word: the file is a skeleton",
        ),
        (HEADER + "# a comment\n", 2, "3 column(s); wanted at least 12"),
    ],
)
def test_errors_name_file_and_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    path = write(tmp_path / "data.conll", text)
    errors = [error for document in read(path) for error in (*document.bad_sentences, document.fault) if error]
    assert str(errors[0]).startswith(f"{path}:{line}: {problem}")


def test_bracketed_spans() -> None:
    cells = ["(ARG0*", "*", "*)", "*", "(V*)", "(ARGM-TMP*", "*)"]
    assert bracketed_spans(cells, Path("x"), 1) == [("ARG0", 0, 2), ("V", 4, 4), ("ARGM-TMP", 5, 6)]
    assert bracketed_spans([], Path("x"), 1) == []


@pytest.mark.parametrize(
    ("cells", "position", "problem"),
    [
        ("* -", 1, "'-' in a column of spans; wanted *, (LABEL*, *) or (LABEL*)"),
        ("(A0(A1* *))", 0, "'(A0(A1*' in a column of spans"),
        ("* (A0*))", 1, "'(A0*))' in a column of spans"),
        ("(* *)", 0, "'(*' in a column of spans"),
        ("(A0* (A1*) *)", 1, "'(A1*)' opens a span inside the span (A0* of token 0"),
        ("(A0*) *)", 1, "'*)' closes a span, but none is open"),
        ("* (A0* *", 1, "the span (A0* is never closed in its sentence"),
    ],
)
def test_wrong_spans_are_placed(cells: str, position: int, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        bracketed_spans(cells.split(), Path("data.conll"), 10)
    assert str(caught.value).startswith(f"data.conll:{10 + position}: {problem}")


@pytest.mark.parametrize(("name", "documents"), [("dev", 30), ("test", 30), ("test2", 26)])
def test_counts_of_the_real_data(data_folder: Path, name: str, documents: int) -> None:
    found = read(data_folder / "coref_ontogum" / f"ontogum.{name}.v4_gold_conll")
    assert len({document.name for document in found}) == len(found) == documents


@pytest.mark.slow
def test_counts_of_the_real_training_data(data_folder: Path) -> None:
    assert len(read(data_folder / "coref_ontogum" / "ontogum.train.v4_gold_conll.xz")) == 177
