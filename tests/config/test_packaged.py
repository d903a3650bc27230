"""The configs in the package work in any folder, by their names and as copies."""

import fnmatch
import re
import subprocess
from pathlib import Path

import pytest

from elmo_tasks import cli
from elmo_tasks.commands.options import default_run_folder
from elmo_tasks.config import load_config, to_json
from elmo_tasks.config.jsonnet import evaluate
from elmo_tasks.config.packaged import find_config, packaged_configs, portable_text, summary
from elmo_tasks.data_readers.conll2003 import Conll2003Config
from elmo_tasks.data_readers.srl import SrlConll2012Config
from elmo_tasks.errors import ConfigError, DataError
from elmo_tasks.extras.samples.commands import SAMPLE_FOLDERS
from elmo_tasks.extras.studies import packaged_studies
from elmo_tasks.modules.word_vectors import WordVectorFile
from elmo_tasks.runs.experiment_config import ExperimentConfig

REPOSITORY = Path(__file__).parents[2]
NAMES = list(packaged_configs())


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, outside of the repository."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("ELMO_TASKS_TEXT", "text.txt")
    monkeypatch.delenv("ELMO_TASKS_DATA", raising=False)
    return folder


def test_configs_are_in_sight_at_the_root() -> None:
    assert (REPOSITORY / "configs").readlink() == Path("elmo_tasks/configs")
    assert {"ner_conll03", "cpu/sst5", "cpu/baselines/sst5", "bilm/tiny", "quickstart"} <= set(NAMES)
    assert "elmo" not in NAMES


def test_configs_in_folders_are_listed_after_the_others() -> None:
    assert sorted(NAMES, key=lambda name: name.count("/")) == NAMES  # which keeps the order of equals
    for depth in (0, 1, 2):
        names = [name for name in NAMES if name.count("/") == depth]
        assert names == sorted(names)
    assert sorted(NAMES) != NAMES


def test_every_file_of_the_package_is_installed() -> None:
    text = (REPOSITORY / "pyproject.toml").read_text()
    listed = re.search(r"^elmo_tasks = \[(.*?)\]", text, re.DOTALL | re.MULTILINE)
    assert listed
    patterns = [pattern.replace("**/", "*") for pattern in re.findall(r'"(.+?)"', listed[1])]
    files = subprocess.run(
        ["git", "ls-files"], cwd=REPOSITORY / "elmo_tasks", capture_output=True, text=True, check=True
    )
    data = [file for file in files.stdout.split() if not file.endswith(".py")]
    assert len(data) > 40
    assert [file for file in data if not any(fnmatch.fnmatch(file, pattern) for pattern in patterns)] == []


@pytest.mark.parametrize("name", NAMES[::3])  # of each folder, since they are in order
def test_a_copy_says_the_same_anywhere(name: str, elsewhere: Path) -> None:
    copy = elsewhere / Path(name).with_suffix(".jsonnet").name  # the name that some of the imports have
    copy.write_text(portable_text(name))
    assert evaluate(copy) == evaluate(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_summary_is_one_sentence_without_files(name: str) -> None:
    text = summary(packaged_configs()[name])
    assert 20 < len(text) < 220
    assert not re.search(r"//|\.jsonnet|\.\.|\.$", text)


def test_a_file_comes_before_a_name(elsewhere: Path) -> None:
    assert find_config("sst5") == packaged_configs()["sst5"]
    (elsewhere / "sst5").write_text("{ mine: 1 }")
    assert evaluate("sst5") == {"mine": 1}


@pytest.mark.parametrize("name", ["sst6", "sst5.jsonnet", "configs/sst5.jsonnet"])
def test_an_unknown_name_gets_a_suggestion(name: str) -> None:
    problem = r"no such file, and no config of this name in the package. Did you mean 'sst5'\?"
    with pytest.raises(ConfigError, match=problem):
        load_config(name, ExperimentConfig)


def test_own_configs_import_those_of_the_package(elsewhere: Path) -> None:
    own = elsewhere / "own.jsonnet"
    own.write_text("(import 'elmo_tasks/configs/ner_conll03.jsonnet') {\n  random_seed: 5,\n}")
    config = load_config(own, ExperimentConfig)
    assert config.random_seed == 5
    assert to_json(config)["train_data_path"] == "data/ner_conll2003/eng.train"
    own.write_text("(import 'elmo_tasks/configs/ner_conll03.jsonnet') {\n  evaluate_on_test: 'x',\n}")
    with pytest.raises(ConfigError, match=r"own.jsonnet: evaluate_on_test: expected"):
        load_config(own, ExperimentConfig)


def test_commands(elsewhere: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["config", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == NAMES
    assert cli.main(["config", "cpu/sst5", "--copy", "mine.jsonnet"]) == 0
    assert capsys.readouterr().out == "mine.jsonnet\n"
    assert [path.name for path in elsewhere.iterdir()] == ["mine.jsonnet"]
    assert cli.main(["config", "mine.jsonnet"]) == 0
    own = capsys.readouterr().out
    assert cli.main(["config", "cpu/sst5"]) == 0
    assert capsys.readouterr().out == own
    assert cli.main(["config", "mine.jsonnet", "--copy", "other.jsonnet"]) == 2
    assert "mine.jsonnet: not a config of the package" in capsys.readouterr().err


def test_the_default_run_folder_of_a_name(elsewhere: Path) -> None:
    assert default_run_folder("cpu/baselines/sst5") == Path("runs/cpu/baselines/sst5")
    (elsewhere / "cpu").mkdir()
    (elsewhere / "cpu" / "sst5").write_text("{}")
    assert default_run_folder("cpu/sst5") == Path("runs/sst5")


def test_missing_data_says_what_to_do() -> None:
    path = "data/ner_conll2003/eng.train"
    hint = r"Set ELMO_TASKS_DATA .* \(now: data\), or make sample data: elmo-tasks sample-data data$"
    with pytest.raises(DataError, match=rf"^{path}: no such file. {hint}"):
        Conll2003Config().build().read(path)
    with pytest.raises(DataError, match=rf"^{path}: no such file. {hint}"):
        WordVectorFile(path)
    with pytest.raises(DataError, match=rf"^{path}: no such file or folder. {hint}"):
        SrlConll2012Config().build().read(path)
    with pytest.raises(DataError, match=r"^mine/eng.train: no such file$"):
        Conll2003Config().build().read("mine/eng.train")
    for folder, options in (("runs/quickstart-data", "--task ner"), ("runs/quick-data", "--sentences 300,60,60")):
        hint = f"Make this sample data: elmo-tasks sample-data {folder} {options}"
        with pytest.raises(DataError, match=rf"no such file. {hint}$"):
            Conll2003Config().build().read(f"{folder}/ner_conll2003/eng.train")


def test_the_sample_data_of_the_package_is_made_as_its_files_say() -> None:
    for folder, options in SAMPLE_FOLDERS.items():
        assert any(
            f"`elmo-tasks sample-data {folder} {options}`" in path.read_text(encoding="utf-8")
            for path in [*packaged_configs().values(), *packaged_studies().values()]
        )
