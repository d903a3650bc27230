"""The command that downloads published biLMs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import _jsonnet
import pytest

from elmo_tasks import cli
from elmo_tasks.config import load_config
from elmo_tasks.elmo import published
from elmo_tasks.elmo.bilm_files import BiLMFiles
from elmo_tasks.elmo.embedder import ElmoConfig
from tests.fake_hub import FakeHub


def test_fetch_says_where_the_files_are_and_how_a_config_names_them(
    hub: FakeHub, sample_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files = BiLMFiles.in_folder(sample_folder / "bilm")
    options, weights = hub.add_file(files.options), hub.add_file(files.weights)
    plain = [options.partition("#")[0], weights.partition("#")[0]]
    monkeypatch.setitem(published.PUBLISHED, "tiny", (plain[0], weights))
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
    monkeypatch.setitem(published.PUBLISHED, "tiny", (plain[0], f"{plain[1]}#sha256={'0' * 64}"))
    hub.files["other.json"] = b"{}"
    for names, problem in (
        (["tiny"], "not the expected file"),
        (["smal"], "Did you mean 'small'?"),
        ([], "no name: expected one of small, medium"),
        (
            [f"{hub.address}/files/other.json", plain[1]],
            "other.json: the key 'char_cnn' is missing; expected the options of a character-based biLM",
        ),
    ):
        assert cli.main(["fetch", *names]) == cli.USER_ERROR
        assert problem in capsys.readouterr().err
