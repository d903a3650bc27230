"""A run that starts from another: what fits is copied, rows by their names, and the log says what is not."""

import copy
import json
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor

import elmo_tasks
from elmo_tasks.config import load_config
from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.errors import RunError
from elmo_tasks.extras.warm_start.warm_start import warm_start
from elmo_tasks.files.tensor_files import read_tensors, write_tensors
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.experiment_data import Data
from elmo_tasks.runs.folder import RunFolder
from elmo_tasks.text.vocabulary import Vocabulary
from elmo_tasks.training.state import seed_everything
from elmo_tasks.training.trainer import Trainer
from tests.random_bilm import random_bilm
from tests.runs.small_runs import SmallRun, killed_at

BEFORE = [
    ("Mary left Oslo .", "U-PER O U-LOC O"),
    ("Oslo is cold .", "U-LOC O O O"),
    ("Tavo saw Mary in Brusk .", "U-PER O U-PER O U-LOC O"),
]
AFTER = [
    ("Mary likes Boeing .", "U-PER O U-ORG O"),
    ("Oslo Mills hired Mary .", "B-ORG L-ORG O U-PER O"),
    ("Brusk is cold .", "U-ORG O O O"),
]
TWO_EPOCHS = ("trainer.trackers=[]", "trainer.moving_average=null")
SHORT = ("trainer.num_epochs=1", *TWO_EPOCHS)


def examples(given: list[tuple[str, str]]) -> list[dict[str, Any]]:
    return [{"tokens": tokens.split(), "tags": tags.split()} for tokens, tags in given]


@pytest.fixture(scope="module")
def plain(settings: dict[str, Any]) -> dict[str, Any]:
    """The experiment's config without pretrained vectors."""
    values = copy.deepcopy(settings)
    values["model"]["embedder"]["words"].pop("vectors")
    values["dataset_reader"]["tag_scheme"] = "BIOUL"
    return values | {"test_data_path": None}


