"""Examples in memory: what a reader has read from a file, it also reads from memory, for every task."""

from __future__ import annotations

from pathlib import Path

import datasets
import pytest

from elmo_tasks.data_readers import (
    Conll2003Config,
    ConlluConfig,
    CoreferenceConll2012Config,
    DatasetReaderConfig,
    JsonlConfig,
    PredicatesConfig,
    SnliConfig,
    SquadConfig,
    SrlConll2012Config,
    SstConfig,
)
from elmo_tasks.data_readers.in_memory import source_name
from elmo_tasks.errors import DataError
from elmo_tasks.sample_data import ALL_TASKS, write_sample_data
from elmo_tasks.tasks import Classification, Coreference, Reading

READERS: dict[str, DatasetReaderConfig] = {
    "ner_conll2003/eng.testa": Conll2003Config(),
    "pos_ud_ewt/en_ewt-ud-dev.conllu": ConlluConfig(),
    "srl_ewt/ewt.dev.gold_conll": SrlConll2012Config(),
    "srl_ewt/ewt.test.gold_conll": PredicatesConfig(source=SrlConll2012Config()),
    "sst5/dev.txt": SstConfig(),
    "snli/snli_1.0_dev.jsonl": SnliConfig(),
    "squad/dev-v1.1.json": SquadConfig(),
    "coref_ontogum/ontogum.dev.v4_gold_conll": CoreferenceConll2012Config(),
}


ROLES = {"tokens": ["She", "left"], "tags": ["B-ARG0", "B-V"], "predicate": 1}
ANSWER = {
    "question": "b?",
    "question_tokens": ["b", "?"],
    "passage": "a b",
    "token_starts": [0, 2],
    "token_ends": [1, 3],
    "answers": ["b"],
    "answer_spans": [[1, 1]],
}
DOCUMENT = {"sentences": [["a"], ["b"]], "clusters": [[[0, 0], [1, 1]]]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    write_sample_data(folder, ALL_TASKS, sentences=(4, 4, 4))
    return folder


@pytest.mark.parametrize("file", READERS)
def test_memory_gives_what_the_file_gave(file: str, folder: Path) -> None:
    reader = READERS[file].build()
    from_file = reader.read(folder / file)
    columns = sorted(set(reader.task.features) - reader.task.optional)
    wanted = from_file.select_columns(columns).to_list()
    assert wanted
    for given in (from_file, from_file.to_list(), wanted):
        found = reader.read(given)
        assert found.select_columns(columns).to_list() == wanted
        assert found.features == from_file.features
        assert found["line"][:] == list(range(len(found)))


@pytest.mark.parametrize("config", [Conll2003Config(), ConlluConfig(), SrlConll2012Config()])
@pytest.mark.parametrize("tags", [["O"], ["O", "O", "O"]])
def test_there_is_a_tag_for_every_token(config: DatasetReaderConfig, tags: list[str]) -> None:
    with pytest.raises(DataError, match=f"example 0: {len(tags)} tags for 2 tokens"):
        config.build().read([{"tokens": ["Mira", "left"], "tags": tags, "predicate": 1}])


def test_the_name_depends_on_the_content_only(folder: Path) -> None:
    examples = SstConfig().build().read(folder / "sst5/dev.txt")
    assert source_name([{"tokens": ["\N{GRINNING FACE}"]}]) != source_name([{"tokens": ["a"]}])
    assert source_name(examples) == source_name(examples.to_list()) != source_name(examples.to_list()[1:])
    assert source_name("hub:sst") == "hub:sst"
    assert source_name([{"a": 1, "b": 2}]) == source_name([{"b": 2, "a": 1}]) != source_name([{"a": 2, "b": 1}])


@pytest.mark.parametrize("given", [{"tokens": ["a"]}, 3, iter([{"tokens": ["a"]}])])
def test_what_is_no_data_set(given: object) -> None:
    with pytest.raises(TypeError, match=f"got {type(given).__name__} as a data set; wanted a path, a list of dicts"):
        source_name(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [3, {"tokens": {"a"}}, [["tokens", ["a"]]], {"tokens": ["\ud800"]}])
def test_an_example_that_is_no_json_is_named(wrong: object) -> None:
    with pytest.raises(DataError, match=r"memory: example 1: .*; wanted a dict of strings, whole numbers and lists"):
        source_name([{"tokens": ["a"]}, wrong])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("reader", "example", "message"),
    [
        (SstConfig(), {"tokens": ["a"], "label": 3}, "'label' is 3; wanted a string"),
        (SstConfig(), {"tokens": ["a", 3], "label": "3"}, r"'tokens' is \['a', 3\]; wanted a list of strings"),
        (SstConfig(), {"tokens": [], "label": "3"}, "there is a text without a token; wanted at least one in each"),
        (
            SstConfig(),
            {"tokens": [""], "label": "3"},
            r"'tokens' is \[''\]; wanted a list of strings that are not empty",
        ),
        (SstConfig(), {"tokens": ["a"], "label": ""}, "'label' is ''; wanted a string that is not empty"),
        (Conll2003Config(), {"tokens": ["a"], "tags": ["O"], "sentence": 2**31}, "wanted a whole number"),
        (SnliConfig(), {"premise": ["a"], "hypothesis": [], "label": "x"}, "there is a text without a token"),
        (SrlConll2012Config(), ROLES | {"predicate": 2}, "no token 2 in a sentence of 2 tokens; wanted the place of"),
        (
            SrlConll2012Config(),
            ROLES | {"tags": ["ARG1", "B-V"]},
            "'ARG1' is not a tag of IOB2; wanted O or a tag such as",
        ),
        (SquadConfig(), ANSWER | {"answers": [], "answer_spans": []}, "0 answers and 0 spans; wanted at least one"),
        (SquadConfig(), ANSWER | {"answers": ["a", "b"]}, "2 answers and 1 spans; wanted at least one answer, and a"),
        (SquadConfig(), ANSWER | {"answer_spans": [[1, 2]]}, r"the answer span \[1, 2\]; wanted \[first, last token\]"),
        (SquadConfig(), ANSWER | {"answer_spans": [[1]]}, r"the answer span \[1\]; wanted \[first, last token\]"),
        (SquadConfig(), ANSWER | {"token_ends": [1]}, "wanted a start and an end for each token"),
        (SquadConfig(), ANSWER | {"token_ends": [1, 2]}, "one after the other in a passage of 3 characters"),
        (SquadConfig(), ANSWER | {"token_ends": [1, 4]}, "one after the other in a passage of 3 characters"),
        (CoreferenceConll2012Config(), DOCUMENT | {"clusters": [[[0, 2]]]}, r"the mention \[0, 2\]; wanted"),
        (CoreferenceConll2012Config(), DOCUMENT | {"sentences": [["a"], [], ["b"]]}, "there is a text without a token"),
        (CoreferenceConll2012Config(), {"sentences": [], "clusters": []}, "there is a text without a token"),
        (CoreferenceConll2012Config(), DOCUMENT | {"speakers": [["x"]]}, "speakers do not fit the sentences"),
        (SstConfig(), {"tokens": "a b", "label": "3"}, "'tokens' is 'a b'; wanted a list of strings"),
        (CoreferenceConll2012Config(), {"sentences": [["a"]], "clusters": [[0]]}, "of lists of lists of whole numbers"),
        (SquadConfig(), {"question": "a"}, "there is no 'question_tokens'; wanted a list of strings"),
    ],
)
def test_wrong_values_are_named(reader: DatasetReaderConfig, example: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=r"^memory:[0-9a-f]{16}: example 0: .*" + message):
        reader.build().read([example])


