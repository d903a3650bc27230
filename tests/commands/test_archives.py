"""The commands that download published biLMs, write sample data and serve runs."""

import json
import shlex
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import _jsonnet
import pytest

import elmo_tasks.extras.server.app
import elmo_tasks.extras.server.bilm_vectors
import elmo_tasks.extras.server.served_runs
import elmo_tasks.extras.server.serving
from elmo_tasks import cli
from elmo_tasks.config import load_config
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.elmo.embedder import ElmoConfig
from elmo_tasks.extras.server import Limits
from elmo_tasks.extras.weights.commands import PUBLISHED
from elmo_tasks.files import installed_models
from elmo_tasks.files.installed_models import InstalledModel
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


@pytest.mark.slow
@pytest.mark.parametrize(("folder", "is_said"), [("data", True), ("read", False), ("runs/quickstart-data", False)])
def test_sample_data_says_if_the_configs_read_other_data(
    folder: str, is_said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELMO_TASKS_DATA", "read")
    assert cli.main(["sample-data", folder, "--task", "ner", "--sentences", "3,2,1"]) == 0
    assert ("the configs read read; to train on these files instead: ELMO_TASKS_DATA=data" in caplog.text) == is_said


def test_serve_passes_on_its_arguments_and_loads_all_before_it_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    predictors, bilms = [Mock(), Mock()], {"one": Mock(), "other": Mock()}
    runs = {name: SimpleNamespace(predictor=each) for name, each in zip("ab", predictors, strict=True)}
    load_runs, bilms_of_runs, create_app = Mock(return_value=runs), Mock(return_value=bilms), Mock(return_value="app")

    def serve(app: str, bound: object, limits: Limits) -> None:
        assert app == "app"
        assert all(each.warm_up.called for each in (*predictors, *bilms.values()))
        served.append(limits)

    served: list[Limits] = []
    monkeypatch.setattr(elmo_tasks.extras.server.served_runs, "load_runs", load_runs)
    monkeypatch.setattr(elmo_tasks.extras.server.bilm_vectors, "bilms_of_runs", bilms_of_runs)
    monkeypatch.setattr(elmo_tasks.extras.server.app, "create_app", create_app)
    monkeypatch.setattr(elmo_tasks.extras.server.serving, "serve", serve)
    limits = "--batch-tokens 101 --max-tokens 102 --max-bytes 103 --max-requests 104 --timeout 106"
    given = "--max-waiting-tokens 105 --device cpu --allow-origin o --note n --include-package json"
    assert cli.main(["serve", "a=one", "two", "--port", "0", *limits.split(), *given.split()]) == 0
    sizes = {"batch_tokens": 101, "request_tokens": 102, "body_bytes": 103, "queue_requests": 104, "queue_tokens": 105}
    assert served == [Limits(**sizes, timeout_seconds=106, connections=208)]
    assert load_runs.call_args.args == (["a=one", "two"],)
    assert load_runs.call_args.kwargs == {"batch_tokens": 101, "overrides": ["trainer.device=cpu"]}
    assert bilms_of_runs.call_args.args == (runs,)
    assert create_app.call_args.args == (runs, bilms, served[0])
    names = ["localhost", "127.0.0.1", "[::1]", "127.0.0.1"]
    assert create_app.call_args.kwargs == {"note": "n", "allowed_hosts": names, "allowed_origins": ["o"]}

    monkeypatch.setattr(
        installed_models,
        "installed_models",
        lambda: [InstalledModel("one", tmp_path / "a", "x"), InstalledModel("two", tmp_path / "b", "x")],
    )
    assert cli.main(["serve", "--port", "0"]) == 0
    assert load_runs.call_args.args == ([f"one={tmp_path}/a", f"two={tmp_path}/b"],)
    assert served.pop() == Limits()

    assert cli.main(["serve", "two", "--port", "0"]) == 0
    assert served[1] == Limits()
    assert load_runs.call_args.kwargs == {"batch_tokens": Limits().batch_tokens, "overrides": []}
    assert bilms_of_runs.call_args.args == (runs,)
    assert create_app.call_args.kwargs == {"note": None, "allowed_hosts": names, "allowed_origins": []}
