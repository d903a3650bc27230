"""Runs and biLMs on the hub: written there, and used from there."""

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

import elmo_tasks
from elmo_tasks import cli
from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.elmo.bilm_files import BiLMFiles, bilm_folder
from elmo_tasks.errors import ElmoTasksError, RemoteError, RunError
from elmo_tasks.pretraining.language_model import LanguageModel
from elmo_tasks.pretraining.output_vocabulary import OutputVocabulary
from elmo_tasks.publishing.push import files_and_card, push
from elmo_tasks.runs import load
from elmo_tasks.runs.archive import archive
from elmo_tasks.runs.evaluate import evaluate
from elmo_tasks.runs.train import train
from elmo_tasks.server.served_runs import load_runs
from elmo_tasks.text.tokenizer_config import tokenizer_of_bilm
from elmo_tasks.text.tokenizers import UnicodeTokenizer
from tests.fake_hub import FakeHub

INPUTS = [{"text": "Mary went to Boeing."}]


@pytest.fixture
def run(hub: FakeHub, short_run: Path, sample_folder: Path, tmp_path: Path) -> Path:
    """A run as if it had been trained with a biLM on the hub."""
    hub.add("ann/bilm", sample_folder / "bilm")
    BiLMFiles.in_folder("hub:ann/bilm")  # downloads it, as training does
    run = shutil.copytree(short_run, tmp_path / "run")
    config, reference = (json.loads((run / name).read_text()) for name in ("config.json", "bilm.json"))
    config["model"]["embedder"]["elmo"] |= {"bilm": "hub:ann/bilm", "options": None, "weights": None}
    reference = {"bilm": f"hub:ann/bilm@{hub.commit('ann/bilm')}", "fingerprint": reference["fingerprint"]}
    for name, value in (("config.json", config), ("bilm.json", reference)):
        (run / name).write_text(json.dumps(value))
    return run


def forget_downloads(hub: FakeHub, tmp_path: Path) -> None:
    from elmo_tasks.files import hub as own

    shutil.rmtree(tmp_path / "hub")
    own._snapshot.cache_clear()
    hub.asked.clear()


def test_a_run_remembers_the_commit_of_its_bilm(
    hub: FakeHub, run: Path, settings: dict[str, Any], tmp_path: Path
) -> None:
    name, files = f"hub:ann/bilm@{hub.commit('ann/bilm')}", ("config.json", "bilm.json")
    made = [json.loads((run / file).read_text()) for file in files]
    elmo = {"model.embedder.elmo": {"bilm": "hub:ann/bilm"}, "trainer.num_epochs": 1}
    train(settings, run, overrides=[f"{key}={json.dumps(value)}" for key, value in elmo.items()], force=True)
    assert [json.loads((run / file).read_text()) for file in files] == made
    expected = load.load_predictor(run)(INPUTS)
    forget_downloads(hub, tmp_path)
    with pytest.raises(RunError, match=f"not downloaded to this machine yet; .*--set model.embedder.elmo.bilm={name}"):
        load.load_run(run)
    archive(run, tmp_path / "run.tar.gz", self_contained=False)
    with pytest.raises(RunError, match=f"does not contain its biLM, .*--set model.embedder.elmo.bilm={name}"):
        load.load_run(tmp_path / "run.tar.gz")
    assert hub.asked == []
    there = [f"model.embedder.elmo.bilm={name}"]
    assert load.load_predictor(run, overrides=there)(INPUTS) == expected
    assert load.load_predictor(run)(INPUTS) == expected


