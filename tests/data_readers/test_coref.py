"""Coreference documents: a golden file, folders, genres and speakers, every error with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data_readers.coref import CoreferenceConll2012Config, CoreferenceConll2012Reader
from elmo_tasks.data_readers.reader import PLACE_FEATURES, DatasetReaderConfig
from elmo_tasks.errors import DataError
from elmo_tasks.tasks import Coreference

GOLDEN = """\
#begin document (talk/fen_0001); part 002
d 2 0 Mira NNP * - - - Oak * (0)
d 2 1 saw  VBD * - - - Oak * -
d 2 2 her  PRP * - - - Oak * (1|(0)
d 2 3 boat NN  * - - - Oak * 1)

d 2 0 You  PRP * - - - Elm * (2)
d 2 1 sold VBD * - - - Elm * -
d 2 2 it   PRP * - - - Elm * (1)

d 2 0 I    PRP * - - - Oak * (2)

#end document
#begin document (empty); part 000
#end document
#begin document (loose); part 000
d 0 0 Rain NN  * - - - - * -

#end document
"""
EXAMPLES: list[dict[str, Any]] = [
    {
        "document": "talk/fen_0001; part 002",
        "genre": "talk",
        "sentences": [["Mira", "saw", "her", "boat"], ["You", "sold", "it"], ["I"]],
        "speakers": [["Oak"] * 4, ["Elm"] * 3, ["Oak"]],
        "clusters": [[[0, 0], [2, 2]], [[2, 3], [6, 6]], [[4, 4], [7, 7]]],
    },
    {
        "document": "loose; part 000",
        "genre": None,
        "sentences": [["Rain"]],
        "speakers": [["-"]],
        "clusters": [],
    },
]


def write(path: Path, text: str = GOLDEN) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def reader() -> CoreferenceConll2012Reader:
    return CoreferenceConll2012Config().build()


def test_golden_file(tmp_path: Path, reader: CoreferenceConll2012Reader, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="elmo_tasks"):
        dataset = reader.read(write(tmp_path / "data.conll"))
    lines = (2, 17)
    assert dataset.to_list() == [
        {**example, "file": 0, "line": line} for example, line in zip(EXAMPLES, lines, strict=True)
    ]
    assert dataset.features == {**Coreference.features, **PLACE_FEATURES}
    assert "1 document(s) without any token left out" in caplog.text


def test_a_name_without_a_genre_before_its_slash(tmp_path: Path, reader: CoreferenceConll2012Reader) -> None:
    dataset = reader.read(write(tmp_path / "data.conll", GOLDEN.replace("(talk/", "(/")))
    assert dataset["genre"][:] == [None, None]


def test_a_folder_is_one_data_set(tmp_path: Path, reader: CoreferenceConll2012Reader) -> None:
    write(tmp_path / "b" / "2.v4_gold_conll", GOLDEN.replace("fen_0001", "fen_0002"))
    write(tmp_path / "a" / "1.v4_gold_conll")
    documents = reader.read(tmp_path)["document"]
    assert documents[:] == [
        "talk/fen_0001; part 002",
        "loose; part 000",
        "talk/fen_0002; part 002",
        "loose; part 000",
    ]


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("Oak * 1)", "Oak * -", 4, "a mention of cluster 1 begins here and does not end in its document"),
        ("(1|(0)", "1)|(0)", 4, "a mention of cluster 1 ends here that was not begun"),
        ("(2)\n\n#end", "(2\n\n#end", 11, "a mention of cluster 2 begins here and does not end"),
        ("Elm * -", "Elm * 7", 8, "'7' is not a coreference cell"),
        ("saw  VBD *", "saw  *", 3, "11 column(s); wanted 12 as in line 2"),
    ],
)
def test_errors_name_file_and_line(
    tmp_path: Path, reader: CoreferenceConll2012Reader, old: str, new: str, line: int, problem: str
) -> None:
    assert old in GOLDEN
    path = write(tmp_path / "data.conll", GOLDEN.replace(old, new))
    with pytest.raises(DataError) as caught:
        reader.read(path)
    assert str(caught.value).startswith(f"{path}:{line}: {problem}")


def test_config() -> None:
    assert DatasetReaderConfig.model_validate({"type": "coref_conll2012"}) == CoreferenceConll2012Config()


@pytest.mark.parametrize(
    ("name", "documents", "mentions"),
    [
        ("ontogum.dev.v4_gold_conll", 30, 3_818),
        ("ontogum.test.v4_gold_conll", 30, 3_581),
        ("ontogum.test2.v4_gold_conll", 26, 1_909),
        pytest.param("ontogum.train.v4_gold_conll.xz", 177, 23_320, marks=pytest.mark.slow),
    ],
)
def test_counts_of_the_real_data(
    data_folder: Path, reader: CoreferenceConll2012Reader, name: str, documents: int, mentions: int
) -> None:
    found = reader.read(data_folder / "coref_ontogum" / name)
    assert len(found) == documents
    assert sum(len(cluster) for example in found for cluster in example["clusters"]) == mentions
    assert all(example["document"].startswith(f"{example['genre']}/") for example in found)


def test_litbank(tmp_path: Path) -> None:
    """Thirteen columns with tabs; the last is empty where no mention begins or ends."""
    cells = [("Orla", "(0)"), ("saw", ""), ("the", "(1"), ("boat", "1)"), (".", "")]
    rows = [f"1_tale\t0\t{place}\t{word}" + "\t_" * 8 + f"\t{cell}\n" for place, (word, cell) in enumerate(cells)]
    path = tmp_path / "1_tale.conll"
    path.write_text(f"#begin document (1_tale); part 0\n{''.join(rows)}\n{''.join(rows[:2])}\n#end document\n")
    (example,) = CoreferenceConll2012Config().build().read(path)
    assert example["sentences"] == [["Orla", "saw", "the", "boat", "."], ["Orla", "saw"]]
    assert example["speakers"] == [["-"] * 5, ["-"] * 2]
    assert example["clusters"] == [[[0, 0], [5, 5]], [[2, 3]]]
    assert (example["document"], example["genre"]) == ("1_tale; part 000", None)


def test_the_test_files_of_the_reference_scorer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Five columns or two, a header without a part, and several brackets of a cell without bars."""
    rows = ["t 0 0 a (0(1", "t 0 1 b 0)", "t\t0\t2\tc\t1)|(0)\t"]  # some lines end with a tab
    path = tmp_path / "key"
    path.write_text("\n".join(["#begin document (Case); ", *rows, "", "u 0 0 d -", "#end document", ""]))
    (example,) = CoreferenceConll2012Config().build().read(path)
    assert example["sentences"] == [["a", "b", "c"], ["d"]]
    assert sorted(example["clusters"]) == [[[0, 1], [2, 2]], [[0, 2]]]
    path.write_text("#begin document (Case);\na (1\na 1)\n#end document\n")
    (example,) = CoreferenceConll2012Config().build().read(path)
    assert (example["sentences"], example["clusters"]) == ([["_", "_"]], [[[0, 1]]])
    assert "1 document(s) have no column of words; their tokens are '_'" in caplog.text


def test_documents_without_tokens_or_words_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bodies = ["", "a (1\na 1)\n", "a 0 0 _ -\n", "", "a 0 0 _ -\n\na 0 0 b -\n"]  # one word is enough
    path = write(tmp_path / "key", "".join(f"#begin document (d);\n{body}\n#end document\n" for body in bodies))
    with caplog.at_level("INFO", logger="elmo_tasks"):
        assert len(CoreferenceConll2012Config().build().read(path)) == 3
    assert "2 document(s) without any token left out" in caplog.text
    assert "2 document(s) have no column of words" in caplog.text
