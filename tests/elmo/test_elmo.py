import copy
import functools
from pathlib import Path
from typing import Any

import pytest
import torch

from elmo_tasks.elmo import BiLM, Elmo, batch_to_ids

Files = tuple[Path, Path]
CLOSE: dict[str, Any] = {"rtol": 0.0, "atol": 1e-5}


def test_keys_shapes_and_values(bilm: BiLM, bilm_files: Files, sentences: list[list[str]]) -> None:
    options_file, weight_file = map(str, bilm_files)
    elmo = Elmo(options_file, weight_file, 2, dropout=0).eval()
    elmo.bilm.register_forward_pre_hook(lambda *_: pytest.fail("a frozen biLM has a faster way"))
    ids = batch_to_ids(sentences)
    output = elmo(ids)
    inner = elmo(ids.view(2, 3, *ids.shape[1:]))
    assert torch.equal(inner["mask"], output["mask"].view(2, 3, -1))
    assert torch.equal(inner["elmo_representations"][1].flatten(0, 1), output["elmo_representations"][1])
    assert set(output) == {"elmo_representations", "mask"}
    expected = bilm.layers(sentences)
    assert torch.equal(output["mask"], expected.mask)
    assert len(output["elmo_representations"]) == 2
    for vectors in output["elmo_representations"]:
        assert vectors.shape == (6, 12, elmo.get_output_dim())
        torch.testing.assert_close(vectors, expected.layers.mean(dim=1), **CLOSE)


def test_sentence_boundaries_are_kept_on_request(bilm: BiLM, sentences: list[list[str]]) -> None:
    build = functools.partial(Elmo, None, None, num_output_representations=1, dropout=0.0, module=bilm)
    ids = batch_to_ids(sentences)
    without = build()(ids)
    kept = build(keep_sentence_boundaries=True)(ids)
    assert torch.equal(kept["mask"].sum(dim=1), without["mask"].sum(dim=1) + 2)
    mask = without["mask"]
    inner = kept["elmo_representations"][0][:, 1:-1]
    torch.testing.assert_close(inner[mask], without["elmo_representations"][0][mask], **CLOSE)


def test_cached_vocabulary(bilm_files: Files) -> None:
    vocabulary = ["@@PADDING@@", "one", "two", "three"]
    words = torch.tensor([[[1, 2, 3]], [[3, 0, 0]]])
    ids = batch_to_ids([["one", "two", "three"], ["three"]])
    plain = Elmo(*bilm_files, num_output_representations=1, dropout=0)
    cached = Elmo(*bilm_files, num_output_representations=1, dropout=0, vocab_to_cache=vocabulary)
    for given in (ids, None):
        output = cached(given, words)
        assert torch.equal(output["mask"].squeeze(1), plain(ids)["mask"])
        vectors = output["elmo_representations"][0]
        torch.testing.assert_close(vectors.squeeze(1), plain(ids)["elmo_representations"][0], **CLOSE)
    beyond = words.masked_fill(words == 2, 4)  # AllenNLP reads such a batch from its characters, too
    for unknown in (beyond, words.masked_fill(words == 2, -1)):
        assert torch.equal(cached(ids, unknown)["elmo_representations"][0], plain(ids)["elmo_representations"][0])
    with pytest.raises(ValueError, match=r"^word_inputs\[0, 0, 1\] is 4, but the .* has the words 0 to 3"):
        cached(None, beyond)
    with pytest.raises(ValueError, match="vocab_to_cache"):
        plain(ids, words)
    with pytest.raises(ValueError, match="expected one of them"):
        plain(None)


