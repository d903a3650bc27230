"""State dicts in AllenNLP's layout, against the formulas of AllenNLP's modules."""

import copy
import pickle
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from elmo_tasks.elmo import BiLM, BiLMOptions, Elmo, ScalarMix, batch_to_ids
from elmo_tasks.elmo.characters import BEGIN_SENTENCE, END_SENTENCE
from tests.elmo.formulas import allennlp_lstm_layers
from tests.extras.allennlp.archives import elmo_tensors
from tests.random_bilm import random_bilm

State = dict[str, Tensor]
WORDS = ["the", "café", "opened", "the", "naïve-coöperation" * 5]


def _elmo_state(options: BiLMOptions) -> State:
    """Random tensors under the names, and in the shapes, that AllenNLP's `Elmo` saves."""
    torch.manual_seed(5)
    return elmo_tensors(random_bilm(options, seed=5), mixes=2)


def _allennlp_layers(state: State, options: BiLMOptions, sentence: list[str]) -> Tensor:
    """(L+1, T, D): the formulas of AllenNLP's `_ElmoCharacterEncoder`, `Highway` and `LstmCellWithProjection`."""
    tensors = {name.removeprefix("_elmo_lstm."): tensor for name, tensor in state.items()}
    ids = batch_to_ids([[BEGIN_SENTENCE, *sentence, END_SENTENCE]])[0]
    characters = tensors["_token_embedder._char_embedding_weights"][ids].transpose(1, 2)
    vectors = torch.cat(
        [
            functional.conv1d(
                characters,
                tensors[f"_token_embedder.char_conv_{number}.weight"],
                tensors[f"_token_embedder.char_conv_{number}.bias"],
            ).amax(dim=-1)
            for number in range(len(options.char_cnn.filters))
        ],
        dim=-1,
    ).relu()
    highway = "_token_embedder._highways._layers.0"
    nonlinear, gate = functional.linear(vectors, tensors[f"{highway}.weight"], tensors[f"{highway}.bias"]).chunk(2, -1)
    vectors = gate.sigmoid() * vectors + (1 - gate.sigmoid()) * nonlinear.relu()
    projection = "_token_embedder._projection"
    vectors = functional.linear(vectors, tensors[f"{projection}.weight"], tensors[f"{projection}.bias"])
    lstms = {name.removeprefix("_elmo_lstm."): tensor for name, tensor in tensors.items()}
    return allennlp_lstm_layers(lstms, vectors, options.lstm)[:, 1:-1]


def _allennlp_mix(state: State, number: int, layers: Tensor) -> Tensor:
    weights = torch.cat([state[f"scalar_mix_{number}.scalar_parameters.{layer}"] for layer in range(len(layers))])
    return state[f"scalar_mix_{number}.gamma"] * (weights.softmax(0)[:, None, None] * layers).sum(dim=0)


@pytest.fixture
def state(options: BiLMOptions) -> State:
    return _elmo_state(options)


@pytest.fixture
def elmo(bilm_files: tuple[Path, Path]) -> Elmo:
    return Elmo(*bilm_files, num_output_representations=2, dropout=0.0).eval()


def test_elmo_computes_what_allennlp_does(state: State, elmo: Elmo, options: BiLMOptions) -> None:
    given = dict(state)
    elmo.load_state_dict(state)
    assert state.keys() == given.keys()
    layers = _allennlp_layers(state, options, WORDS)
    for number, vectors in enumerate(elmo(batch_to_ids([WORDS]))["elmo_representations"]):
        torch.testing.assert_close(vectors[0], _allennlp_mix(state, number, layers), rtol=0.0, atol=2e-6)


def test_the_bilm_and_the_mix_of_a_state_dict(state: State, bilm: BiLM, options: BiLMOptions) -> None:
    prefix = "_elmo_lstm."
    bilm.load_state_dict({name.removeprefix(prefix): state[name] for name in state if name.startswith(prefix)})
    expected = _allennlp_layers(state, options, WORDS)
    torch.testing.assert_close(bilm.layers([WORDS]).layers[0], expected, rtol=0.0, atol=2e-6)
    mix = ScalarMix(3)
    prefix = "scalar_mix_1."
    mix.load_state_dict({name.removeprefix(prefix): state[name] for name in state if name.startswith(prefix)})
    mixed = mix(expected[None], torch.ones(1, len(WORDS), dtype=torch.bool))[0]
    torch.testing.assert_close(mixed, _allennlp_mix(state, 1, expected))


