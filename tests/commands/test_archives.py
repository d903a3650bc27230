"""The commands that download published biLMs, write sample data and serve runs."""

import json
import shlex
from pathlib import Path
from unittest.mock import Mock

import _jsonnet
import pytest

from elmo_tasks import cli
from elmo_tasks.config import load_config
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.elmo.embedder import ElmoConfig
from elmo_tasks.extras.server import Limits, app, serving
from elmo_tasks.extras.server.bilm_vectors import ServedBiLM
from elmo_tasks.extras.weights.commands import PUBLISHED
from elmo_tasks.predictors import Predictor
from tests.fake_hub import FakeHub


def test_fetch_says_where_the_files_are_and_how_a_config_names_them(
    hub: FakeHub, sample_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = BiLMFiles.in_folder(sample_folder / "bilm")
    options, weights = hub.add_file(files.options), hub.add_file(files.weights)
    plain = [options.partition("#")[0], weights.partition("#")[0]]
    monkeypatch.setitem(PUBLISHED, "tiny", (plain[0], weights))
    for names in (["tiny"], plain):
        assert cli.main(["fetch", *names]) == 0
        *paths, in_config, in_command = capsys.readouterr().out.splitlines()
        assert [Path(path).read_bytes() for path in paths] == [files.options.read_bytes(), files.weights.read_bytes()]
        values = _jsonnet.evaluate_snippet("", f"{{ {in_config.removeprefix('in a config:')} }}")
        elmo = load_config(json.loads(values)["elmo"], ElmoConfig)
        assert (elmo.options, elmo.weights) == (options, weights)
        assert elmo.files().fingerprint() == files.fingerprint()
        words = shlex.split(in_command.removeprefix("in a command:"))
        assert words == [
            "--set", f"model.embedder.elmo.options={options}", "--set", f"model.embedder.elmo.weights={weights}"
        ]  # fmt: skip
    monkeypatch.setitem(PUBLISHED, "tiny", (plain[0], f"{plain[1]}#sha256={'0' * 64}"))
    hub.files |= {"other.json": b"{}", "other.hdf5": hub.files["weights.hdf5"]}
    for names, problem in (
        (["tiny"], "not the expected file"),
        (["smal"], "Did you mean 'small'?"),
        ([], "no name: expected a name that --list shows, such as original or spanish"),
        (
            [f"{hub.address}/files/other.json", f"{hub.address}/files/other.hdf5"],
            "other.json: the key 'char_cnn' is missing; expected the options of a character-based biLM",
        ),
    ):
        assert cli.main(["fetch", *names]) == cli.USER_ERROR
        assert problem in capsys.readouterr().err


def test_sample_data_names_its_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    command = ["sample-data", str(tmp_path), "--task", "ner", "--sentences", "3,2,1"]
    assert cli.main(command) == 0
    paths = capsys.readouterr().out.splitlines()
    assert paths
    assert f"to train on these files instead: ELMO_TASKS_DATA={tmp_path} elmo-tasks train NAME" in caplog.text
    assert all(Path(path).is_file() for path in paths)
    texts = {Path(path).name: Path(path).read_text() for path in paths if "eng." in path}
    sentences = [texts[f"eng.{part}"].strip().split("\n\n") for part in ("train", "testa", "testb")]
    assert list(map(len, sentences)) == [3, 2, 1]
    Path(paths[0]).write_text("my own")
    assert cli.main(command) == 2
    assert Path(paths[0]).read_text() == "my own"
    assert cli.main([*command, "--force"]) == 0
    assert Path(paths[0]).read_text() != "my own"


@pytest.mark.parametrize(("folder", "is_said"), [("data", True), ("read", False), ("runs/quickstart-data", False)])
def test_sample_data_says_if_the_configs_read_other_data(
    folder: str, is_said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELMO_TASKS_DATA", "read")
    assert cli.main(["sample-data", folder, "--task", "ner", "--sentences", "3,2,1"]) == 0
    assert ("the configs read read; to train on these files instead: ELMO_TASKS_DATA=data" in caplog.text) == is_said


def test_serve_passes_on_its_arguments_and_loads_all_before_it_listens(
    short_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm, serve = Mock(), Mock(side_effect=lambda *_: loaded.append(warm.call_count))
    loaded: list[int] = []
    monkeypatch.setattr(Predictor, "warm_up", warm)
    monkeypatch.setattr(ServedBiLM, "warm_up", warm)
    monkeypatch.setattr(app, "create_app", lambda runs, bilms, limits, **settings: (runs, limits, settings))
    monkeypatch.setattr(serving, "serve", serve)
    limits = "--batch-tokens 101 --max-tokens 102 --max-bytes 103 --max-requests 104 --timeout 106"
    given = "--max-waiting-tokens 105 --allow-origin o --note n"
    assert cli.main(["serve", f"a={short_run}", "--port", "0", *limits.split(), *given.split()]) == 0
    (runs, of_app, settings), _, of_server = serve.call_args.args
    sizes = {"batch_tokens": 101, "request_tokens": 102, "body_bytes": 103, "queue_requests": 104, "queue_tokens": 105}
    assert of_app == of_server == Limits(**sizes, timeout_seconds=106, connections=208)
    assert [(name, run.predictor.batch_tokens) for name, run in runs.items()] == [("a", 101)]
    assert (settings["note"], settings["allowed_origins"]) == ("n", ["o"])
    assert loaded == [3]  # the run, its biLM and that of the package
    assert cli.main(["serve", str(short_run), "--port", "0"]) == 0
    (_, of_app, settings), _, of_server = serve.call_args.args
    assert of_app == of_server == Limits()
    assert (settings["note"], settings["allowed_origins"]) == (None, [])