@pytest.mark.parametrize("reader", [SrlConll2012Config(), SquadConfig(), CoreferenceConll2012Config()])
def test_examples_without_a_fault_are_read(reader: DatasetReaderConfig) -> None:
    examples = [example for example in (ROLES, ANSWER, DOCUMENT) if set(example) <= set(reader.task.features)]
    assert len(reader.build().read(examples)) == 1


def test_class_ids_get_the_names_of_their_data_set(caplog: pytest.LogCaptureFixture) -> None:
    def labelled(names: list[str], ids: list[int]) -> datasets.Dataset:
        features = {"tokens": datasets.Sequence(datasets.Value("string")), "label": datasets.ClassLabel(names=names)}
        return datasets.Dataset.from_dict({"tokens": [["a"]] * len(ids), "label": ids}, datasets.Features(features))

    reader = SstConfig(on_error="skip").build()
    caplog.set_level("INFO", "elmo_tasks")
    assert reader.read(labelled(["bad", "good"], [1, 0]))["label"][:] == ["good", "bad"]
    assert reader.read(labelled(["good", "bad"], [1, 0]))["label"][:] == ["bad", "good"]
    assert reader.read(labelled(["good", "bad"], [-1, 0]))["label"][:] == ["good"]
    assert ": 1 row(s) without a gold label left out" in caplog.text
    with pytest.raises(DataError, match="has no example; 2 row\\(s\\) without a gold label left out"):
        SstConfig().build().read(labelled(["good", "bad"], [-1, -1]))


@pytest.mark.parametrize(
    "reader", [Conll2003Config(on_error="skip"), JsonlConfig(task="tagging", tag_scheme="BIOUL", on_error="skip")]
)
def test_tags_in_another_scheme_are_converted_and_bad_examples_skipped(
    reader: DatasetReaderConfig, caplog: pytest.LogCaptureFixture
) -> None:
    given = [
        {"tokens": ["Mira", "left", "New", "Brusk"], "tags": ["B-PER", "O", "B-LOC", "I-LOC"]},
        {"tokens": ["Brusk"], "tags": ["LOC"]},
        {"tokens": ["Brusk"], "tags": []},
        {"tokens": ("Tavo", "left"), "tags": ("B-PER", "O")},
    ]
    found = reader.build().read(given)
    assert found["tags"][:] == [["U-PER", "O", "B-LOC", "L-LOC"], ["U-PER", "O"]]
    assert found["line"][:] == [0, 3]
    assert "example 1, token 0: 'LOC'" in caplog.text
    assert "example 2: 0 tags for 1 tokens" in caplog.text


def test_columns_that_may_be_missing() -> None:
    assert Coreference.optional == {"document", "genre", "speakers"}
    assert Reading.optional == {"id"}
    assert Classification.optional == set()
