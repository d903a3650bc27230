"""Models of installed packages: which one a name means, how commands use it, and what is wrong with others."""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import elmo_tasks
from elmo_tasks import cli
from elmo_tasks.errors import RunError
from elmo_tasks.files import installed_models
from elmo_tasks.files.installed_models import Score
from elmo_tasks.files.json_files import write_json
from elmo_tasks.runs.archive import is_run, open_run
from elmo_tasks.runs.load import load_predictor, load_run
from tests.installed import install
from tests.runs.small_runs import INPUTS, SmallRun

ABOUT = {
    "task": "tagging",
    "data": ["Sample names"],
    "licence": "CC0",
    "score": {"metric": "f1", "split": "test", "seeds": 3, "elmo": 91.234, "baseline": 90, "p": 0.0123},
}


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of `sys.path` for distributions; the current folder is an empty one."""
    (tmp_path / "here").mkdir()
    (tmp_path / "packages").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    return tmp_path / "packages"


@pytest.fixture
def tiny(packages: Path, trained: SmallRun) -> Path:
    """The folder of an installed model with the name `tiny`."""
    folder = install(packages, "tiny-models", {"tiny": trained.path}, ABOUT) / "tiny"
    (folder / "README.md").write_text("# The card\n")
    return folder


@pytest.fixture
def no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """No package has models, not even our own, if that is installed."""
    monkeypatch.setattr(installed_models, "ENTRY_POINTS", "elmo_tasks.no_models")


def refused(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The error of a command line."""
    capsys.readouterr()
    assert cli.main(command.split()) == cli.USER_ERROR
    return capsys.readouterr().err


