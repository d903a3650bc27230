"""The probes of labels: what they read, their vectors against brute force, and what linear classifiers can learn."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from elmo_tasks import cli
from elmo_tasks.data_readers.conll2003 import Conll2003Config
from elmo_tasks.data_readers.snli import SnliConfig
from elmo_tasks.data_readers.srl import SrlConll2012Config
from elmo_tasks.elmo import BiLM
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.extras.other_tasks.conllu import ConlluConfig
from elmo_tasks.extras.probes.label_probes import (
    LabelledSentence,
    labelled_sentences,
    probe_labels,
    split_sentences,
)
from elmo_tasks.extras.probes.span_vectors import WordVectorLayer, pool_spans, span_vectors
from elmo_tasks.extras.samples import write_sample_data
from elmo_tasks.extras.vectors.embed import embed_sentences
from elmo_tasks.modules.word_vectors import WordVectorFile


def sentence(text: str, labels: str = "") -> LabelledSentence:
    """A sentence with labels of its first words."""
    tokens, names = tuple(text.split()), labels.split()
    return LabelledSentence(tokens, [((index, index),) for index in range(len(names))], names)


def sentences(count: int, seed: int) -> list[LabelledSentence]:
    """The label of a word says whether "red" is before it."""
    generator = random.Random(seed)
    made = []
    for _ in range(count):
        tokens = tuple(
            generator.choice(["red", "car", "dog", "sun", "sea", "sky"]) for _ in range(generator.randint(3, 8))
        )
        labels = ["after red" if before == "red" else "other" for before in ("", *tokens)][: len(tokens)]
        made.append(LabelledSentence(tokens, [((index, index),) for index in range(len(tokens))], labels))
    return made


def test_items_of_readers() -> None:
    tokens = ["Ann", "Lee", "saw", "Bo"]
    tagged = [{"tokens": tokens, "tags": ["B-PER", "L-PER", "O", "U-PER"]}]
    (spans,) = labelled_sentences(Conll2003Config(tag_scheme="BIOUL").build(), tagged)
    assert spans == LabelledSentence(tuple(tokens), [((0, 1),), ((3, 3),)], ["PER", "PER"])
    (each,) = labelled_sentences(ConlluConfig().build(), tagged)
    assert each.labels == ["B-PER", "L-PER", "O", "U-PER"]
    assert each.items == [((0, 0),), ((1, 1),), ((2, 2),), ((3, 3),)]
    roles = [
        {"tokens": tokens, "predicate": 2, "tags": ["B-ARG0", "I-ARG0", "B-V", "B-ARG1"]},
        {"tokens": tokens, "predicate": 1, "tags": ["O", "B-V", "O", "O"]},
    ]
    (pairs,) = labelled_sentences(SrlConll2012Config().build(), roles)
    assert pairs == LabelledSentence(tuple(tokens), [((2, 2), (0, 1)), ((2, 2), (3, 3))], ["ARG0", "ARG1"])
    expected = r"expected labels of tokens, spans or roles: conll2003, conllu, (?!.*snli)"
    with pytest.raises(ElmoTasksError, match=expected):
        labelled_sentences(SnliConfig().build(), "snli.jsonl")


def test_span_vectors_are_those_of_brute_force(bilm: BiLM) -> None:
    texts = [["a", "b", "c", "d"], ["no", "spans"], ["e"], ["b", "a", "f"]]
    spans = [[(0, 0), (1, 3)], [], [(0, 0)], [(0, 2), (2, 2), (1, 2)]]
    found = dict(span_vectors(bilm, texts, spans))
    assert sorted(found) == [0, 2, 3]
    for number, vectors in found.items():
        layers = embed_sentences([texts[number]], bilm)[0].numpy()  # (L+1, T, D)
        for row, (first, last) in enumerate(spans[number]):
            expected = layers[:, first : last + 1].mean(axis=1)
            np.testing.assert_allclose(vectors[:-1, row], expected, atol=1e-6)
            np.testing.assert_allclose(vectors[-1, row], expected.mean(axis=0), atol=1e-6)
    rows = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    assert pool_spans(rows, np.array([[0, 2], [1, 1]])).tolist() == [[[2, 3], [2, 3]]]


def test_the_longest_sentences_come_first(bilm: BiLM) -> None:
    texts = [["a"], ["a"] * 5, ["a"] * 3, ["a"] * 9, ["a"] * 4]
    spans = [[(0, 0)], [(0, 0)], [(0, 0)], [], [(0, 0)]]
    assert [number for number, _ in span_vectors(bilm, texts, spans)] == [1, 4, 2, 0]


def test_the_mean_of_a_span_is_exact_far_into_a_long_text() -> None:
    rows = np.full((1, 5000, 1), 0.1, dtype=np.float32)
    found = pool_spans(rows, np.array([[4998, 4999], [0, 4999]]))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, 0.1, rtol=1e-6)


def test_word_vectors_are_a_layer(tmp_path: Path) -> None:
    (tmp_path / "vectors.txt").write_text("ann 1 2\nBo 3 4\nbo 5 6\n")
    layer = WordVectorLayer(WordVectorFile(tmp_path / "vectors.txt"), ["Ann", "Bo", "ann", "zzz"])
    output = layer.layers([["Ann", "Bo", "zzz"], ["ann"]])
    assert output.layers.tolist() == [[[[1, 2], [3, 4], [0, 0]]], [[[1, 2], [0, 0], [0, 0]]]]
    assert output.mask.tolist() == [[True, True, True], [True, False, False]]


def test_only_layers_with_context_know_what_is_before_a_word(bilm: BiLM) -> None:
    probe = probe_labels(bilm, sentences(150, seed=1), sentences(40, seed=2))
    rows = {row.vectors: row for row in probe.rows}
    assert list(rows) == ["layer 0", "layer 1", "layer 2", "mean of layers"]
    assert rows["layer 0"].accuracy == pytest.approx(probe.most_frequent)
    assert rows["layer 1"].accuracy > 95
    # The words say everything about the labels of the control task.
    assert rows["layer 0"].control == 100
    assert rows["layer 0"].selectivity == rows["layer 0"].accuracy - 100
    again = probe_labels(bilm, sentences(150, seed=1), sentences(40, seed=2))
    assert again == probe


def test_accuracies_are_those_of_a_classifier_on_the_vectors(bilm: BiLM) -> None:
    parts = sentences(30, seed=3), sentences(30, seed=4)
    vectors, test = (np.concatenate(embed_sentences([s.tokens for s in part], bilm), axis=1) for part in parts)
    labels, test_labels = ([label for sentence in part for label in sentence.labels] for part in parts)
    for number, row in enumerate(probe_labels(bilm, *parts).rows[:3]):
        classifier = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(vectors[number], labels)
        assert row.accuracy == pytest.approx(100 * classifier.score(test[number], test_labels), abs=1.5)


def test_features_are_scaled_as_in_training(bilm: BiLM) -> None:
    """One test item, which has no variance, and whose mean is itself."""
    training = [sentence(word, word) for word in ["red"] * 15 + ["car"] * 5]
    probe = probe_labels(bilm, training, [sentence("car", "car")])
    assert probe.rows[0].accuracy == 100


def test_a_fifth_is_held_out() -> None:
    every = sentences(23, seed=5)
    training, test = split_sentences(every, seed=1)
    assert (len(training), len(test)) == (19, 4)
    assert not [each for each in test if each in training and every.count(each) == 1]
    assert split_sentences(every, seed=1) == (training, test) != split_sentences(every, seed=2)
    with pytest.raises(ElmoTasksError, match=r"4 different sentence\(s\); expected at least 5"):
        split_sentences(every[:4], seed=1)
    assert list(map(len, split_sentences(every[:5], seed=1))) == [4, 1]


def test_too_few_labels(bilm: BiLM) -> None:
    one = [sentence("a", "x")]
    with pytest.raises(ElmoTasksError, match=r"1 label\(s\) to learn, 1 item\(s\) to test on"):
        probe_labels(bilm, one, one)
    two = [*one, sentence("b", "y")]
    with pytest.raises(ElmoTasksError, match=r"2 label\(s\) to learn, 0 item\(s\) to test on"):
        probe_labels(bilm, two, [sentence("c")])


def test_a_probe_counts_its_items_and_the_most_frequent_label(bilm: BiLM) -> None:
    training = [sentence("a a", "x y"), sentence("a", "x")]
    seeds = [probe_labels(bilm, training, [sentence("a b b a", "x z x x")], seed=n) for n in range(6)]
    found = seeds[0]
    assert (found.labels, found.training_items, found.test_items, found.most_frequent) == (2, 3, 4, 75.0)
    # All training items are of one word, so its only label of the control task is right for half of the test.
    assert {row.control for each in seeds for row in each.rows} == {50.0, 100.0}
    assert all(len({row.control for row in each.rows}) == 1 for each in seeds)


def test_the_command(
    tmp_path: Path, bilm: BiLM, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path
    write_sample_data(folder, "pos", sentences=(5, 2, 2))
    bilm.save(folder / "options.json", folder / "weights.hdf5")
    monkeypatch.setenv("ELMO_TASKS_DATA", str(folder))
    assert cli.main(["probe", "pos", "--bilm", str(folder), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    rows = [row["vectors"] for row in printed["rows"]]
    assert rows == ["layer 0", "layer 1", "layer 2", "mean of layers", "glove.6B.50d.txt.xz"]
    file = str(folder / "pos_ud_ewt/en_ewt-ud-dev.conllu")
    for arguments, problem in (
        (["pos", "--test", file], "--test: not for pos"),
        ([file, "--reader", "conlu"], "the reader 'conlu': unknown type; expected one of"),
        ([file, "--reader", '{"type": "conllu", "tag_column": "x"}'], "tag_column: Input should be"),
        ([file, "--reader", "snli"], "expected labels of tokens"),
        (["nowhere.conllu"], "nowhere.conllu: no such file"),
    ):
        assert cli.main(["probe", *arguments, "--bilm", str(folder)]) == 2
        assert problem in capsys.readouterr().err
