import copy
from pathlib import Path
from typing import Any

import pytest

import elmo_tasks
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.tasks import Coreference
from elmo_tasks.text.vocabulary import Counts, Vocabulary, VocabularyConfig

EXAMPLES: list[dict[str, Any]] = [
    {
        "document": "talk/fen_0001; part 002",
        "genre": "talk",
        "sentences": [["Mary", "saw", "her", "boat"], ["You", "sold", "it"], ["I"]],
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


@pytest.fixture
def task() -> Coreference:
    return Coreference()


@pytest.fixture
def vocabulary() -> Vocabulary:
    return VocabularyConfig().build(Counts.of(Coreference(), EXAMPLES), [])


def test_without_any_chain_there_is_nothing_to_learn(task: Coreference, tmp_path: Path) -> None:
    assert task.nothing_to_learn(EXAMPLES) is None
    assert task.nothing_to_learn(EXAMPLES[1:]) is not None
    changes = ["model.embedder.words=null", "model.embedder.elmo=null"]
    for train, validation, name in ((EXAMPLES[1:], EXAMPLES, "train"), (EXAMPLES, EXAMPLES[1:], "validation")):
        with pytest.raises(DataError, match=r"^memory:\S+: no document has a chain of coreference; expected mentions"):
            elmo_tasks.train(
                "cpu/coref_ontogum", tmp_path / name, train=train, validation=validation, overrides=changes
            )
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("mention", [[0, 8], [8, 8], [-1, 0], [3, 2], [4], [0, 1, 2]])
def test_a_mention_is_within_the_document(task: Coreference, mention: list[int]) -> None:
    assert all(task.fault(example) is None for example in EXAMPLES)  # with a mention of the last token
    fault = task.fault({**EXAMPLES[0], "clusters": [[[0, 0], mention]]})
    assert fault == f"the mention {mention}; expected [first, last token] in a document of 8 tokens, the last inclusive"


def test_the_vocabulary_has_words_and_genres(task: Coreference, vocabulary: Vocabulary) -> None:
    assert vocabulary.labels == {"genres": ("talk",)}
    assert {"Mary", "Rain"} < set(vocabulary.words)
    assert [task.length(example) for example in EXAMPLES] == [8, 1]


def test_collate(task: Coreference, vocabulary: Vocabulary) -> None:
    batch = task.collate(EXAMPLES[::-1], vocabulary)
    assert batch.tokens.texts == [["Rain", "Mary", "saw", "her", "boat", "You", "sold", "it", "I"]]
    assert batch.sentence_lengths() == [[1], [4, 3, 1]]
    assert batch.speakers.tolist() == [0, 1, 1, 1, 1, 2, 2, 2, 1]
    assert batch.genres.tolist() == [0, 1]
    assert batch.mentions is not None
    assert batch.mentions.tolist() == [[1, 1, 1], [3, 3, 1], [3, 4, 2], [7, 7, 2], [5, 5, 3], [8, 8, 3]]


def test_each_document_begins_where_the_one_before_it_ends(task: Coreference, vocabulary: Vocabulary) -> None:
    mentions = task.collate([*EXAMPLES, EXAMPLES[0]], vocabulary).mentions
    assert mentions is not None
    assert mentions[-6:].tolist() == [[9, 9, 4], [11, 11, 4], [11, 12, 5], [15, 15, 5], [13, 13, 6], [16, 16, 6]]


def test_collate_without_any_cluster(task: Coreference, vocabulary: Vocabulary) -> None:
    batch = task.collate(EXAMPLES[1:], vocabulary)
    assert batch.mentions is not None
    assert batch.mentions.shape == (0, 3)


def test_collate_for_prediction(task: Coreference, vocabulary: Vocabulary) -> None:
    batch = task.collate([{"sentences": [["I", "saw"], ["her"]]}], vocabulary).to("cpu")
    assert batch.mentions is None
    assert batch.speakers.tolist() == [0, 0, 0]
    assert batch.genres.tolist() == [0]
    assert task.collate([EXAMPLES[0], {"sentences": [["I"]]}], vocabulary).mentions is None  # nor if some have clusters


def test_a_genre_that_is_not_known_counts_as_unknown_and_is_reported_once(
    task: Coreference, vocabulary: Vocabulary, caplog: pytest.LogCaptureFixture
) -> None:
    example = {**EXAMPLES[0], "genre": "legal"}
    assert task.collate([example, example], vocabulary).genres.tolist() == [0, 0]
    (record,) = caplog.records
    assert record.getMessage() == "the genre 'legal' is not among those of the run (talk) and counts as unknown"


def test_what_was_reported_is_not_a_setting_of_the_task(task: Coreference, vocabulary: Vocabulary) -> None:
    task.collate([{**EXAMPLES[0], "genre": "legal"}], vocabulary)
    assert task == Coreference()
    assert repr(task) == "Coreference()"


def test_speakers_that_do_not_fit(task: Coreference, vocabulary: Vocabulary) -> None:
    example = copy.deepcopy(EXAMPLES[0])
    example["speakers"][1].pop()
    with pytest.raises(ElmoTasksError, match="speakers do not fit the sentences"):
        task.collate([example], vocabulary)
