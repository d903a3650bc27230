"""Home folders and URLs in the paths of readers, configs and commands."""

from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_tasks.cli import main
from elmo_tasks.config import load_config
from elmo_tasks.config.data_folder import data_folder
from elmo_tasks.config.packaged import find_config
from elmo_tasks.data_readers.rows import JsonlConfig
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.errors import ConfigError, DataError
from elmo_tasks.extras.pretraining.pretraining_config import PretrainingConfig
from elmo_tasks.extras.transformers.transformer_files import TransformerFiles
from elmo_tasks.files.cache import cache_folder
from elmo_tasks.files.downloads import place_of
from elmo_tasks.files.paths import local_path
from elmo_tasks.files.text import read_lines
from elmo_tasks.modules.word_vectors import WordVectorFile
from elmo_tasks.predictors.inputs import find_files
from elmo_tasks.runs.archive import open_run
from elmo_tasks.runs.experiment_config import ExperimentConfig
from elmo_tasks.runs.folder import RunFolder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("https://some.org/a.txt", "https://some.org/a.txt: is a URL; expected .* local file or folder. Download it"),
        ("s3://bucket/a", "s3://bucket/a: is a URL"),
        ("https://huggingface.co/datasets/snli", r"are read by hub:NAME$"),
        ("file:///data/a.txt", "Write it as /data/a.txt$"),
    ],
)
def test_urls_are_refused(name: str, message: str) -> None:
    for given in (name, Path(name)):  # which has one slash less
        with pytest.raises(DataError, match=message):
            local_path(given)


@pytest.mark.parametrize(
    "name", ["hub:/some/folder:train", "hub:o/name", "SICK.txt:TRAIN", "C:/a", "~nobody-here/a", "a~/b"]
)
def test_other_names_stay_as_they_are(name: str) -> None:
    assert str(local_path(name)) == name


@pytest.mark.parametrize(
    "read",
    [
        lambda name: list(read_lines(name)),
        lambda name: JsonlConfig(task="classification").build().read(name),
        WordVectorFile,
        BiLMFiles.in_folder,
        lambda name: BiLMFiles.chosen(None, f"{name}/options.json", "weights.hdf5"),
        TransformerFiles.of,
        find_config,
        lambda name: find_files([name]),
        open_run,
        RunFolder,
    ],
)
def test_every_reader_refuses_urls(read: Callable[[str], object]) -> None:
    with pytest.raises(DataError, match=r"s3://some/a.*: is a URL"):  # https is known to those that read models
        read("s3://some/a")


def test_home_folders_are_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "a.jsonl").write_text('{"text": "Yes.", "label": "1"}\n')
    (home / "v.txt").write_text("a 1 2\n")
    (home / "c.jsonnet").write_text("{}")
    assert len(JsonlConfig(task="classification").build().read("~/a.jsonl")) == 1
    assert len(WordVectorFile("~/v.txt")) == 1
    assert find_config("~/c.jsonnet") == home / "c.jsonnet"
    assert find_files(["~/*.jsonl"]) == {"a.jsonl": home / "a.jsonl"}
    assert RunFolder("~/run").path == home / "run"
    monkeypatch.setenv("ELMO_TASKS_DATA", "~/data")
    monkeypatch.setenv("ELMO_TASKS_CACHE", "~/cache")
    assert (data_folder(), cache_folder()) == (home / "data", home / "cache")


def test_paths_of_configs(home: Path) -> None:
    keys = ["train_data_path", "test_data_path", "model.embedder.words.vectors", "model.embedder.elmo.bilm"]
    config = load_config("ner_conll03", ExperimentConfig, [f"{key}=~/x" for key in keys])
    words, elmo = config.model.embedder.words, config.elmo()
    assert words
    assert elmo
    assert {config.train_data_path, config.test_data_path, words.vectors, elmo.bilm} == {str(home / "x")}
    with pytest.raises(ConfigError) as caught:
        load_config("ner_conll03", ExperimentConfig, [f"{key}=s3://some/x" for key in keys])
    lines = str(caught.value).splitlines()
    assert len(lines) == len(keys)
    for key, line in zip(keys, lines, strict=True):
        assert line.startswith(f"--set {key}: s3://some/x: is a URL; expected the path of a local file or folder.")
    with pytest.raises(ConfigError, match=r"train_data_path: https://some.org/x: is a URL"):
        load_config("ner_conll03", ExperimentConfig, ["train_data_path=https://some.org/x"])
    with pytest.raises(ConfigError, match=r"elmo\.bilm: https://some.org/x: expected #sha256= and the 64 digits"):
        load_config("ner_conll03", ExperimentConfig, ["model.embedder.elmo.bilm=https://some.org/x"])
    text = load_config("bilm/small", PretrainingConfig, ['corpus.paths=["~/a", "b"]'], {"ELMO_TASKS_TEXT": "x"})
    assert text.corpus.model_dump()["paths"] == (str(home / "a"), "b")
    assert load_config("ner_conll03", ExperimentConfig, ["train_data_path=./a//b"]).train_data_path == "./a//b"


def test_paths_of_commands(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--copy=~/mine.jsonnet", "sst5"]) == 0
    assert (home / "mine.jsonnet").is_file()
    capsys.readouterr()
    assert main(["config", "~/mine.jsonnet", "--ext-var", "ELMO_TASKS_DATA=~/d"]) == 0
    assert f"{home}/d/sst5/train.txt" in capsys.readouterr().out
    assert main(["sample-data", "~/made", "--task", "sst5", "--sentences", "3,3,3"]) == 0
    assert (home / "made" / "sst5").is_dir()
    assert list(Path().iterdir()) == []
    assert main(["predict", "s3://bucket/run.tar.gz", "-"]) == 2
    assert "error: s3://bucket/run.tar.gz: is a URL; expected the path" in capsys.readouterr().err


def test_downloads_have_names_that_every_system_allows() -> None:
    names = {"a.zip": "a.zip", "a:b*.zip": "a_b_.zip", "x..": "x", "nul": "_nul", "Aux.zip": "_Aux.zip"}
    assert {end: place_of(f"https://some.org/files/{end}").name for end in names} == names
