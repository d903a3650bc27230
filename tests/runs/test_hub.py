"""Runs and biLMs that are used from the hub."""

import json
import pickle
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

import elmo_tasks
from elmo_tasks import cli
from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.elmo.bilm_files import BiLMFiles, bilm_folder
from elmo_tasks.errors import RemoteError, RunError
from elmo_tasks.extras.pretraining.language_model import LanguageModel
from elmo_tasks.extras.pretraining.softmax import OutputVocabulary
from elmo_tasks.extras.raw_text import tokenizer_of_bilm
from elmo_tasks.extras.raw_text.tokenizers import UnicodeTokenizer
from elmo_tasks.extras.server.served_runs import load_runs
from elmo_tasks.runs import load
from elmo_tasks.runs.archive import archive
from elmo_tasks.runs.evaluate import evaluate
from elmo_tasks.runs.train import train
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
    from elmo_tasks.files import downloads as own

    shutil.rmtree(tmp_path / "hub")
    own._hub_snapshot.cache_clear()
    hub.asked.clear()


def add_archive(hub: FakeHub, run: Path, tmp_path: Path) -> None:
    """Puts a run on the hub, as docs/sharing.md shows it: its archive, unpacked."""
    archive(run, tmp_path / "ner.tar.gz")
    with tarfile.open(tmp_path / "ner.tar.gz") as packed:
        packed.extractall(tmp_path / "ner", filter="data")
    hub.add("ann/ner", tmp_path / "ner")


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


def test_a_run_on_the_hub_is_used_like_its_folder(
    hub: FakeHub, run: Path, settings: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    predictor = load.load_predictor(run)
    expected, data = predictor(INPUTS), settings["test_data_path"]
    add_archive(hub, run, tmp_path)
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


def test_a_strangers_run_on_the_hub_names_no_other_file(hub: FakeHub, run: Path, tmp_path: Path) -> None:
    add_archive(hub, run, tmp_path)
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
    with pytest.raises(RemoteError, match=r"none of the files config\.json, .* \d+ more; expected the files of a run"):
        load.load_run("hub:ann/bilm")


def test_a_bilm_on_the_hub_has_its_softmax_and_its_tokenizer(
    hub: FakeHub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vocabulary = OutputVocabulary(["the", "dog"])
    model = LanguageModel.untrained(TINY_OPTIONS, vocabulary)
    model.save(tmp_path / "bilm")
    (tmp_path / "bilm" / "config.json").write_text('{"corpus": {"tokenizer": "unicode"}}')
    hub.add("ann/bilm", tmp_path / "bilm")
    loaded = LanguageModel.load("hub:ann/bilm")
    assert loaded.bilm.fingerprint() == model.bilm.fingerprint()
    assert loaded.vocabulary.words == vocabulary.words
    assert isinstance(tokenizer_of_bilm(bilm_folder("hub:ann/bilm")), UnicodeTokenizer)
    assert cli.main(["fetch", "hub:ann/bilm"]) == 0
    name = f"hub:ann/bilm@{hub.commit('ann/bilm')}"
    assert f"--set model.embedder.elmo.bilm='{name}'" in capsys.readouterr().out
