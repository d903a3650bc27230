"""`import elmo_tasks`: training, evaluation, prediction and vectors from Python."""

import copy
import functools
import json
import logging
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import datasets
import pytest
import torch

import elmo_tasks
from elmo_tasks import cli, compat
from elmo_tasks.config import load_config
from elmo_tasks.data_readers.conll2003 import Conll2003Config
from elmo_tasks.elmo import TINY_OPTIONS, BiLM, FastBiLM, ScalarMix
from elmo_tasks.errors import ConfigError, DataError, ElmoTasksError
from elmo_tasks.extras.allennlp.allennlp_format import AllenNlpPredictor
from elmo_tasks.models import TaskModel
from elmo_tasks.predictors import Predictor, build_predictor
from elmo_tasks.predictors.predictor import rounded
from elmo_tasks.runs import load
from elmo_tasks.runs.experiment_config import ExperimentConfig
from tests.random_bilm import random_bilm

TEXT = "Mary Collins joined Boeing as coach. Boeing closed a mill."
SENTENCES = [["Mary", "Collins", "joined", "Boeing", ".", "Boeing", "left", "."], ["Boeing"]]


def examples_of(path: str) -> list[dict[str, Any]]:
    """The tokens and tags of a file, as a user has them in memory."""
    columns = Conll2003Config(tag_scheme="IOB2").build().read(path).select_columns(["tokens", "tags"])
    return columns.to_list()


@pytest.fixture(scope="module")
def short(settings: dict[str, Any]) -> dict[str, Any]:
    values = copy.deepcopy(settings)
    values["trainer"] |= {"num_epochs": 1, "moving_average": None, "trackers": []}
    return values


