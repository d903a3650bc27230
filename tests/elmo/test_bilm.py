import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from elmo_tasks.elmo import BiLM, BiLMOptions, Elmo, FastBiLM, batch_to_ids
from elmo_tasks.elmo.bilm import without_borders
from elmo_tasks.elmo.characters import tokens_to_ids
from elmo_tasks.elmo.lstm import ProjectedLstm
from elmo_tasks.elmo.options import LstmOptions
from tests.random_bilm import random_bilm

CLOSE: dict[str, Any] = {"rtol": 0.0, "atol": 1e-5}


def test_vectors_of_bilm_tf(data_folder: Path) -> None:
    """Three streams of ten sentences, state carried over in each; bilm-tf wrote (direction, T, P) of the top layer."""
    folder = data_folder / "bilm_tf_fixture"
    streams = json.loads((folder / "lm_embeddings_sentences.json").read_text())
    bilm = BiLM.load(folder / "options.json", folder / "lm_weights.hdf5", stateful=True)
    files = [h5py.File(folder / f"lm_embeddings_{stream}.hdf5") for stream in range(3)]
    for number in range(10):
        batch = [stream[number].split() for stream in streams]
        output = bilm.layers(batch)
        for row, tokens in enumerate(batch):
            expected = np.concatenate(list(files[row][str(number)][...]), axis=-1)
            np.testing.assert_allclose(output.layers[row, -1, : len(tokens)].numpy(), expected, rtol=0, atol=1e-5)


def test_empty_batches(bilm: BiLM) -> None:
    assert bilm.layers([]).layers.shape == (0, 3, 0, 12)
    assert bilm.layers([[], []]).layers.shape == (2, 3, 0, 12)
    for output in (FastBiLM(bilm).layers([]), bilm.layers_of_ids(batch_to_ids([]))):
        assert output.layers.shape == (0, 3, 0, 12)
        assert output.mask.shape == (0, 0)


def test_character_ids_give_the_same_layers(bilm: BiLM, sentences: list[list[str]]) -> None:
    sentences = [*sentences, [], ["<S>", "x" * 60]]
    ids = torch.nn.functional.pad(batch_to_ids(sentences), [0, 0, 0, 3])
    bordered = bilm(ids)
    assert bordered.mask.sum(dim=1).tolist() == [len(tokens) + 2 for tokens in sentences]
    by_tokens, by_ids, plain = bilm.layers(sentences), bilm.layers_of_ids(ids), without_borders(bordered)
    assert torch.equal(by_ids.mask, plain.mask)
    torch.testing.assert_close(by_ids.layers, plain.layers, **CLOSE)
    assert torch.equal(by_tokens.mask, plain.mask[:, :-3])
    torch.testing.assert_close(by_tokens.layers, plain.layers[:, :, :-3], **CLOSE)
    assert bilm.layers_of_ids(batch_to_ids([[], []])).layers.shape == (2, 3, 0, 12)


def test_padding_before_a_token_is_refused(bilm: BiLM) -> None:
    ids = batch_to_ids([["a", "b", "c"]])
    ids[0, 1] = 0
    for read in (bilm, bilm.layers_of_ids, FastBiLM(bilm).layers_of_ids, Elmo(module=bilm)):
        with pytest.raises(ValueError, match="padding before a real token"):
            read(ids)


