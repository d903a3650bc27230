"""Coreference documents: a golden file, folders, genres and speakers, every error with its place, batches."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data_readers.coref import CoreferenceConll2012Config, CoreferenceConll2012Reader
from elmo_tasks.data_readers.reader import PLACE_FEATURES, DatasetReaderConfig
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.text.vocabulary import Vocabulary, VocabularyConfig

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


@pytest.fixture
def vocabulary(reader: CoreferenceConll2012Reader) -> Vocabulary:
    return VocabularyConfig().build(reader, EXAMPLES, [])


def test_golden_file(tmp_path: Path, reader: CoreferenceConll2012Reader, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="elmo_tasks"):
        dataset = reader.read(write(tmp_path / "data.conll"))
    assert dataset.to_list() == [{**example, "file": 0, "line": None} for example in EXAMPLES]
    assert dataset.features == {**CoreferenceConll2012Reader.features, **PLACE_FEATURES}
    assert "1 document(s) without any token are left out" in caplog.text


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
        ("Elm * -", "Elm * 7", 8, "'7' is no coreference cell"),
        ("saw  VBD *", "saw  *", 3, "11 column(s); wanted at least 12"),
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


def test_the_vocabulary_has_words_and_genres(reader: CoreferenceConll2012Reader, vocabulary: Vocabulary) -> None:
    assert vocabulary.labels == {"genres": ("talk",)}
    assert {"Mira", "Rain"} < set(vocabulary.words)
    assert [reader.length(example) for example in EXAMPLES] == [8, 1]


def test_collate(reader: CoreferenceConll2012Reader, vocabulary: Vocabulary) -> None:
    batch = reader.collate(EXAMPLES[::-1], vocabulary)
    assert batch.tokens.texts == [["Rain", "Mira", "saw", "her", "boat", "You", "sold", "it", "I"]]
    assert batch.sentence_lengths() == [[1], [4, 3, 1]]
    assert batch.speakers.tolist() == [0, 1, 1, 1, 1, 2, 2, 2, 1]
    assert batch.genres.tolist() == [0, 1]
    assert batch.mentions is not None
    assert batch.mentions.tolist() == [[1, 1, 1], [3, 3, 1], [3, 4, 2], [7, 7, 2], [5, 5, 3], [8, 8, 3]]


def test_collate_without_any_cluster(reader: CoreferenceConll2012Reader, vocabulary: Vocabulary) -> None:
    batch = reader.collate(EXAMPLES[1:], vocabulary)
    assert batch.mentions is not None
    assert batch.mentions.shape == (0, 3)


def test_collate_for_prediction(reader: CoreferenceConll2012Reader, vocabulary: Vocabulary) -> None:
    batch = reader.collate([{"sentences": [["I", "saw"], ["her"]]}], vocabulary).to("cpu")
    assert batch.mentions is None
    assert batch.speakers.tolist() == [0, 0, 0]
    assert batch.genres.tolist() == [0]


def test_a_genre_that_is_not_known_counts_as_unknown_and_is_reported_once(
    reader: CoreferenceConll2012Reader, vocabulary: Vocabulary, caplog: pytest.LogCaptureFixture
) -> None:
    example = {**EXAMPLES[0], "genre": "legal"}
    assert reader.collate([example, example], vocabulary).genres.tolist() == [0, 0]
    (record,) = caplog.records
    assert record.getMessage() == "the genre 'legal' is not among those of the run (talk) and counts as unknown"


def test_speakers_that_do_not_fit(reader: CoreferenceConll2012Reader, vocabulary: Vocabulary) -> None:
    example = copy.deepcopy(EXAMPLES[0])
    example["speakers"][1].pop()
    with pytest.raises(ElmoTasksError, match="speakers do not fit the sentences"):
        reader.collate([example], vocabulary)


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
