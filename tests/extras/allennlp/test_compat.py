"""Old scripts: what they import from AllenNLP has the same methods and gives the same arrays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

import elmo_tasks.compat
from elmo_tasks.compat import Elmo, ElmoEmbedder, Predictor, load_archive, tf_hub_outputs
from elmo_tasks.elmo import TINY_OPTIONS
from elmo_tasks.errors import ElmoTasksError
from tests.random_bilm import random_bilm

SENTENCES = [["The", "dog", "barked"], ["Hello"], [], ["Hello", ",", "you"]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("bilm")
    paths = folder / "options.json", folder / "weights.hdf5"
    random_bilm(TINY_OPTIONS, seed=1).save(*paths)
    return paths


def test_the_vectors_are_those_of_bilm_tf_with_state_from_batch_to_batch(data_folder: Path) -> None:
    folder = data_folder / "bilm_tf_fixture"
    streams = json.loads((folder / "lm_embeddings_sentences.json").read_text())
    embedder = ElmoEmbedder(folder / "options.json", folder / "lm_weights.hdf5")
    sentences = [stream[number].split() for number in range(10) for stream in streams]
    found = list(embedder.embed_sentences(sentences, batch_size=3))
    assert [each.shape for each in found] == [(3, len(tokens), 32) for tokens in sentences]
    for stream in range(3):
        with h5py.File(folder / f"lm_embeddings_{stream}.hdf5") as file:
            for number in range(10):
                expected = np.concatenate(list(file[str(number)][...]), axis=-1)  # of the top layer
                np.testing.assert_allclose(found[3 * number + stream][-1], expected, rtol=0, atol=1e-5)


def test_sentences_batches_and_single_sentences(files: tuple[Path, Path]) -> None:
    batch = ElmoEmbedder(*files).embed_batch(SENTENCES)
    assert [each.shape for each in batch] == [(3, 3, 64), (3, 1, 64), (3, 0, 64), (3, 3, 64)]
    assert all(each.dtype == np.float32 for each in batch)
    for each, other in zip(ElmoEmbedder(files[0].parent).embed_sentences(iter(SENTENCES)), batch, strict=True):
        np.testing.assert_array_equal(each, other)
    embedder = ElmoEmbedder(*files)
    np.testing.assert_allclose(embedder.embed_sentence(SENTENCES[0]), batch[0], rtol=0, atol=1e-6)
    assert not np.allclose(embedder.embed_sentence(SENTENCES[0])[1:], batch[0][1:], rtol=0, atol=1e-3)  # state
    layers, mask = ElmoEmbedder(*files).batch_to_embeddings(SENTENCES)
    assert (tuple(layers.shape), mask.sum(dim=1).tolist()) == ((4, 3, 3, 64), [3, 1, 0, 3])


def test_the_outputs_of_tensorflow_hub() -> None:
    """Half of the token layer's two equal halves, and the whole of the others."""
    bilm = random_bilm(TINY_OPTIONS, seed=2)
    texts = ["The dog barked", "Hello", ["a", "b c"], ""]
    output = bilm.layers([["The", "dog", "barked"], ["Hello"], ["a", "b c"], []])
    layers, lengths = output.layers, output.mask.sum(1).tolist()
    given: dict[str, Any] = {"weights": torch.tensor([0.3, -1.0, 2.0]), "gamma": 0.7}
    for settings, shares in (({}, torch.ones(3) / 3), (given, 0.7 * given["weights"].softmax(0))):
        found = tf_hub_outputs(texts, bilm, **settings)
        assert list(found) == ["word_emb", "elmo", "lstm_outputs1", "lstm_outputs2", "default"]
        for half in layers[:, 0].split(32, dim=2):
            torch.testing.assert_close(found["word_emb"], half)
        torch.testing.assert_close(found["lstm_outputs1"], layers[:, 1])
        torch.testing.assert_close(found["lstm_outputs2"], layers[:, 2])
        torch.testing.assert_close(found["elmo"], torch.einsum("l,bltd->btd", shares, layers))
        means = [each[:length].sum(0) / max(1, length) for each, length in zip(found["elmo"], lengths, strict=True)]
        torch.testing.assert_close(found["default"], torch.stack(means))


def test_what_is_not_here_says_what_to_use() -> None:
    with pytest.raises(ImportError, match=r"no ELMoCharacterMapper; use batch_to_ids\(sentences\)"):
        from elmo_tasks.compat import ELMoCharacterMapper  # noqa: F401
    with pytest.raises(AttributeError, match="Elmo has no _elmo_lstm here; use its bilm"):
        _ = Elmo()._elmo_lstm
    with pytest.raises(AttributeError, match=r"archive\.model is not available here; .* elmo_tasks\.load\('RUN'\)"):
        _ = load_archive("ner").model
    with pytest.raises(ElmoTasksError, match="Mine: subclasses of AllenNLP's predictors are not used here; call"):
        type("Mine", (Predictor,), {})
    with pytest.raises(ElmoTasksError, match="mine: subclasses of AllenNLP's predictors are not used here; call"):
        Predictor.register("mine")
    assert not hasattr(elmo_tasks.compat, "none_such")


def test_without_files_it_says_which_bilm_it_is(caplog: pytest.LogCaptureFixture) -> None:
    assert ElmoEmbedder().embed_sentence(["Hello"]).shape == (3, 1, 256)
    assert "the biLM in the package is used, not AllenNLP's" in caplog.text


def test_without_a_gpu_the_cpu_is_used_and_it_is_said(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In all classes alike."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    assert ElmoEmbedder(*files, cuda_device=1).cuda_device == -1
    for device in (1, torch.device("cuda:1"), "cuda:1"):
        Predictor.from_path("ner", cuda_device=device)  # type: ignore[arg-type]
    assert caplog.messages == ["cuda_device is cuda:1, but torch finds no GPU; the CPU is used"] * 4


def test_the_device_of_a_number(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[str] = []

    def to(module: torch.nn.Module, place: torch.device) -> torch.nn.Module:
        moved.append(str(place))
        return module

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.nn.Module, "to", to)
    for number, device in ((-1, "cpu"), (0, "cuda:0"), (1, "cuda:1")):
        assert ElmoEmbedder(*files, cuda_device=number).cuda_device == number
        assert moved[-1] == device
    for wrong, message in (
        (2, r"cuda_device is cuda:2; expected one of 2 GPU\(s\)"),
        (-2, "cuda_device is -2; expected a whole number of at least -1"),
    ):
        with pytest.raises(ElmoTasksError, match=message):
            ElmoEmbedder(*files, cuda_device=wrong)