@pytest.fixture(scope="module")
def run(short: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of examples in memory, from a config that is a dict."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    training, validation = (examples_of(short[f"{name}_data_path"]) for name in ("train", "validation"))
    metrics = elmo_tasks.train(short, folder, train=training, validation=datasets.Dataset.from_list(validation))
    assert set(metrics) == {"best"}  # the config's test set does not belong to these examples
    return folder


def test_every_public_name_is_there_and_documented() -> None:
    for name in set(elmo_tasks.__all__) - {"__version__"}:
        assert getattr(elmo_tasks, name).__doc__
        assert f"elmo_tasks.{name}(" in (elmo_tasks.__doc__ or "")
    with pytest.raises(AttributeError, match="'elmo_tasks' has no attribute 'lode'"):
        _ = elmo_tasks.lode


def test_memory_gives_what_files_give(short: dict[str, Any], run: Path, tmp_path: Path) -> None:
    elmo_tasks.train({**short, "test_data_path": None}, tmp_path / "files")
    names = ("model.safetensors", "vocabulary.json")
    in_memory, from_files = ([(folder / name).read_bytes() for name in names] for folder in (run, tmp_path / "files"))
    assert in_memory == from_files


def test_overrides_are_a_dict_or_a_list(short: dict[str, Any], run: Path) -> None:
    pairs = {"model.dropout": 0.25, "trainer.validation_metric": "-loss", "test_data_path": None}
    as_list = [f"{key}={json.dumps(value)}" for key, value in pairs.items()]
    assert load_config(short, ExperimentConfig, pairs) == load_config(short, ExperimentConfig, as_list)
    changed = load.load_run(run, overrides={"dataset_reader.on_error": "skip", "trainer.num_epochs": 7}).config
    assert (changed.dataset_reader.on_error, changed.trainer.num_epochs) == ("skip", 7)
    assert load_config(short, ExperimentConfig, {"train_data_path": Path("a.txt")}).train_data_path == "a.txt"
    with pytest.raises(ConfigError, match=r"--set model\.dropuot: unknown key"):
        elmo_tasks.load(run, overrides={"model.dropuot": 0.1})
    with pytest.raises(ConfigError, match=r"overrides: model\.dropout: .* expected values that JSON has"):
        elmo_tasks.evaluate(run, [], overrides={"model.dropout": {1}})
    with pytest.raises(TypeError, match=r"overrides='random_seed=1'; expected \{'trainer\.num_epochs': 3\} or \["):
        elmo_tasks.load(run, overrides="random_seed=1")


def test_an_override_comes_after_the_device(run: Path) -> None:
    assert elmo_tasks.load(run, device="cpu", overrides=["trainer.device=auto"])
    with pytest.raises(ConfigError, match=r"trainer\.device: expected .* got \"gpu\""):
        elmo_tasks.load(run, device="cpu", overrides=["trainer.device=gpu"])


def test_evaluation_of_a_file_and_of_memory(short: dict[str, Any], run: Path) -> None:
    metrics = elmo_tasks.evaluate(run, short["test_data_path"])
    assert 0 <= metrics["f1"] <= 100
    examples = examples_of(short["test_data_path"])
    assert elmo_tasks.evaluate(run, examples, device="cpu") == metrics
    with pytest.raises(ConfigError, match=r"trainer\.device"):
        elmo_tasks.evaluate(run, examples, device="gpu")  # type: ignore[arg-type]
    examples[3]["tags"] = ["B-SHIP"] + ["O"] * (len(examples[3]["tokens"]) - 1)
    with pytest.raises(ElmoTasksError, match=r"memory:\w+: row 3: the label 'U-SHIP' is not among"):
        elmo_tasks.evaluate(run, examples)


def test_a_predictor_takes_a_text_a_dict_or_several(run: Path) -> None:
    tagger = elmo_tasks.load(run, device="cpu")
    assert isinstance(tagger, Predictor)
    results = tagger(TEXT)
    assert [result["tokens"][0] for result in results] == ["Mary", "Boeing"]
    assert tagger({"text": TEXT, "id": 7}) == [{"id": 7, **result} for result in results]
    assert tagger([TEXT, {"tokens": ["Boeing"]}])[:2] == results
    assert len(tagger(text for text in [TEXT, TEXT])) == 4
    assert list(tagger.predict([TEXT])) == results


def test_predictions_as_allennlp_has_them(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = elmo_tasks.load(run)([{"tokens": sentence} for sentence in SENTENCES])
    expected = [{"words": each["tokens"], "tags": each["tags"], "mask": [True] * len(each["tags"])} for each in own]
    inputs = [{"sentence": sentence} for sentence in map(" ".join, SENTENCES)]
    loaded = elmo_tasks.load(run, format="allennlp")
    found = loaded(inputs)
    assert pickle.loads(pickle.dumps(loaded))(inputs) == found
    for each, of_own in zip(found, expected, strict=True):
        assert each.items() >= of_own.items()
        assert each.keys() - of_own.keys() == {"logits", "class_probabilities"}
        assert len(each["logits"]) == len(of_own["tags"])
    expected = found
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(map(json.dumps, inputs)))
    assert cli.main(["predict", str(run), str(source), "--format", "allennlp"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == expected

    predictor = compat.Predictor.from_path(str(run), "sentence-tagger", cuda_device=-1)
    assert predictor.predict_batch_json(inputs) == expected
    assert rounded(predictor.predict_tokenized(expected[0]["words"]), 4) == rounded(expected[0], 4)
    for token in expected[0]["class_probabilities"]:
        assert sum(token) == pytest.approx(1, abs=1e-6)  # all digits are there
    nothing: dict[str, Any] = {"words": [], "tags": [], "mask": [], "logits": [], "class_probabilities": []}
    assert predictor.predict(" ") == predictor.predict_tokenized([]) == nothing
    with pytest.raises(ElmoTasksError, match="predictor_name is 'textual_entailment'; expected 'sentence_tagger' for "):
        compat.Predictor.from_path(run, "textual_entailment")
    for predicates in (run, lambda tokens: [0]):  # a run that does not find predicates, and for another task
        with pytest.raises(ElmoTasksError, match="predicates"):
            compat.Predictor.from_path(run, predicates=predicates)


@pytest.mark.slow
def test_a_predictor_can_be_sent_to_another_process(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.parent)
    tagger = elmo_tasks.load(run.name, batch_tokens=7, overrides={"trainer.device": "cpu"})
    monkeypatch.chdir(tmp_path)
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as processes:
        assert processes.submit(tagger, {"tokens": ["Boeing"]}).result(120) == tagger({"tokens": ["Boeing"]})
    assert pickle.loads(pickle.dumps(tagger)).batch_tokens == 7


def test_what_is_shown_of_an_object_says_what_it_is(run: Path) -> None:
    tagger = elmo_tasks.load(run)
    elmo = json.loads((run / "config.json").read_text())["model"]["embedder"]["elmo"]
    about = f"run={str(run)!r}, task=Tagging, model=CrfTagger, bilm={elmo['options']!r}"
    assert repr(tagger) == f"TaggerPredictor({about})"
    assert repr(elmo_tasks.load(run, format="allennlp")) == f"AllenNlpPredictor({about})"
    assert repr(load.load_run(run)) == f"Run({about})"
    assert repr(build_predictor(tagger.model, tagger.vocabulary)) == "TaggerPredictor(task=Tagging)"
    problem = r"TaggerPredictor\(task=Tagging\) was not loaded from a run and cannot be pickled"
    with pytest.raises(TypeError, match=problem):
        pickle.dumps(build_predictor(tagger.model, tagger.vocabulary))
    bilm = random_bilm(TINY_OPTIONS)
    assert repr(FastBiLM(bilm)) == "FastBiLM(3 layers of 64, precision='float32', device='cpu')"
    assert "ProjectedLstm(128 cells, 32 features)" in repr(bilm)
    assert repr(ScalarMix(3, layers=[0, 2])) == "ScalarMix(layers 0, 2 of 3)"
    names = [name for name in dir(elmo_tasks) if not name.startswith("__")]
    assert sorted([*names, "__version__"]) == elmo_tasks.__all__


def test_held_out_data_from_memory_needs_training_data(short: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="expected train; validation and test may come with it"):
        elmo_tasks.train(short, tmp_path, validation=[])


def test_problems_of_a_config_that_is_a_dict(short: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^the given config: random_sead: unknown key. Known keys: dataset_reader"):
        elmo_tasks.train({**short, "random_sead": 1}, tmp_path)
    with pytest.raises(ConfigError, match=r"the given config: \{1\} is a set; expected"):
        elmo_tasks.train({**short, "random_seed": {1}}, tmp_path)


def test_training_logs_unless_the_script_has_set_up_logging(
    short: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, root = logging.getLogger("elmo_tasks"), logging.getLogger()
    monkeypatch.setattr("elmo_tasks.runs.train.train", lambda *_, **__: {})
    own = [logging.NullHandler()]
    monkeypatch.setattr(root, "handlers", own)
    elmo_tasks.train(short, tmp_path)
    assert package.handlers == []
    monkeypatch.setattr(root, "handlers", [])
    elmo_tasks.train(short, tmp_path)
    assert package.level == logging.INFO
    assert len(package.handlers) == 1


def test_vectors_of_the_package_s_bilm() -> None:
    (vectors,) = elmo_tasks.embed(elmo_tasks.tokenize("The dog barked."), layers="1")
    assert vectors.shape == (4, BiLM.load().output_size)
    text = "The dog barked. Hello!"
    for vector, other in zip(elmo_tasks.embed(text), elmo_tasks.embed(elmo_tasks.tokenize(text)), strict=True):
        assert torch.equal(vector, other)
    with pytest.raises(TypeError, match=r"elmo_tasks\.tokenize splits text"):
        elmo_tasks.embed(["The dog barked."])


def test_text_is_split_by_the_tokenizer_that_is_named() -> None:
    assert elmo_tasks.tokenize("It's Bo.\nHm") == [["It", "'s", "Bo", "."], ["Hm"]]
    assert elmo_tasks.tokenize("It's Bo.\nHm", "whitespace") == [["It's", "Bo."], ["Hm"]]
    with pytest.raises(ElmoTasksError, match="expected one of"):
        elmo_tasks.tokenize("It's Bo.", "unicod")


def test_results_are_shown_in_a_notebook(run: Path) -> None:
    tagger = elmo_tasks.load(run)
    page = elmo_tasks.show(tagger, [TEXT, "<b>"])
    assert page.html.count("<section>") == len(tagger([TEXT, "<b>"])) == 3
    assert "<h1>" not in page.html
    frame = page._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    assert frame.count("<") == 2  # all of the page is within the attribute
    assert "&amp;lt;b&amp;gt;" in frame


def test_results_in_allennlps_keys_are_not_drawn(run: Path) -> None:
    with pytest.raises(ElmoTasksError, match="results in AllenNLP's keys cannot be drawn; load the run without"):
        elmo_tasks.show(elmo_tasks.load(run, format="allennlp"), TEXT)


def test_results_are_explained(
    run: Path,
    favour_spans: Callable[[Any], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tagger, source = elmo_tasks.load(run), tmp_path / "in.jsonl"
    favour_spans(tagger.model)
    inputs = [{"tokens": sentence, "saliency": 3} for sentence in SENTENCES]
    plain, explained = tagger(inputs), tagger(inputs, explain=True)
    items = [result.pop("saliency") for result in explained]
    assert explained == plain
    assert plain[0]["input_saliency"] == 3
    assert list(map(len, items)) == list(map(len, SENTENCES))
    for result, found in zip(plain, items, strict=True):
        assert [(each["of"], each["start"], each["end"]) for each in found] == [
            (span["label"], span["start"], span["end"]) for span in result["spans"]
        ]
        assert all([token for token, _ in each["tokens"]] == result["tokens"] for each in found)
    assert " shaded" not in elmo_tasks.show(tagger, TEXT).html.partition("</style>")[2]
    assert 'class="heat shaded"' in elmo_tasks.show(tagger, TEXT, explain=True).html
    (as_allennlp, _) = AllenNlpPredictor(tagger)(inputs, explain=True)
    assert rounded(as_allennlp["saliency"]) == items[0]

    monkeypatch.setattr(load, "load_predictor", lambda *_, **__: tagger)
    source.write_text("\n".join(map(json.dumps, inputs)))
    assert cli.main(["predict", str(run), str(source), "--explain"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == tagger(inputs, explain=True)


def test_what_cannot_be_explained_is_said(
    run: Path, favour_spans: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    tagger = elmo_tasks.load(run)
    favour_spans(tagger.model)
    monkeypatch.setattr(tagger, "most_explained", 100 * 32)
    results = tagger.predict([{"tokens": ["Boeing"]}, {"tokens": [*SENTENCES[0]] * 20}], explain=True)
    assert next(results)["tokens"] == ["Boeing"]
    with pytest.raises(
        DataError, match=r"inputs:2: to explain \d+ parts, the model reads .* tokens; expected at most 3,200"
    ):
        next(results)
    monkeypatch.setattr(tagger.model, "prediction_scores", functools.partial(TaskModel.prediction_scores, tagger.model))
    with pytest.raises(ElmoTasksError, match="CrfTagger has no prediction_scores"):
        tagger(TEXT, explain=True)