def test_a_run_goes_to_the_hub_and_back(
    hub: FakeHub, run: Path, settings: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    predictor = load.load_predictor(run)
    expected, data = predictor(INPUTS), settings["test_data_path"]
    assert cli.main(["push", str(run), "hub:ann/ner"]) == 0
    assert capsys.readouterr().out == f"{hub.address}/ann/ner\n"
    metrics = evaluate(run, data)
    shutil.rmtree(run)
    loaded = elmo_tasks.load("hub:ann/ner")
    assert loaded(INPUTS) == expected
    assert pickle.loads(pickle.dumps(loaded))(INPUTS) == expected
    assert elmo_tasks.evaluate(f"hub:ann/ner@{hub.commit('ann/ner')}", data) == metrics
    (tmp_path / "text.txt").write_text("Mary went to Boeing.\n")
    assert cli.main(["predict", "hub:ann/ner", str(tmp_path / "text.txt"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tags"] == expected[0]["tags"]
    assert [*load_runs(["hub:ann/ner"], batch_tokens=100)] == ["ner"]
    address = tmp_path / "ner.tar.gz"
    archive("hub:ann/ner", address)
    assert load.load_predictor(hub.add_file(address))(INPUTS) == expected


def test_the_card(hub: FakeHub, run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["push", str(run), "hub:ann/ner", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "ann/ner" not in hub.models
    push(run, "hub:ann/ner")
    card = hub.models["ann/ner"]["README.md"].decode()
    assert card == printed.removesuffix("\n")
    results = json.loads((run / "metrics.json").read_text())
    assert f"| f1 | {results['best']['validation']['f1']:.2f} | {results['test']['f1']:.2f} |" in card
    assert str(run.parent) not in card
    hub.models["ann/ner"]["README.md"] = b"my own"
    push(run, "hub:ann/ner")
    assert hub.models["ann/ner"]["README.md"] == b"my own"


def test_a_strangers_run_on_the_hub_names_no_other_file(hub: FakeHub, run: Path, tmp_path: Path) -> None:
    push(run, "hub:ann/ner")
    files = hub.models["ann/ner"]
    for name in [name for name in files if name.startswith("bilm/")]:
        del files[name]
    reference = json.loads(files["bilm.json"])
    secret = str(tmp_path / "secret")
    for location in ({"options": secret, "weights": secret}, {"bilm": "hub:eve/bilm"}, {"bilm": f"{hub.address}/x"}):
        files["bilm.json"] = json.dumps({"fingerprint": reference["fingerprint"], **location}).encode()
        forget_downloads(hub, tmp_path)
        with pytest.raises(RunError, match="hub:ann/ner: does not contain its biLM, and an archive cannot name files"):
            load.load_run("hub:ann/ner")
        assert all("ann/ner" in each for each in hub.asked)
    del files["bilm.json"]
    files["config.json"] = files["config.json"].replace(b"hub:ann/bilm", b"hub:eve/bilm")
    forget_downloads(hub, tmp_path)
    with pytest.raises(RunError, match=r"bilm\.json: no such file"):
        load.load_run("hub:ann/ner")
    assert all("ann/ner" in each for each in hub.asked)
    with pytest.raises(RemoteError, match=r"has none of the files config\.json, .* and \d+ more; expected a run"):
        load.load_run("hub:ann/bilm")


def test_a_bilm_goes_to_the_hub_and_back(hub: FakeHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vocabulary = OutputVocabulary(["the", "dog"])
    model = LanguageModel.untrained(TINY_OPTIONS, vocabulary)
    model.save(tmp_path / "bilm")
    (tmp_path / "bilm" / "config.json").write_text('{"corpus": {"tokenizer": "unicode"}}')
    perplexities = dict.fromkeys(("forward", "backward", "mean"), 12.5)
    results: dict[str, Any] = {
        "training_targets": 9000,
        "vocabulary": 5,
        "trained_targets": 18000,
        "trained_hours": 1.5,
        "before": None,
    }
    results |= {"held_out": perplexities, "held_out_unigram": 20.0}
    (tmp_path / "bilm" / "results.json").write_text(json.dumps(results))
    push(tmp_path / "bilm", "hub:ann/public")
    push(tmp_path / "bilm", "hub:ann/bilm", private=True)
    assert hub.private == {"ann/bilm"}
    names = {"options.json", "weights.hdf5", "vocabulary.txt", "softmax.safetensors", "results.json", "config.json"}
    assert set(hub.models["ann/bilm"]) == {*names, "README.md"}
    card = hub.models["ann/bilm"]["README.md"].decode()
    assert "| held-out perplexity | 12.50, the mean of both directions |" in card
    names = {"options.json", "weights.hdf5"}
    for name in names:
        shutil.copy(tmp_path / "bilm" / name, tmp_path)
    assert set(files_and_card(tmp_path, "hub:ann/plain")[0]) == names  # without a softmax
    loaded = LanguageModel.load("hub:ann/bilm")
    assert loaded.bilm.fingerprint() == model.bilm.fingerprint()
    assert loaded.vocabulary.words == vocabulary.words
    assert isinstance(tokenizer_of_bilm(bilm_folder("hub:ann/bilm")), UnicodeTokenizer)
    assert cli.main(["fetch", "hub:ann/bilm"]) == 0
    name = f"hub:ann/bilm@{hub.commit('ann/bilm')}"
    assert f"--set model.embedder.elmo.bilm='{name}'" in capsys.readouterr().out


def test_what_cannot_be_pushed(hub: FakeHub, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.denied = {"bob/ner": (403, "")}
    for target, problem in (
        ("hub:bob/ner", "not found, or you may not write to it .*; check the name, and log in with `hf auth login`"),
        ("hub:ann/ner@v1", "not the name of a model to write; expected hub:ORG/NAME"),
        ("ann/ner", "not the name of a model on the hub"),
    ):
        with pytest.raises(ElmoTasksError, match=problem):
            push(run, target)
    (run / "metrics.json").unlink()
    with pytest.raises(RunError, match=r"no metrics\.json; expected a run that has finished"):
        files_and_card(run, "hub:ann/ner")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ElmoTasksError, match="cannot be written, because HF_HUB_OFFLINE is set"):
        push("default", "hub:ann/bilm")
