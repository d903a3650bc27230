import csv
import gzip
import io
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import h5py
import numpy as np
import pandas
import pytest

from elmo_tasks.elmo import BiLM
from elmo_tasks.elmo.bilm import LayerOutput
from elmo_tasks.errors import DataError, ElmoTasksError
from elmo_tasks.extras.vectors.embed import Pooling, embed_file, embed_sentences, embed_words
from elmo_tasks.modules.word_vectors import WordVectorFile

LINES = ["the cat saw the dog", "", "a café", "the dog", "one much longer line of a good many words", "a café"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def _read(path: Path) -> dict[str, np.ndarray]:
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    with h5py.File(path) as file:
        return {name: data[...] if name.isdecimal() else data.asstr()[...] for name, data in file.items()}


def _embed(text: Path, bilm: BiLM, name: str = "vectors.hdf5", **settings: object) -> dict[str, np.ndarray]:
    output = text.parent / name
    embed_file(text, output, bilm, **settings)  # type: ignore[arg-type]
    return _read(output)


def _whole(bilm: BiLM, line: str) -> np.ndarray:
    return bilm.layers([line.split()]).layers[0].numpy()


@pytest.mark.parametrize("name", ["vectors.hdf5", "vectors.h5", "vectors.npz"])
def test_all_layers_in_every_format(text: Path, bilm: BiLM, name: str) -> None:
    seen: list[list[str]] = []
    entries = _embed(text, bilm, name, max_tokens=20, checks=[SimpleNamespace(see=seen.extend)])
    assert sorted(seen) == sorted(line.split() for line in LINES)
    index = json.loads(entries.pop("sentence_to_index")[0])
    assert index == {"the cat saw the dog": "0", "": "1", "a café": "5", "the dog": "3", LINES[4]: "4"}
    assert len(entries) == len(LINES)
    for number, line in enumerate(LINES):
        vectors = entries[str(number)]
        assert vectors.dtype == np.float32
        assert vectors.shape == (3, len(line.split()), 12)
        np.testing.assert_allclose(vectors, _whole(bilm, line), rtol=0, atol=1e-5)


@pytest.mark.parametrize("layers", ["all", "mix", "top", "0", "1"])
@pytest.mark.parametrize("pool", ["none", "mean", "max"])
def test_every_choice_of_layers_and_pooling(text: Path, bilm: BiLM, layers: str, pool: str) -> None:
    entries = _embed(text, bilm, layers=layers, pool=cast(Pooling, pool))
    for number, line in enumerate(LINES):
        expected = _whole(bilm, line)
        if layers == "mix":
            expected = expected.mean(axis=0)
        elif layers != "all":
            expected = expected[2 if layers == "top" else int(layers)]
        if pool != "none" and not line:
            expected = np.zeros_like(expected, shape=(*expected.shape[:-2], 12))
        elif pool != "none":
            expected = expected.mean(axis=-2) if pool == "mean" else expected.max(axis=-2)
        assert entries[str(number)].shape == expected.shape
        np.testing.assert_allclose(entries[str(number)], expected, rtol=0, atol=1e-5)


def test_a_stateful_biLM_reads_one_by_one_in_order(bilm: BiLM) -> None:
    bilm.stateful = True
    bilm.layers([["something", "before"]])
    found = embed_sentences([line.split() for line in LINES], bilm)
    bilm.reset_state()
    for line, vectors in zip(LINES, found, strict=True):
        np.testing.assert_allclose(vectors.numpy(), _whole(bilm, line), rtol=0, atol=1e-5)
    assert (found[2] - found[5]).abs().max() > 0.01


def test_raw_text_goes_through_the_tokenizer(text: Path, bilm: BiLM) -> None:
    def halves(line: str) -> list[list[str]]:
        tokens = line.split()
        middle = (len(tokens) + 1) // 2
        return [part for part in (tokens[:middle], tokens[middle:]) if part]

    entries = _embed(text, bilm, tokenize=halves)
    index = json.loads(entries.pop("sentence_to_index")[0])
    sentences = [" ".join(part) for line in LINES for part in halves(line)]
    assert len(entries) == len(sentences) == 10
    assert index == {sentence: str(number) for number, sentence in enumerate(sentences)}
    for number, sentence in enumerate(sentences):
        np.testing.assert_allclose(entries[str(number)], _whole(bilm, sentence), rtol=0, atol=1e-5)


def test_compressed_text_no_sentences_and_an_empty_file(text: Path, bilm: BiLM) -> None:
    packed = text.with_suffix(".txt.gz")
    packed.write_bytes(gzip.compress(text.read_bytes()))
    output = text.parent / "vectors.hdf5"
    assert embed_file(packed, output, bilm, keep_sentences=False) == len(LINES)
    assert set(_read(output)) == {"0", "1", "2", "3", "4", "5"}
    text.write_text("")
    assert json.loads(_embed(text, bilm)["sentence_to_index"][0]) == {}


class Recorder:
    """A biLM that remembers the lengths of the sentences that it is given."""

    def __init__(self, bilm: BiLM) -> None:
        self.num_layers, self.output_size = bilm.num_layers, bilm.output_size
        self._bilm = bilm
        self.batches: list[list[int]] = []

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        self.batches.append([len(tokens) for tokens in sentences])
        return self._bilm.layers(sentences)


@pytest.mark.parametrize(
    ("lengths", "max_tokens", "batches"),
    [
        # Like lengths together, in full batches: with borders, 3 and 12 tokens each.
        ([1, 10] * 16, 24, [[1] * 8] * 2 + [[10] * 2] * 8),
        # Sorted within a bounded part of the text, 16 batches, so that the short ones come later.
        ([10] * 40 + [1] * 40, 24, [[10] * 2] * 16 + [[1] * 8] * 5 + [[10] * 2] * 4),
        ([9, 11, 35], 10, [[9], [11], [35]]),
    ],
)
def test_batches(tmp_path: Path, bilm: BiLM, lengths: list[int], max_tokens: int, batches: list[list[int]]) -> None:
    path, recorder = tmp_path / "text.txt", Recorder(bilm)
    path.write_text("".join("word " * length + "\n" for length in lengths))
    _embed(path, cast(BiLM, recorder), max_tokens=max_tokens)
    assert recorder.batches == batches


def test_sentences_in_memory(bilm: BiLM) -> None:
    sentences, recorder = [line.split() for line in LINES], Recorder(bilm)
    found = embed_sentences(sentences, cast(BiLM, recorder), max_tokens=8)
    assert all(len(batch) == 1 or len(batch) * max(batch) <= 8 for batch in recorder.batches)
    for every, top, line in zip(found, embed_sentences(sentences, bilm, layers=2), LINES, strict=True):
        np.testing.assert_allclose(every.numpy(), _whole(bilm, line), rtol=0, atol=1e-5)
        np.testing.assert_allclose(top.numpy(), _whole(bilm, line)[2], rtol=0, atol=1e-5)
    assert embed_sentences([], bilm) == []
    with pytest.raises(TypeError, match="expected a list of tokens"):
        embed_sentences(["the cat"], bilm)


@pytest.mark.parametrize(("ending", "layers"), [("txt", "mix"), ("csv", "0")])
def test_a_mean_vector_of_each_word(ending: str, layers: str, bilm: BiLM, tmp_path: Path) -> None:
    lines = ["A tree , a house", "a tree", "über ,", ""]
    (tmp_path / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    target = tmp_path / f"words.{ending}"
    assert embed_words(tmp_path / "text.txt", target, bilm, layers=layers, max_tokens=8) == 6
    places = defaultdict(list)
    for line in lines[:3]:
        every = _whole(bilm, line)
        for word, vector in zip(line.split(), every.mean(axis=0) if layers == "mix" else every[0], strict=True):
            places[word].append(vector)
    options: dict[str, Any] = {"quoting": csv.QUOTE_NONE} if ending == "txt" else {}
    read = pandas.read_csv(target, sep=" " if ending == "txt" else ",", header=None, skiprows=1, **options)
    assert list(read[0]) == ["tree", ",", "a", "A", "house", "über"]
    if ending == "csv":
        assert target.read_bytes().startswith(b"\xef\xbb\xbfword,count,0,1,")
        assert list(read[1]) == [2, 2, 2, 1, 1, 1]
    else:
        assert target.read_text(encoding="utf-8").splitlines()[0] == f"6 {bilm.output_size}"
        assert "house" in WordVectorFile(target).words
    found = read.iloc[:, -bilm.output_size :].to_numpy()
    np.testing.assert_allclose(found, [np.mean(places[word], axis=0) for word in read[0]], rtol=1e-5, atol=1e-5)


def test_settings_that_are_not_there(text: Path, bilm: BiLM) -> None:
    layers: list[Any] = ["3", "-1", "middle", "", 3]
    wrong = [({"layers": each}, f"got '{each}'; expected all, mix, top or a number from 0 to 2") for each in layers]
    for pool in ("Mean", None):
        wrong.append(({"pool": pool}, f"pool: got {pool!r}; expected none, mean or max"))
    for settings, problem in wrong:
        with pytest.raises(ElmoTasksError, match=problem):
            _embed(text, bilm, **settings)
        with pytest.raises(ElmoTasksError, match=problem):
            embed_sentences([["the", "cat"]], bilm, **settings)
    with pytest.raises(ElmoTasksError, match="layers: got 'all'; expected mix, top or a number, because a word has"):
        embed_words(text, text.with_name("words.csv"), bilm, layers="all")


def test_nothing_is_left_behind_by_an_error(text: Path, bilm: BiLM) -> None:
    text.write_bytes(b"good line\nbad \xff line\n")
    with pytest.raises(DataError, match=r"text\.txt:2: .*not UTF-8"):
        _embed(text, bilm)
    with pytest.raises(ElmoTasksError, match=r"vectors\.txt: expected a name that ends in \.hdf5, \.h5 or \.npz"):
        _embed(text, bilm, "vectors.txt")
    assert [path.name for path in text.parent.iterdir()] == ["text.txt"]


def test_the_progress_bar_counts_lines_and_reaches_its_end(
    text: Path, bilm: BiLM, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also lines without a sentence, or with several."""
    monkeypatch.setenv("FORCE_COLOR", "1")  # as a terminal

    def sentences(line: str) -> list[list[str]]:
        return [part.split() for part in line.split(".") if part.strip()]

    content = b"one. two three.\n\n\nfour. five. six.\nseven.\n"
    output = text.parent / "vectors.npz"
    assert embed_file(io.BytesIO(content), output, bilm, tokenize=sentences) == 6
    assert re.findall(r"(\d+)/\?", capfd.readouterr().err)[-1] == "5"
    text.write_bytes(content + b"\n")
    embed_file(text, output, bilm, tokenize=sentences)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "6/6" in captured.err
