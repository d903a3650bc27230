"""Sentences in groups of like length: the same vectors as one by one, in the order of the sentences."""

import numpy as np
import pytest
import torch

from elmo_tasks.modules.embedder import Embedder, EmbedderConfig
from elmo_tasks.modules.encoders import StackedBiLstmConfig
from elmo_tasks.modules.sentence_groups import GroupedSentenceEncoder, padded_sentences
from elmo_tasks.text.tokens import Tokens
from elmo_tasks.text.vocabulary import SPECIAL, Vocabulary

WORDS = ("tarn", "vale", "moro", "orla", "fen", "brusk")
VOCABULARY = Vocabulary(
    words=(*SPECIAL, *WORDS), num_trained_words=8, characters=(*SPECIAL, *sorted(set("".join(WORDS)))), labels={}
)
LENGTHS = np.array([3, 1, 12, 2, 7, 1], dtype=np.int64)
STARTS = np.cumsum(LENGTHS) - LENGTHS


@pytest.fixture
def tokens() -> Tokens:
    return VOCABULARY.index_tokens([[WORDS[number % 6] for number in range(int(LENGTHS.sum()))]])


@pytest.fixture
def embedder() -> Embedder:
    torch.manual_seed(3)
    config = {"words": {"size": 4}, "characters": {"embedding_size": 3, "filters": 5, "width": 2}}
    return EmbedderConfig.model_validate(config).build(VOCABULARY)


@pytest.fixture
def encoder(embedder: Embedder) -> GroupedSentenceEncoder:
    return GroupedSentenceEncoder(
        embedder, StackedBiLstmConfig(hidden_sizes=(3,)).build(embedder.output_size), 0.5, 0.5
    ).eval()


def test_padded_sentences_are_what_the_vocabulary_makes_of_them(tokens: Tokens) -> None:
    rows = np.array([4, 0])
    found = padded_sentences(tokens, STARTS[rows], LENGTHS[rows])
    row = tokens.texts[0]
    assert found.texts == [row[18:25], row[0:3]]
    expected = VOCABULARY.index_tokens(found.texts)
    assert torch.equal(found.mask, expected.mask)
    assert torch.equal(found.words, expected.words)
    assert not found.characters[0].any()
    spelled, expected_spelling = found.characters[found.distinct], expected.characters[expected.distinct]
    assert torch.equal(spelled[..., : expected_spelling.shape[2]], expected_spelling)
    assert len(found.characters) == 7  # six words and the padding


@pytest.mark.parametrize("chosen", [range(6), [2], [1, 2, 4], [5, 0]])
def test_vectors_are_those_of_each_sentence_alone(
    tokens: Tokens, embedder: Embedder, encoder: GroupedSentenceEncoder, chosen: list[int]
) -> None:
    rows = list(chosen)
    vectors = encoder(embedder, tokens, STARTS[rows], LENGTHS[rows])
    inputs, encoded = [], []
    for row in rows:
        alone = VOCABULARY.index_tokens([tokens.texts[0][STARTS[row] : STARTS[row] + LENGTHS[row]]])
        inputs.append(embedder(alone).inputs[0])
        encoded.append(encoder.encoder(inputs[-1].unsqueeze(0), alone.mask)[0])
    torch.testing.assert_close(vectors.inputs, torch.cat(inputs))
    torch.testing.assert_close(vectors.encoded, torch.cat(encoded))


@pytest.mark.parametrize(
    ("lengths", "groups"),
    [
        ([6, 10, 5, 2], [(2, 10), (1, 5), (1, 2)]),  # 6 is as much as six tenths of 10, 5 is less
        ([241] * 17, [(16, 241), (1, 241)]),  # all of them would be 4097 tokens
        ([5000, 4000], [(1, 5000), (1, 4000)]),
    ],
)
def test_groups_have_like_lengths_and_bounded_sizes(
    embedder: Embedder, encoder: GroupedSentenceEncoder, lengths: list[int], groups: list[tuple[int, int]]
) -> None:
    tokens = VOCABULARY.index_tokens([["fen"] * sum(lengths)])
    shapes: list[tuple[int, ...]] = []
    encoder.encoder.register_forward_pre_hook(lambda _, inputs: shapes.append(tuple(inputs[1].shape)))
    sizes = np.array(lengths, dtype=np.int64)
    with torch.no_grad():
        encoder(embedder, tokens, np.cumsum(sizes) - sizes, sizes)
    assert shapes == groups


def test_gradients_reach_all_sentences(tokens: Tokens, embedder: Embedder, encoder: GroupedSentenceEncoder) -> None:
    vectors = encoder(embedder, tokens, STARTS, LENGTHS)
    vectors.encoded.sum().backward()
    assert embedder.words is not None
    assert embedder.words.trained.grad is not None
    assert embedder.words.trained.grad[2:].any(dim=1).all()
