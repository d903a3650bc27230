from typing import Any

import pytest
import torch
from torch import Tensor

from elmo_tasks.modules.character_cnn import (
    Activation,
    CharacterCnn,
    CharacterCnnConfig,
    CharacterEncoderConfig,
    Padding,
)
from elmo_tasks.text.vocabulary import SPECIAL, Vocabulary
from tests.modules.helpers import gradients


def plain_word_vector(module: CharacterCnn, characters: list[int]) -> Tensor:
    """The definition, window by window: every window with at least one character of the word."""
    margin = torch.zeros(module.width - 1, module.embedding.embedding_dim)
    word = torch.cat([margin, module.embedding.weight[characters], margin])
    kernel, bias = module.convolution.parameters()
    windows = [
        (kernel * word[start : start + module.width].t()).sum((1, 2)) + bias
        for start in range(len(characters) + module.width - 1)
    ]
    return torch.stack(windows).amax(0)


def assert_same(module: CharacterCnn, vectors: Tensor, expected: Tensor) -> None:
    """In values and in gradients."""
    torch.testing.assert_close(vectors, expected)
    weights, parameters = torch.randn(vectors.shape), list(module.parameters())
    torch.testing.assert_close(gradients(vectors, weights, parameters), gradients(expected, weights, parameters))


@pytest.mark.parametrize("width", [1, 2, 3, 5])
@pytest.mark.parametrize(
    ("activation", "function"), [("none", torch.clone), ("relu", torch.relu), ("tanh", torch.tanh)]
)
def test_equals_the_definition_whatever_the_padding(width: int, activation: Activation, function: Any) -> None:
    module = CharacterCnnConfig(embedding_size=4, filters=6, width=width, activation=activation).build(12)
    torch.nn.init.normal_(module.get_parameter("convolution.bias"))
    words = [[], [3], [4, 5], [6, 7, 8, 9, 10, 11, 2], [1, 1, 1]]
    for extra in (0, 4):
        longest = max(map(len, words)) + extra
        vectors = module(torch.tensor([word + [0] * (longest - len(word)) for word in words]))
        assert (vectors[0] == 0).all()
        expected = torch.stack([function(plain_word_vector(module, word)) for word in words[1:]])
        assert_same(module, vectors[1:], expected)


def test_learns_only_from_characters_and_keeps_the_padding_zero() -> None:
    module = CharacterCnnConfig(embedding_size=4, filters=6, width=3, activation="none").build(10)
    assert module.output_size == 6
    optimizer = torch.optim.Adam(module.parameters(), weight_decay=0.1)
    module(torch.tensor([[0, 0, 0], [2, 3, 0]])).square().sum().backward()
    optimizer.step()
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in module.parameters())
    assert (module.embedding.weight[0] == 0).all()


def test_weights_start_as_described() -> None:
    module = CharacterCnnConfig(embedding_size=12, filters=300, width=3).build(1000)
    characters, bound = module.embedding.weight[1:], 0.5  # a variance of 1 / 12
    assert -bound <= characters.min() < -0.99 * bound
    assert 0.99 * bound < characters.max() <= bound
    assert (module.embedding.weight[0] == 0).all()
    assert (module.get_parameter("convolution.bias") == 0).all()
    bound = (6 / (3 * 12 + 3 * 300)) ** 0.5  # Glorot's uniform distribution
    assert 0.99 * bound < module.convolution.weight.abs().max() <= bound


def test_a_batch_without_words() -> None:
    module = CharacterCnnConfig(filters=6).build(10)
    assert module(torch.zeros(1, 0, dtype=torch.int64)).tolist() == [[0.0] * 6]


def test_dropout_drops_a_characters_feature_in_all_its_windows() -> None:
    module = CharacterCnnConfig(embedding_size=1, filters=3, width=3, activation="none", dropout=0.5).build(4)
    with torch.no_grad():
        module.embedding.weight[1:] = 1.0
        module.convolution.weight.zero_()
        for column in range(3):  # each filter sees the character of one column
            module.convolution.weight[column, 0, column] = 1.0
    vectors = module(torch.ones(400, 1, dtype=torch.int64))
    assert torch.equal(vectors, vectors[:, :1].expand_as(vectors))
    assert set(vectors.unique().tolist()) == {0.0, 2.0}


VOCABULARY = Vocabulary(words=SPECIAL, num_trained_words=2, characters=(*SPECIAL, *"abcdefgh"), labels={})
SENTENCES = [["ab", "a", "abcde", "h"], ["c"], ["ab", "gh", "fed"]]


def plain_embedding(module: CharacterCnn, word: str, longest: int) -> Tensor:
    """All windows of a word that is padded on the right to `longest` characters; zero without any."""
    ids = [VOCABULARY.characters.index(character) for character in word]
    padded = torch.zeros(longest, module.embedding.embedding_dim)
    padded[: len(ids)] = module.embedding.weight[ids]
    if longest < module.width:
        return torch.zeros(module.output_size)
    kernel, bias = module.convolution.parameters()
    features = torch.tanh(torch.nn.functional.conv1d(padded.t().unsqueeze(0), kernel, bias))
    return features[0].amax(1)


@pytest.mark.parametrize("least", [0, 4])
@pytest.mark.parametrize("padding", ["none", "right"])
def test_other_paddings_are_those_of_allennlp(padding: Padding, least: int) -> None:
    config = CharacterCnnConfig(filters=6, width=3, activation="tanh", padding=padding, token_min_padding_length=least)
    module = config.build(len(VOCABULARY.characters))
    torch.nn.init.normal_(module.convolution.get_parameter("bias"))
    expected = torch.zeros(3, 4, 6)
    for row, sentence in enumerate(SENTENCES):
        longest = max(3, least, *map(len, sentence))
        for token, word in enumerate(sentence):
            expected[row, token] = plain_embedding(module, word, longest if padding == "right" else len(word))
    assert_same(module, module.embed(VOCABULARY.index_tokens(SENTENCES)), expected)


@pytest.mark.parametrize(("num_layers", "bidirectional"), [(1, False), (2, True)])
def test_the_lstm_gives_its_last_states(num_layers: int, bidirectional: bool) -> None:
    settings = {"type": "lstm", "hidden_size": 5, "num_layers": num_layers, "bidirectional": bidirectional}
    config = CharacterEncoderConfig.model_validate(settings)
    module = config.build(12)
    words = [[], [3], [4, 5], [6, 7, 8, 9, 10, 11, 2]]
    vectors = module(torch.tensor([word + [0] * (9 - len(word)) for word in words]))
    assert vectors.shape == (4, module.output_size)
    assert not vectors[0].any()
    for word, vector in zip(words[1:], vectors[1:], strict=True):
        outputs, _ = module.get_submodule("lstm")(module.embedding(torch.tensor([word])))
        expected = torch.cat([outputs[0, -1, :5], outputs[0, 0, 5:]])  # after the last character, and after the first
        torch.testing.assert_close(vector, expected)
    assert module(torch.zeros(1, 0, dtype=torch.int64)).tolist() == [[0.0] * module.output_size]


def test_without_a_type_a_cnn_is_meant() -> None:
    assert isinstance(CharacterEncoderConfig.model_validate({"filters": 3}), CharacterCnnConfig)