def test_elmo_in_a_model_of_users(state: State, bilm_files: tuple[Path, Path], options: BiLMOptions) -> None:
    vocabulary = ["@@PADDING@@", "the", "café"]
    model = nn.ModuleDict(
        {"elmo": Elmo(*bilm_files, 2, dropout=0.0, vocab_to_cache=vocabulary), "out": nn.Linear(2, 3)}
    )
    words = {"elmo._elmo_lstm._word_embedding.weight": torch.full((3, 6), 9.0)}
    own = {name: tensor for name, tensor in model.state_dict().items() if name.startswith("out.")}
    model.load_state_dict({**{f"elmo.{name}": tensor for name, tensor in state.items()}, **words, **own})
    expected = _allennlp_mix(state, 0, _allennlp_layers(state, options, ["café", "the"]))
    for each in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        vectors = each["elmo"](None, torch.tensor([[2, 1]]))["elmo_representations"][0]  # of the cached vocabulary
        torch.testing.assert_close(vectors[0], expected, rtol=0.0, atol=2e-6)


def test_allennlps_attributes(state: State, elmo: Elmo) -> None:
    elmo.load_state_dict(state)
    assert elmo._scalar_mixes == [elmo.scalar_mix_0, elmo.scalar_mix_1]
    assert elmo.scalar_mix_1.gamma == state["scalar_mix_1.gamma"]
    for ours, theirs in zip(elmo.scalar_mix_1.scalar_parameters, [0, 1, 2], strict=True):
        assert torch.equal(ours, state[f"scalar_mix_1.scalar_parameters.{theirs}"])
    for name in ("scalar_mix_2", "scalar_mix_x", "nothing"):
        with pytest.raises(AttributeError, match=name):
            getattr(elmo, name)


def test_tensors_that_are_missing_of_another_shape_or_more(state: State, elmo: Elmo) -> None:
    for name, ours in {
        "_elmo_lstm._elmo_lstm.forward_layer_1.state_linearity.bias": "bilm.directions.0.layers.1.bias",
        "_elmo_lstm._token_embedder.char_conv_1.bias": "bilm.token_encoder.convolutions.1.bias",
        "_elmo_lstm._token_embedder._char_embedding_weights": "bilm.token_encoder.embedding.weight",
        "scalar_mix_1.gamma": "scalar_mixes.1.gamma",
        "scalar_mix_0.scalar_parameters.2": "scalar_mixes.0.weights",
    }.items():
        with pytest.raises(RuntimeError, match=f'Missing key.*"{ours}"'):
            elmo.load_state_dict({key: tensor for key, tensor in state.items() if key != name})
        for wrong in (torch.zeros(3), torch.zeros(3, 3), torch.zeros(8, 8)):
            with pytest.raises(RuntimeError, match=f"size mismatch for {ours}"):
                elmo.load_state_dict({**state, name: wrong})
        if name.startswith("_elmo_lstm."):
            with pytest.raises(RuntimeError, match=f'(size mismatch for |Missing key.*"){ours}'):
                elmo.load_state_dict({**state, name: torch.tensor(1.0)})
    for name, ours in {
        "_elmo_lstm._word_embedding.weight": "bilm._word_embedding.weight",  # there is no cached vocabulary
        "_elmo_lstm._elmo_lstm.forward_layer_0.other.weight": "bilm._elmo_lstm.forward_layer_0.other.weight",
        "_elmo_lstm._token_embedder.other.weight": "bilm._token_embedder.other.weight",
        "out.weight": "out.weight",
        "scalar_mix_1.bias": "scalar_mixes.1.bias",
    }.items():
        with pytest.raises(RuntimeError, match=f'Unexpected key.*"{ours}"'):
            elmo.load_state_dict(state | {name: torch.zeros(3, 6)})
