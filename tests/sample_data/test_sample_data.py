"""The sample data: its format, its names, its ambiguity, that it is the same every time."""

from __future__ import annotations

import collections
import hashlib
import lzma
import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmo_tasks.data_readers import Conll2003Config
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.modules.word_vectors import WordVectorFile
from elmo_tasks.sample_data import SAMPLE_TASKS, VECTORS, ner, write_sample_data
from elmo_tasks.sample_data.names import make_names
from elmo_tasks.sample_data.word_vectors import word_vectors_text
from elmo_tasks.text.tag_schemes import detect_scheme, find_fault, spans_of_tags
from tests.sample_data.every import NER_SYNONYMS

SPLITS = ("train", "dev", "test")
FILES = dict(zip(SPLITS, ner.FILES, strict=True))
CHUNK_FILES = ("chunking_conll2000/train.txt", "chunking_conll2000/test.txt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sample")
    paths = write_sample_data(folder, "ner")
    files = (*(f"ner_conll2003/{FILES[split]}" for split in SPLITS), *CHUNK_FILES)
    assert paths == [*(folder / file for file in files), folder / VECTORS]
    return folder


def read(folder: Path, split: str) -> list[dict[str, Any]]:
    return Conll2003Config(input_scheme="IOB1").build().read(folder / "ner_conll2003" / FILES[split]).to_list()


def entities(examples: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """(label, text) of every entity."""
    return [
        (span.label, " ".join(example["tokens"][span.start : span.end + 1]))
        for example in examples
        for span in spans_of_tags(example["tags"])
    ]


def test_sizes_and_documents(folder: Path) -> None:
    sizes = collections.Counter(example["document"] for example in read(folder, "train"))
    assert all(6 <= size <= 14 for document, size in sizes.items() if document != max(sizes))
    assert len(sizes) > 50


def test_the_official_columns(folder: Path) -> None:
    blocks = (folder / "ner_conll2003" / "eng.train").read_text().rstrip("\n").split("\n\n")
    schemes = set()
    for block in blocks:
        if block == "-DOCSTART- -X- O O":
            continue
        columns = list(zip(*(line.split(" ") for line in block.split("\n")), strict=True))
        assert len(columns) == 4
        tokens, parts_of_speech, chunks, tags = columns
        assert tokens[0][0] == tokens[0][0].upper()
        assert all(part.isupper() or part in ",." for part in parts_of_speech)
        assert find_fault(chunks, "IOB1") is None
        assert find_fault(tags, "IOB1") is None
        schemes.add(detect_scheme(tags))
        # An entity begins with a name or with a word that is made of one, never with a verb.
        assert all(parts_of_speech[span.start] in ("NNP", "JJ") for span in spans_of_tags(tags))
    assert schemes == {"IOB1"}
    assert "B-MISC" in (folder / "ner_conll2003" / "eng.train").read_text()


def test_all_types_are_frequent_in_all_files(folder: Path) -> None:
    for split in SPLITS:
        counts = collections.Counter(label for label, _ in entities(read(folder, split)))
        assert set(counts) == {"PER", "LOC", "ORG", "MISC"}
        assert min(counts.values()) > 50


def test_a_name_alone_does_not_tell_its_type(folder: Path) -> None:
    labels = collections.defaultdict(set)
    for label, text in entities(read(folder, "train")):
        labels[text].add(label)
    ambiguous = sum(len(found) >= 2 for text, found in labels.items() if " " not in text)
    assert ambiguous > 200


def test_word_vectors_know_the_words_and_put_like_ones_together(folder: Path) -> None:
    file = WordVectorFile(folder / VECTORS)
    assert file.dimension == 50
    words = [token.lower() for example in read(folder, "train") for token in example["tokens"] if token[0].isalpha()]
    known = np.isfinite(file.rows(words)).all(axis=1)
    assert known.mean() > 0.95
    rows = file.rows(["monday", "friday", "harbour"])
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert unit[0] @ unit[1] > unit[0] @ unit[2]


def test_only_development_and_test_data_have_synonyms(folder: Path) -> None:
    train, *others = ({token for example in read(folder, split) for token in example["tokens"]} for split in SPLITS)
    assert ner.NER.synonyms.keys() <= train
    assert not train & NER_SYNONYMS
    assert all(len(each & NER_SYNONYMS) > 0.8 * len(NER_SYNONYMS) for each in others)
    known = np.isfinite(WordVectorFile(folder / VECTORS).rows([word.lower() for word in NER_SYNONYMS])).all(axis=1)
    assert not known.any()


def test_word_vectors_are_the_same_on_all_machines(folder: Path) -> None:
    text = lzma.decompress((folder / VECTORS).read_bytes())
    assert hashlib.sha256(text).hexdigest()[:16] == "189079fbecda6729"


def test_word_vectors_need_memory_only_for_pairs_that_occur() -> None:
    corpus = [[f"w{number}", f"w{number + 1}"] for number in range(2000)]
    tracemalloc.start()
    try:
        word_vectors_text(corpus, dimension=2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2000 * 4000  # bytes: less than one for each pair of a word and a context


@pytest.mark.slow
def test_other_files_are_not_overwritten(tmp_path: Path) -> None:
    small = (3, 1, 1)
    paths = write_sample_data(tmp_path, "sst5", sentences=small)
    assert write_sample_data(tmp_path, "sst5", sentences=small) == paths  # nothing changes
    write_sample_data(tmp_path, "ner", sentences=small)  # has the same vectors
    real = {tmp_path / "sst5" / "dev.txt": b"(2 real)", tmp_path / VECTORS: b"not even an archive"}
    for path, content in real.items():
        path.write_bytes(content)
    before = {path: path.stat().st_mtime_ns for path in paths}
    message = r"dev.txt, .*glove.6B.50d.txt.xz: would be replaced by sample data; --force does so"
    with pytest.raises(ElmoTasksError, match=message):
        write_sample_data(tmp_path, "sst5", sentences=small)
    assert {path: path.stat().st_mtime_ns for path in paths} == before
    write_sample_data(tmp_path, "sst5", sentences=small, force=True)
    assert not any(path.read_bytes() == content for path, content in real.items())


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


def test_names_are_distinct_and_reproducible() -> None:
    lists = make_names(random.Random(1), (400, 100))
    names = [name for each in lists for name in each]
    assert [len(each) for each in lists] == [400, 100]
    assert len(set(names)) == 500
    assert lists == make_names(random.Random(1), (400, 100))
    assert all(name.isalpha() and name.istitle() for name in names)


def test_chunks_are_those_of_the_sentences_with_names(folder: Path) -> None:
    reader = Conll2003Config(columns=(0, 2)).build()
    chunks, both = (reader.read(folder / file).to_list() for file in (CHUNK_FILES[0], "ner_conll2003/eng.train"))
    assert [(each["tokens"], each["tags"]) for each in chunks] == [(each["tokens"], each["tags"]) for each in both]
    assert {span.label for each in chunks for span in spans_of_tags(each["tags"])} >= {"NP", "VP", "PP", "SBAR"}