def test_its_test_data_are_in_the_folder_of_the_data(
    tiny: Path, trained: SmallRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_json(
        tiny / "config.json", {**json.loads((tiny / "config.json").read_text()), "test_data_path": "data/ner/test.txt"}
    )
    monkeypatch.setenv("ELMO_TASKS_DATA", "elsewhere")
    Path("elsewhere/ner").mkdir(parents=True)
    shutil.copy(trained.json("config.json")["test_data_path"], "elsewhere/ner/test.txt")
    shown = []
    for words in (["tiny"], ["tiny", "elsewhere/ner/test.txt"]):
        assert cli.main(["errors", *words, "--json"]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]


def test_python_takes_the_name_and_a_predictor_goes_elsewhere(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictor = elmo_tasks.load("tiny")
    expected = predictor(INPUTS)
    assert str(tiny) in repr(predictor)
    (tmp_path / "other" / "tiny").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "other")  # where the name means something else
    assert pickle.loads(pickle.dumps(predictor))(INPUTS) == expected


def test_a_training_begins_with_it(tiny: Path, run: SmallRun) -> None:
    run.train("trainer.num_epochs=1", from_run="tiny")
    origin = run.json("origin.json")
    assert origin["run"] == "tiny"
    assert origin["not_taken"] == {}


def test_a_folder_or_an_archive_comes_first(tiny: Path, trained: SmallRun, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    assert open_run("tiny").path == tiny
    assert is_run("tiny")
    assert caplog.messages == []
    shutil.copytree(trained.path, "tiny")
    for _ in range(2):
        assert open_run("tiny").path == Path("tiny")
    assert caplog.messages == [f"{Path('tiny').resolve()}: used instead of the installed model of the same name"]
    Path("tiny/config.json").unlink()
    assert not is_run("tiny")
    with pytest.raises(RunError, match=r"^tiny: expected a run's folder, with a config\.json, .*an installed model$"):
        open_run("tiny")
    assert open_run(tiny).path == tiny


def test_an_unknown_name_says_what_there_is(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("predict tinny -", "evaluate tinny eng.testb", "models tinny"):
        message = refused(command, capsys)
        assert message.startswith("error: tinny: expected ")
        assert re.search(r"an installed model, of which there are: .*\btiny.* Did you mean 'tiny'\?\n$", message)
    with pytest.raises(
        RunError, match=r"^runs/tinny: expected .* an installed model; there is no such file or folder$"
    ):
        open_run("runs/tinny")


def test_our_own_names_say_how_to_get_them(packages: Path, no_models: None, capsys: pytest.CaptureFixture[str]) -> None:
    install = "`pip install ./trained_models` in a clone of elmo-tasks"
    advice = f"an installed model; install the model of this name with {install}\n"
    for command in (
        "predict ner -",
        "serve ner --port 0",
        "compare ner",
        "errors ner",
        "archive ner x.tar.gz",
        "models ner",
    ):
        assert refused(command, capsys).endswith(advice), command
    assert refused("predict other -", capsys).endswith("an installed model, of which there are: none.\n")
    assert "no models are installed; expected RUN, or install some: `pip install" in refused("serve --port 0", capsys)
    assert cli.main(["models"]) == 0
    assert (
        "no models are installed; install some with `pip install ./trained_models` in a clone of elmo-tasks"
        in capsys.readouterr().err
    )
    Path("ner").mkdir()
    assert "pip" not in refused("predict ner -", capsys)


def test_two_packages_with_the_same_name(packages: Path, tiny: Path, trained: SmallRun) -> None:
    install(packages, "other-models", {"tiny": trained.path, "more": trained.path})
    problem = "tiny: (tiny-models and other-models|other-models and tiny-models) have a model of this name; uninstall"
    with pytest.raises(RunError, match=problem):
        open_run("tiny")
    assert open_run("more").path.name == "more"
    assert open_run(tiny).path == tiny


@pytest.mark.parametrize("names", ["gone_models", "gone.models", "ast"])
def test_an_entry_point_without_its_package(packages: Path, names: str) -> None:
    install(packages, "gone-models", {}, names=names)
    with pytest.raises(RunError, match=rf"^gone-models: its entry point of elmo_tasks.models names {names}; expected"):
        open_run("tiny")


def test_a_damaged_model(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weights = tiny / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(RunError, match=r"tiny/model\.safetensors: damaged"):
        load_run("tiny")
    (tiny / "vocabulary.json").unlink()
    with pytest.raises(RunError, match=r"tiny/vocabulary\.json: no such file"):
        load_run("tiny")
    (tiny / "about.json").write_text("{")
    assert "about.json:1: " in refused("models", capsys)


def test_the_models_are_listed(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["models"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for shown in ("tiny", "tagging", "Sample names", "CC0", "f1 91.23"):
        assert shown in text
    assert cli.main(["models", "--json"]) == 0
    (found,) = (each for each in json.loads(capsys.readouterr().out) if each["name"] == "tiny")
    assert cli.main(["models", "tiny", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == found
    assert {**found, **ABOUT} == {**found, "predicates": None}
    assert (found["package"], found["folder"]) == ("tiny-models", str(tiny))
    assert found["bytes"] == sum(path.stat().st_size for path in tiny.rglob("*") if path.is_file())
    assert cli.main(["models", "tiny"]) == 0
    assert capsys.readouterr().out == "# The card\n\n"
    (tiny / "README.md").unlink()
    assert "README.md: no such file; the package tiny-models has no card" in refused("models tiny", capsys)


def test_scores_in_words() -> None:
    score = Score(metric="f1", split="test", seeds=1, elmo=91.234)
    assert str(score) == "f1 91.23 on the test data"
    more = score.model_copy(update={"seeds": 2, "baseline": 90.0, "p": 0.0123})
    assert str(more) == "f1 91.23 on the test data (mean of 2 seeds), without ELMo 90.00, p = 0.012"


def test_the_twin_without_elmo_is_listed_as_that(
    packages: Path, trained: SmallRun, capsys: pytest.CaptureFixture[str]
) -> None:
    models = install(packages, "two-models", {"tiny": trained.path, "plain": trained.path}, ABOUT)
    write_json(models / "tiny" / "about.json", {**ABOUT, "without_elmo": "plain"})
    own = [model for model in installed_models.installed_models() if model.package == "two-models"]
    assert installed_models.twins(own) == {"plain": "tiny"}
    assert cli.main(["models"]) == 0
    assert " ".join(capsys.readouterr().out.split()).count("tiny without ELMo") == 1


def test_listing_imports_no_torch(tiny: Path, packages: Path) -> None:
    program = "import sys\nfrom elmo_tasks import cli\ncli.main(['models'])\nprint(*sys.modules)"
    environment = {**os.environ, "PYTHONPATH": f"{packages}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert "tiny" in done.stdout
    assert not {"torch", "datasets", "numpy"} & set(done.stdout.split())


def test_a_model_for_another_bilm_says_to_install_versions_that_fit(tiny: Path) -> None:
    reference = json.loads((tiny / "bilm.json").read_text())
    config = json.loads((tiny / "config.json").read_text())
    config["model"]["embedder"]["elmo"] |= {"bilm": "default", "options": None, "weights": None}
    write_json(tiny / "config.json", config)
    write_json(tiny / "bilm.json", {"bilm": "default", "fingerprint": reference["fingerprint"]})
    fitting = r"install versions that fit \(pip install --upgrade elmo-tasks tiny-models\), or name a folder"
    with pytest.raises(RunError, match=rf"tiny-models is for another version of elmo-tasks; {fitting}"):
        load_run("tiny")


def test_a_tagger_finds_no_predicates(tiny: Path) -> None:
    write_json(tiny / "about.json", {**ABOUT, "predicates": "tiny"})
    assert len(load_predictor("tiny")(INPUTS)) == 3