@pytest.fixture(scope="module")
def earlier(plain: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the sentences `BEFORE`; not to be changed."""
    run = tmp_path_factory.mktemp("earlier") / "run"
    elmo_tasks.train(plain, run, train=examples(BEFORE), validation=examples(BEFORE), overrides=SHORT)
    return run


class Start:
    """A new model for data, as it is before and after it has started from a run."""

    def __init__(self, values: Mapping[str, Any], run: Path, data: list[tuple[str, str]], *overrides: str) -> None:
        config = load_config(values, ExperimentConfig, overrides)
        given = {"train_data_path": examples(data), "validation_data_path": examples(data), "test_data_path": None}
        self.vocabulary = Data.read(config, given).vocabulary(config)
        seed_everything(7)
        self.model = config.build_model(self.vocabulary, pretrained=True)
        self.fresh = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        embedder = config.model.embedder
        self.origin = warm_start(self.model, self.vocabulary, lambda other: shapes(config, other), embedder, run)
        self.started = self.model.state_dict()


def shapes(config: ExperimentConfig, vocabulary: Vocabulary) -> dict[str, tuple[int, ...]]:
    state = config.build_model(vocabulary, pretrained=False).state_dict()
    return {name: tuple(tensor.shape) for name, tensor in state.items()}


def tensors_of(run: Path) -> dict[str, Tensor]:
    return {**read_tensors(run / "frozen.safetensors"), **read_tensors(run / "model.safetensors")}


def test_everything_fits_the_same_data(plain: dict[str, Any], earlier: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "elmo_tasks.extras.warm_start.warm_start"):
        start = Start(plain, earlier, BEFORE)
    source = tensors_of(earlier)
    assert start.started.keys() == source.keys()
    assert all(tensor.equal(source[name]) for name, tensor in start.started.items())
    assert not all(tensor.equal(source[name]) for name, tensor in start.fresh.items())
    number = len(source) - 1  # the two tables of word vectors count as one
    assert caplog.messages == [f"{earlier}: {number} of {number} tensors are copied; new: nothing"]
    assert start.origin["not_taken"] == start.origin["new"] == {}


def test_rows_are_copied_by_name(plain: dict[str, Any], earlier: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "elmo_tasks.extras.warm_start.warm_start"):
        start = Start(plain, earlier, AFTER)
    source, known = tensors_of(earlier), Vocabulary.load(earlier / "vocabulary.json")
    vocabulary, started, fresh = start.vocabulary, start.started, start.fresh

    def check(name: str, axes: int, here: tuple[str, ...], there: tuple[str, ...]) -> None:
        assert here != there
        rows = [row for row, entry in enumerate(here) if entry in there]
        others = [there.index(here[row]) for row in rows]
        assert 0 < len(rows) < len(here)
        expected = fresh[name].clone()
        if axes == 1:
            expected[rows] = source[name][others]
        else:
            expected[np.ix_(rows, rows)] = source[name][np.ix_(others, others)]
        assert started[name].equal(expected), name

    tags = vocabulary.labels["tags"], known.labels["tags"]
    for name in ("projection.weight", "projection.bias", "crf.start_transitions", "crf.end_transitions"):
        check(name, 1, *tags)
    check("crf.transitions", 2, *tags)
    check("embedder.words.trained", 1, vocabulary.words, known.words)
    check("embedder.characters.embedding.weight", 1, vocabulary.characters, known.characters)
    by_rows = ("projection", "crf", "embedder.words", "embedder.characters.embedding")
    rest = [name for name in started if not name.startswith(by_rows)]
    assert len(rest) > 10
    assert all(started[name].equal(source[name]) for name in rest)
    assert caplog.text.endswith("; new: 4 words, 2 characters, 4 tags (B-ORG, I-ORG, L-ORG, U-ORG)\n")
    assert set(start.origin["new"]["words"]) == {"likes", "boeing", "mills", "hired"}


def test_a_word_keeps_its_trained_vector_in_the_table_of_fixed_ones(
    settings: dict[str, Any], earlier: Path, sample_folder: Path, tmp_path: Path
) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("".join(f"{word} {' '.join(['0.5'] * 50)}\n" for word in ("tavo", "boeing", "never")))
    start = Start(settings, earlier, AFTER, f"model.embedder.words.vectors={vectors}")
    known, vocabulary = Vocabulary.load(earlier / "vocabulary.json"), start.vocabulary
    assert "tavo" in vocabulary.words[vocabulary.num_trained_words :]
    row = vocabulary.word_id("tavo") - vocabulary.num_trained_words
    expected = tensors_of(earlier)["embedder.words.trained"][known.word_id("tavo")]
    assert start.started["embedder.words.fixed"][row].equal(expected)
    row = vocabulary.word_id("never") - vocabulary.num_trained_words
    assert start.started["embedder.words.fixed"][row].eq(0.5).all()


def test_what_has_another_shape_or_name_is_not_taken(
    plain: dict[str, Any], earlier: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "elmo_tasks.extras.warm_start.warm_start"):
        start = Start(plain, earlier, BEFORE, "model.embedder.characters.filters=5", "model.embedder.elmo=null")
    refused = start.origin["not_taken"]
    assert refused["embedder.characters.convolution.bias"] == "6 in the run, 5 in this model"
    assert refused["encoder.layers.0.weight_ih_l0"].endswith("in the run, 32 x 55 in this model")
    assert refused["embedder.elmo.mixes.input.gamma"] == "not in this model"
    assert "embedder.elmo.mixes.input.gamma, embedder.elmo.mixes.input.weights: not in this model; " in caplog.text
    assert "embedder.characters.convolution.bias: 6 in the run, 5 in this model; " in caplog.text
    source = tensors_of(earlier)
    for name, tensor in start.started.items():
        assert tensor.equal(start.fresh[name] if name in refused else source[name]), name
    assert start.started["projection.weight"].equal(source["projection.weight"])


@pytest.fixture
def classifier(plain: dict[str, Any]) -> dict[str, Any]:
    """Another head, for another task."""
    return plain | {
        "dataset_reader": {"type": "sst"},
        "model": {"type": "text_classifier", "embedder": plain["model"]["embedder"]},
        "trainer": plain["trainer"] | {"validation_metric": "+accuracy", "moving_average": None, "trackers": []},
    }


def train_classifier(values: dict[str, Any], folder: Path, run: Path, *overrides: str) -> None:
    data = [{"tokens": ["Mary", "left"], "label": "good"}, {"tokens": ["Cold", "."], "label": "bad"}]
    elmo_tasks.train(values, folder, train=data, validation=data, from_run=run, overrides=[*overrides, *SHORT[:1]])


def test_another_head_takes_what_fits(classifier: dict[str, Any], earlier: Path, tmp_path: Path) -> None:
    train_classifier(classifier, tmp_path / "run", earlier)
    origin = json.loads((tmp_path / "run" / "origin.json").read_text())
    assert {"embedder.words", "embedder.characters.convolution.weight"} <= set(origin["taken"])
    assert origin["not_taken"]["crf.transitions"] == "not in this model"
    assert origin["new"]["labels"] == ["bad", "good"]


def test_nothing_that_fits_is_an_error(classifier: dict[str, Any], earlier: Path, tmp_path: Path) -> None:
    classifier["model"] = classifier["model"] | {"embedder": {"words": {"size": 3}}}
    with pytest.raises(RunError, match=r"nothing of this run fits the model: .*embedder\.words: .* in the run, 6 x 3"):
        train_classifier(classifier, tmp_path / "run", earlier)
    assert not (tmp_path / "run" / "config.json").exists()


def check_same(one: SmallRun, other: SmallRun) -> None:
    for name in ("model.safetensors", "frozen.safetensors", "origin.json"):
        assert one.files()[name] == other.files()[name]


def test_resume_goes_on_with_the_runs_own_state(
    run: SmallRun, earlier: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, whole = shutil.copytree(earlier, tmp_path / "first"), SmallRun(tmp_path / "whole", run.config)
    whole.train(*TWO_EPOCHS, from_run=first)
    with killed_at(Trainer, "set_parameters"):
        run.train(*TWO_EPOCHS, from_run=first)
    shutil.rmtree(first)  # it is needed no longer
    with caplog.at_level(logging.INFO, "elmo_tasks.runs.plan"):
        run.resume(*TWO_EPOCHS, from_run=first)
    message = f"{run.path}: continues with its own state; the weights of {first} are for a run that begins"
    assert message in caplog.messages
    check_same(run, whole)


def test_a_run_that_was_stopped_before_its_first_epoch_starts_from_the_same_run_again(
    run: SmallRun, earlier: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = SmallRun(tmp_path / "whole", run.config)
    whole.train(*SHORT, from_run=earlier)
    with killed_at(RunFolder, "create"):  # which comes last
        run.train(*SHORT, from_run=earlier)
    assert "origin.json" in run.files()
    run.refuses("which the run would overwrite", *SHORT, resume=False, from_run=earlier)
    run.resume(*SHORT, from_run=earlier)
    check_same(run, whole)
    with killed_at(Trainer, "fit"):
        run.train(*SHORT, from_run=earlier, force=True)
    assert "training.pt" not in run.files()
    other = shutil.copytree(earlier, tmp_path / "other")
    tensors = read_tensors(other / "model.safetensors")
    write_tensors(other / "model.safetensors", {name: tensor + 1 for name, tensor in tensors.items()})
    problem = r"other: not the run that .*run began from; --force \(force=True\) begins it again"
    run.refuses(problem, *SHORT, from_run=other)
    run.resume(*SHORT)
    check_same(run, whole)
    assert "continues with its own state" not in caplog.text
    assert "optimizer steps in all" not in caplog.text  # a warm start needs fewer than a new model


def test_nothing_of_a_start_that_was_stopped_is_left_in_the_next(run: SmallRun, earlier: Path) -> None:
    with killed_at(RunFolder, "create"):
        run.train(*SHORT, from_run=earlier, self_contained=True)
    assert (run.path / "bilm").is_dir()
    run.resume(*SHORT)
    assert not (run.path / "bilm").exists()
    assert "origin.json" not in run.files()


def test_what_is_not_another_run_is_refused(run: SmallRun, earlier: Path, sample_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(earlier, run.path)
    problem = "contains the run to start from; choose another folder for the result"
    run.refuses(problem, resume=False, force=True, from_run=run.path)
    other = SmallRun(tmp_path / "other", run.config)
    other.refuses(r"bilm: expected a run's folder", resume=False, from_run=sample_folder / "bilm")
    run.remove("vocabulary.json")  # as in the folder of a pretraining
    other.refuses("the run of a task; a biLM is chosen by --set", resume=False, from_run=run.path)


def test_another_bilm_is_warned_of(
    plain: dict[str, Any], earlier: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    random_bilm(TINY_OPTIONS, seed=9).save(tmp_path / "options.json", tmp_path / "weights.hdf5")
    start = Start(plain, earlier, BEFORE, f'model.embedder.elmo={{"bilm": "{tmp_path}"}}')
    assert caplog.messages == [f"{earlier}: was trained with another biLM, whose vectors differ"]
    assert not start.origin["not_taken"]


def test_a_bilm_that_was_trained_goes_on_or_is_left(
    plain: dict[str, Any], earlier: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    learns = "model.embedder.elmo.requires_grad=true"
    with caplog.at_level(logging.INFO, "elmo_tasks.extras.warm_start.warm_start"):
        start = Start(plain, earlier, BEFORE, learns)  # a frozen one before: the biLM starts from its own files
    names = list(start.origin["not_taken"])
    assert set(start.origin["not_taken"].values()) == {"not in the run"}
    assert all(".bilm." in name for name in names)
    assert f"not copied: {', '.join(names[:5])} and {len(names) - 5} more: not in the run\n" in caplog.text
    run, sets = tmp_path / "run", {"train": examples(BEFORE), "validation": examples(BEFORE)}
    elmo_tasks.train(plain, run, overrides=[*SHORT, learns], **sets)
    caplog.clear()
    source = tensors_of(run)
    start = Start(plain, run, BEFORE, learns)
    assert all(tensor.equal(source[name]) for name, tensor in start.started.items())
    assert not caplog.messages
    start = Start(plain, run, BEFORE)
    assert set(start.origin["not_taken"].values()) == {"not in this model"}
    (message,) = caplog.messages
    assert message == f"{run}: its biLM, trained with the task, is not copied into a model whose biLM is frozen"
