from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch

import elmo_tasks.elmo.embed
from elmo_tasks import cli
from elmo_tasks.elmo import TINY_OPTIONS, BiLM, LayerOutput, random_bilm
from elmo_tasks.elmo.cached_layers import CachedLayers, LayerCacheConfig


def test_a_random_bilm_can_embed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["random-bilm", str(tmp_path / "bilm"), "--size", "tiny", "--seed", "3"]) == 0
    captured = capsys.readouterr()
    options, weights = captured.out.splitlines()
    assert "untrained" in captured.err
    assert BiLM.load(options, weights).options.lstm.dim == 128

    source, target = tmp_path / "in.txt", tmp_path / "out.npz"
    source.write_text("Ann left. Bo stayed.\n")
    files = ["--options", options, "--weights", weights, "--output", str(target)]
    assert cli.main(["embed", str(source), *files, "--layers", "top", "--pool", "mean"]) == 0
    assert target.is_file()
    assert "vectors of 2 sentences" in " ".join(capsys.readouterr().err.split())


def test_embed_reads_raw_text_unless_it_is_tokenized(tmp_path: Path) -> None:
    random_bilm(TINY_OPTIONS, seed=2).save(tmp_path / "options.json", tmp_path / "weights.hdf5")
    source, target = tmp_path / "in.txt", tmp_path / "out.npz"
    source.write_text("Karvel. Bo stayed.\n\u6211\u6765\n", encoding="utf-8")
    lengths = {}
    for option in ("--quiet", "--tokenized", "--tokenizer=unicode"):
        arguments = ["embed", str(source), "--bilm", str(tmp_path), "--output", str(target), "--force", option]
        assert cli.main(arguments) == 0
        vectors = np.load(target)
        lengths[option] = [vectors[name].shape[1] for name in sorted(vectors.files) if name.isdecimal()]
    assert lengths == {"--quiet": [2, 3, 1], "--tokenized": [3, 1], "--tokenizer=unicode": [2, 3, 2]}


def test_embed_passes_on_its_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embed_file, load = Mock(return_value=2), Mock(return_value="the biLM")
    monkeypatch.setattr(elmo_tasks.elmo.embed, "embed_file", embed_file)
    monkeypatch.setattr(BiLM, "load", load)
    arguments = "embed in.txt --output out.hdf5 --options o --weights w --stateful --batch-tokens 9 --tokenized"
    assert cli.main(arguments.split()) == 0
    assert (load.call_args.args, load.call_args.kwargs) == ((Path("o"), Path("w")), {"stateful": True})
    assert embed_file.call_args.args == ("in.txt", "out.hdf5", "the biLM")
    assert embed_file.call_args.kwargs == {
        "layers": "all",
        "pool": "none",
        "tokenize": None,
        "max_tokens": 9,
        "keep_sentences": True,
    }


def test_neighbors_prints_the_layers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random_bilm(TINY_OPTIONS, seed=2).save(tmp_path / "bilm" / "options.json", tmp_path / "bilm" / "weights.hdf5")
    pool = tmp_path / "pool.txt"
    pool.write_text(
        "the cat saw the dog\na dog barked\nnobody came\n\nthe dog and the other Dog slept", encoding="utf-8"
    )
    arguments = ["neighbors", "a dog slept", "--word", "dog", "--pool", str(pool), "--bilm", str(tmp_path / "bilm")]
    assert cli.main([*arguments, "--count", "2", "--json"]) == 0
    layers = json.loads(capsys.readouterr().out)
    assert [len(layer) for layer in layers] == [2, 2, 2]
    assert layers[0][0]["similarity"] == pytest.approx(1.0, abs=1e-5)
    assert cli.main([*arguments, "--same-word", "--json"]) == 0
    layers = json.loads(capsys.readouterr().out)
    assert [[each["sentence"][each["place"]].lower() for each in layer] for layer in layers] == [["dog"] * 4] * 3
    assert cli.main(arguments) == 0
    shown = capsys.readouterr().out
    assert "layer 0 (tokens without context)" in shown
    assert "[dog]" in shown


def test_cache_lists_and_clears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELMO_TASKS_CACHE", str(tmp_path))
    store = LayerCacheConfig().build("f" * 64, "float32", num_layers=2, output_size=4)
    CachedLayers(ConstantLayers, store).fill([["one", "two"]])
    assert cli.main(["cache", "info"]) == 0
    listed = capsys.readouterr().out
    assert store.key.name[:8] in listed
    assert "ffffffff" in listed
    assert cli.main(["cache", "clear", "no-such-name"]) == 2
    assert cli.main(["cache", "clear", store.key.name[:8]]) == 0
    assert "freed" in capsys.readouterr().out
    assert not store.folder.exists()


class ConstantLayers:
    """A biLM that returns the same vector for every token."""

    def layers(self, sentences: Sequence[Sequence[str]]) -> LayerOutput:
        shape = (len(sentences), max(map(len, sentences)))
        return LayerOutput(torch.ones(shape[0], 2, shape[1], 4), torch.ones(shape, dtype=torch.bool))