def test_ids_of_another_form_are_read_too(bilm: BiLM) -> None:
    elmo = Elmo(module=bilm, dropout=0)
    narrow, gap, unknown = batch_to_ids([["one", "two"]], 20), batch_to_ids([["one"]]), batch_to_ids([["one"]])
    gap[0, 0, 9] = 5
    usual, empty = batch_to_ids([["x" * 48, "", "\0"], ["one"]]), batch_to_ids([])
    assert [FastBiLM(bilm).reads(ids) for ids in (usual, narrow, gap, empty)] == [True, False, False, False]
    for ids in (narrow, gap):
        expected = without_borders(bilm(ids)).layers.mean(dim=1)
        torch.testing.assert_close(elmo(ids)["elmo_representations"][0], expected, **CLOSE)
    for number in (-1, 262, 400):
        unknown[0, 0, 2] = number
        with pytest.raises(IndexError):
            elmo(unknown)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["The dog"], r"sentence 0 is 'The dog'; expected a list of tokens, .*elmo_tasks.tokenize splits text"),
        ("The dog", "sentences is 'The dog'; expected a list of tokens for each sentence, such as"),
        ([["The", "dog"], ["a", 3]], "sentence 1 has the token 3; expected strings"),
    ],
)
def test_strings_and_other_things_in_place_of_tokens_are_refused(bilm: BiLM, given: Any, message: str) -> None:
    stateful = copy.deepcopy(bilm)
    stateful.stateful = True
    for read in (bilm.layers, stateful.layers, FastBiLM(bilm).layers, batch_to_ids):
        with pytest.raises(TypeError, match=message):
            read(given)


@pytest.mark.parametrize(
    "batch_lengths",
    [
        [range(1 + size)[1:] for size in (2, 3, 1, 3, 2, 4)],  # of changing sizes
        *([lengths] * 2 for lengths in ((1, 3, 2), (2, 1, 3), (1, 1, 4, 2, 3))),
    ],
    ids=str,
)
def test_carried_state_follows_each_row(bilm: BiLM, batch_lengths: list[Sequence[int]]) -> None:
    """Rows of batches equal rows of which each has a biLM of its own.

    Sorting rows of the last lengths and sorting them back are different permutations.
    """
    bilm.stateful = True
    batches = [
        [[f"w{number}{row}{token % 3}" for token in range(length)] for row, length in enumerate(lengths)]
        for number, lengths in enumerate(batch_lengths)
    ]
    together = [bilm.layers(batch).layers for batch in batches]
    for row in range(max(map(len, batches))):
        bilm.reset_state()
        for batch, layers in zip(batches, together, strict=True):
            if row < len(batch):
                single = bilm.layers([batch[row]]).layers[0]
                torch.testing.assert_close(layers[row, :, : len(batch[row])], single, **CLOSE)


def test_no_gradient_flows_into_the_batch_before(bilm: BiLM) -> None:
    bilm.requires_grad_(True)
    bilm.stateful = True
    gradients = []
    for first_has_graph in (True, False):
        bilm.reset_state()
        with torch.set_grad_enabled(first_has_graph):
            bilm.layers([["one", "two"], ["three"]])
        second = bilm.layers([["four"], ["five", "six"]]).layers
        gradients.append(torch.autograd.grad(second.square().sum(), list(bilm.parameters())))
    for gradient, expected in zip(*gradients, strict=True):
        torch.testing.assert_close(gradient, expected)


def test_gradient_reaches_every_weight_that_wants_one(options: BiLMOptions, sentences: list[list[str]]) -> None:
    bilm = random_bilm(options)
    assert not bilm.layers(sentences).layers.requires_grad
    bias = bilm.directions[1].layers[0].bias.requires_grad_(True)
    bilm.layers(sentences).layers.square().sum().backward()
    assert bias.grad is not None
    assert all(weight.grad is None for weight in bilm.parameters() if weight is not bias)
    bilm.requires_grad_(True)
    bilm.layers(sentences).layers.square().sum().backward()
    for name, parameter in bilm.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


def test_more_tokens_than_a_block_and_none(bilm: BiLM) -> None:
    """What the numbers are, `test_against_numpy` says."""
    ids = tokens_to_ids([f"token{number}" for number in range(1100)])
    whole = bilm.token_encoder(ids)
    assert whole.shape == (1100, 6)
    torch.testing.assert_close(whole[700:720], bilm.token_encoder(ids[700:720]))
    assert bilm.token_encoder(ids[:0]).shape == (0, 6)


def test_new_weights_are_uniform_as_in_torch() -> None:
    lstm = ProjectedLstm(LstmOptions(dim=64, projection_dim=16, n_layers=1))
    for name, parameter in lstm.named_parameters():
        largest = 0.0 if name == "bias" else 1 / 8  # one over the root of the cells
        for values in (parameter, -parameter):
            assert 0.95 * largest <= values.max() <= largest, name
