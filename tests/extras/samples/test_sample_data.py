"""The sample data: every file is read by the readers of its format, has gold labels, and is cut at sentences."""

import functools
import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from elmo_tasks.data_readers import DatasetReaderConfig
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.samples import ALL_TASKS, SAMPLE_TASKS, SENTENCES, write_sample_data
from elmo_tasks.files.text import open_binary

README = SENTENCES.parent / "files" / "README.md"
CONLL_2012 = "conll-2012/v4/data/{}/data/english/annotations"

SPLITS = "train dev test"


def of(
    reader: Mapping[str, Any], template: str, sizes: tuple[int, ...], splits: str = SPLITS
) -> tuple[Mapping[str, Any], tuple[str, ...], tuple[int, ...]]:
    """A reader, its files, of which only the one for training ends in `.xz` where `template` has `{xz}`, and `sizes`:
    how many sentences, pairs, questions, predicates or documents they have.
    """
    names = splits.split()[: len(sizes)]
    return reader, tuple(template.format(name, xz=".xz" if name == "train" else "") for name in names), sizes


SAMPLES = {
    "ner": of({"type": "conll2003"}, "ner_conll2003/eng.{}", (460, 70, 170), "train testa testb"),
    "sst5": of({"type": "sst"}, "sst5/{}.txt", (459, 70, 180)),
    "snli": of({"type": "snli"}, "snli/snli_1.0_{}.jsonl", (2400, 300, 1000)),
    "squad": of({"type": "squad"}, "squad/{}-v1.1.json{xz}", (1602, 402)),
    "squad2": of({"type": "squad", "no_answer": True}, "squad2/{}-v2.0.json{xz}", (701, 250)),
    "srl": of({"type": "srl_conll2012"}, "srl_ewt/ewt.{}.gold_conll{xz}", (3104, 439, 589)),
    "conll05": of({"type": "srl_conll2005"}, "conll05st-release/{}", (3104, 439, 589), "train devel test.wsj"),
    "coref": of({"type": "coref_conll2012"}, "coref_ontogum/ontogum.{}.v4_gold_conll{xz}", (60, 12, 16)),
    "pos": of({"type": "conllu", "tag_column": "xpos"}, "pos_ud_ewt/en_ewt-ud-{}.conllu{xz}", (800, 150, 250)),
    **{
        task: of({"type": "delimited", "task": task}, f"{task}/{{}}.csv", sizes)
        for task, sizes in (
            ("multi_label", (460, 70, 170)),
            ("regression", (459, 70, 180)),
            ("pair_regression", (900, 150, 300)),
        )
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    write_sample_data(folder, ALL_TASKS)
    return folder


def reader_of(name: str) -> Any:
    return DatasetReaderConfig.model_validate(SAMPLES[name][0]).build()


@functools.cache
def read(folder: Path, name: str) -> list[list[dict[str, Any]]]:
    """The examples of each part of a task's data. Not to be changed."""
    return [reader_of(name).read(folder / file).to_list() for file in SAMPLES[name][1]]


@pytest.mark.parametrize("name", SAMPLES)
def test_readers_read_every_part_and_nothing_is_in_two(name: str, folder: Path) -> None:
    parts = read(folder, name)
    assert tuple(map(len, parts)) == SAMPLES[name][2]
    texts = [{json.dumps(each.get("passage_text", each.get("tokens", each))) for each in part} for part in parts]
    short = 12 if name in ("sst5", "ner") else 60  # sentences such as "Thank you!" may be in several parts
    shared = {text for one, other in itertools.pairwise(texts) for text in one & other}
    assert not {text for text in shared if len(text) > short}


def test_every_set_is_in_the_readme_with_its_licence_and_counts(folder: Path) -> None:
    rows = [line.split(" | ") for line in README.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w[\w-]*)`", row[0])}
    copies = {"conll-2012", "pos_ud"}
    assert named == {path.name for path in folder.iterdir()} - copies
    assert all(re.search("CC BY|PDDL", row[3]) for row in rows)
    numbers = {row[0].strip("| `"): row[4] for row in rows if "," not in row[0]}
    for name in ("ner", "sst5", "snli", "squad", "squad2", "pos", "multi_label", "regression", "pair_regression"):
        files, sizes = SAMPLES[name][1:]
        assert numbers[files[0].split("/")[0]].startswith(", ".join(f"{size:,}" for size in sizes))


@pytest.mark.slow
def test_no_set_has_what_may_not_be_shared(data_folder: Path, folder: Path) -> None:
    """No sentence of four words or more is one of CoNLL-2003 or of the Stanford Sentiment Treebank."""

    def sentences(where: Path) -> set[str]:
        files = [(name, where / file) for name in ("ner", "sst5") for file in SAMPLES[name][1]]
        return {" ".join(tokens).lower() for name, file in files for tokens in reader_of(name).read(file)["tokens"]}

    ours, theirs = sentences(folder), sentences(data_folder)
    assert len(theirs) > 30_000
    assert not {text for text in ours & theirs if text.count(" ") > 2}


def test_coreference_has_only_free_genres_and_no_single_mentions(folder: Path) -> None:
    free = {"news", "interview", "academic", "textbook", "bio", "voyage", "court", "speech"}
    for file in SAMPLES["coref"][1]:
        with open_binary(folder / file) as stream:
            text = stream.read().decode()
        assert set(re.findall(r"#begin document \((\w+)/", text)) <= free
    for part in read(folder, "coref"):
        assert all(len(cluster) > 1 for document in part for cluster in document["clusters"])


def test_the_other_names_of_the_files_have_the_same(folder: Path) -> None:
    for split, parts in (("train", 0), ("development", 1), ("test", 2)):
        for name, below in (("srl", "nw"), ("coref", "coref")):
            copied = reader_of(name).read(folder / CONLL_2012.format(split) / below).to_list()
            assert copied == read(folder, name)[parts]
    whole = (folder / "snli" / "snli_1.0_train.jsonl").read_bytes()
    assert (folder / "snli" / "snli_1.0_train_subset.jsonl").read_bytes() == whole


def test_the_first_sentences_of_every_format(folder: Path, tmp_path: Path) -> None:
    write_sample_data(tmp_path, ALL_TASKS, sentences=(12, 4, 3))
    for name, (_, files, _) in SAMPLES.items():
        for first, whole, count in zip(read(tmp_path, name), read(folder, name), (12, 4, 3), strict=False):
            assert first == whole[: len(first)]
            if name in ("ner", "sst5", "snli", "pos") or files[0].endswith("csv"):
                assert len(first) == count
            if name.startswith("squad"):  # at most five questions have a passage
                assert count <= len(first) < count + 5
            if name == "coref":  # at least twenty sentences have a document
                assert len(first) == 1
    more = tmp_path / "more"
    write_sample_data(more, "sst5", sentences=(10_000, 10_000, 10_000))
    assert (more / "sst5" / "train.txt").read_bytes() == (folder / "sst5" / "train.txt").read_bytes()


def test_real_data_with_another_compression_are_not_hidden(tmp_path: Path) -> None:
    vectors = tmp_path / "glove" / "glove.6B.50d.txt"  # the name in the archive of GloVe
    vectors.parent.mkdir()
    vectors.write_text("the 1 2\n")
    with pytest.raises(ElmoTasksError, match=r"glove.6B.50d.txt: would be replaced by sample data; --force does so"):
        write_sample_data(tmp_path, "sst5", sentences=(3, 1, 1))
    assert not (tmp_path / "sst5").exists()


def test_errors(tmp_path: Path) -> None:
    problem = r"no sample data for the task 'nerr'; there is: ner.* Did you mean 'ner'\?"
    with pytest.raises(ElmoTasksError, match=problem):
        write_sample_data(tmp_path, "nerr")
    with pytest.raises(ElmoTasksError, match="every file needs at least one sentence"):
        write_sample_data(tmp_path, "ner", sentences=(5, 0, 5))
    assert list(tmp_path.iterdir()) == []
    assert "ner" in SAMPLE_TASKS


def test_the_files_are_small() -> None:
    assert sum(path.stat().st_size for path in README.parent.rglob("*.*") if path.is_file()) < 2_000_000
