from __future__ import annotations

from pathlib import Path

import pydantic
import pytest
import torch

from elmo_tasks.elmo import TINY_OPTIONS, ElmoEmbedder, ScalarMix, random_bilm
from elmo_tasks.modules.character_cnn import CharacterCnnConfig
from elmo_tasks.modules.embedder import Embedder, EmbedderConfig
from elmo_tasks.modules.word_embedding import WordEmbeddingConfig
from elmo_tasks.text.vocabulary import SPECIAL, Vocabulary

TEXTS = [["vale", "moro", "vale", "tarn"], ["moro"]]
VOCABULARY = Vocabulary(
    words=(*SPECIAL, "vale", "moro", "tarn"), num_trained_words=5, characters=(*SPECIAL, *"aelmnortv"), labels={}
)


def make_embedder(*mixes: str) -> Embedder:
    torch.manual_seed(2)
    words = WordEmbeddingConfig(size=5).build(VOCABULARY)
    characters = CharacterCnnConfig(filters=7).build(len(VOCABULARY.characters))
    bilm, learned = random_bilm(TINY_OPTIONS), {name: ScalarMix(3) for name in mixes}
    elmo = ElmoEmbedder(lambda device: bilm, bilm.output_size, learned, dropout=0.0) if mixes else None
    return Embedder(words, characters, elmo)


def test_concatenates_words_characters_and_elmo() -> None:
    embedder = make_embedder("input", "output")
    assert (embedder.output_size, embedder.elmo_size) == (5 + 7 + 64, 64)
    tokens = VOCABULARY.index_tokens(TEXTS)
    embedded = embedder(tokens)
    assert embedded.inputs.shape == (2, 4, 76)
    words, characters, elmo = embedded.inputs.split([5, 7, 64], dim=2)
    assert embedder.words is not None
    assert embedder.characters is not None
    assert embedder.elmo is not None
    torch.testing.assert_close(words, embedder.words(tokens.words))
    torch.testing.assert_close(characters, embedder.characters(tokens.characters)[tokens.distinct])
    torch.testing.assert_close(elmo, embedder.elmo(TEXTS)["input"])
    torch.testing.assert_close(embedded.outputs, embedder.elmo(TEXTS)["output"])
    assert (embedded.inputs[~tokens.mask] == 0).all()


@pytest.mark.parametrize(
    ("mixes", "sizes"), [((), (12, 0)), (("input",), (76, 0)), (("output",), (12, 64)), (("input", "output"), (76, 64))]
)
def test_sizes_follow_the_mixes(mixes: tuple[str, ...], sizes: tuple[int, int]) -> None:
    embedder = make_embedder(*mixes)
    embedded = embedder(VOCABULARY.index_tokens(TEXTS))
    assert (embedder.output_size, embedder.elmo_size) == sizes
    assert embedded.inputs.shape[2] == sizes[0]
    assert (embedded.outputs is None) == (sizes[1] == 0)


def test_learned_mixes_for_logs() -> None:
    embedder = make_embedder("input", "output")
    start = {"layers": [0, 1, 2], "weights": pytest.approx([1 / 3] * 3), "gamma": 1.0}
    assert embedder.mix_weights() == {"input": start, "output": start}
    assert make_embedder().mix_weights() == {}


def test_config_wants_something_to_read() -> None:
    with pytest.raises(pydantic.ValidationError, match="at least one of words, characters, transformer and elmo"):
        EmbedderConfig()
    elmo = {"options": "options.json", "weights": "weights.hdf5", "mixes": ("output",)}
    with pytest.raises(pydantic.ValidationError, match="at least one of words, characters, transformer and elmo"):
        EmbedderConfig.model_validate({"elmo": elmo})


def test_config_names_the_pretrained_words(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("tarn 1 2\nvale 3 4\n")
    config = EmbedderConfig.model_validate({"words": {"size": 2, "vectors": str(path)}})
    assert list(config.pretrained_words()) == ["tarn", "vale"]
    assert list(EmbedderConfig.model_validate({"words": {"size": 2}}).pretrained_words()) == []
    assert list(EmbedderConfig.model_validate({"characters": {}}).pretrained_words()) == []
    embedder = config.build(VOCABULARY)
    assert embedder.output_size == 2
    assert embedder.words is not None
    assert embedder.words(torch.tensor([[2]])).tolist() == [[[3.0, 4.0]]]