def test_fixed_mix_and_layer_normalization(bilm: BiLM) -> None:
    elmo = Elmo(None, None, 1, dropout=0, do_layer_norm=True, scalar_mix_parameters=[1e4, -1e4, -1e4], module=bilm)
    assert not any(parameter.requires_grad for parameter in elmo.parameters())
    ids = batch_to_ids([["one", "two"]])
    token_layer = bilm(ids).layers[:, 0]  # with borders, which count in the normalization
    expected = (token_layer - token_layer.mean()) / token_layer.std(correction=0)
    torch.testing.assert_close(elmo(ids)["elmo_representations"][0], expected[:, 1:-1], **CLOSE)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_what_is_trained(bilm_files: Files, requires_grad: bool) -> None:
    elmo = Elmo(*bilm_files, num_output_representations=1, requires_grad=requires_grad)
    elmo(batch_to_ids([["one", "two"]]))["elmo_representations"][0].square().sum().backward()
    assert elmo.scalar_mixes[0].weights.grad is not None
    gradients = [parameter.grad is not None for parameter in elmo.bilm.parameters()]
    assert gradients == [requires_grad] * len(gradients)


def test_the_copy_of_frozen_weights_is_made_again(bilm: BiLM, bilm_files: Files) -> None:
    elmo, ids = Elmo(*bilm_files, dropout=0).eval(), batch_to_ids([["one", "two"]])
    before = elmo(ids)["elmo_representations"][0]
    other = {name: 0.5 * tensor for name, tensor in bilm.state_dict().items()}

    def vectors(elmo: Elmo) -> torch.Tensor:
        expected = elmo.bilm.layers_of_ids(ids).layers.mean(dim=1)
        torch.testing.assert_close(elmo(ids)["elmo_representations"][0], expected, **CLOSE)
        return expected

    elmo.bilm.load_state_dict(other)
    assert (vectors(elmo) - before).abs().max() > 0.01
    elmo.load_state_dict(Elmo(*bilm_files).state_dict())
    assert torch.equal(vectors(copy.deepcopy(elmo)), vectors(elmo))
    torch.testing.assert_close(vectors(elmo), before, **CLOSE)
    elmo.bilm.directions[0].layers[0].recurrent_weight.data.mul_(0.5)
    vectors(elmo)
    with torch.no_grad():
        elmo.bilm.directions[1].layers[0].recurrent_weight.mul_(0.5)
    vectors(elmo)
    copied = copy.deepcopy(elmo)
    copied.bilm.load_state_dict(other)
    vectors(copied)
    vectors(elmo)
    elmo.bilm.requires_grad_(True)
    assert elmo(ids)["elmo_representations"][0].requires_grad


def test_by_default_it_is_one_mix_of_a_frozen_bilm_without_state_and_half_of_it_is_dropped(bilm_files: Files) -> None:
    torch.manual_seed(0)
    elmo = Elmo(*bilm_files)
    assert not any(parameter.requires_grad for parameter in elmo.bilm.parameters())
    ids = batch_to_ids([["one", "two", "three", "four"] * 20])
    (dropped,) = elmo.train()(ids)["elmo_representations"]
    assert 0.4 < (dropped == 0).float().mean() < 0.6
    first, second = (elmo.eval()(ids)["elmo_representations"][0] for _ in range(2))
    assert torch.equal(first, second)
    assert not (first == 0).any()
    stateful = Elmo(*bilm_files, stateful=True, dropout=0)
    assert not torch.equal(*(stateful(ids)["elmo_representations"][0] for _ in range(2)))


def test_files_or_module_not_both(bilm: BiLM, bilm_files: Files) -> None:
    for options, weights in (bilm_files, (bilm_files[0], None), (None, bilm_files[1])):
        with pytest.raises(ValueError, match="one or the other"):
            Elmo(options, weights, num_output_representations=1, module=bilm)
    with pytest.raises(ValueError, match="without options_file"):
        Elmo(None, bilm_files[1], 1)


def test_the_bilm_is_that_of_the_package_or_of_a_folder(bilm: BiLM, bilm_files: Files) -> None:
    ids = batch_to_ids([["one", "two"]])
    folder = Elmo(bilm_files[0].parent, dropout=0)
    assert torch.equal(folder.bilm.layers_of_ids(ids).layers, bilm.layers_of_ids(ids).layers)
    assert Elmo().get_output_dim() == BiLM.load().output_size


def test_sentences_in_place_of_ids_are_refused(bilm: BiLM) -> None:
    with pytest.raises(TypeError, match="inputs is a list; expected character ids, as from batch_to_ids"):
        Elmo(module=bilm)([["one", "two"]])
