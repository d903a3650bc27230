"""The distribution of trained models, and how a run is packed for it."""

import json
import runpy
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from elmo_tasks import cli
from elmo_tasks.errors import ElmoTasksError, RunError
from elmo_tasks.files.installed_models import ENTRY_POINTS, INSTALL, OWN_NAMES, About
from elmo_tasks.files.json_files import write_json
from elmo_tasks.runs.evaluate import evaluate
from elmo_tasks.runs.load import load_run
from elmo_tasks.runs.train import train
from tests.installed import install

TRAINED_MODELS = Path(__file__).parents[1] / "trained_models"


def trained(folder: Path, settings: dict[str, Any], elmo: str) -> Path:
    """A run of an epoch, with the value of the config for ELMo."""
    small = ["trainer.num_epochs=1", "trainer.trackers=[]", "trainer.regularizers=[]"]
    train(settings, folder, overrides=[f"model.embedder.elmo={elmo}", *small])
    return folder


@pytest.fixture(scope="session")
def run(settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without a biLM, which is trained in a moment."""
    return trained(tmp_path_factory.mktemp("packed") / "run", settings, "null")


@pytest.fixture
def pack(sample_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """A function that packs a run into an installed package, by the command line, and returns the model's folder."""
    monkeypatch.setenv("ELMO_TASKS_DATA", str(sample_folder))
    package = install(tmp_path, "packed-models", {})
    package.mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    main = runpy.run_path(str(TRAINED_MODELS / "pack.py"))["main"]

    def packed(run: Path, name: str, *words: str) -> Path:
        main([str(run), name, "--data", "Sample names", "--licence", "CC0", "--models", str(package), *words])
        return package / name

    return packed


def test_a_packed_run_is_small_and_the_same(
    pack: Callable[..., Path], run: Path, sample_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--without-elmo", "plain", "--caution", "Learned from made-up sentences.")
    folder = pack(run, "tiny", "--seeds", "2", "--elmo", "50", "--baseline", "40", *words)
    assert "all models together: " in capsys.readouterr().out
    names = {"config.json", "versions.json", "vocabulary.json", "frozen.safetensors", "model.safetensors"}
    names |= {"metrics.json", "metrics.jsonl", "about.json", "README.md"}
    assert {path.name for path in folder.iterdir()} == names
    assert not [path for path in folder.iterdir() if str(sample_folder).encode() in path.read_bytes()]
    config = json.loads((folder / "config.json").read_text())
    assert config["test_data_path"] == "data/ner_conll2003/eng.testb"
    for file in ("frozen.safetensors", "model.safetensors"):
        tensors = safetensors.torch.load_file(folder / file)
        assert {tensor.dtype for tensor in tensors.values() if tensor.dim() > 1} == {torch.float16}
        assert {tensor.dtype for tensor in tensors.values() if tensor.dim() < 2} <= {torch.float32}
    assert {tensor.dtype for tensor in load_run("tiny").model.state_dict().values()} == {torch.float32}
    data = sample_folder / "ner_conll2003" / "eng.testb"
    assert evaluate("tiny", data) == pytest.approx(evaluate(run, data), rel=0.01)
    about = About.of(folder)
    assert (about.task, about.data, about.licence) == ("tagging", ("Sample names",), "CC0")
    assert (about.without_elmo, about.caution) == ("plain", "Learned from made-up sentences.")
    assert str(about.score) == "f1 50.00 on the test data (mean of 2 seeds), without ELMo 40.00"
    assert cli.main(["models", "tiny"]) == 0
    card = capsys.readouterr().out
    assert card.startswith("# tiny\n")
    assert "Fill in" not in card
    lines = ("elmo-tasks predict tiny INPUT", "| data sets | Sample names |", "## Licence\n\nCC0", str(about.score))
    for shown in lines:
        assert shown in card, shown


def test_a_packed_run_stays_calibrated(
    pack: Callable[..., Path], run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(run, tmp_path / "calibrated")
    errors = {"error/validation": 1.25, "uncalibrated_error/validation": 4.5, "units/validation": 20}
    write_json(tmp_path / "calibrated" / "calibration.json", {"temperature": 1.75, **errors})
    pack(tmp_path / "calibrated", "tiny")
    assert load_run("tiny").model.temperature == 1.75
    assert cli.main(["models", "tiny"]) == 0
    line = "| expected calibration error | 1.25 % on the validation data, 4.50 % before |"
    assert line in capsys.readouterr().out.splitlines()


def test_words_can_be_left_out(pack: Callable[..., Path], run: Path, tmp_path: Path) -> None:
    before, after = (load_run(path).vocabulary for path in (run, pack(run, "tiny", "--words", "3")))
    assert after.num_trained_words == before.num_trained_words < len(before.words) - 3
    assert after.words == before.words[: before.num_trained_words + 3]
    with pytest.raises(ElmoTasksError, match="tiny: exists; --force replaces it"):
        pack(run, "tiny")
    with pytest.raises(RunError, match="nothing"):
        pack(tmp_path / "nothing", "tiny", "--force")
    assert load_run("tiny").vocabulary == after
    assert len(load_run(pack(run, "tiny", "--force", "--words", "0")).vocabulary.words) == len(after.words) - 3


def test_what_is_only_on_this_machine_is_refused(
    pack: Callable[..., Path], run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(run, tmp_path / "other")
    write_json(tmp_path / "other" / "bilm.json", {"options": "/a", "weights": "/b", "fingerprint": "c"})
    with pytest.raises(RunError, match="expected a run with the biLM of the package, or without one"):
        pack(tmp_path / "other", "tiny")
    monkeypatch.setenv("ELMO_TASKS_DATA", "elsewhere")
    with pytest.raises(RunError, match=r"config\.json: names .*eng\.train of this machine; expected .* elsewhere"):
        pack(run, "tiny")
    assert not [path for path in tmp_path.rglob("*") if path.name == "tiny"]


def test_the_distribution_is_found_and_holds_nothing_else() -> None:
    tomllib = pytest.importorskip("tomllib")  # new in Python 3.11
    own = tomllib.loads((TRAINED_MODELS / "pyproject.toml").read_text())
    (package,) = own["project"]["entry-points"][ENTRY_POINTS].values()
    assert own["tool"]["setuptools"]["packages"] == [package]
    assert [path.name for path in (TRAINED_MODELS / package).glob("*.py")] == ["__init__.py"]
    main = tomllib.loads((TRAINED_MODELS.parent / "pyproject.toml").read_text())["project"]
    assert main["optional-dependencies"]["models"] == [own["project"]["name"]]
    assert f"`pip install ./{TRAINED_MODELS.name}` in a clone of {main['name']}" == INSTALL
    folders = [path.parent for path in (TRAINED_MODELS / package).glob("*/config.json")]
    models, twins = {folder.name for folder in folders}, {About.of(folder).without_elmo for folder in folders} - {None}
    assert twins <= models
    assert models - twins in (set(), set(OWN_NAMES))
