"""Files of word vectors: every form, every error, the cache."""

import re
import struct
from pathlib import Path

import numpy as np
import pytest

from elmo_tasks.errors import DataError
from elmo_tasks.modules import word_vectors
from elmo_tasks.modules.word_vectors import WordVectorFile, open_word_vectors

GLOVE = "the 0.5 -1 2e-3\nof 1 2 3\nThe 4 5 6\n"
FORMS = {
    "glove": GLOVE,
    "word2vec": f"3 3\n{GLOVE}",
    "fasttext": "3 3\n" + GLOVE.replace("\n", " \n"),
    "spaces at line ends": GLOVE.replace("\n", " \n"),
    "windows": GLOVE.replace("\n", "\r\n"),
    "no last line end": GLOVE.rstrip("\n"),
    "blank last lines": f"{GLOVE}\n \n",
    "tab after the word": GLOVE.replace("the ", "the\t").replace("of ", "of\t ").replace("The ", "The\t"),
    "tabs": GLOVE.replace(" ", "\t"),
    "tabs after a first line": f"3\t3\n{GLOVE}\n".replace(" ", "\t"),
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "word_vectors"


def write(folder: Path, text: str) -> Path:
    path = folder / "vectors.txt"
    path.write_bytes(text.encode())
    return path


def assert_is_the_small_file(file: WordVectorFile) -> None:
    assert file.words == ("the", "of", "The")
    assert (len(file), file.dimension) == (3, 3)
    expected = np.array([[4, 5, 6], [np.nan] * 3, [0.5, -1, 2e-3], [4, 5, 6]], dtype=np.float32)
    rows = file.rows(["The", "absent", "the", "The"])
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, expected)
    assert file.rows([]).shape == (0, 3)


@pytest.mark.parametrize("form", FORMS)
def test_text_forms(tmp_path: Path, form: str) -> None:
    assert_is_the_small_file(WordVectorFile(write(tmp_path, FORMS[form])))


def test_words_with_spaces_and_numbers(tmp_path: Path) -> None:
    file = WordVectorFile(write(tmp_path, "a 1 2\n. . . 3 4\nat 5 6 7\n1\u00a0000 8 9\n\u0085 1 1\n"))
    assert file.words == ("a", ". . .", "at 5", "1\u00a0000", "\u0085")
    np.testing.assert_array_equal(file.rows(["at 5", ". . ."]), [[6, 7], [3, 4]])
    assert WordVectorFile(write(tmp_path, "New York 1 2\nLos Angeles 3 4\n")).words == ("New York", "Los Angeles")


@pytest.mark.parametrize(
    ("text", "size", "words"),
    [
        (". . . 1 2\nthe 3 4\n", 2, (". . .", "the")),  # blanks in the first word
        ("at 5 1 2\nthe 3 4\n", 2, ("at 5", "the")),  # a number in it
        ("at 5 1 2\nin 5 3 4\nthe 3 4\n", 2, ("at 5", "in 5", "the")),
        ("New York\t1 2\n\nthe\t3 4\n", 2, ("New York", "the")),
        ("2 2\nNew York 1 2 \nat 5 3 4 \n", 2, ("New York", "at 5")),
    ],
)
def test_the_size_counts_and_not_the_first_line(tmp_path: Path, text: str, size: int, words: tuple[str, ...]) -> None:
    assert open_word_vectors(write(tmp_path, text), size).words == words


