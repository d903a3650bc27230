"""The component `elmo` in spaCy's pipelines: vectors, entities, and the same after saving."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

import elmo_tasks
from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.errors import ElmoTasksError
from tests.random_bilm import random_bilm

TEXTS = ["Mary Collins joined Boeing. It closed a mill.", "", "  Boeing Bay \n\n is cold. ", "Mary"]
EXAMPLES = [
    {"tokens": ["Mary", "Collins", "joined", "Boeing", "."], "tags": ["B-PER", "I-PER", "O", "B-ORG", "O"]},
    {"tokens": ["Boeing", "Bay", "is", "cold", "."], "tags": ["B-LOC", "I-LOC", "O", "O", "O"]},
    {"tokens": ["It", "closed", "a", "mill", "."], "tags": ["O"] * 5},
]


@pytest.fixture(scope="module")
def bilm(sample_folder: Path) -> Path:
    return sample_folder / "bilm"


@pytest.fixture(scope="module")
def run(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    elmo_tasks.train(settings, folder, train=EXAMPLES * 40, overrides={"trainer.moving_average": None})
    return folder


def pipeline(**config: Any) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("elmo", config={key: value if value is None else str(value) for key, value in config.items()})
    return nlp


def same(one: list[Doc], other: list[Doc]) -> bool:
    """Whether documents have the same vectors and entities."""
    vectors = all(np.allclose(a.tensor, b.tensor, rtol=0, atol=1e-6) for a, b in zip(one, other, strict=True))
    return vectors and [entities(doc) for doc in one] == [entities(doc) for doc in other]


def entities(doc: Doc) -> list[tuple[int, int, str]]:
    return [(span.start, span.end, span.label_) for span in doc.ents]


@pytest.mark.parametrize("layers", ["mix", "top", "0"])
def test_vectors_are_those_of_the_sentences(bilm: Path, layers: str) -> None:
    nlp = pipeline(bilm=bilm, layers=layers)
    docs = list(nlp.pipe(TEXTS, batch_size=2))
    assert same(docs, [nlp(text) for text in TEXTS])
    words = [[[token.text for token in sent if not token.is_space] for sent in docs[row].sents] for row in (0, 2)]
    first, second = elmo_tasks.embed(words[0], bilm=bilm, layers=layers)
    np.testing.assert_allclose(docs[0].tensor, np.concatenate([first, second]), rtol=0, atol=1e-6)
    np.testing.assert_allclose(docs[0][6].vector, second[1], rtol=0, atol=1e-6)
    np.testing.assert_allclose(docs[0].vector, docs[0].tensor.mean(axis=0), rtol=0, atol=1e-6)
    assert (docs[1].tensor.shape, docs[3].tensor.shape, docs[3].tensor.dtype) == ((0, 64), (1, 64), np.float32)
    assert (docs[1].vector.tolist(), docs[0][2:2].vector.tolist()) == ([0] * 64, [0] * 64)
    np.testing.assert_allclose(docs[3].vector, docs[3].tensor[0], rtol=0, atol=1e-6)
    np.testing.assert_allclose(docs[0][1:4].vector, docs[0].tensor[1:4].mean(axis=0), rtol=0, atol=1e-6)
    assert [token.has_vector for token in docs[2]] == [bool(token.text.strip()) for token in docs[2]]
    assert not docs[2][0].vector.any()


def test_the_vectors_come_before_those_of_the_vocabulary(bilm: Path) -> None:
    for has_others in (False, True):
        nlp = pipeline(bilm=bilm)
        if has_others:
            nlp.vocab.set_vector("Mary", np.ones(5, np.float32))
        doc, other = nlp(TEXTS[0]), nlp("Mary sleeps.")
        for one, two in ((doc[0], other[0]), (doc[0:1], other[0:1]), (doc[0:2], other[0:2]), (doc, other)):
            expected = np.dot(one.vector, two.vector) / np.linalg.norm(one.vector) / np.linalg.norm(two.vector)
            assert one.vector.shape == (64,)
            assert one.similarity(two) == pytest.approx(expected, abs=1e-5)
        assert doc[0].similarity(nlp(TEXTS[2])[0]) == 0


def test_without_sentences_a_document_is_one(bilm: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"bilm": str(bilm)})
    doc = nlp(TEXTS[0])
    (expected,) = elmo_tasks.embed([[token.text for token in doc]], bilm=bilm, layers="mix")
    np.testing.assert_allclose(doc.tensor, expected, rtol=0, atol=1e-6)


def test_entities_are_those_of_the_run(run: Path) -> None:
    nlp = pipeline(bilm=None, run=run)
    ruler = nlp.add_pipe("entity_ruler", before="elmo")
    ruler.add_patterns([{"label": "MILL", "pattern": "mill"}])
    first, empty, spaced, _ = nlp.pipe(TEXTS)
    assert entities(first) == [(0, 2, "PER"), (3, 4, "ORG")]
    assert entities(empty) == []
    assert [(span.text, span.label_) for span in spaced.ents] == [("Boeing Bay", "LOC")]
    assert not nlp(TEXTS[0]).has_vector


def test_a_pipeline_is_evaluated(run: Path) -> None:
    nlp = pipeline(bilm=None, run=run)
    gold = [{"entities": [(0, 12, "PER"), (20, 26, "LOC")]}, {"entities": [(0, 4, "PER")]}]  # the 2nd, as ORG
    texts = (TEXTS[0], "Mary it closed.")
    found = [len(entities(doc)) for doc in nlp.pipe(texts)]
    scores = nlp.evaluate([Example.from_dict(nlp.make_doc(text), each) for text, each in zip(texts, gold, strict=True)])
    right = 1 + (entities(nlp(texts[1])) == [(0, 1, "PER")])
    assert (scores["ents_p"], scores["ents_r"]) == (right / sum(found), right / 3)


@pytest.mark.slow
def test_a_saved_pipeline_needs_nothing_else(bilm: Path, run: Path, tmp_path: Path) -> None:
    for name, folder in {"bilm": bilm, "run": run}.items():
        shutil.copytree(folder, tmp_path / name)
    nlp = pipeline(bilm=tmp_path / "bilm", run=tmp_path / "run")
    expected = list(nlp.pipe(TEXTS))
    nlp.to_disk(tmp_path / "saved")
    data = nlp.to_bytes()
    random_bilm(TINY_OPTIONS, seed=3).save(tmp_path / "options.json", tmp_path / "weights.hdf5")
    other = pipeline(bilm=tmp_path, run=run)
    assert not same([other(TEXTS[0])], expected[:1])
    other.from_bytes(data)
    for name in ("bilm", "run"):
        shutil.rmtree(tmp_path / name)
    (tmp_path / "saved").rename(tmp_path / "moved")
    loaded = spacy.load(tmp_path / "moved")
    assert same(list(loaded.pipe(TEXTS)), expected)
    assert same(list(other.pipe(TEXTS)), expected)
    component = pickle.loads(pickle.dumps(loaded.get_pipe("elmo")))
    assert same([component(loaded.make_doc(TEXTS[3]))], expected[3:])
    loaded.to_disk(tmp_path / "moved")  # in place
    loaded.to_disk(tmp_path / "again")
    assert same(list(spacy.load(tmp_path / "again").pipe(TEXTS)), expected)


def test_entities_of_the_document_can_be_kept(run: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    rules = [{"label": "MILL", "pattern": "mill"}, {"label": "DEED", "pattern": "Collins joined"}]
    nlp.add_pipe("entity_ruler").add_patterns(rules)
    nlp.add_pipe("elmo", config={"bilm": None, "run": str(run), "overwrite_ents": False})
    # Mary Collins overlaps with a rule.
    assert entities(nlp(TEXTS[0])) == [(1, 3, "DEED"), (3, 4, "ORG"), (8, 9, "MILL")]


def test_the_default_bilm_is_saved_by_its_name(tmp_path: Path) -> None:
    nlp = pipeline()
    about = nlp.get_pipe_meta("elmo")
    defaults = {"bilm": "default", "layers": "mix", "run": None, "overwrite_ents": True, "device": "auto"}
    assert about.default_config == defaults
    assert set(about.assigns) == {"doc.tensor", "token.vector", "doc.ents"}
    nlp.to_disk(tmp_path)
    assert not (tmp_path / "elmo").exists()
    assert same([spacy.load(tmp_path)(TEXTS[0])], [nlp(TEXTS[0])])
    assert len(nlp.to_bytes()) < 1_000_000


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"layers": "all"}, "elmo: got layers 'all'; expected one vector per token"),
        ({"bilm": None}, "elmo: got neither a biLM nor a run"),
        ({"layers": "9"}, "layers: got '9'; expected"),
        ({"bilm": "missing"}, "missing: no such folder"),
        ({"run": "missing"}, "missing: expected a run's folder"),
    ],
)
def test_wrong_settings(config: dict[str, Any], problem: str) -> None:
    with pytest.raises(ElmoTasksError, match=problem):
        pipeline(**config)("Mary")


def test_the_device_is_that_of_the_bilm_and_of_the_run(bilm: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for config, setting in (({"bilm": bilm}, "device"), ({"bilm": None, "run": run}, r"trainer\.device")):
        with pytest.raises(ElmoTasksError, match=f"^{setting}: 'cuda' needs a GPU"):
            pipeline(**config, device="cuda")("Mary")


def test_a_run_without_spans() -> None:
    with pytest.raises(ElmoTasksError, match="pos: does not tag spans; expected a run such as that of `ner_conll03`"):
        pipeline(bilm=None, run="pos")("Mary")
