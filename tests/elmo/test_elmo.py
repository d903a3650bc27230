from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch

from elmo_tasks.elmo import BiLM, Elmo, batch_to_ids

Files = tuple[Path, Path]
CLOSE = {"rtol": 0.0, "atol": 1e-5}


def test_keys_shapes_and_values(bilm: BiLM, bilm_files: Files, sentences: list[list[str]]) -> None:
    options_file, weight_file = map(str, bilm_files)
    elmo = Elmo(options_file, weight_file, 2, dropout=0).eval()
    output = elmo(batch_to_ids(sentences))
    assert set(output) == {"elmo_representations", "mask"}
    wanted = bilm.layers(sentences)
    assert torch.equal(output["mask"], wanted.mask)
    assert len(output["elmo_representations"]) == 2
    for vectors in output["elmo_representations"]:
        assert vectors.shape == (6, 12, elmo.get_output_dim())
        torch.testing.assert_close(vectors, wanted.layers.mean(dim=1), **CLOSE)


def test_more_dimensions(bilm_files: Files) -> None:
    elmo = Elmo(*bilm_files, num_output_representations=1, dropout=0)
    ids = batch_to_ids([["a", "b"], ["c"], [], ["d", "e", "f"]])
    flat = elmo(ids)
    deep = elmo(ids.view(2, 2, 3, 50))
    assert deep["mask"].shape == (2, 2, 3)
    assert torch.equal(deep["mask"].view(4, 3), flat["mask"])
    vectors = deep["elmo_representations"][0]
    assert vectors.shape == (2, 2, 3, 12)
    assert torch.equal(vectors.view(4, 3, 12), flat["elmo_representations"][0])


@pytest.mark.parametrize("batch", [[[]], [[], []]])
def test_a_batch_without_a_token(bilm_files: Files, batch: list[list[str]]) -> None:
    output = Elmo(*bilm_files, num_output_representations=1)(batch_to_ids(batch))
    assert output["elmo_representations"][0].shape == (len(batch), 0, 12)
    assert output["mask"].shape == (len(batch), 0)


def test_sentence_boundaries_are_kept_if_wanted(bilm: BiLM, sentences: list[list[str]]) -> None:
    arguments = {"options_file": None, "weight_file": None, "num_output_representations": 1, "dropout": 0.0}
    ids = batch_to_ids(sentences)
    without = Elmo(**arguments, module=bilm)(ids)
    kept = Elmo(**arguments, module=bilm, keep_sentence_boundaries=True)(ids)
    assert torch.equal(kept["mask"].sum(dim=1), without["mask"].sum(dim=1) + 2)
    mask = without["mask"]
    inner = kept["elmo_representations"][0][:, 1:-1]
    assert torch.equal(inner[mask], without["elmo_representations"][0][mask])


def test_cached_vocabulary(bilm_files: Files) -> None:
    vocabulary = ["@@PADDING@@", "one", "two", "three"]
    words = torch.tensor([[[1, 2, 3]], [[3, 0, 0]]])
    ids = batch_to_ids([["one", "two", "three"], ["three"]])
    plain = Elmo(*bilm_files, num_output_representations=1, dropout=0)
    cached = Elmo(*bilm_files, num_output_representations=1, dropout=0, vocab_to_cache=vocabulary)
    output = cached(ids, words)
    assert torch.equal(output["mask"].view(2, 3), plain(ids)["mask"])
    vectors = output["elmo_representations"][0]
    torch.testing.assert_close(vectors.view(2, 3, 12), plain(ids)["elmo_representations"][0], **CLOSE)
    with pytest.raises(ValueError, match="vocab_to_cache"):
        plain(ids, words)
    with pytest.raises(ValueError, match="wanted one of them"):
        plain(None)


def test_cached_vocabulary_of_a_trained_bilm_is_warned_of(bilm_files: Files, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Elmo(*bilm_files, num_output_representations=1, requires_grad=True, vocab_to_cache=["", "one"])
    assert "vectors of the cached vocabulary do not change" in caplog.text


def test_fixed_mix_and_layer_normalization(bilm: BiLM) -> None:
    elmo = Elmo(None, None, 1, dropout=0, do_layer_norm=True, scalar_mix_parameters=[1e4, -1e4, -1e4], module=bilm)
    assert not any(parameter.requires_grad for parameter in elmo.parameters())
    ids = batch_to_ids([["one", "two"]])
    token_layer = bilm(ids).layers[:, 0]  # with borders, which count in the normalization
    wanted = (token_layer - token_layer.mean()) / token_layer.std(correction=0)
    torch.testing.assert_close(elmo(ids)["elmo_representations"][0], wanted[:, 1:-1], **CLOSE)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_what_is_trained(bilm_files: Files, requires_grad: bool) -> None:
    elmo = Elmo(*bilm_files, num_output_representations=1, requires_grad=requires_grad)
    elmo(batch_to_ids([["one", "two"]]))["elmo_representations"][0].square().sum().backward()
    assert elmo.scalar_mixes[0].weights.grad is not None
    gradients = [parameter.grad is not None for parameter in elmo.bilm.parameters()]
    assert gradients == [requires_grad] * len(gradients)


def test_dropout_in_training(bilm_files: Files) -> None:
    elmo = Elmo(*bilm_files, num_output_representations=1, dropout=0.5)
    ids = batch_to_ids([["one", "two", "three", "four"]])
    assert (elmo.train()(ids)["elmo_representations"][0] == 0).any()
    assert not (elmo.eval()(ids)["elmo_representations"][0] == 0).any()


def test_stateless_unless_wanted(bilm_files: Files) -> None:
    ids = batch_to_ids([["one", "two"]])
    for stateful in (False, True):
        elmo = Elmo(*bilm_files, num_output_representations=1, dropout=0, stateful=stateful)
        first, second = (elmo(ids)["elmo_representations"][0] for _ in range(2))
        assert torch.equal(first, second) != stateful


def test_files_or_module_not_both(bilm: BiLM, bilm_files: Files) -> None:
    with pytest.raises(ValueError, match="one or the other"):
        Elmo(*bilm_files, num_output_representations=1, module=bilm)
    with pytest.raises(ValueError, match="are needed"):
        Elmo(None, None, 1)