def test_the_first_of_a_repeated_word_counts(tmp_path: Path) -> None:
    file = WordVectorFile(write(tmp_path, "a 1\nb 2\na 3\n"))
    assert file.words == ("a", "b", "a")
    np.testing.assert_array_equal(file.rows(["a", "b"]), [[1], [2]])


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("", "", "holds no word vector"),
        ("0 5\n", "", "holds no word vector"),
        ("word\n", ":1", "'word'; expected a word and its numbers, separated by spaces"),
        ("x" * 99, ":1", f"'{'x' * 80}'; expected a word and its numbers"),
        ("a 1 2\n" + "x" * 99, ":2", f"expected a word and 2 numbers, separated by spaces; got '{'x' * 80}'"),
        ("a 1 2\nb 1\n", ":2", "expected a word and 2 numbers, separated by spaces; got 'b 1'"),
        ("a 1 2\n 1 2\n", ":2", "expected a word and 2 numbers, separated by spaces; got ' 1 2'"),
        ("2 2\na 1 2\nb 1\n", ":3", "expected a word and 2 numbers, separated by spaces; got 'b 1'"),
        ("a 1 2\nb 1 x\n", ":2", "could not convert string to float: 'x'; expected 2 numbers after the word"),
        ("a 1 2\nb 1 2\nc nan 2\n", ":3", "one of the numbers is not finite"),
        ("2 2\na 1 2\nb 1 1e39\n", ":3", "one of the numbers is not finite"),
        ("3 2\na 1 2\nb 1 2\n", "", "2 word vectors; the first line promises 3. Is the file cut short?"),
        ("1 2\na 1 2\nb 1 2\n", "", "2 word vectors; the first line promises 1"),
        ("4 1\na 1\nb 2\nc 3\nd inf\n", ":5", "one of the numbers is not finite"),
    ],
)
@pytest.mark.parametrize("rows", [word_vectors._BATCH_ROWS, 2])
def test_errors_name_file_and_line(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: str, problem: str, rows: int
) -> None:
    monkeypatch.setattr(word_vectors, "_BATCH_ROWS", rows)
    path = write(tmp_path, text)
    with pytest.raises(DataError) as caught:
        WordVectorFile(path)
    assert str(caught.value).startswith(f"{path}{line}: {problem}")
    assert list(cache.glob("*")) == []


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("nowhere.txt", None, "nowhere.txt: no such file"),
        (
            "word2vec.bin",
            b"2 3\nok " + struct.pack("<3f", 0.1, 2.0001, -0.9) + b"\nno ...",
            "word2vec.bin:2: .* not UTF-8; .*the file seems to be binary: export it",
        ),
    ],
)
def test_files_that_are_missing_or_damaged(tmp_path: Path, name: str, content: bytes | None, problem: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=problem):
        WordVectorFile(tmp_path / name)


def test_parsed_once(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path, GLOVE)
    caplog.set_level("INFO")
    WordVectorFile(path)
    first, second = caplog.messages
    assert first == f"reading the word vectors of {path}; this happens once"
    assert re.fullmatch(rf"{path}: 3 word vectors in 0\.\d s", second)
    with monkeypatch.context() as patch:
        patch.delattr(word_vectors, "_batches")
        assert_is_the_small_file(WordVectorFile(path.rename(tmp_path / "other.txt")))
    assert WordVectorFile(write(tmp_path, GLOVE.replace("4 5 6", "6 5 4"))).rows(["The"]).tolist() == [[6, 5, 4]]
    assert len(list(cache.iterdir())) == 2


def test_opened_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, GLOVE)
    file = open_word_vectors(path, 3)
    with monkeypatch.context() as patch:
        patch.delattr(word_vectors, "content_hash")
        assert open_word_vectors(str(path), 3) is file
    assert_is_the_small_file(file)
    write(tmp_path, GLOVE.replace("4 5 6", "6 5 4.0"))
    assert open_word_vectors(path, 3).rows(["The"]).tolist() == [[6, 5, 4]]
    with pytest.raises(DataError, match=rf"{tmp_path}: is a folder; expected a file"):
        WordVectorFile(tmp_path)
    with pytest.raises(DataError, match=r"nowhere.txt: no such file"):
        open_word_vectors(tmp_path / "nowhere.txt", 3)


@pytest.mark.parametrize("keep", [0, 8, -20])
def test_a_damaged_cache_file_is_made_anew(
    tmp_path: Path, cache: Path, keep: int, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path, GLOVE)
    WordVectorFile(path)
    (cached,) = cache.iterdir()
    whole = cached.read_bytes()
    cached.write_bytes(whole[:keep])
    assert_is_the_small_file(WordVectorFile(path))
    assert cached.read_bytes() == whole
    assert "damaged and are written again" in caplog.text


def test_missing_vectors_of_a_model_can_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_TASKS_DATA", str(tmp_path))
    for folder, both in ((tmp_path, True), (Path("/elsewhere"), False)):
        with pytest.raises(DataError, match="no such file") as error:
            open_word_vectors(folder / "vectors.txt", 50)
        assert ("Set ELMO_TASKS_DATA to the folder of your data" in str(error.value)) == both
        assert str(error.value).endswith(". To train without word vectors: --set model.embedder.words=null")
