import dataclasses
from pathlib import Path

import pydantic
import pytest
import torch

from elmo_tasks.elmo import TINY_OPTIONS, ScalarMix
from elmo_tasks.elmo.frozen_layers import FrozenLayers
from elmo_tasks.errors import ElmoTasksError
from elmo_tasks.models.embedder import Embedder, EmbedderConfig
from elmo_tasks.modules.character_cnn import CharacterCnnConfig
from elmo_tasks.modules.word_embedding import WordEmbedding, WordEmbeddingConfig
from elmo_tasks.text.vocabulary import SPECIAL, Vocabulary
from tests.elmo.layer_store.fillers import Provider
from tests.random_bilm import random_bilm

VECTORS = {
    "vale": [1.0, 2.0, 3.0],
    "Moro": [4.0, 5.0, 6.5],
    "moro": [0.0, 0.0, 1.0],
    "tarn": [7.0, 8.0, 9.0],
    "<unknown>": [50.0, 50.0, 50.0],
}


@pytest.fixture
def vectors(tmp_path: Path) -> str:
    path = tmp_path / "vectors.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in VECTORS.items()))
    return str(path)


@pytest.fixture
def vocabulary() -> Vocabulary:
    # "Vale" is in the file in lower case alone, "zzz" not at all; "tarn" is known from the file alone.
    words = (*SPECIAL, "Moro", "Vale", "zzz", "tarn")
    return Vocabulary(words=words, num_trained_words=5, characters=SPECIAL, labels={})


def test_rows_come_from_the_file(vectors: str, vocabulary: Vocabulary, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "elmo_tasks.modules.word_embedding")
    module = WordEmbeddingConfig(vectors=vectors, size=3).build(vocabulary)
    assert caplog.messages == [f"{vectors}: vectors for 3 of 4 words"]
    rows = module(torch.arange(6).unsqueeze(0))[0]
    found = torch.tensor([VECTORS["Moro"], VECTORS["vale"], VECTORS["tarn"]])
    torch.testing.assert_close(rows[[2, 3, 5]], found)
    assert (rows[0] == 0).all()
    torch.testing.assert_close(rows[1], found.mean(0))


def test_words_that_the_file_lacks_look_like_those_it_has(vectors: str) -> None:
    lacking = tuple(f"zzz{number}" for number in range(4000))
    words = (*SPECIAL, "Moro", "Vale", "tarn", *lacking)
    vocabulary = Vocabulary(words=words, num_trained_words=len(words), characters=SPECIAL, labels={})
    torch.manual_seed(0)
    module = WordEmbeddingConfig(vectors=vectors, size=3).build(vocabulary)
    found, drawn = module.trained.detach()[2:5], module.trained.detach()[5:]
    torch.testing.assert_close(drawn.mean(0), found.mean(0), atol=0.2, rtol=0)
    torch.testing.assert_close(drawn.std(0), found.std(0, correction=0), atol=0.2, rtol=0)


@pytest.mark.parametrize("trainable", [True, False])
def test_trains_only_the_training_words(vectors: str, vocabulary: Vocabulary, trainable: bool) -> None:
    module = WordEmbeddingConfig(vectors=vectors, size=3, trainable=trainable).build(vocabulary)
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    assert set(before) == {"trained", "fixed"}
    weight = torch.ones(1, requires_grad=True)
    (module(torch.tensor([[2, 5, 0], [1, 3, 5]])) * weight).sum().backward()
    if not trainable:
        assert not any(parameter.requires_grad for parameter in module.parameters())
        return
    assert module.trained.grad is not None
    assert module.trained.grad.any(dim=1).tolist() == [False, True, True, True, False]
    torch.optim.SGD(module.parameters(), lr=0.1).step()
    assert torch.equal(module.fixed, before["fixed"])


def test_a_run_needs_no_file(vectors: str, vocabulary: Vocabulary) -> None:
    module = WordEmbeddingConfig(vectors=vectors, size=3).build(vocabulary)
    Path(vectors).unlink()
    restored = WordEmbeddingConfig(vectors=vectors, size=3).build(vocabulary, pretrained=False)
    restored.load_state_dict(module.state_dict())
    words = torch.arange(6).unsqueeze(0)
    assert torch.equal(restored(words), module(words))


def test_refuses_a_file_of_another_size_or_without_any_of_the_words(vectors: str, vocabulary: Vocabulary) -> None:
    with pytest.raises(
        ElmoTasksError, match=r"its vectors have 3 numbers; expected 4, as the config says; set .* to 3"
    ):
        WordEmbeddingConfig(vectors=vectors, size=4).build(vocabulary)
    other = dataclasses.replace(vocabulary, words=(*SPECIAL, "zzz"), num_trained_words=3)
    with pytest.raises(ElmoTasksError, match="holds none of the vocabulary's 1 words"):
        WordEmbeddingConfig(vectors=vectors, size=3).build(other)


def test_hides_words_only_in_training() -> None:
    module = WordEmbedding(5, 2, WordEmbeddingConfig(size=3, unknown_probability=0.3))
    words = torch.full((100, 30), 6).index_fill(1, torch.arange(15), 4).index_fill(1, torch.tensor([29]), 0)
    torch.manual_seed(0)
    hidden = (module(words) == module.trained[1]).all(2)
    assert not hidden[:, 29].any()
    assert hidden[:, :29].float().mean().item() == pytest.approx(0.3, abs=0.03)
    assert not (module.eval()(words) == module.trained[1]).all(2).any()


def test_without_a_file_vectors_have_a_length_of_about_one() -> None:
    vocabulary = Vocabulary(words=(*SPECIAL, "a", "b"), num_trained_words=4, characters=SPECIAL, labels={})
    module = WordEmbeddingConfig(size=400).build(vocabulary)
    torch.testing.assert_close(module.trained.detach().norm(dim=1), torch.tensor([0.0, 1, 1, 1]), atol=0.2, rtol=0)


TEXTS = [["vale", "moro", "vale", "tarn"], ["moro"]]
VOCABULARY = Vocabulary(
    words=(*SPECIAL, "vale", "moro", "tarn"), num_trained_words=5, characters=(*SPECIAL, *"aelmnortv"), labels={}
)


def make_embedder(*mixes: str) -> Embedder:
    torch.manual_seed(2)
    words = WordEmbeddingConfig(size=5).build(VOCABULARY)
    characters = CharacterCnnConfig(filters=7).build(len(VOCABULARY.characters))
    bilm, learned = random_bilm(TINY_OPTIONS), {name: ScalarMix(3) for name in mixes}
    elmo = FrozenLayers(Provider(lambda: bilm), bilm.output_size, learned, dropout=0.0) if mixes else None
    return Embedder(words, characters, elmo)


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


def test_config_opens_the_pretrained_words(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("tarn 1 2\nvale 3 4\n")
    config = EmbedderConfig.model_validate({"words": {"size": 2, "vectors": str(path)}})
    vectors = config.word_vectors()
    assert vectors is not None
    assert vectors.words == ("tarn", "vale")
    assert EmbedderConfig.model_validate({"words": {"size": 2}}).word_vectors() is None
    assert EmbedderConfig.model_validate({"characters": {}}).word_vectors() is None
    embedder = config.build(VOCABULARY)
    assert embedder.output_size == 2
    assert embedder.words is not None
    assert embedder.words(torch.tensor([[2]])).tolist() == [[[3.0, 4.0]]]
